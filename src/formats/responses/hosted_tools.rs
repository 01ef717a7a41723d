//! Tools that the upstream runs itself: web search and the code interpreter.

use serde::Serialize;

use crate::formats::search_location::{SearchLocation, UserLocation, decode_search_location};
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
            decode_search_location(fields, &mut search, losses)
        })?;
    }
    Ok(search)
}

/// The settings of a web search as they are encoded.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct WebSearchSettings<'r> {
    search_context_size: Option<&'r str>,
    filters: Option<WebSearchFilters<'r>>,
    user_location: Option<UserLocation<'r>>,
}

#[derive(Serialize)]
pub(super) struct WebSearchFilters<'r> {
    allowed_domains: &'r [Text<'r>],
}

/// Encodes the settings of a web search.
pub(super) fn encode_web_search<'r>(search: &'r Search<'_>) -> WebSearchSettings<'r> {
    let allowed_domains = search.allowed_domains.as_slice();
    WebSearchSettings {
        search_context_size: search.context_size.as_deref(),
        filters: (!allowed_domains.is_empty()).then_some(WebSearchFilters { allowed_domains }),
        user_location: SearchLocation::of(search).map(UserLocation::Approximate),
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
