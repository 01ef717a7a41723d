//! Parses the bytes of a fuzzer: a header of four bytes, and a body.

use crate::formats::{Framing, Operation, ResponseOptions};
use crate::model::{Format, TranslationState};
use crate::translate::RequestSummary;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::BTreeMap;

/// The header: two formats, and two parameters.
pub const HEADER_LENGTH: usize = 4;

/// The input of a check.
pub struct Input<'d> {
    pub from: Format,
    pub to: Format,
    /// Numbers that a check uses as it needs: positions, a status, flags.
    pub parameters: [u8; 2],
    pub body: &'d [u8],
}

impl<'d> Input<'d> {
    pub fn of(data: &'d [u8]) -> Option<Input<'d>> {
        let (&[from, to, first, second], body) = data.split_first_chunk::<HEADER_LENGTH>()?;
        if depth(body) > MAX_DEPTH {
            return None;
        }
        Some(Input {
            from: format(from),
            to: format(to),
            parameters: [first, second],
            body,
        })
    }
}

/// A translation may add levels, and its output is parsed again by a parser with a limit of 128.
const MAX_DEPTH: usize = 100;

/// Returns the maximum depth of nested brackets, those in strings included.
fn depth(body: &[u8]) -> usize {
    let (mut deepest, mut now) = (0usize, 0usize);
    for byte in body {
        match byte {
            b'[' | b'{' => now += 1,
            b']' | b'}' => now = now.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(now);
    }
    deepest
}

fn format(byte: u8) -> Format {
    Format::ALL[usize::from(byte) % Format::ALL.len()]
}

/// Returns the options of a response of the model `m`.
pub fn response_options(stream: bool) -> ResponseOptions {
    ResponseOptions {
        model: "m".to_owned(),
        stream,
        framing: Framing::Sse,
        include_usage: true,
        request_id: "req_1".to_owned(),
        created_at: 1_760_000_000,
        translation_state: TranslationState::default(),
    }
}

/// Returns the summary of a request for the model `m`.
pub fn request_summary(format: Format, operation: Operation, stream: bool) -> RequestSummary {
    let body =
        format!(r#"{{"model":"m","stream":{stream},"stream_options":{{"include_usage":true}}}}"#);
    let path_model = (format == Format::Native).then_some("m");
    let summary = RequestSummary::new(format.codec(), operation, path_model, body.as_bytes());
    summary.expect("a request")
}

/// Asserts that the bytes are a JSON object, and returns it. `None`: it has a number that no parser's number holds, such as
/// `1e999`, which goes from a client to an upstream and back as it is written.
pub fn assert_object(bytes: &[u8]) -> Option<Value> {
    let text = || String::from_utf8_lossy(bytes);
    let decoded: serde_json::Result<Value> = serde_json::from_slice(bytes);
    if let Err(error) = &decoded
        && error.to_string().starts_with("number out of range")
    {
        let fields = serde_json::from_slice::<BTreeMap<String, IgnoredAny>>(bytes);
        fields.unwrap_or_else(|error| panic!("{error}: {}", text()));
        return None;
    }
    let value = decoded.unwrap_or_else(|error| panic!("{error}: {}", text()));
    assert!(value.is_object(), "{value}");
    Some(value)
}
