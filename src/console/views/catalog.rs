//! Models, as the catalog for people shows them.

use serde::Serialize;

use super::Decimal;
use crate::config::{Amount, Pricing};

/// Some models, in the order of the config file.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ModelsView {
    /// How many there are, on all pages.
    pub total: usize,
    pub page: usize,
    pub pages: usize,
    pub models: Vec<ModelView>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ModelView {
    pub id: String,
    pub provider: String,
    #[serde(rename = "type")]
    pub model_type: String,
    pub features: Vec<String>,
    /// The most input that it takes, in tokens; null: unknown.
    pub max_input_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    /// What the prices are in, as the config says it.
    pub currency: String,
    /// Empty: the model is free.
    pub prices: Vec<PriceView>,
    /// The formats of its upstreams.
    pub formats: Vec<&'static str>,
    pub api_doc_url: Option<String>,
    /// What is set of its capabilities, as names and values.
    #[serde(skip)]
    #[cfg_attr(test, schema(ignore))]
    pub capabilities: Vec<(String, String)>,
    /// What clients of each format lose; empty for models that have no conversations or images.
    pub clients: Vec<ClientLossesView>,
}

impl ModelView {
    pub fn price(&self, item: &str) -> Option<Decimal> {
        let price = self.prices.iter().find(|price| price.item == item);
        price.map(|price| price.price)
    }
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PriceView {
    /// The name in the config.
    pub item: &'static str,
    /// `million_tokens`, `request`, `second` or `minute`.
    pub unit: &'static str,
    #[cfg_attr(test, schema(value_type = f64))]
    pub price: Decimal,
}

impl PriceView {
    /// The prices of a model that are set.
    pub fn list(pricing: &Pricing) -> Vec<PriceView> {
        const TOKENS: &str = "million_tokens";
        let prices: [(&'static str, &'static str, &Option<Amount>); 9] = [
            ("input", TOKENS, &pricing.input),
            ("output", TOKENS, &pricing.output),
            ("cached_input", TOKENS, &pricing.cached_input),
            ("cache_write", TOKENS, &pricing.cache_write),
            ("thinking", TOKENS, &pricing.thinking),
            ("image_output", TOKENS, &pricing.image_output),
            ("per_request", "request", &pricing.per_request),
            ("per_second", "second", &pricing.per_second),
            ("per_audio_minute", "minute", &pricing.per_audio_minute),
        ];
        let prices = prices.into_iter().filter_map(|(item, unit, amount)| {
            let price = Decimal(amount.as_ref()?.money);
            Some(PriceView { item, unit, price })
        });
        prices.collect()
    }
}

/// What clients of one format lose on a model, as far as it was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ClientLossesView {
    /// The format of the client.
    pub client: &'static str,
    /// The format that the upstream is asked in.
    pub upstream: &'static str,
    /// Both are the same: nothing is translated.
    pub passes_through: bool,
    /// Paths in the client's request.
    pub dropped: Vec<String>,
    pub adjusted: Vec<String>,
    /// Requests with these are refused.
    pub refused: Vec<String>,
}

impl ClientLossesView {
    pub const fn is_empty(&self) -> bool {
        self.dropped.is_empty() && self.adjusted.is_empty() && self.refused.is_empty()
    }
}
