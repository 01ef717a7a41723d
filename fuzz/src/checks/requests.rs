//! A request is encoded for every upstream format so that its decoder accepts it, or refused with an error of the client's format.

use crate::formats::{Capabilities, ConversationItems, Operation, RequestHead, UpstreamTarget};
use crate::model::{ApiError, Format, Losses};
use crate::translate::{self, ModelTraits, RequestSummary};
use bytes::Bytes;
use serde_json::{Map, Value};

use super::input::{Input, assert_object};

pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else { return };
    check_passthrough(input.from, input.body);
    check_resume(input.from, input.body);
    let capabilities = capabilities(input.parameters[0]);
    let stream = input.parameters[1] & 1 == 1;
    for to in Format::ALL {
        check_translation(input.from, to, input.body, &capabilities, stream);
    }
}

fn capabilities(flags: u8) -> Capabilities {
    let bit = |number: u8| flags >> number & 1 == 1;
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

fn check_translation(
    from: Format,
    to: Format,
    body: &[u8],
    capabilities: &Capabilities,
    stream: bool,
) {
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
            assert_object(&outgoing.body);
            let again = to
                .codec()
                .decode_request(&head(stream), &outgoing.body, &mut losses);
            // Most formats pass through data that is not valid base64, which the upstream refuses.
            if let Err(api_error) = again
                && !api_error.message.contains("base64")
            {
                let sent = String::from_utf8_lossy(&outgoing.body);
                panic!("{} → {}: {api_error:?}\n{sent}", from.name(), to.name());
            }
        }
        Err(api_error) => check_error(from, &api_error),
    }
}

fn check_error(client: Format, api_error: &ApiError) {
    assert!(!api_error.message.is_empty());
    let (status, body) = client.codec().encode_error(api_error, "req_1");
    assert!((400..600).contains(&status), "{api_error:?}");
    assert_object(&body);
}

/// A request that continues a stored conversation has its items first, and then its own input.
fn check_resume(format: Format, body: &[u8]) {
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
    let bytes = Bytes::copy_from_slice(body);
    let (own, resumed) = match (
        codec.request_items(&bytes.slice(added)),
        codec.resume(&bytes, std::slice::from_ref(&before)),
    ) {
        (Ok(own), Ok(resumed)) => (own, resumed),
        (Err(api_error), Err(_)) => return check_error(format, &api_error),
        (own, resumed) => panic!("{own:?} {resumed:?}"),
    };
    // Invalid JSON is resumed unchanged, and the decoder refuses it.
    if serde_json::from_slice::<Value>(body).is_err() {
        return;
    }
    let whole = assert_object(&resumed).expect("the numbers of the body");
    let input = whole["input"].as_array().expect("a list");
    assert_eq!(input.len(), before.count + own.count);
    assert_eq!(input[1], Value::Object(Map::new()));
    assert!(whole["previous_response_id"].is_null());
    let page = codec.encode_items("resp_1", &[before, own], Some("limit=100"));
    assert_object(&page.expect("a page"));
}

/// Passthrough changes nothing but the model's name and the usage option.
fn check_passthrough(format: Format, body: &[u8]) {
    let path_model = (format == Format::Native).then_some("m");
    let summary = match RequestSummary::new(format.codec(), Operation::Generate, path_model, body) {
        Ok(summary) => summary,
        Err(api_error) => return check_error(format, &api_error),
    };
    let checked =
        summary
            .clone()
            .check_passthrough(format.codec(), body, &ModelTraits::default(), true);
    if let Err(api_error) = checked {
        let head = summary.head(&ModelTraits::default());
        let decoded = format
            .codec()
            .decode_request(&head, body, &mut Losses::default());
        assert!(decoded.is_err(), "only the rules refuse: {api_error:?}");
        return check_error(format, &api_error);
    }
    // Invalid JSON is passed through too, but cannot be compared.
    let Ok(mut before) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    let body = Bytes::copy_from_slice(body);
    let edited = summary.passthrough_body(format.codec(), &body, "new \"name\"\\é", "vendor");
    let edited = edited.into_bytes();
    let mut after = assert_object(&edited).expect("the numbers of the body");
    if let Some(range) = &summary.model_range {
        assert_eq!(before["model"], summary.model);
        assert_eq!(after["model"], "new \"name\"\\é");
        if !summary.hides_usage() {
            assert_eq!(edited[..range.start], body[..range.start]);
            assert!(edited.ends_with(&body[range.end..]));
        }
    }
    if summary.hides_usage() {
        assert_eq!(after["stream_options"]["include_usage"], true);
    }
    for tree in [&mut before, &mut after] {
        let fields = tree.as_object_mut().expect("an object");
        if summary.model_range.is_some() {
            fields.remove("model");
        }
        if summary.hides_usage() {
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
