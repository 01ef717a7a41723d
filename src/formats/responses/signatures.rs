//! Signatures of reasoning: the `encrypted_content` of a `reasoning` item.

use super::Responses;
use crate::formats::SignatureCodec;
use crate::formats::signatures::{is_wrapped_signature, remove_elements};
use crate::json::{Edit, RawJson, decode_json, from_json};
use crate::model::{FieldLocation, Issuer, Losses, Signature, Text};

/// Decodes the signature of a reasoning item. The upstream wants the item's id back with the ciphertext, so the
/// signature holds both.
pub(super) fn decode_own(id: &str, ciphertext: &str) -> Signature<'static> {
    Signature {
        issuer: Issuer::Responses,
        data: format!("{id}\n{ciphertext}").into(),
    }
}

/// Encodes a signature as the id and the ciphertext of a reasoning item; `None`: another format issued it.
pub(super) fn encode_own<'s>(signature: &'s Signature<'_>) -> Option<(&'s str, &'s str)> {
    match signature.issuer {
        Issuer::Responses => signature.data.split_once('\n'),
        Issuer::Thinking | Issuer::Redacted | Issuer::Native => None,
    }
}

from_json! {
    struct SignedInput<'a> {
        "input" => input: Option<RawJson<'a>>,
    }
}

from_json! {
    struct SignedItem<'a> {
        "encrypted_content" => encrypted_content: Option<Text<'a>>,
    }
}

impl SignatureCodec for Responses {
    fn strip_foreign_signatures(&self, body: &str, losses: &mut Losses) -> Vec<Edit> {
        let request: SignedInput<'_> = decode_json(body).unwrap_or_default();
        let report = |turn| losses.dropped(FieldLocation::Turn { turn: Some(turn) });
        let input = request.input;
        let edit = input.and_then(|input| {
            remove_elements(input, body.as_bytes(), has_foreign_signature, report)
        });
        edit.into_iter().collect()
    }
}

fn has_foreign_signature(item: &str) -> bool {
    decode_json::<SignedItem<'_>>(item)
        .is_ok_and(|item| is_wrapped_signature(item.encrypted_content.as_ref()))
}
