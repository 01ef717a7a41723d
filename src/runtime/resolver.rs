//! Host names to addresses, asynchronously, remembered as long as the answer allows.

use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;

use hickory_resolver::TokioResolver;

use super::Upstream;

/// The system's resolver settings and hosts file; its own cache keeps answers for their TTL.
#[derive(Default)]
pub struct Resolver {
    resolver: OnceLock<TokioResolver>,
}

impl Resolver {
    /// One address of each family, the one to try first at the front: names commonly have IPv6
    /// addresses that the machine has no way to, or that the server does not listen on.
    /// Must be called from within the runtime that will use the answer.
    pub async fn resolve(&self, upstream: &Upstream) -> Result<Vec<SocketAddr>, String> {
        if let Some(literal) = upstream.literal {
            return Ok(vec![literal]);
        }
        self.resolve_host(&upstream.base.host, upstream.base.port)
            .await
    }

    /// The same for a name that is no upstream's.
    pub async fn resolve_host(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        let resolver = self.resolver()?;
        let found = resolver
            .lookup_ip(host)
            .await
            .map_err(|error| format!("cannot resolve {host}: {error}"))?;
        let first = |wanted: fn(&IpAddr) -> bool| found.iter().find(wanted);
        let addresses: Vec<_> = [first(IpAddr::is_ipv4), first(IpAddr::is_ipv6)]
            .into_iter()
            .flatten()
            .map(|address| SocketAddr::new(address, port))
            .collect();
        if addresses.is_empty() {
            return Err(format!("cannot resolve {host}: no address"));
        }
        Ok(addresses)
    }

    /// Made when a name is first looked up; settings that cannot be read are read again next time.
    fn resolver(&self) -> Result<&TokioResolver, String> {
        if let Some(resolver) = self.resolver.get() {
            return Ok(resolver);
        }
        let built = TokioResolver::builder_tokio().and_then(|builder| builder.build());
        let built = built.map_err(|error| format!("the resolver's settings: {error}"))?;
        Ok(self.resolver.get_or_init(|| built))
    }
}
