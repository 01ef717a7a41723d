//! Signatures that upstreams of other formats issued: they are stripped from a request that passes
//! through to an upstream of this format.

use super::contents::PLACEHOLDER_TEXT;
use crate::formats::signatures::{is_wrapped_signature, remove_elements};
use crate::json::{Edit, RawJson, decode_json, from_json};
use crate::model::{FieldLocation, Losses, Text};

from_json! {
    struct SignedRequest<'a> {
        "contents" => contents: Vec<RawJson<'a>>,
    }
}

from_json! {
    struct SignedContent<'a> {
        "parts" => parts: Option<RawJson<'a>>,
    }
}

from_json! {
    struct SignedThought<'a> {
        "thought" => thought: Option<bool>,
        "thoughtSignature" => thought_signature: Option<Text<'a>>,
    }
}

/// Whether a part is a thought with the wrapped signature of another format.
fn has_foreign_signature(part: &str) -> bool {
    decode_json::<SignedThought<'_>>(part).is_ok_and(|part| {
        part.thought == Some(true) && is_wrapped_signature(part.thought_signature.as_ref())
    })
}

/// Finds the edits that remove the thoughts with foreign signatures.
pub(super) fn strip_foreign_signatures(body: &str, losses: &mut Losses) -> Vec<Edit> {
    let request: SignedRequest<'_> = decode_json(body).unwrap_or_default();
    let mut edits = Vec::new();
    for (turn, content) in (0..).zip(request.contents) {
        let content: SignedContent<'_> = decode_json(content.get()).unwrap_or_default();
        let report = |part| {
            losses.dropped(FieldLocation::Part {
                turn: Some(turn),
                part: Some(part),
            });
        };
        let parts = content.parts;
        let edit = parts.and_then(|parts| {
            remove_elements(parts, body.as_bytes(), has_foreign_signature, report)
        });
        edits.extend(edit.map(|mut edit| {
            if edit.with == b"[]" {
                edit.with = format!(r#"[{{"text":"{PLACEHOLDER_TEXT}"}}]"#).into_bytes();
            }
            edit
        }));
    }
    edits
}
