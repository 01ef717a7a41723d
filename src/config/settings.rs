//! What the YAML file says, as plain data: one struct per table of the config reference.

mod stores;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;

pub use stores::{JournalConfig, LimitsStore, ServerUrl, StoreConfig};

use crate::model::{Format, Money};

#[derive(Debug, Clone)]
pub struct Config {
    pub server: ServerConfig,
    /// Absent: nothing outlives the process.
    pub store: Option<StoreConfig>,
    /// Absent: limits of keys hold per process.
    pub limits_store: Option<LimitsStore>,
    pub journal: JournalConfig,
    pub images: ImagesConfig,
    pub keys: Vec<KeyConfig>,
    pub upstreams: Vec<UpstreamConfig>,
    pub models: Vec<ModelConfig>,
}

/// Images that are made later, and files that are kept for their addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagesConfig {
    pub tasks: TasksConfig,
    /// Whether images that come as addresses are fetched at once and served from here.
    pub persist: bool,
    pub files: FilesConfig,
    /// What addresses of files begin with; absent: as the client wrote the gateway's own.
    pub public_url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TasksConfig {
    /// Those that run at once.
    pub at_once: u64,
    /// Those that may wait for their turn.
    pub waiting: u64,
    /// From the request until its result is gone.
    pub ttl: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesConfig {
    /// Of one file.
    pub limit: usize,
    /// Of all of them.
    pub size: usize,
    pub ttl: Duration,
    /// For fetching one.
    pub timeout: Duration,
    /// Hosts, with a port where they need one, that are trusted although they are not on the
    /// public network.
    pub hosts: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct ServerConfig {
    pub listen: Vec<Listen>,
    /// Absent: no admin port is opened.
    pub admin: Option<SocketAddr>,
    pub body_limit: usize,
    pub drain_timeout: Duration,
    pub on_unsupported: OnUnsupported,
    /// Native requests for native upstreams are held against the rules of the format too.
    pub validate_native: bool,
    pub access_log: AccessLogConfig,
    pub timeouts: ClientTimeouts,
    /// Calls served at once, over all keys; absent: no limit.
    pub max_in_flight: Option<u64>,
    /// Absent: nothing is kept of a conversation between its requests.
    pub conversations: Option<ConversationsConfig>,
}

/// How much is kept of conversations between their requests, and for how long after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConversationsConfig {
    pub size: usize,
    pub ttl: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    pub addr: SocketAddr,
    pub tls: Option<TlsFiles>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

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
    /// How long a stream may say nothing before a sign of life is sent; absent: for ever.
    pub keep_alive: Option<Duration>,
}

#[derive(Debug, Clone)]
pub struct KeyConfig {
    pub name: String,
    /// SHA-256 of the secret; the secret itself is forgotten while the file is read.
    pub sha256: [u8; 32],
    /// In the currency of the prices; absent: unlimited quota.
    pub spending_cap: Option<Amount>,
    /// When spending begins again at nothing.
    pub reset: Reset,
    /// Globs; absent: every model.
    pub models: Option<Vec<String>>,
    pub limits: Limits,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    pub requests_per_minute: Option<u64>,
    pub tokens_per_minute: Option<u64>,
    pub concurrency: Option<u64>,
}

#[derive(Clone)]
pub struct UpstreamConfig {
    pub name: String,
    pub format: Format,
    pub base_url: BaseUrl,
    pub auth: Option<Auth>,
    pub headers: Vec<(String, String)>,
    pub timeouts: UpstreamTimeouts,
    pub protocol: Protocol,
    pub brand: String,
    pub concurrency: ConcurrencyLimit,
    pub breaker: Option<Breaker>,
    pub health: Option<HealthCheck>,
}

/// By hand, because header values may be credentials.
impl fmt::Debug for UpstreamConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("Upstream")
            .field("name", &self.name)
            .field("format", &self.format)
            .field("base_url", &self.base_url)
            .field("auth", &self.auth)
            .field("headers", &headers)
            .field("timeouts", &self.timeouts)
            .field("protocol", &self.protocol)
            .field("brand", &self.brand)
            .field("concurrency", &self.concurrency)
            .field("breaker", &self.breaker)
            .field("health", &self.health)
            .finish()
    }
}

/// `https://host:port/prefix`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseUrl {
    pub tls: bool,
    /// A name or an address literal, IPv6 without brackets.
    pub host: String,
    pub port: u16,
    /// What stands in the `host` header: the port only where it is not the scheme's own.
    pub authority: String,
    /// Without a trailing slash; empty when the URL has no path.
    pub prefix: String,
}

#[derive(Debug, Clone)]
pub enum Auth {
    Bearer(SecretString),
    Header { name: String, value: SecretString },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpstreamTimeouts {
    pub connect: Duration,
    /// From the last byte of the request to the first of the reply; absent: for ever.
    pub first_byte: Option<Duration>,
    /// Between two pieces of a reply; absent: for ever.
    pub idle: Option<Duration>,
    /// From the start of an attempt to the last byte of its reply; absent: for ever.
    pub total: Option<Duration>,
}

/// How many requests an upstream gets at once, and how many wait for their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConcurrencyLimit {
    /// Absent: no limit.
    pub max_in_flight: Option<u64>,
    pub queue: u64,
    pub queue_timeout: Duration,
}

/// When an upstream that fails is left alone for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Breaker {
    /// Failures in a row.
    pub failures: u32,
    /// Failures among a hundred requests of the last moments.
    pub percent: u32,
    pub open_for: Duration,
}

/// A request of the gateway's own that shows whether an upstream is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// Behind the base URL.
    pub path: String,
    pub interval: Duration,
    pub timeout: Duration,
}

/// Which HTTP is spoken to an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// With TLS whatever the two agree on, HTTP/1.1 in the clear.
    Auto,
    Http1,
    /// Without asking: in the clear this is HTTP/2 with prior knowledge.
    Http2,
}

#[derive(Debug, Clone)]
pub struct ModelConfig {
    pub id: String,
    pub provider: String,
    pub model_type: String,
    pub features: Vec<String>,
    pub pricing: Pricing,
    pub api_doc_url: Option<String>,
    pub max_output_tokens: Option<u64>,
    /// Flag name and value as written; what each means is known where requests are encoded.
    pub capabilities: Vec<(String, String)>,
    pub upstreams: Vec<TargetConfig>,
    pub fallbacks: Vec<String>,
    pub balance: Balance,
    pub retries: Retries,
    pub timeouts: TimeoutChanges,
}

/// Which of a model's upstreams comes first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Balance {
    #[default]
    Weighted,
    /// The one with the fewest requests for its weight.
    LeastInFlight,
    /// Always the same for the same key: upstreams remember prompts they have seen.
    Key,
    /// Always the same for the same value of a header.
    Header(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Absent: every upstream of the model and of its fallbacks once.
    pub attempts: Option<usize>,
    /// Until the first content of a reply.
    pub per_attempt_timeout: Option<Duration>,
    /// The same over all attempts.
    pub total_timeout: Option<Duration>,
    /// Before an upstream is asked again; doubled every time.
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

/// What a model says otherwise than its upstreams; `Some(None)` is "off".
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
    /// It answers with images and with nothing else.
    pub fn is_image_model(&self) -> bool {
        self.model_type == "image"
    }

    pub fn has_image_output(&self) -> bool {
        let mut features = self.features.iter();
        self.is_image_model() || features.any(|feature| feature == "image_output")
    }
}

/// What a model costs. Those of tokens are for a million of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pricing {
    pub currency: Option<String>,
    pub input: Option<Amount>,
    pub output: Option<Amount>,
    pub per_request: Option<Amount>,
    pub per_second: Option<Amount>,
    /// These two absent: as the input.
    pub cached_input: Option<Amount>,
    pub cache_write: Option<Amount>,
    /// These two absent: as the output.
    pub thinking: Option<Amount>,
    pub image_output: Option<Amount>,
}

impl Pricing {
    /// The label of its prices.
    pub fn currency(&self) -> &str {
        self.currency.as_deref().unwrap_or("USD per 1M tokens")
    }

    /// Nothing has a price.
    pub const fn is_free(&self) -> bool {
        self.input.is_none()
            && self.output.is_none()
            && self.per_request.is_none()
            && self.per_second.is_none()
            && self.cached_input.is_none()
            && self.cache_write.is_none()
            && self.thinking.is_none()
            && self.image_output.is_none()
    }
}

/// Money, and how it is written in the file: the catalog shows it so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amount {
    pub written: String,
    pub money: Money,
}

/// How long a spending cap holds. Days and months are those of UTC.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reset {
    /// For good.
    #[default]
    Never,
    Daily,
    Monthly,
}

impl Reset {
    pub const WORDS: [(&str, Reset); 3] = [
        ("none", Reset::Never),
        ("daily", Reset::Daily),
        ("monthly", Reset::Monthly),
    ];

    pub fn word(self) -> &'static str {
        let found = Reset::WORDS.iter().find(|(_, reset)| *reset == self);
        found.map_or("none", |(word, _)| word)
    }

    pub fn of_word(word: &str) -> Option<Reset> {
        let found = Reset::WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, reset)| *reset)
    }
}

/// One of a model's upstreams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetConfig {
    pub name: String,
    /// The upstream's own name for the model; absent: the id itself.
    pub model: Option<String>,
    pub weight: u32,
    /// The lowest is tried first.
    pub priority: u32,
}
