//! Resolves host names asynchronously; answers are cached for their TTL.

use std::net::{IpAddr, SocketAddr};
use std::sync::OnceLock;

use hickory_resolver::TokioResolver;

use super::Upstream;

/// A resolver with the system's settings and hosts file.
#[derive(Default)]
pub struct Resolver {
    resolver: OnceLock<TokioResolver>,
}

impl Resolver {
    /// Returns one address of each family, IPv4 first: hosts often have IPv6 addresses that are not
    /// reachable. Must be called from within the runtime that will use the answer.
    pub async fn resolve(&self, upstream: &Upstream) -> Result<Vec<SocketAddr>, String> {
        if let Some(literal) = upstream.literal {
            return Ok(vec![literal]);
        }
        // A proxy resolves the name of the upstream itself.
        let (host, port) = match &upstream.proxy {
            Some(proxy) => (&proxy.host, proxy.port),
            None => (&upstream.base.host, upstream.base.port),
        };
        self.resolve_host(host, port).await
    }

    /// Resolves a host that is no upstream.
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

    /// Builds the resolver with the first lookup; after a failure the next lookup tries again.
    fn resolver(&self) -> Result<&TokioResolver, String> {
        if let Some(resolver) = self.resolver.get() {
            return Ok(resolver);
        }
        let built = TokioResolver::builder_tokio().and_then(|builder| builder.build());
        let built = built
            .map_err(|error| format!("cannot read the resolver settings of the system: {error}"))?;
        Ok(self.resolver.get_or_init(|| built))
    }
}
