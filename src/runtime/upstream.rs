//! An upstream, ready to be called: its address, headers, timeouts and limits.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use super::credential::FetchedCredential;
use super::{RuntimeState, UpstreamLoad};
use crate::config::{
    self, Auth, BaseUrl, Breaker, ConcurrencyLimit, HealthCheck, Protocol, RequestShape,
    UpstreamPaths, UpstreamTimeouts, encode_parameter,
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
    /// A credential that is fetched, and added to each request.
    pub credential: Option<Arc<FetchedCredential>>,
    /// Where requests differ from those of the format.
    pub shape: Arc<RequestShape>,
    /// The paths of this format, where they are not the format's own.
    pub paths: Option<UpstreamPaths>,
    /// Parameters of every request, encoded; may hold a credential.
    pub query: String,
    /// The credential among these.
    pub query_secret: Option<SecretString>,
    /// The capabilities of its models, as names and values, unless a model sets them.
    pub capabilities: Vec<(String, String)>,
    /// The same upstream by its further formats; empty for these.
    pub other_formats: Vec<Arc<Upstream>>,
}

impl Upstream {
    pub(super) fn build(settings: config::UpstreamConfig, state: &RuntimeState) -> Upstream {
        let auth = settings.auth.as_ref().and_then(auth_header);
        let configured = settings.headers.iter().filter_map(|(name, value)| {
            Some((name.parse().ok()?, HeaderValue::from_str(value).ok()?))
        });
        let headers: Vec<_> = auth.into_iter().chain(configured).collect();
        let credential = match &settings.auth {
            Some(Auth::Fetched(source)) => Some(state.credential(source.clone())),
            _ => None,
        };
        let (query, query_secret) = query(&settings);
        let shape = Arc::new(settings.shape);
        let load = state.load(&settings.name);
        let name: Arc<str> = settings.name.into();
        let by_format = |format: Format, base: BaseUrl| Upstream {
            name: name.clone(),
            format,
            literal: literal(&base),
            base,
            protocol: settings.protocol,
            timeouts: settings.timeouts,
            concurrency: settings.concurrency,
            load: load.clone(),
            breaker: settings.breaker,
            health: settings.health.clone(),
            brand: settings.brand.clone(),
            headers: headers.clone(),
            credential: credential.clone(),
            paths: shape.paths_of(format).cloned(),
            shape: shape.clone(),
            query: query.clone(),
            query_secret: query_secret.clone(),
            capabilities: settings.capabilities.clone(),
            other_formats: Vec::new(),
        };
        let others = settings.other_formats.into_iter();
        let others = others.map(|(format, base)| Arc::new(by_format(format, base)));
        Upstream {
            other_formats: others.collect(),
            ..by_format(settings.format, settings.base_url)
        }
    }

    /// The upstream by the format that suits a client best: its own, where the upstream speaks it. Models that generate
    /// images only are asked for them by the images API, where the upstream has it.
    pub(super) fn for_client(
        self: &Arc<Upstream>,
        client: Format,
        images_only: bool,
    ) -> &Arc<Upstream> {
        let by = |format: Format| {
            let mut others = self.other_formats.iter();
            match self.format == format {
                true => Some(self),
                false => others.find(|other| other.format == format),
            }
        };
        if self.other_formats.is_empty() {
            return self;
        }
        let wanted = if images_only { Format::Images } else { client };
        by(wanted).or_else(|| by(client)).unwrap_or(self)
    }
}

/// The address where the host is an IP address.
fn literal(base: &BaseUrl) -> Option<SocketAddr> {
    let address = base.host.parse::<IpAddr>().ok()?;
    Some(SocketAddr::new(address, base.port))
}

/// The parameters of every request, and the credential among them.
fn query(settings: &config::UpstreamConfig) -> (String, Option<SecretString>) {
    let Some(Auth::Query { name, value }) = &settings.auth else {
        return (settings.shape.query.clone(), None);
    };
    let fixed = &settings.shape.query;
    let secret = encode_parameter(name, value.expose_secret());
    let between = if fixed.is_empty() { "" } else { "&" };
    (format!("{fixed}{between}{secret}"), Some(value.clone()))
}

fn auth_header(auth: &Auth) -> Option<(HeaderName, HeaderValue)> {
    let (name, text) = match auth {
        Auth::Bearer(token) => (
            http::header::AUTHORIZATION,
            format!("Bearer {}", token.expose_secret()),
        ),
        Auth::Header { name, value } => (name.parse().ok()?, value.expose_secret().to_owned()),
        Auth::Query { .. } | Auth::Fetched(_) => return None,
    };
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}
