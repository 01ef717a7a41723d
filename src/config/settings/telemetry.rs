//! Traces, and where they are sent.

use std::time::Duration;

use super::secret::Secret;
use super::upstream::BaseUrl;

/// A receiver of traces that speaks OTLP over HTTP, and which requests are traced.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryConfig {
    /// What `/v1/traces` is added to.
    pub endpoint: BaseUrl,
    /// Headers of every export, which may hold a credential.
    pub headers: Vec<(String, Secret)>,
    /// How long one export may take.
    pub timeout: Duration,
    /// The part of the requests that are traced where the client does not say, from 0 to 1.
    pub sample: f64,
    pub service_name: String,
    /// Whether spans hold what is asked and answered.
    pub content: bool,
    /// Further attributes of the resource.
    pub resource: Vec<(String, String)>,
}
