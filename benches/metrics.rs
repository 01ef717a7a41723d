//! Reads a metric from the gateway's admin port.

use std::net::SocketAddr;

use anyhow::{Context, Result};

use crate::connection::Connection;

/// Returns the sum of the samples of a metric.
pub async fn read_metric(admin: SocketAddr, name: &str) -> Result<u64> {
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {admin}\r\n\r\n");
    let mut connection = Connection::open(admin).await?;
    let text = connection.exchange(request.as_bytes()).await?;
    let mut sum = 0;
    for line in str::from_utf8(text)?.lines() {
        let Some(rest) = line.strip_prefix(name) else {
            continue;
        };
        if rest.starts_with([' ', '{']) {
            let value = rest.rsplit(' ').next().context("a sample has a value")?;
            sum += value.parse::<u64>()?;
        }
    }
    Ok(sum)
}
