//! Encodes requests in all four formats: in the chat format first, and translated to the others.

use omniglot::formats::{Capabilities, RequestHead, UpstreamTarget};
use omniglot::model::{Format, Losses};
use omniglot::translate;
use serde_json::{Value, json};

use crate::settings::MODEL;

/// Returns the head of a request; formats with the model in the path take it from there.
pub fn head() -> RequestHead<'static> {
    RequestHead {
        path_model: Some(MODEL),
        stream: false,
        text_only: false,
        ..RequestHead::default()
    }
}

/// Returns the upstream of a translated request.
pub fn target(capabilities: &Capabilities) -> UpstreamTarget<'_> {
    UpstreamTarget {
        model: "upstream-model",
        stream: false,
        max_output_tokens: None,
        capabilities,
        brand: "vendor",
        images_only: false,
    }
}

/// Encodes a request of the chat format in another format.
pub fn encode_request(format: Format, chat: &Value) -> Vec<u8> {
    let body = chat.to_string().into_bytes();
    if format == Format::Chat {
        return body;
    }
    let capabilities = Capabilities::default();
    let (head, target) = (head(), target(&capabilities));
    let outgoing = translate::request(
        Format::Chat,
        format,
        &head,
        &body,
        &target,
        &mut Losses::default(),
    );
    outgoing.expect("every format has these fields").body
}

/// Encodes a request with `size` bytes of text, with line ends in it.
pub fn text_request(format: Format, size: usize) -> Vec<u8> {
    let line =
        "The tide comes in twice a day, and twice a day it goes out again; nobody asks why.\n";
    let text = line.repeat(size / line.len());
    let turn = json!({"role": "user", "content": text});
    encode_request(
        format,
        &json!({"model": MODEL, "messages": [turn], "max_tokens": 100}),
    )
}
