//! Requests: whatever is read can be said to every upstream, or is refused in the client's words.

use crate::formats::{Capabilities, ConversationItems, Operation, RequestHead, UpstreamTarget};
use crate::model::{ApiError, Format, Losses};
use crate::translate::{self, ModelTraits, RequestSummary};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::input::{Input, object};

pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    passes(input.from, input.body);
    goes_on(input.from, input.body);
    let capabilities = capabilities(input.dice[0]);
    let stream = input.dice[1] & 1 == 1;
    for to in Format::ALL {
        translated(input.from, to, input.body, &capabilities, stream);
    }
}

fn capabilities(dice: u8) -> Capabilities {
    let bit = |number: u8| dice >> number & 1 == 1;
    Capabilities {
        messages_mid_system: bit(0),
        messages_prefill: bit(1),
        native_requires_signature: bit(2),
        chat_developer_role: bit(3),
        chat_returns_reasoning: bit(4),
        sampling: bit(5),
        off_effort: bit(6),
        parallel_switch: bit(7),
        ..Capabilities::default()
    }
}

fn head(stream: bool) -> RequestHead<'static> {
    RequestHead {
        path_model: Some("m"),
        stream,
        text_only: false,
        ..RequestHead::default()
    }
}

fn translated(from: Format, to: Format, body: &[u8], capabilities: &Capabilities, stream: bool) {
    let target = UpstreamTarget {
        model: "upstream",
        stream,
        max_output_tokens: None,
        capabilities,
        brand: "vendor",
        images_only: false,
    };
    let mut losses = Losses::default();
    let outcome = translate::request(from, to, &head(stream), body, &target, &mut losses);
    for lost in &losses.0 {
        from.codec().path_of(&lost.location);
    }
    match outcome {
        Ok(outgoing) => {
            object(&outgoing.body);
            let again = to
                .codec()
                .decode_request(&head(stream), &outgoing.body, &mut losses);
            // Data that are no base64 pass from most formats, for the upstream to refuse.
            if let Err(api_error) = again
                && !api_error.message.contains("base64")
            {
                let sent = String::from_utf8_lossy(&outgoing.body);
                panic!("{} → {}: {api_error:?}\n{sent}", from.name(), to.name());
            }
        }
        Err(api_error) => refused(from, &api_error),
    }
}

fn refused(client: Format, api_error: &ApiError) {
    assert!(!api_error.message.is_empty());
    let (status, body) = client.codec().encode_error(api_error, "req_1");
    assert!((400..600).contains(&status), "{api_error:?}");
    object(&body);
}

/// A request that goes on from a reply holds what was said before, and then its own input.
fn goes_on(format: Format, body: &[u8]) {
    let (Some(codec), Ok(fields)) = (
        format.codec().conversation_codec(),
        format.codec().decode_routing_fields(body),
    ) else {
        return;
    };
    let added = fields
        .conversation
        .map_or(0..0, |conversation| conversation.input_range);
    let before = ConversationItems {
        text: Bytes::from_static(b"{\"role\":\"user\",\"content\":\"a\"},{}"),
        count: 2,
    };
    let (own, resumed) = match (
        codec.request_items(&body[added]),
        codec.resume(body, std::slice::from_ref(&before)),
    ) {
        (Ok(own), Ok(resumed)) => (own, resumed),
        (Err(api_error), Err(_)) => return refused(format, &api_error),
        (own, resumed) => panic!("{own:?} {resumed:?}"),
    };
    // What is no text goes on as it is, for whoever reads it to refuse.
    if serde_json::from_slice::<Value>(body).is_err() {
        return;
    }
    let whole = object(&resumed);
    let input = whole["input"].as_array().expect("a list");
    assert_eq!(input.len(), before.count + own.count);
    assert_eq!(input[1], Value::Object(Map::new()));
    assert!(whole["previous_response_id"].is_null());
    let page = codec.encode_items("resp_1", &[before, own], Some("limit=100"));
    object(&page.expect("a page"));
}

/// A request for an upstream of the client's own format changes only where it must.
fn passes(format: Format, body: &[u8]) {
    let path_model = (format == Format::Native).then_some("m");
    let wanted = match RequestSummary::new(format.codec(), Operation::Generate, path_model, body) {
        Ok(wanted) => wanted,
        Err(api_error) => return refused(format, &api_error),
    };
    let looked_through =
        wanted
            .clone()
            .check_passthrough(format.codec(), body, &ModelTraits::default(), true);
    if let Err(api_error) = looked_through {
        let head = wanted.head(&ModelTraits::default());
        let decoded = format
            .codec()
            .decode_request(&head, body, &mut Losses::default());
        assert!(decoded.is_err(), "only the rules refuse: {api_error:?}");
        return refused(format, &api_error);
    }
    // What is no text passes as well, for the upstream to judge; nothing of it can be compared.
    let Ok(mut before) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    let body = Bytes::copy_from_slice(body);
    let edited = wanted.passthrough_body(format.codec(), &body, "new \"name\"\\é", "vendor");
    let edited = edited.into_bytes();
    let mut after = object(&edited);
    if let Some(place) = &wanted.model_range {
        assert_eq!(before["model"], wanted.model);
        assert_eq!(after["model"], "new \"name\"\\é");
        if !wanted.hides_usage() {
            assert_eq!(edited[..place.start], body[..place.start]);
            assert!(edited.ends_with(&body[place.end..]));
        }
    }
    if wanted.hides_usage() {
        assert_eq!(after["stream_options"]["include_usage"], true);
    }
    for tree in [&mut before, &mut after] {
        let fields = tree.as_object_mut().expect("an object");
        if wanted.model_range.is_some() {
            fields.remove("model");
        }
        if wanted.hides_usage() {
            match fields.get_mut("stream_options") {
                Some(Value::Object(options)) => drop(options.remove("include_usage")),
                _ => drop(fields.remove("stream_options")),
            }
            if fields.get("stream_options") == Some(&Value::Object(serde_json::Map::new())) {
                fields.remove("stream_options");
            }
        }
    }
    assert_eq!(before, after);
}
