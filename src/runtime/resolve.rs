//! Host names to addresses, asynchronously, remembered as long as the answer allows.

use std::net::SocketAddr;
use std::sync::OnceLock;

use hickory_resolver::TokioResolver;

use super::Upstream;

/// The system's resolver settings and hosts file; its own cache keeps answers for their TTL.
#[derive(Default)]
pub struct Names {
    resolver: OnceLock<Option<TokioResolver>>,
}

impl Names {
    /// Must be called from within the runtime that will use the answer.
    pub async fn address(&self, upstream: &Upstream) -> Result<SocketAddr, String> {
        if let Some(literal) = upstream.literal {
            return Ok(literal);
        }
        let host = upstream.base.host.as_str();
        let resolver = self
            .resolver
            .get_or_init(|| TokioResolver::builder_tokio().ok()?.build().ok())
            .as_ref()
            .ok_or("the system's resolver settings cannot be read")?;
        let found = resolver
            .lookup_ip(host)
            .await
            .map_err(|error| format!("cannot resolve {host}: {error}"))?;
        found
            .iter()
            .next()
            .map(|address| SocketAddr::new(address, upstream.base.port))
            .ok_or_else(|| format!("cannot resolve {host}: no address"))
    }
}
