//! `health`: asks a running gateway whether it takes requests, for images that have no other program to ask with.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use clap::Args;
use http::{Request, StatusCode};

use super::output;
use crate::credentials::TokenClient;

#[derive(Debug, Args)]
pub(super) struct HealthOptions {
    /// The admin address of the gateway, `server.admin` of its config
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8081")]
    admin: SocketAddr,
}

/// Prints the state of the gateway. Exit code 1: it does not take requests.
pub(super) fn ask(options: &HealthOptions) -> Result<ExitCode> {
    let request = Request::get(format!("http://{}/readyz", options.admin)).body(Bytes::new())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let client = TokenClient::default();
    let asked = runtime.block_on(client.send(request));
    let response = asked.map_err(anyhow::Error::msg)?;
    output::print(&String::from_utf8_lossy(response.body()))?;
    Ok(match response.status() {
        StatusCode::OK => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
