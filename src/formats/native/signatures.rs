//! What other upstreams have sealed, in the history of a native client: always a thought.

use super::contents::CONTINUED;
use crate::formats::signatures::{is_wrapped, thinned};
use crate::json::{Edit, RawJson, decode_json, from_json};
use crate::model::{FieldLocation, Losses, Text};

from_json! {
    struct Conversation<'a> {
        "contents" => contents: Vec<RawJson<'a>>,
    }
}

from_json! {
    struct Content<'a> {
        "parts" => parts: Option<RawJson<'a>>,
    }
}

from_json! {
    struct Part<'a> {
        "thought" => thought: Option<bool>,
        "thoughtSignature" => thought_signature: Option<Text<'a>>,
    }
}

fn is_sealed(part: &str) -> bool {
    decode_json::<Part<'_>>(part)
        .is_ok_and(|part| part.thought == Some(true) && is_wrapped(part.thought_signature.as_ref()))
}

pub(super) fn take_out(body: &str, losses: &mut Losses) -> Vec<Edit> {
    let conversation: Conversation<'_> = decode_json(body).unwrap_or_default();
    let mut edits = Vec::new();
    for (turn, content) in (0..).zip(conversation.contents) {
        let content: Content<'_> = decode_json(content.get()).unwrap_or_default();
        let gone = |part| {
            losses.dropped(FieldLocation::Part {
                turn: Some(turn),
                part: Some(part),
            });
        };
        let parts = content.parts;
        let edit = parts.and_then(|parts| thinned(parts, body.as_bytes(), is_sealed, gone));
        edits.extend(edit.map(|mut edit| {
            if edit.with == b"[]" {
                edit.with = format!(r#"[{{"text":"{CONTINUED}"}}]"#).into_bytes();
            }
            edit
        }));
    }
    edits
}
