//! Translates requests from the client's format to the upstream's.

use super::signatures;
use super::tool_names::rename_tools;
use crate::formats::{Operation, RequestHead, SearchUse, UpstreamTarget};
use crate::model::{
    ApiError, FieldLocation, Format, ImageSetting, Losses, Request, Setting, SettingAliases,
    TranslationState,
};

/// A request for an upstream, and what the translation of its response must know.
#[derive(Debug)]
pub struct TranslatedRequest {
    pub body: Vec<u8>,
    pub translation_state: TranslationState,
    /// The operation that the upstream performs.
    pub operation: Operation,
}

/// Translates the body of a client's request for an upstream of another format.
pub fn request(
    from: Format,
    to: Format,
    head: &RequestHead<'_>,
    body: &[u8],
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<TranslatedRequest, ApiError> {
    let mut request = from.codec().decode_request(head, body, losses)?;
    check_counts(&request).map_err(|api_error| with_client_path(from, api_error))?;
    if let Some(recall) = head.recall {
        signatures::restore(&mut request, to, recall);
    }
    limit_output(&mut request, to, head.reserved_output, losses);
    request.output.image_limit = head.image_limit;
    limit_search(&mut request, target.capabilities.search, losses);
    if target.images_only {
        from.codec().check_image_request(body)?;
    }
    check_mask(&request, to).map_err(|api_error| with_client_path(from, api_error))?;
    let renamed = rename_tools(&mut request, to.codec().tool_name_rule(), losses);
    let translation_state = TranslationState {
        image_edit: head.edits,
        think_tags: to == Format::Chat && target.capabilities.chat_think_tags,
        // Clients of this format get reasoning on request only; the others just have no way to ask.
        hides_reasoning: from == Format::Native && request.thinking.show != Some(true),
        ..renamed.map_err(|api_error| with_client_path(from, api_error))?
    };
    let encoded = to.codec().encode_request(&request, target, losses);
    for loss in &mut losses.0 {
        use_client_alias(&mut loss.location, request.aliases);
    }
    match encoded {
        Ok(body) => Ok(TranslatedRequest {
            body,
            translation_state,
            operation: to.codec().upstream_operation(&request, target.stream),
        }),
        Err(mut api_error) => {
            if let Some(location) = &mut api_error.location {
                use_client_alias(location, request.aliases);
            }
            Err(with_client_path(from, api_error))
        }
    }
}

/// As many messages as any upstream takes.
const MAX_TURNS: usize = 100_000;

/// As many tools as any upstream takes.
const MAX_TOOLS: usize = 10_000;

/// Checks that a request has no more of anything than some upstream could take.
fn check_counts(request: &Request<'_>) -> Result<(), ApiError> {
    let (turns, tools) = (request.turns.len(), request.tools.len());
    let (what, count, most, location) = if turns > MAX_TURNS {
        let turn = request.turns[MAX_TURNS].at;
        ("messages", turns, MAX_TURNS, FieldLocation::Turn { turn })
    } else if tools > MAX_TOOLS {
        let tool = MAX_TOOLS as u32;
        ("tools", tools, MAX_TOOLS, FieldLocation::Tool { tool })
    } else {
        return Ok(());
    };
    let message = format!("{count} {what} are too many: at most {most} are accepted");
    Err(ApiError::invalid(message).at_location(location))
}

/// Replaces a setting by the field that the client set, where a format has several for it.
fn use_client_alias(location: &mut FieldLocation, aliases: SettingAliases) {
    if let FieldLocation::Setting(setting) = location
        && let Some(path) = aliases.path(*setting)
    {
        *location = FieldLocation::Path(path.into());
    }
}

/// Checks that a mask goes to a model that accepts one.
fn check_mask(request: &Request<'_>, to: Format) -> Result<(), ApiError> {
    if request.output.image_options.mask.is_some() && to != Format::Images {
        let location = FieldLocation::Setting(Setting::Image(ImageSetting::Mask));
        return Err(
            ApiError::invalid("the upstream of this model takes no mask").at_location(location),
        );
    }
    Ok(())
}

/// Sets a limit of the output where the client has none; images have no such limit.
fn limit_output(request: &mut Request<'_>, to: Format, reserved: Option<u64>, losses: &mut Losses) {
    let has_limit = request.sampling.max_tokens.is_some_and(|limit| limit > 0);
    if reserved.is_some() && !has_limit && to != Format::Images {
        request.sampling.max_tokens = reserved;
        losses.added(FieldLocation::Setting(Setting::MaxTokens));
    }
}

/// Removes the search tool where the model does not accept it.
fn limit_search(request: &mut Request<'_>, allowed: SearchUse, losses: &mut Losses) {
    let can_search = match allowed {
        SearchUse::Always => true,
        SearchUse::Alone => request.tools.is_empty(),
        SearchUse::Never => false,
    };
    if !can_search && request.search.take().is_some() {
        losses.dropped(FieldLocation::Setting(Setting::Search));
    }
}

/// Adds the path of a field in the client's format to an error: encoders know only its location.
pub(super) fn with_client_path(client: Format, mut api_error: ApiError) -> ApiError {
    if let Some(location) = &api_error.location {
        let path = client.codec().path_of(location);
        if !api_error.message.contains(&path) {
            api_error.message = format!("{path}: {}", api_error.message);
        }
        api_error.param = Some(path);
    }
    api_error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Capabilities;

    #[test]
    fn the_search_tool_is_kept_only_where_the_model_accepts_it() {
        let tool = r#"{"type":"function","name":"look","parameters":{"type":"object"}}"#;
        let sent = |search: &str, tools: &str, to: Format| {
            let mut capabilities = Capabilities::default();
            capabilities.set("search", search).expect("a capability");
            let target = UpstreamTarget {
                model: "m",
                stream: false,
                max_output_tokens: None,
                capabilities: &capabilities,
                brand: "google",
                images_only: false,
            };
            let body = format!(r#"{{"model":"m","input":"Hi","tools":[{tools}]}}"#);
            let mut losses = Losses::default();
            let head = RequestHead::default();
            let from = Format::Responses;
            let sent = request(from, to, &head, body.as_bytes(), &target, &mut losses);
            let body = sent.expect("a body").body;
            (
                String::from_utf8_lossy(&body).contains("earch"),
                losses.0.len(),
            )
        };
        let search = r#"{"type":"web_search"}"#;
        let both = format!("{search},{tool}");
        for to in [Format::Chat, Format::Native] {
            assert_eq!(sent("always", &both, to), (true, 0));
            assert_eq!(sent("alone", search, to), (true, 0));
            assert_eq!(sent("alone", &both, to), (false, 1));
            assert_eq!(sent("never", search, to), (false, 1));
            assert_eq!(sent("never", tool, to), (false, 0));
        }
    }
}
