//! Strips the signatures of other vendors from a history that passes through unchanged.

use super::Chat;
use crate::formats::SignatureCodec;
use crate::formats::signatures::{is_wrapped_signature, remove_elements};
use crate::json::{Edit, RawJson, decode_json, from_json};
use crate::model::{FieldLocation, Losses, Text};

from_json! {
    struct ChatHistory<'a> {
        "messages" => messages: Vec<RawJson<'a>>,
    }
}

from_json! {
    struct ChatHistoryMessage<'a> {
        "reasoning_details" => reasoning_details: Option<RawJson<'a>>,
    }
}

from_json! {
    struct ChatHistoryDetail<'a> {
        "signature" => signature: Option<Text<'a>>,
        "data" => data: Option<Text<'a>>,
    }
}

fn has_wrapped_signature(detail: &str) -> bool {
    decode_json::<ChatHistoryDetail<'_>>(detail).is_ok_and(|detail| {
        is_wrapped_signature(detail.signature.as_ref())
            || is_wrapped_signature(detail.data.as_ref())
    })
}

impl SignatureCodec for Chat {
    fn strip_foreign_signatures(&self, body: &str, losses: &mut Losses) -> Vec<Edit> {
        let history: ChatHistory<'_> = decode_json(body).unwrap_or_default();
        let mut edits = Vec::new();
        for (turn, message) in (0..).zip(history.messages) {
            let message: ChatHistoryMessage<'_> = decode_json(message.get()).unwrap_or_default();
            let details = message.reasoning_details;
            let edit = details.and_then(|raw| {
                remove_elements(raw, body.as_bytes(), has_wrapped_signature, |_| {})
            });
            if edit.is_some() {
                losses.dropped(FieldLocation::Turn { turn: Some(turn) });
            }
            edits.extend(edit);
        }
        edits
    }

    fn clients_return_signatures(&self) -> bool {
        false
    }
}
