//! An upstream, ready to be called: its address, headers, timeouts and limits.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use super::credential::FetchedCredential;
use super::{IdOrigin, RuntimeState, UpstreamDiscovery, UpstreamLoad, UpstreamProxy};
use crate::config::{
    self, Auth, BaseUrl, Breaker, ConcurrencyLimit, HealthCheck, Protocol, ProxyConfig,
    RequestShape, UpstreamPaths, UpstreamTimeouts, UpstreamTls, encode_parameter,
};
use crate::formats::Operation;
use crate::model::Format;

/// An upstream of the config with its state.
pub struct Upstream {
    pub name: Arc<str>,
    pub format: Format,
    pub base: BaseUrl,
    /// Marks the ids that it gives.
    pub id_origin: IdOrigin,
    /// The address that connections go to, where it is one; names are resolved for each attempt.
    pub literal: Option<SocketAddr>,
    /// Absent: connections go to the upstream itself.
    pub proxy: Option<Arc<UpstreamProxy>>,
    /// Absent: the certificates of the system.
    pub tls: Option<Arc<UpstreamTls>>,
    /// Connections are shared only within a group: the same certificates, and the same tunnel of the same proxy.
    pub connection_group: u64,
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
    /// Absent: its list of models is not read. Also for its further formats.
    pub discovery: Option<UpstreamDiscovery>,
    /// The same upstream by its further formats; empty for these.
    pub other_formats: Vec<Arc<Upstream>>,
    /// The same upstream for the endpoints that it has beside those of the responses format, where it has no chat format.
    beside_responses: Option<Arc<Upstream>>,
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
        let discovery = UpstreamDiscovery::new(&settings, |key| state.discovered(key));
        let (query, query_secret) = query(&settings);
        let shape = Arc::new(settings.shape);
        let load = state.load(&settings.name);
        let name: Arc<str> = settings.name.into();
        let tls = settings.tls.map(Arc::new);
        let by_format = |format: Format, base: BaseUrl, proxy: Option<ProxyConfig>| {
            let proxy = proxy.map(|proxy| Arc::new(UpstreamProxy::new(&proxy, &base)));
            Upstream {
                name: name.clone(),
                format,
                literal: match &proxy {
                    Some(proxy) => literal(&proxy.host, proxy.port),
                    None => literal(&base.host, base.port),
                },
                connection_group: connection_group(
                    tls.as_deref().filter(|_| base.tls),
                    proxy.as_deref(),
                ),
                proxy,
                tls: tls.clone().filter(|_| base.tls),
                id_origin: IdOrigin::of(&base),
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
                discovery: None,
                other_formats: Vec::new(),
                beside_responses: None,
            }
        };
        let formats = std::iter::once((settings.format, settings.base_url));
        let formats = formats.chain(settings.other_formats);
        let proxies = settings.proxies.into_iter().chain(std::iter::repeat(None));
        let mut endpoints: Vec<(Format, BaseUrl, Option<ProxyConfig>)> = formats
            .zip(proxies)
            .map(|((format, base), proxy)| (format, base, proxy))
            .collect();
        let has_chat = endpoints.iter().any(|(format, ..)| *format == Format::Chat);
        let mut of_responses = endpoints.iter();
        let of_responses = of_responses.find(|(format, ..)| *format == Format::Responses);
        let beside_responses = of_responses.filter(|_| !has_chat).cloned();
        let beside_responses =
            beside_responses.map(|(_, base, proxy)| Arc::new(by_format(Format::Chat, base, proxy)));
        let (format, base, proxy) = endpoints.remove(0);
        let others = endpoints.into_iter();
        let others = others.map(|(format, base, proxy)| Arc::new(by_format(format, base, proxy)));
        Upstream {
            other_formats: others.collect(),
            discovery,
            beside_responses,
            ..by_format(format, base, proxy)
        }
    }

    /// Tells whether the upstream is known to have no endpoint for an operation.
    pub fn has_no_endpoint(&self, operation: Operation) -> bool {
        let paths = self.paths.as_ref();
        paths.is_some_and(|paths| paths.lacks(operation))
    }

    /// The upstream by the format that suits a client best: its own, where the upstream speaks it. Models that generate
    /// images only are asked for them by the images API, where the upstream has it, and embeddings are asked for in a
    /// format that has them.
    pub fn for_request(
        self: &Arc<Upstream>,
        client: Format,
        operation: Operation,
        images_only: bool,
    ) -> &Arc<Upstream> {
        let by = |format: Format| {
            let mut others = self.other_formats.iter();
            match self.format == format {
                true => Some(self),
                false => others.find(|other| other.format == format),
            }
        };
        if let Operation::Embed(_) = operation {
            let own = by(client).or(self.beside_responses.as_ref());
            let translated = || by(Format::Chat).or_else(|| by(Format::Native));
            return own.or_else(translated).unwrap_or(self);
        }
        if let Operation::Passthrough(_) = operation {
            return by(Format::Chat)
                .or(self.beside_responses.as_ref())
                .unwrap_or(self);
        }
        if self.other_formats.is_empty() {
            return self;
        }
        let wanted = if images_only { Format::Images } else { client };
        by(wanted).or_else(|| by(client)).unwrap_or(self)
    }
}

/// The address where the host is an IP address.
fn literal(host: &str, port: u16) -> Option<SocketAddr> {
    let address = host.parse::<IpAddr>().ok()?;
    Some(SocketAddr::new(address, port))
}

/// Differs for all that a connection depends on beside address and name; 0 for plain upstreams.
fn connection_group(tls: Option<&UpstreamTls>, proxy: Option<&UpstreamProxy>) -> u64 {
    if tls.is_none() && proxy.is_none() {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    if let Some(tls) = tls {
        tls.ca.hash(&mut hasher);
        let client = tls.client.as_ref();
        client
            .map(|client| (&client.chain, &client.key))
            .hash(&mut hasher);
    }
    proxy.map(|proxy| &proxy.connect_request).hash(&mut hasher);
    hasher.finish()
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
