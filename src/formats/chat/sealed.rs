//! What other upstreams have sealed, in the history of a chat client.

use crate::formats::sealed::{is_wrapped, thinned};
use crate::json::{Edit, RawJson, decode_json, from_json};
use crate::model::{FieldLocation, Losses, Text};

from_json! {
    struct Conversation<'a> {
        "messages" => messages: Vec<RawJson<'a>>,
    }
}

from_json! {
    struct Message<'a> {
        "reasoning_details" => reasoning_details: Option<RawJson<'a>>,
    }
}

from_json! {
    struct Detail<'a> {
        "signature" => signature: Option<Text<'a>>,
        "data" => data: Option<Text<'a>>,
    }
}

fn is_sealed(detail: &str) -> bool {
    decode_json::<Detail<'_>>(detail).is_ok_and(|detail| {
        is_wrapped(detail.signature.as_ref()) || is_wrapped(detail.data.as_ref())
    })
}

pub(super) fn take_out(body: &str, losses: &mut Losses) -> Vec<Edit> {
    let conversation: Conversation<'_> = decode_json(body).unwrap_or_default();
    let mut edits = Vec::new();
    for (turn, message) in (0..).zip(conversation.messages) {
        let message: Message<'_> = decode_json(message.get()).unwrap_or_default();
        let details = message.reasoning_details;
        let edit = details.and_then(|raw| thinned(raw, body.as_bytes(), is_sealed, |_| {}));
        if edit.is_some() {
            losses.dropped(FieldLocation::Turn { turn: Some(turn) });
        }
        edits.extend(edit);
    }
    edits
}
