//! Requests of the gateway's own to upstreams, beside those of clients.

use std::sync::OnceLock;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use pingora_core::connectors::ConnectorOptions;
use pingora_core::protocols::http::client::HttpSession as UpstreamSession;
use pingora_core::{Error, ErrorType, Result};

use crate::proxy::attempt::upstream_credential::with_credential;
use crate::proxy::attempt::upstream_request::upstream_header;
use crate::proxy::timer::ReusableTimer;
use crate::proxy::upstream::pool::UpstreamPool;
use crate::proxy::upstream::session::{UpstreamRequest, send};
use crate::runtime::{Resolver, Upstream};

/// Connections of their own: those of clients' requests belong to another runtime.
pub(in crate::proxy) struct BackgroundClient {
    options: ConnectorOptions,
    /// Made for the first request.
    pool: OnceLock<UpstreamPool>,
    resolver: Resolver,
}

impl BackgroundClient {
    pub(in crate::proxy) fn new(options: ConnectorOptions) -> BackgroundClient {
        BackgroundClient {
            options,
            pool: OnceLock::new(),
            resolver: Resolver::default(),
        }
    }

    fn pool(&self) -> &UpstreamPool {
        let make = || UpstreamPool::new(self.options.clone());
        self.pool.get_or_init(make)
    }

    /// Sends a `GET` for a path behind the base URL, and waits for the header of the response.
    pub(in crate::proxy) async fn get(
        &self,
        upstream: &Upstream,
        path: &str,
        field: Option<(&'static str, &'static str)>,
        connect_timeout: Duration,
    ) -> Result<Box<UpstreamSession>> {
        let addresses = self.resolver.resolve(upstream).await;
        let addresses =
            addresses.map_err(|reason| Error::explain(ErrorType::ConnectError, reason))?;
        let mut failure = Error::explain(ErrorType::ConnectError, "it has no address");
        for address in addresses {
            let peer = self.pool().peer(upstream, address, connect_timeout);
            let connection = match self.pool().connect(&peer).await {
                Ok(connection) => connection,
                Err(error) => {
                    failure = error;
                    continue;
                }
            };
            let mut target = format!("{}{path}", upstream.base.prefix);
            if !upstream.query.is_empty() {
                target.push(if target.contains('?') { '&' } else { '?' });
                target.push_str(&upstream.query);
            }
            let mut header = upstream_header(Method::GET, upstream)?;
            if let Some((name, value)) = field
                && !header.headers.contains_key(name)
            {
                let value = HeaderValue::from_static(value);
                header.insert_header(HeaderName::from_static(name), value)?;
            }
            header.set_raw_path(target.as_bytes())?;
            let body = Default::default();
            if let Some(fetched) = &upstream.credential {
                let credential = fetched.get().await;
                let credential = credential.map_err(|reason| {
                    Error::explain(ErrorType::ConnectError, reason.to_string())
                })?;
                header = with_credential(&credential, header, &body);
            }
            let request = UpstreamRequest { header, body };
            let (timeouts, mut timer) = (upstream.timeouts, ReusableTimer::default());
            let response = send(connection, &peer, &request, &timeouts, &mut timer).await?;
            return Ok(response.session);
        }
        Err(failure)
    }
}
