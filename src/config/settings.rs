//! The settings of the config as plain data: one struct per table of the config reference.

mod auth;
mod azure;
mod connection;
mod console;
mod google;
mod images;
mod prices;
mod request_shape;
mod secret;
mod stores;
mod telemetry;
mod upstream;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use auth::{Auth, AwsSource, CommandSource, CredentialSource};
pub use azure::{AzureApp, AzureGrant, AzureSource, ManagedIdentity};
pub use connection::{ClientCertificate, ProxyConfig, UpstreamTls};
pub use console::{
    ConsoleConfig, IdentityConfig, InspectorAccess, IpNetwork, MailConfig, MailRoute, MailSender,
    MemberKeys, SessionLimits, SignUp, SmtpLogin, SmtpSecurity, SmtpServer,
};
pub use google::{GoogleCredentials, GoogleSource};
pub use images::{FilesConfig, ImagesConfig, TasksConfig};
pub use prices::{Amount, Pricing, Reset};
pub use request_shape::{
    PathTemplate, RequestShape, StreamFraming, UpstreamPaths, encode_parameter,
};
pub use secret::Secret;
pub use stores::{JournalConfig, LimitsStore, ServerUrl, StoreConfig};
pub use telemetry::TelemetryConfig;
pub use upstream::{
    BaseUrl, Breaker, ConcurrencyLimit, Discovery, HealthCheck, Protocol, UpstreamConfig,
    UpstreamTimeouts,
};

use super::problem::{Position, Problem};
use super::shown::ShownLine;
use crate::formats::Operation;

#[derive(Debug, Clone)]
pub struct Config {
    pub server: ServerConfig,
    /// Absent: nothing outlives the process.
    pub store: Option<StoreConfig>,
    /// Absent: the limits of keys are counted per process.
    pub limits_store: Option<LimitsStore>,
    pub journal: JournalConfig,
    /// Absent: there is no console.
    pub console: Option<ConsoleConfig>,
    /// Absent: no traces are made.
    pub telemetry: Option<TelemetryConfig>,
    pub images: ImagesConfig,
    pub keys: Vec<KeyConfig>,
    pub upstreams: Vec<UpstreamConfig>,
    pub models: Vec<ModelConfig>,
    /// Settings that are valid but seldom intended, shown by `check` and at the start.
    pub warnings: Vec<Problem>,
    /// Its lines without secrets, for people.
    pub shown: Arc<[ShownLine]>,
}

/// What commands on the store need of a config.
#[derive(Debug, Clone)]
pub struct StorePart {
    pub store: Option<StoreConfig>,
    pub console: Option<ConsoleConfig>,
    /// Those that could be read; a secret may be missing.
    pub keys: Vec<KeyConfig>,
}

#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub listen: Vec<Listen>,
    /// Absent: no admin port is opened.
    pub admin: Option<SocketAddr>,
    pub body_limit: usize,
    /// Maximum size of all request bodies together.
    pub body_memory: usize,
    pub drain_timeout: Duration,
    /// How long the gateway serves on after a signal, when it says already that it is not ready.
    pub shutdown_delay: Duration,
    pub on_unsupported: OnUnsupported,
    /// Whether native requests for native upstreams are validated too.
    pub validate_native: bool,
    pub access_log: AccessLogConfig,
    pub timeouts: ClientTimeouts,
    /// Maximum number of requests in flight over all keys; absent: no limit.
    pub max_in_flight: Option<u64>,
    /// Maximum number of client connections; absent: as many as the open files allow.
    pub max_connections: Option<u64>,
    /// Absent: no limit of its own.
    pub max_connections_per_address: Option<u64>,
    /// Absent: conversations are not stored.
    pub conversations: Option<ConversationsConfig>,
    /// Whether the catalog is served to everybody.
    pub public_catalog: bool,
    /// The web pages that may call the gateway; absent: none.
    pub cors: Option<CorsOrigins>,
    /// Whether `UPSTREAM/MODEL` is a model; absent: where the config has no `models`.
    pub upstream_prefixes: Option<bool>,
    /// The upstream for names that nothing matches.
    pub default_upstream: Option<String>,
}

/// The origins of web pages, as browsers send them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CorsOrigins {
    Any,
    Listed(Vec<String>),
}

/// The size of the conversation cache, and its TTL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationsConfig {
    pub size: usize,
    pub ttl: Duration,
    /// Maximum size of the responses of one key in the store.
    pub max_bytes_per_key: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    pub addr: SocketAddr,
    pub tls: Option<TlsFiles>,
}

#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Where the config names them.
    pub position: Position,
}

/// The files are what counts, and not where the config names them.
impl PartialEq for TlsFiles {
    fn eq(&self, other: &TlsFiles) -> bool {
        self.cert == other.cert && self.key == other.key
    }
}

impl Eq for TlsFiles {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUnsupported {
    Report,
    Reject,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessLogConfig {
    Off,
    Json,
}

/// How long the gateway waits for its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTimeouts {
    pub header: Duration,
    pub body_idle: Duration,
    /// From the first byte of a body to its last.
    pub body: Duration,
    pub write_idle: Duration,
    /// Idle time of a stream after which a keep-alive is sent; absent: never.
    pub keep_alive: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct KeyConfig {
    pub name: String,
    /// SHA-256 of the secret; the secret itself is not kept.
    pub sha256: [u8; 32],
    /// The secret is so short that it can be guessed.
    pub has_short_secret: bool,
    /// In the currency of the prices; absent: unlimited quota.
    pub spending_cap: Option<Amount>,
    /// When the spending starts again at zero.
    pub reset: Reset,
    /// Globs; absent: every model.
    pub models: Option<Vec<String>>,
    pub limits: Limits,
    /// Where the config file has it; absent: it is a key of the store.
    pub line: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub requests_per_minute: Option<u64>,
    pub tokens_per_minute: Option<u64>,
    pub concurrency: Option<u64>,
}

#[derive(Debug, Clone)]
pub struct ModelConfig {
    pub id: String,
    /// Further names of the model.
    pub aliases: Vec<String>,
    pub origin: ModelOrigin,
    pub provider: String,
    pub model_type: String,
    pub features: Vec<String>,
    pub pricing: Pricing,
    pub api_doc_url: Option<String>,
    pub max_output_tokens: Option<u64>,
    /// The most input that the model takes; absent: unknown.
    pub max_input_tokens: Option<u64>,
    /// The most tokens that the model counts an image of the input as; absent: unknown.
    pub max_image_tokens: Option<u64>,
    /// The longest recording that the model takes; absent: unknown.
    pub max_audio_minutes: Option<u64>,
    /// Names and values as written; the formats interpret them.
    pub capabilities: Vec<(String, String)>,
    pub upstreams: Vec<TargetConfig>,
    pub fallbacks: Vec<String>,
    pub balance: Balance,
    pub retries: Retries,
    pub timeouts: TimeoutChanges,
}

/// Where a model comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelOrigin {
    /// It is an entry of `models`.
    Listed,
    /// It stands for all models of an upstream, whose name is their prefix.
    UpstreamPrefix,
    /// It stands for all names that nothing else matches.
    DefaultUpstream,
    /// It stands for the models that an upstream lists.
    Discovered,
}

/// How the first of a model's upstreams is chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Balance {
    #[default]
    Weighted,
    /// The one with the fewest requests in flight for its weight.
    LeastInFlight,
    /// The same upstream for the same key, for the sake of prompt caches.
    Key,
    /// The same upstream for the same value of a header.
    Header(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Absent: every upstream of the model and of its fallbacks once.
    pub attempts: Option<usize>,
    /// Time until the first content of a response, per attempt.
    pub per_attempt_timeout: Option<Duration>,
    /// Time until the first content, over all attempts.
    pub total_timeout: Option<Duration>,
    /// The pause before an upstream is tried again; doubled every time.
    pub backoff: Duration,
}

impl Default for Retries {
    fn default() -> Retries {
        Retries {
            attempts: None,
            per_attempt_timeout: None,
            total_timeout: None,
            backoff: Duration::from_millis(250),
        }
    }
}

/// The timeouts that a model overrides; `Some(None)` is "off".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeoutChanges {
    pub connect: Option<Duration>,
    pub first_byte: Option<Option<Duration>>,
    pub idle: Option<Option<Duration>>,
    pub total: Option<Option<Duration>>,
}

impl TimeoutChanges {
    pub fn over(&self, upstream: UpstreamTimeouts) -> UpstreamTimeouts {
        UpstreamTimeouts {
            connect: self.connect.unwrap_or(upstream.connect),
            first_byte: self.first_byte.unwrap_or(upstream.first_byte),
            idle: self.idle.unwrap_or(upstream.idle),
            total: self.total.unwrap_or(upstream.total),
        }
    }
}

impl ModelConfig {
    /// Makes a model whose other settings are the defaults.
    pub fn new(
        id: String,
        model_type: &str,
        upstreams: Vec<TargetConfig>,
        origin: ModelOrigin,
    ) -> ModelConfig {
        ModelConfig {
            id,
            aliases: Vec::new(),
            origin,
            provider: ModelConfig::DEFAULT_PROVIDER.to_owned(),
            model_type: model_type.to_owned(),
            features: Vec::new(),
            pricing: Pricing::default(),
            api_doc_url: None,
            max_output_tokens: None,
            max_input_tokens: None,
            max_image_tokens: None,
            max_audio_minutes: None,
            capabilities: Vec::new(),
            upstreams,
            fallbacks: Vec::new(),
            balance: Balance::default(),
            retries: Retries::default(),
            timeouts: TimeoutChanges::default(),
        }
    }

    /// Not the name of an upstream: the catalog is public.
    pub const DEFAULT_PROVIDER: &str = "omniglot";

    /// The id and the aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let aliases = self.aliases.iter().map(String::as_str);
        [self.id.as_str()].into_iter().chain(aliases)
    }

    /// Tells whether the id has a `*`, so that it is no name of a model itself.
    pub fn is_pattern(&self) -> bool {
        self.id.contains('*')
    }

    /// Tells whether the model returns images only.
    pub fn is_image_model(&self) -> bool {
        self.model_type == "image"
    }

    /// Tells whether the model may be asked for an operation. What stands for the models of an upstream may be of any
    /// type, and a feature with the name of a type is a further one.
    pub fn serves(&self, operation: Operation) -> bool {
        match operation.model_type() {
            Some(wanted) => {
                let mut types = self.features.iter().chain([&self.model_type]);
                self.origin != ModelOrigin::Listed || types.any(|own| own == wanted)
            }
            None => {
                operation == Operation::CountTokens
                    || !Operation::MODEL_TYPES.contains(&&*self.model_type)
            }
        }
    }

    /// The operation that models of this type are asked for.
    pub fn usual_operation(&self) -> Operation {
        Operation::of_model_type(&self.model_type)
    }

    pub fn has_image_output(&self) -> bool {
        let mut features = self.features.iter();
        self.is_image_model() || features.any(|feature| feature == "image_output")
    }
}

/// One of a model's upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetConfig {
    pub name: String,
    /// The upstream's own name for the model, with a `*` for the text that the `*` of the id stands for; absent: the
    /// name that the client asked for.
    pub model: Option<String>,
    pub weight: u32,
    /// The lowest is tried first.
    pub priority: u32,
    /// Absent: it serves every request.
    pub when: Option<HeaderCondition>,
}

/// A condition on a header of the client's request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HeaderCondition {
    pub name: String,
    /// A glob.
    pub value: String,
}

impl fmt::Display for HeaderCondition {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}: {}", self.name, self.value)
    }
}
