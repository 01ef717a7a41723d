//! Thoughts and their signatures, which requests and responses carry in the same fields.

use crate::model::{FieldLocation, Issuer, Losses, Part, PartKind, Signature, Text};

/// Appends reasoning to a list of parts. Neighbouring thoughts become one part, until a signature
/// completes it.
pub(super) fn push_reasoning<'a>(
    more: Text<'a>,
    more_signature: Option<Signature<'a>>,
    at: Option<u32>,
    parts: &mut Vec<Part<'a>>,
) {
    if let Some(PartKind::Reasoning { text, signature }) =
        parts.last_mut().map(|part| &mut part.kind)
        && signature.is_none()
    {
        text.to_mut().push_str(&more);
        *signature = more_signature;
        return;
    }
    parts.push(Part {
        kind: PartKind::Reasoning {
            text: more,
            signature: more_signature,
        },
        at,
    });
}

/// Decodes the `thoughtSignature` of a client, which may wrap the signature of another format.
pub(super) fn decode_signature(data: Text<'_>) -> Signature<'_> {
    Signature::unwrap_text(&data).unwrap_or(Signature {
        issuer: Issuer::Native,
        data,
    })
}

/// Encodes a `thoughtSignature` for a client: a signature of another format is wrapped.
pub(super) fn encode_signature<'a>(signature: &'a Signature<'_>) -> Text<'a> {
    match signature.issuer {
        Issuer::Native => signature.data.as_ref().into(),
        _ => signature.wrap().into(),
    }
}

/// Encodes a `thoughtSignature` for an upstream, which accepts only signatures of its own format;
/// others are reported as dropped.
pub(super) fn encode_own_signature<'a>(
    signature: Option<&'a Signature<'_>>,
    location: impl FnOnce() -> FieldLocation,
    losses: &mut Losses,
) -> Option<&'a str> {
    let signature = signature?;
    if signature.issuer != Issuer::Native {
        losses.dropped(location());
        return None;
    }
    Some(&signature.data)
}
