//! The models on offer, in each of the lists that clients read: the public catalog and one list per kind of SDK.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::config::{Amount, ModelConfig};
use crate::formats::Operation;
use crate::model::{ApiError, Format};

/// A config has no release dates, and SDKs require one. The epoch is what the messages format
/// documents for an unknown date; fixed, so that a list reads the same after every restart.
const CREATED: u64 = 0;
const CREATED_AT: &str = "1970-01-01T00:00:00Z";

/// Page numbers are echoed, and JavaScript counts exactly up to here.
const LAST_PAGE_NUMBER: usize = (1 << 53) - 1;

/// A name on offer, and the model that serves it.
#[derive(Clone, Copy)]
pub struct CatalogEntry<'a> {
    pub id: &'a str,
    pub model: &'a ModelConfig,
}

/// `GET /api/models`. The models come in config order, as everywhere in this module.
pub fn public_page(models: &[CatalogEntry<'_>], query: Option<&str>) -> Result<Vec<u8>, ApiError> {
    let query = Query::new(query);
    let page = query.number(&["page"], 1..=LAST_PAGE_NUMBER)?.unwrap_or(1);
    let page_size = query.number(&["page_size"], 1..=500)?.unwrap_or(50);
    let shown = models.chunks(page_size).nth(page - 1).unwrap_or_default();
    Ok(json(&PublicPage {
        success: true,
        page,
        page_size,
        total: models.len(),
        data: shown.iter().map(|entry| public_record(*entry)).collect(),
    }))
}

#[derive(Serialize)]
struct PublicPage<'a> {
    success: bool,
    page: usize,
    page_size: usize,
    total: usize,
    data: Vec<PublicRecord<'a>>,
}

#[derive(Serialize)]
struct PublicRecord<'a> {
    id: &'a str,
    provider: &'a str,
    model_type: &'a str,
    features: &'a [String],
    pricing: PublicPricing<'a>,
    api_doc_url: Option<&'a str>,
}

#[derive(Serialize)]
struct PublicPricing<'a> {
    currency: &'a str,
    input: Option<Box<RawValue>>,
    output: Option<Box<RawValue>>,
    per_request: Option<Box<RawValue>>,
    per_second: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    per_audio_minute: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_input: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_output: Option<Box<RawValue>>,
}

fn public_record(entry: CatalogEntry<'_>) -> PublicRecord<'_> {
    let model = entry.model;
    let pricing = &model.pricing;
    let price = |amount: &Option<Amount>| amount.as_ref().and_then(json_number);
    PublicRecord {
        id: entry.id,
        provider: &model.provider,
        model_type: &model.model_type,
        features: &model.features,
        pricing: PublicPricing {
            currency: pricing.currency(),
            input: price(&pricing.input),
            output: price(&pricing.output),
            per_request: price(&pricing.per_request),
            per_second: price(&pricing.per_second),
            per_audio_minute: price(&pricing.per_audio_minute),
            cached_input: price(&pricing.cached_input),
            cache_write: price(&pricing.cache_write),
            thinking: price(&pricing.thinking),
            image_output: price(&pricing.image_output),
        },
        api_doc_url: model.api_doc_url.as_deref(),
    }
}

/// A price as it was written, digit for digit, but for zeros in front, which JSON does not take.
fn json_number(amount: &Amount) -> Option<Box<RawValue>> {
    let trimmed = amount.written.trim_start_matches('0');
    let whole = if trimmed.starts_with('.') || trimmed.is_empty() {
        "0"
    } else {
        ""
    };
    RawValue::from_string(format!("{whole}{trimmed}")).ok()
}

/// `GET /v1/models` and `GET /v1beta/models`, from the models that the key may use.
pub fn list(
    shape: Format,
    models: &[CatalogEntry<'_>],
    query: Option<&str>,
) -> Result<Vec<u8>, ApiError> {
    let query = Query::new(query);
    match shape {
        Format::Messages => messages_list(models, &query),
        Format::Native => native_list(models, &query),
        _ => Ok(chat_list(models)),
    }
}

/// `GET /v1/models/{id}` and `GET /v1beta/models/{id}`.
pub fn single(shape: Format, entry: CatalogEntry<'_>) -> Vec<u8> {
    match shape {
        Format::Messages => json(&messages_record(entry)),
        Format::Native => json(&native_record(entry)),
        _ => json(&chat_record(entry)),
    }
}

#[derive(Serialize)]
struct ChatList<'a> {
    object: &'static str,
    data: Vec<ChatRecord<'a>>,
}

#[derive(Serialize)]
struct ChatRecord<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'a str,
}

/// Whole: this format has no pages.
fn chat_list(models: &[CatalogEntry<'_>]) -> Vec<u8> {
    json(&ChatList {
        object: "list",
        data: models.iter().map(|entry| chat_record(*entry)).collect(),
    })
}

fn chat_record(entry: CatalogEntry<'_>) -> ChatRecord<'_> {
    ChatRecord {
        id: entry.id,
        object: "model",
        created: CREATED,
        owned_by: &entry.model.provider,
    }
}

#[derive(Serialize)]
struct MessagesList<'a> {
    data: Vec<MessagesRecord<'a>>,
    has_more: bool,
    first_id: Option<&'a str>,
    last_id: Option<&'a str>,
}

/// The SDK's type names every one of these fields, so what is not known is null, not absent.
#[derive(Serialize)]
struct MessagesRecord<'a> {
    r#type: &'static str,
    id: &'a str,
    display_name: &'a str,
    created_at: &'static str,
    lifecycle: &'static str,
    deprecated_at: Option<&'static str>,
    retires_at: Option<&'static str>,
    line: Option<&'static str>,
    capabilities: Option<&'static str>,
    max_input_tokens: Option<u64>,
    max_tokens: Option<u64>,
}

fn messages_list(models: &[CatalogEntry<'_>], query: &Query) -> Result<Vec<u8>, ApiError> {
    let limit = query.number(&["limit"], 1..=1000)?.unwrap_or(20);
    let after = query.position("after_id", models)?;
    let before = query.position("before_id", models)?;
    let listed = if lists_active(query)? { models } else { &[] };
    let (page, has_more) = match (after, before) {
        (Some(_), Some(_)) => {
            return Err(
                ApiError::invalid("after_id and before_id exclude each other").at("before_id"),
            );
        }
        // `has_more` speaks of the direction in which the client pages.
        (None, Some(before)) => {
            let preceding = listed.get(..before).unwrap_or_default();
            let left_out = preceding.len().saturating_sub(limit);
            (&preceding[left_out..], left_out > 0)
        }
        (after, None) => {
            let first = after.map_or(0, |position| position + 1);
            let following = listed.get(first..).unwrap_or_default();
            (
                &following[..following.len().min(limit)],
                following.len() > limit,
            )
        }
    };
    Ok(json(&MessagesList {
        data: page.iter().map(|entry| messages_record(*entry)).collect(),
        has_more,
        first_id: page.first().map(|entry| entry.id),
        last_id: page.last().map(|entry| entry.id),
    }))
}

/// Every model in a config is active, so a client that asks for other stages only sees none.
fn lists_active(query: &Query) -> Result<bool, ApiError> {
    // SDKs differ in how they spell a list: repeated, with brackets or with commas.
    let lifecycles = query.all(&["lifecycle", "lifecycle[]"]);
    let stages: Vec<&str> = lifecycles.flat_map(|(_, value)| value.split(',')).collect();
    let known = |stage: &&str| ["active", "deprecated", "retired"].contains(stage);
    match stages.iter().all(known) {
        true => Ok(stages.is_empty() || stages.contains(&"active")),
        false => {
            Err(ApiError::invalid("lifecycle is active, deprecated or retired").at("lifecycle"))
        }
    }
}

fn messages_record(entry: CatalogEntry<'_>) -> MessagesRecord<'_> {
    MessagesRecord {
        r#type: "model",
        id: entry.id,
        display_name: entry.id,
        created_at: CREATED_AT,
        lifecycle: "active",
        deprecated_at: None,
        retires_at: None,
        line: None,
        capabilities: None,
        max_input_tokens: None,
        max_tokens: entry.model.max_output_tokens,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NativeList<'a> {
    models: Vec<NativeRecord<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
}

/// Proto3 JSON leaves out what is not set, so what is not known is absent.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NativeRecord<'a> {
    name: String,
    version: &'static str,
    display_name: &'a str,
    description: String,
    output_token_limit: Option<u64>,
    supported_generation_methods: &'static [&'static str],
    thinking: Option<bool>,
}

fn native_list(models: &[CatalogEntry<'_>], query: &Query) -> Result<Vec<u8>, ApiError> {
    let first = match query.first(&["pageToken", "page_token"]) {
        None => 0,
        Some((_, "")) => 0,
        Some((name, token)) => {
            let last = position_of_token(models, token).ok_or_else(|| {
                ApiError::invalid("the page token is not valid; list from the first page").at(name)
            })?;
            last + 1
        }
    };
    // As this format documents it: 0 stands for the default, and more than the most for the most.
    let page_size = match query.number(&["pageSize", "page_size"], 0..=i32::MAX as usize)? {
        None | Some(0) => 50,
        Some(size) => size.min(1000),
    };
    let following = &models[first..];
    let page = &following[..following.len().min(page_size)];
    let has_more = following.len() > page.len();
    Ok(json(&NativeList {
        models: page.iter().map(|entry| native_record(*entry)).collect(),
        next_page_token: page.last().filter(|_| has_more).map(|last| token_of(*last)),
    }))
}

/// Names the last model shown rather than a number, so that a reload between two pages neither
/// repeats nor skips a model.
fn token_of(entry: CatalogEntry<'_>) -> String {
    URL_SAFE_NO_PAD.encode(entry.id)
}

fn position_of_token(models: &[CatalogEntry<'_>], token: &str) -> Option<usize> {
    let id = URL_SAFE_NO_PAD.decode(token).ok()?;
    models.iter().position(|entry| entry.id.as_bytes() == id)
}

fn native_record(entry: CatalogEntry<'_>) -> NativeRecord<'_> {
    let model = entry.model;
    let thinks = model.features.iter().any(|feature| feature == "thinking");
    NativeRecord {
        name: format!("models/{}", entry.id),
        // Required by the format; a config knows one version of each model.
        version: "1",
        display_name: entry.id,
        description: format!("{} model of {}", model.model_type, model.provider),
        output_token_limit: model.max_output_tokens,
        supported_generation_methods: native_methods(model),
        thinking: thinks.then_some(true),
    }
}

fn native_methods(model: &ModelConfig) -> &'static [&'static str] {
    match model.usual_operation() {
        Operation::Embed(_) => &["embedContent", "batchEmbedContents", "countTokens"],
        _ => &["generateContent", "streamGenerateContent", "countTokens"],
    }
}

/// The query of a URL, decoded; of a repeated parameter the first counts.
struct Query<'q>(Vec<(Cow<'q, str>, Cow<'q, str>)>);

impl<'q> Query<'q> {
    fn new(query: Option<&'q str>) -> Query<'q> {
        Query(url::form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect())
    }

    /// What is given under any of a parameter's spellings.
    fn all(&self, names: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_ref()))
            .filter(|(name, _)| names.contains(name))
    }

    fn first(&self, names: &[&str]) -> Option<(&str, &str)> {
        self.all(names).next()
    }

    fn number(
        &self,
        names: &[&str],
        range: RangeInclusive<usize>,
    ) -> Result<Option<usize>, ApiError> {
        let Some((name, value)) = self.first(names) else {
            return Ok(None);
        };
        // Rust's own parser also takes a leading plus.
        let digits = value.bytes().all(|byte| byte.is_ascii_digit());
        let number = value.parse().ok().filter(|_| digits);
        match number.filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let (least, most) = range.into_inner();
                let message = format!("{name} must be a whole number from {least} to {most}");
                Err(ApiError::invalid(message).at(name))
            }
        }
    }

    /// Where the model that a parameter names stands in the list.
    fn position(&self, name: &str, models: &[CatalogEntry<'_>]) -> Result<Option<usize>, ApiError> {
        let Some((_, id)) = self.first(&[name]).filter(|(_, id)| !id.is_empty()) else {
            return Ok(None);
        };
        match models.iter().position(|entry| entry.id == id) {
            Some(position) => Ok(Some(position)),
            None => Err(ApiError::invalid(format!("{name} names no model of this list")).at(name)),
        }
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("strings, numbers and lists always have a JSON form")
}

#[cfg(test)]
mod tests;
