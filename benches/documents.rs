//! A document as a request in all four formats: encoded in one, translated to the others.

use omniglot::formats::{Capabilities, RequestHead, UpstreamTarget};
use omniglot::model::{Format, Losses};
use omniglot::translate;
use serde_json::{Value, json};

use crate::settings::MODEL;

/// Head for a client whose format says the model in the path.
pub fn head() -> RequestHead<'static> {
    RequestHead {
        path_model: Some(MODEL),
        stream: false,
        text_only: false,
        ..RequestHead::default()
    }
}

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

/// A request of the chat format in the words of another.
pub fn request_in(format: Format, chat: &Value) -> Vec<u8> {
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
    outgoing.expect("every format can say it").body
}

/// A document of `size` bytes of text with line ends in it.
pub fn text_request(format: Format, size: usize) -> Vec<u8> {
    let line =
        "The tide comes in twice a day, and twice a day it goes out again; nobody asks why.\n";
    let text = line.repeat(size / line.len());
    let turn = json!({"role": "user", "content": text});
    request_in(
        format,
        &json!({"model": MODEL, "messages": [turn], "max_tokens": 100}),
    )
}
