//! From one format to another: requests there, replies, errors and streams back.

use super::proofs;
use super::relay::Relay;
use super::rename::rename;
use super::undo;
use crate::formats::{
    Operation, RequestHead, ResponseObserver, ResponseOptions, SearchUse, UpstreamTarget,
};
use crate::model::{
    ApiError, FieldLocation, Format, ImageSetting, Losses, Request, Setting, SettingAliases,
    TranslationState,
};

/// A body for an upstream, and what the reply to it must know to speak of the same tools.
#[derive(Debug)]
pub struct TranslatedRequest {
    pub body: Vec<u8>,
    pub translation_state: TranslationState,
    /// What the upstream is asked to do with it.
    pub operation: Operation,
}

/// A client's body as the body for an upstream of another format.
pub fn request(
    from: Format,
    to: Format,
    head: &RequestHead<'_>,
    body: &[u8],
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<TranslatedRequest, ApiError> {
    let mut request = from.codec().decode_request(head, body, losses)?;
    if let Some(recall) = head.recall {
        proofs::restore(&mut request, to, recall);
    }
    limit_search(&mut request, target.capabilities.search, losses);
    check_pictures(&request, from, to, target).map_err(|api_error| in_words_of(from, api_error))?;
    let translation_state = TranslationState {
        image_edit: head.edits,
        think_tags: to == Format::Chat && target.capabilities.chat_think_tags,
        ..rename(&mut request, to.codec().tool_name_rule(), losses)
    };
    let encoded = to.codec().encode_request(&request, target, losses);
    for lost in &mut losses.0 {
        spell(&mut lost.location, request.aliases);
    }
    match encoded {
        Ok(body) => Ok(TranslatedRequest {
            body,
            translation_state,
            operation: to.codec().upstream_operation(&request, target.stream),
        }),
        Err(mut api_error) => {
            if let Some(place) = &mut api_error.location {
                spell(place, request.aliases);
            }
            Err(in_words_of(from, api_error))
        }
    }
}

/// By the very name that the client wrote.
fn spell(place: &mut FieldLocation, spelled: SettingAliases) {
    if let FieldLocation::Setting(setting) = place
        && let Some(path) = spelled.path(*setting)
    {
        *place = FieldLocation::Path(path.into());
    }
}

/// A model that draws is not asked to speak, and nobody else takes a mask.
fn check_pictures(
    request: &Request<'_>,
    from: Format,
    to: Format,
    target: &UpstreamTarget<'_>,
) -> Result<(), ApiError> {
    // Native models that draw do so unasked, and their clients rely on it.
    if target.images_only && !request.output.images && from != Format::Native {
        let message = "this model makes pictures: ask for them";
        let mut api_error =
            ApiError::invalid(message).at_location(FieldLocation::Setting(Setting::Images));
        api_error.code = Some("invalid_model".to_owned());
        return Err(api_error);
    }
    if request.output.image_options.mask.is_some() && to != Format::Images {
        let place = FieldLocation::Setting(Setting::Image(ImageSetting::Mask));
        return Err(
            ApiError::invalid("the upstream of this model takes no mask").at_location(place),
        );
    }
    Ok(())
}

/// Search is left out where the model does not take it.
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

/// Encoders know the place of an error, the client's codec knows the words for it.
pub(super) fn in_words_of(client: Format, mut api_error: ApiError) -> ApiError {
    if let Some(place) = &api_error.location {
        let path = client.codec().path_of(place);
        if !api_error.message.contains(&path) {
            api_error.message = format!("{path}: {}", api_error.message);
        }
        api_error.param = Some(path);
    }
    api_error
}

/// An upstream's whole reply as one for a client of another format.
pub fn response(
    from: Format,
    to: Format,
    body: &[u8],
    asked: &ResponseOptions,
    losses: &mut Losses,
) -> Result<Vec<u8>, ApiError> {
    let mut response = from.codec().decode_response(body, losses)?;
    undo::whole(&mut response, asked);
    Ok(to.codec().encode_response(&response, asked, losses))
}

/// An upstream's error as the status and body a client of another format expects.
pub fn error(
    from: Format,
    to: Format,
    status: u16,
    body: &[u8],
    request_id: &str,
) -> (u16, Vec<u8>) {
    let api_error = from.codec().decode_error(status, body);
    to.codec().encode_error(&api_error, request_id)
}

/// A whole stream at once; one that breaks ends with the client format's own error.
pub fn stream(from: Format, to: Format, bytes: &[u8], asked: &ResponseOptions) -> Vec<u8> {
    let mut relay = Relay::new(from, to, asked);
    let mut observer = ResponseObserver::default();
    let mut out = None;
    let relayed = relay.push(bytes, true, usize::MAX, &mut observer, &mut out);
    let mut whole = out.unwrap_or_default().to_vec();
    if let Err(api_error) = relayed {
        whole.extend_from_slice(&relay.cut(&api_error));
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{Capabilities, Framing};

    #[test]
    fn search_goes_only_where_the_model_takes_it() {
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

    #[test]
    fn characters_in_two_halves_and_events_without_payload_break_no_stream() {
        let piece =
            |rest: &str| format!("data: {{\"choices\":[{{\"index\":0,{rest}}}]}}\n\ndata:\n\n");
        let bytes = [
            piece(r#""delta":{"content":"\ud83d"}"#),
            piece(r#""delta":{"content":"\ude00"}"#),
            piece(r#""delta":{},"finish_reason":"stop""#),
        ];
        let asked = ResponseOptions {
            model: "m".to_owned(),
            stream: true,
            framing: Framing::Sse,
            include_usage: false,
            request_id: "req_1".to_owned(),
            created_at: 1,
            translation_state: crate::model::TranslationState::default(),
        };
        let bytes = bytes.concat();
        let said = stream(Format::Chat, Format::Messages, bytes.as_bytes(), &asked);
        let said = String::from_utf8_lossy(&said);
        assert!(
            said.contains("😀") && said.contains("message_stop"),
            "{said}"
        );
    }
}
