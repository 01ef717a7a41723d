//! What other upstreams have sealed, in the history of a responses client.

use crate::formats::sealed::{is_wrapped, thinned};
use crate::json::{Edit, RawJson, decode_json, from_json};
use crate::model::{FieldLocation, Losses, Text};

from_json! {
    struct Conversation<'a> {
        "input" => input: Option<RawJson<'a>>,
    }
}

from_json! {
    struct Item<'a> {
        "encrypted_content" => encrypted_content: Option<Text<'a>>,
    }
}

fn is_sealed(item: &str) -> bool {
    decode_json::<Item<'_>>(item).is_ok_and(|item| is_wrapped(item.encrypted_content.as_ref()))
}

pub(super) fn take_out(body: &str, losses: &mut Losses) -> Vec<Edit> {
    let conversation: Conversation<'_> = decode_json(body).unwrap_or_default();
    let gone = |turn| losses.dropped(FieldLocation::Turn { turn: Some(turn) });
    let input = conversation.input;
    let edit = input.and_then(|input| thinned(input, body.as_bytes(), is_sealed, gone));
    edit.into_iter().collect()
}
