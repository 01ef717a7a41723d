//! How the bytes of a fuzzer are read: four that choose, then a body.

use crate::formats::{Framing, Operation, ResponseOptions};
use crate::model::{Format, TranslationState};
use crate::translate::RequestSummary;
use serde_json::Value;

/// As many bytes choose formats, cuts and statuses.
pub const CHOOSERS: usize = 4;

pub struct Input<'d> {
    pub from: Format,
    pub to: Format,
    pub dice: [u8; 2],
    pub body: &'d [u8],
}

impl<'d> Input<'d> {
    pub fn of(data: &'d [u8]) -> Option<Input<'d>> {
        let (&[from, to, first, second], body) = data.split_first_chunk::<CHOOSERS>()?;
        if depth(body) > DEEPEST {
            return None;
        }
        Some(Input {
            from: format(from),
            to: format(to),
            dice: [first, second],
            body,
        })
    }
}

/// A translation may add levels; what is read here again must stay within a parser's 128.
const DEEPEST: usize = 100;

/// How deep brackets are nested at most, those in strings included.
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

pub fn asked(stream: bool) -> ResponseOptions {
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

/// What a client asks for, of the model `m`.
pub fn wanted(format: Format, operation: Operation, stream: bool) -> RequestSummary {
    let body =
        format!(r#"{{"model":"m","stream":{stream},"stream_options":{{"include_usage":true}}}}"#);
    let path_model = (format == Format::Native).then_some("m");
    let wanted = RequestSummary::new(format.codec(), operation, path_model, body.as_bytes());
    wanted.expect("a request")
}

/// What was written must be a JSON object.
pub fn object(bytes: &[u8]) -> Value {
    let value: Value = serde_json::from_slice(bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)));
    assert!(value.is_object(), "{value}");
    value
}
