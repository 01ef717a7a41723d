//! An upstream, ready to be called: its address, headers, timeouts and limits.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use secrecy::ExposeSecret as _;

use super::{RuntimeState, UpstreamLoad};
use crate::config::{
    self, Auth, BaseUrl, Breaker, ConcurrencyLimit, HealthCheck, Protocol, UpstreamTimeouts,
};
use crate::model::Format;

/// An upstream of the config with its state.
pub struct Upstream {
    pub name: Arc<str>,
    pub format: Format,
    pub base: BaseUrl,
    /// The address where the host is an IP address; names are resolved for each attempt.
    pub literal: Option<SocketAddr>,
    pub protocol: Protocol,
    pub timeouts: UpstreamTimeouts,
    pub concurrency: ConcurrencyLimit,
    pub load: Arc<UpstreamLoad>,
    /// Absent: no circuit breaker.
    pub breaker: Option<Breaker>,
    pub health: Option<HealthCheck>,
    /// The vendor's prefix in the names of its hosted tools.
    pub brand: String,
    /// Credentials and configured headers, in that order.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

impl Upstream {
    pub(super) fn build(settings: config::UpstreamConfig, state: &RuntimeState) -> Upstream {
        let auth = settings.auth.and_then(|auth| auth_header(&auth));
        let configured = settings.headers.iter().filter_map(|(name, value)| {
            Some((name.parse().ok()?, HeaderValue::from_str(value).ok()?))
        });
        let literal = settings
            .base_url
            .host
            .parse::<IpAddr>()
            .ok()
            .map(|address| SocketAddr::new(address, settings.base_url.port));
        Upstream {
            load: state.load(&settings.name),
            name: settings.name.into(),
            format: settings.format,
            headers: auth.into_iter().chain(configured).collect(),
            base: settings.base_url,
            literal,
            protocol: settings.protocol,
            timeouts: settings.timeouts,
            concurrency: settings.concurrency,
            breaker: settings.breaker,
            health: settings.health,
            brand: settings.brand,
        }
    }
}

fn auth_header(auth: &Auth) -> Option<(HeaderName, HeaderValue)> {
    let (name, text) = match auth {
        Auth::Bearer(token) => (
            http::header::AUTHORIZATION,
            format!("Bearer {}", token.expose_secret()),
        ),
        Auth::Header { name, value } => (name.parse().ok()?, value.expose_secret().to_owned()),
    };
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}
