//! What other upstreams have sealed, in the history of a responses client.

use crate::formats::sealed::{is_wrapped, thinned};
use crate::json::{Edit, Raw, read_text, readable};
use crate::model::{FieldLocation, Losses, Text};

readable! {
    struct Conversation<'a> {
        "input" => input: Option<Raw<'a>>,
    }
}

readable! {
    struct Item<'a> {
        "encrypted_content" => encrypted_content: Option<Text<'a>>,
    }
}

fn is_sealed(item: &str) -> bool {
    read_text::<Item<'_>>(item).is_ok_and(|item| is_wrapped(item.encrypted_content.as_ref()))
}

pub(super) fn take_out(body: &str, losses: &mut Losses) -> Vec<Edit> {
    let conversation: Conversation<'_> = read_text(body).unwrap_or_default();
    let gone = |turn| losses.dropped(FieldLocation::Turn { turn: Some(turn) });
    let input = conversation.input;
    let edit = input.and_then(|input| thinned(input, body.as_bytes(), is_sealed, gone));
    edit.into_iter().collect()
}
