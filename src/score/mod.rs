//! Scores a gateway: a strict upstream of all four formats, a client of each, and scenarios as data files between them.

mod client_view;
mod driver;
mod every_scenario;
mod exchange;
mod facts;
mod fault_rules;
mod golden;
mod golden_files;
mod http_client;
mod judge;
mod latency;
mod peer_config;
mod report;
mod said;
mod scenario;
mod scenario_files;
mod upstream;
mod wire;

pub use driver::{Driver, ScoredGateway, ScoredRun};
pub use latency::measure;
pub use peer_config::PeerGateway;
pub use report::{PublishedGateway, PublishedResult, ScoreCount, Scorecard, page};
pub use scenario::Scenario;
pub use upstream::StrictUpstream;
pub use wire::WireFormat;
