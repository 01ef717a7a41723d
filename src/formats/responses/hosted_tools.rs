//! Tools that the upstream runs itself: web search and the code interpreter.

use serde::Serialize;

use crate::json::Fields;
use crate::model::{ApiError, HostedTool, Json, Losses, Search, Text};

/// Decodes the `type` of a tool; `None`: no other format has such a tool.
pub(super) fn decode_type(kind: &str) -> Option<HostedTool> {
    match kind {
        "web_search"
        | "web_search_2025_08_26"
        | "web_search_preview"
        | "web_search_preview_2025_03_11" => Some(HostedTool::Search),
        "code_interpreter" => Some(HostedTool::CodeExecution),
        _ => None,
    }
}

/// Encodes the `type` of a tool.
pub(super) const fn encode_type(tool: HostedTool) -> &'static str {
    match tool {
        HostedTool::Search => "web_search",
        HostedTool::CodeExecution => "code_interpreter",
    }
}

/// Decodes the settings of a web search.
pub(super) fn decode_web_search<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Search<'a>, ApiError> {
    let mut search = Search {
        context_size: fields.text("search_context_size")?,
        ..Search::default()
    };
    if let Some(filters) = fields.node("filters") {
        filters.fields(|mut fields| {
            fields.each("allowed_domains", |_, node| {
                search.allowed_domains.push(node.text()?);
                Ok(())
            })?;
            fields.finish(losses);
            Ok(())
        })?;
    }
    if let Some(location) = fields.node("user_location") {
        location.fields(|mut fields| {
            // The only type of location is `approximate`.
            fields.text("type")?;
            search.city = fields.text("city")?;
            search.region = fields.text("region")?;
            search.country = fields.text("country")?;
            search.timezone = fields.text("timezone")?;
            fields.finish(losses);
            Ok(())
        })?;
    }
    Ok(search)
}

/// The settings of a web search as they are encoded.
#[derive(Serialize)]
pub(super) struct WebSearchSettings<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    search_context_size: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filters: Option<WebSearchFilters<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_location: Option<WebSearchLocation<'r>>,
}

#[derive(Serialize)]
pub(super) struct WebSearchFilters<'r> {
    allowed_domains: &'r [Text<'r>],
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "approximate")]
pub(super) struct WebSearchLocation<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    city: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    country: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timezone: Option<&'r str>,
}

/// Encodes the settings of a web search.
pub(super) fn encode_web_search<'r>(search: &'r Search<'_>) -> WebSearchSettings<'r> {
    let location = [
        &search.city,
        &search.region,
        &search.country,
        &search.timezone,
    ];
    let located = location.into_iter().any(Option::is_some);
    let allowed_domains = search.allowed_domains.as_slice();
    WebSearchSettings {
        search_context_size: search.context_size.as_deref(),
        filters: (!allowed_domains.is_empty()).then_some(WebSearchFilters { allowed_domains }),
        user_location: located.then_some(WebSearchLocation {
            city: search.city.as_deref(),
            region: search.region.as_deref(),
            country: search.country.as_deref(),
            timezone: search.timezone.as_deref(),
        }),
    }
}

/// Decodes `container`: one made for this request, or the id of one that the vendor stores.
pub(super) fn decode_container(
    fields: &mut Fields<'_, '_>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let Some(node) = fields.node("container") else {
        return Ok(());
    };
    if matches!(node.value, Json::Str(_)) {
        let path = node.path;
        let message = format!("{path}: containers are not kept between requests");
        return Err(ApiError::invalid(message).at(path.to_string()));
    }
    node.fields(|mut fields| {
        fields.text("type")?;
        fields.finish(losses);
        Ok(())
    })
}

/// The container of the code interpreter as it is encoded: one made for the request.
#[derive(Serialize)]
#[serde(tag = "type", rename = "auto")]
pub(super) struct CodeInterpreterContainer {}
