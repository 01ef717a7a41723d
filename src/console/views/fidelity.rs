//! Published scorecards: what gateways keep of requests and responses in translation.

use serde::Serialize;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct FidelityView {
    /// This gateway first.
    pub gateways: Vec<GatewayScoreView>,
}

/// The scorecard of one gateway.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct GatewayScoreView {
    /// Its name and version.
    pub gateway: String,
    /// The day on which it was scored.
    #[cfg_attr(test, schema(format = Date))]
    pub date: String,
    /// The commands that made the result.
    pub commands: Vec<String>,
    pub scenarios: usize,
    /// How many of the 16 pairs it offers.
    pub offered: usize,
    /// The runs in which nothing was lost, changed or added, of the pairs that it offers.
    pub whole: usize,
    pub runs: usize,
    /// The share of them, rounded down.
    pub percent: usize,
    /// All 16 pairs of a client's and an upstream's format.
    pub pairs: Vec<FidelityPairView>,
    /// The losses that most runs have.
    pub losses: Vec<FidelityLossView>,
    /// Differences that formats and gateways may see otherwise; they do not count.
    pub opinions: usize,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct FidelityPairView {
    pub client: &'static str,
    pub upstream: &'static str,
    /// No request of a pair that is not offered came to the upstream; it does not count.
    pub offered: bool,
    pub whole: usize,
    pub runs: usize,
    /// The share, rounded down: only all is 100.
    pub percent: usize,
    /// The runs that lost something, those with JSON.
    pub lost_json: usize,
    /// And those with streams.
    pub lost_streams: usize,
}

/// Losses with one cause.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct FidelityLossView {
    pub what: String,
    pub runs: usize,
    /// Where they are seen, such as `native → chat, messages`.
    pub pairs: Vec<String>,
}
