//! Signatures that upstreams of other formats issued: they are stripped from a request that passes
//! through to an upstream of this format.

use super::Native;
use super::contents::PLACEHOLDER_TEXT;
use crate::formats::SignatureCodec;
use crate::formats::signatures::{Stripped, strip_elements};
use crate::json::{Edit, RawJson, decode_json, from_json, remove_member};
use crate::model::{FieldLocation, Losses, Signature, Text};

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
    struct SignedHistoryPart<'a> {
        "text" => text: Option<Text<'a>>,
        "thought" => thought: Option<bool>,
        "thoughtSignature" | "thought_signature" => thought_signature: Option<RawJson<'a>>,
    }
}

/// Strips the wrapped signature of another format from a part. A thought goes with it, and so does a
/// part that holds nothing else.
fn strip_foreign_signature(json: &str) -> Stripped {
    let part: SignedHistoryPart<'_> = decode_json(json).unwrap_or_default();
    let Some(signature) = part.thought_signature else {
        return Stripped::Unchanged;
    };
    let data: Text<'_> = decode_json(signature.get()).unwrap_or_default();
    if Signature::unwrap_text(&data).is_none() {
        return Stripped::Unchanged;
    }
    let is_empty = part.text.is_some_and(|text| text.is_empty());
    if part.thought == Some(true) || is_empty {
        return Stripped::Removed;
    }
    let edit = remove_member(json.as_bytes(), signature.range_in(json.as_bytes()));
    Stripped::Replaced([&json[..edit.range.start], &json[edit.range.end..]].concat())
}

impl SignatureCodec for Native {
    fn strip_foreign_signatures(&self, body: &str, losses: &mut Losses) -> Vec<Edit> {
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
                strip_elements(parts, body.as_bytes(), strip_foreign_signature, report)
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

    /// Some clients send calls back, but not the thoughts with their signatures.
    fn clients_return_signatures(&self) -> bool {
        false
    }
}
