//! Tools that the upstream runs itself: web search and code execution.

use serde::Serialize;

use crate::formats::Capabilities;
use crate::formats::search_location::{SearchLocation, UserLocation, decode_search_location};
use crate::json::Fields;
use crate::model::{ApiError, FieldLocation, HostedTool, Losses, Search, Setting, Text};

/// The `name` of a hosted tool; a tool choice refers to hosted tools and functions alike by name.
pub(super) const fn name_of(tool: HostedTool) -> &'static str {
    match tool {
        HostedTool::Search => "web_search",
        HostedTool::CodeExecution => "code_execution",
    }
}

/// Decodes a `web_search_…` tool.
pub(super) fn decode_search<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Search<'a>, ApiError> {
    let mut search = Search::default();
    fields.each("allowed_domains", |_, node| {
        search.allowed_domains.push(node.text()?);
        Ok(())
    })?;
    let Some(node) = fields.node("user_location") else {
        return Ok(search);
    };
    node.fields(|mut fields| {
        fields.text("type")?;
        decode_search_location(fields, &mut search, losses)
    })?;
    Ok(search)
}

/// A hosted tool of a request to an upstream.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum MessagesHostedTool<'a> {
    Search {
        r#type: String,
        name: &'static str,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        allowed_domains: &'a [Text<'a>],
        #[serde(skip_serializing_if = "Option::is_none")]
        user_location: Option<UserLocation<'a>>,
    },
    CodeExecution {
        r#type: &'static str,
        name: &'static str,
    },
}

/// Encodes web search, in the version that the upstream's capabilities name.
pub(super) fn encode_search<'a>(
    search: &'a Search<'_>,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Result<MessagesHostedTool<'a>, ApiError> {
    let location = FieldLocation::Setting(Setting::Search);
    let Some(version) = capabilities.messages_web_search else {
        let message = "the upstream of this model cannot search the web";
        return Err(ApiError::invalid(message).at_location(location));
    };
    if search.context_size.is_some() {
        losses.dropped(location);
    }
    Ok(MessagesHostedTool::Search {
        r#type: format!("web_search_{version}"),
        name: name_of(HostedTool::Search),
        allowed_domains: &search.allowed_domains,
        user_location: SearchLocation::of(search).map(UserLocation::Approximate),
    })
}

/// Encodes code execution.
pub(super) const fn encode_code_execution<'a>() -> MessagesHostedTool<'a> {
    MessagesHostedTool::CodeExecution {
        r#type: "code_execution_20250825",
        name: name_of(HostedTool::CodeExecution),
    }
}
