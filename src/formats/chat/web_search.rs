//! The `web_search_options` of a request.

use serde::Serialize;

use super::reader::{one_of, required};
use crate::formats::search_location::{SearchLocation, decode_search_location};
use crate::json::Fields;
use crate::model::{ApiError, FieldLocation, Losses, Search, Setting};

/// Decodes `web_search_options`.
pub(super) fn decode_web_search<'a>(
    fields: &mut Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<Search<'a>>, ApiError> {
    let Some(node) = fields.node("web_search_options") else {
        return Ok(None);
    };
    node.fields(|mut options| {
        let mut search = Search {
            context_size: options.text("search_context_size")?,
            ..Search::default()
        };
        if let Some(location) = options.node("user_location") {
            location.fields(|location| decode_user_location(location, &mut search, losses))?;
        }
        options.finish(losses);
        Ok(Some(search))
    })
}

/// Decodes the `user_location` of a search.
fn decode_user_location<'a>(
    mut location: Fields<'a, '_>,
    search: &mut Search<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    one_of(required(&mut location, "type")?, &[("approximate", ())])?;
    if let Some(node) = location.node("approximate") {
        node.fields(|fields| decode_search_location(fields, search, losses))?;
    }
    location.finish(losses);
    Ok(())
}

/// The `web_search_options` of a request body.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct ChatWebSearchOptions<'a> {
    search_context_size: Option<&'a str>,
    user_location: Option<ChatUserLocation<'a>>,
}

#[derive(Serialize)]
struct ChatUserLocation<'a> {
    r#type: &'static str,
    approximate: SearchLocation<'a>,
}

/// Encodes `web_search_options`; the format has no list of domains.
pub(super) fn encode_web_search<'a>(
    search: &'a Search<'_>,
    losses: &mut Losses,
) -> ChatWebSearchOptions<'a> {
    if !search.allowed_domains.is_empty() {
        losses.dropped(FieldLocation::Setting(Setting::Search));
    }
    ChatWebSearchOptions {
        search_context_size: search.context_size.as_deref(),
        user_location: SearchLocation::of(search).map(|approximate| ChatUserLocation {
            r#type: "approximate",
            approximate,
        }),
    }
}
