//! `thinking` and `redacted_thinking` blocks, and the signatures in them.

use super::block_fields::required_text;
use super::blocks::ContentBlock;
use crate::json::Fields;
use crate::model::{ApiError, Issuer, PartKind, Signature, Text, borrowed};

/// Decodes a `thinking` block of a request.
pub(super) fn decode_thinking_block<'a>(
    fields: &mut Fields<'a, '_>,
) -> Result<PartKind<'a>, ApiError> {
    let text = required_text(fields, "thinking")?;
    // Reasoning of upstreams that sign nothing is sent to clients with an empty signature.
    let signature = fields.text("signature")?.filter(|text| !text.is_empty());
    let signature = signature.map(|signature| unwrap_or_own(signature, Issuer::Thinking));
    Ok(PartKind::Reasoning { text, signature })
}

/// Decodes a `redacted_thinking` block of a request.
pub(super) fn decode_redacted_thinking<'a>(
    fields: &mut Fields<'a, '_>,
) -> Result<PartKind<'a>, ApiError> {
    let data = required_text(fields, "data")?;
    Ok(PartKind::Reasoning {
        text: Text::default(),
        signature: Some(unwrap_or_own(data, Issuer::Redacted)),
    })
}

/// A signature of another format that the gateway has wrapped, or else one of `issuer` itself.
fn unwrap_or_own(data: Text<'_>, issuer: Issuer) -> Signature<'_> {
    Signature::unwrap_text(&data).unwrap_or(Signature { issuer, data })
}

/// Encodes reasoning for an upstream, which accepts only its own signatures, each with the text that
/// it was made for. `None`: nothing of it may be sent.
pub(super) fn encode_own_reasoning<'a>(
    text: &'a str,
    signature: Option<&'a Signature<'_>>,
) -> Option<ContentBlock<'a>> {
    let Signature { issuer, data } = signature?;
    match issuer {
        Issuer::Thinking if !text.is_empty() => Some(ContentBlock::Thinking {
            thinking: text.into(),
            signature: borrowed(data),
        }),
        Issuer::Redacted => Some(ContentBlock::RedactedThinking {
            data: borrowed(data),
        }),
        Issuer::Thinking | Issuer::Native | Issuer::Responses => None,
    }
}

/// Encodes a signature for a client as a `redacted_thinking` block, the only one that has no text to show.
pub(super) fn encode_redacted_thinking(signature: Signature<'_>) -> ContentBlock<'_> {
    ContentBlock::RedactedThinking {
        data: encode_signature(signature, Issuer::Redacted),
    }
}

/// Encodes a signature for the field that signatures of `own` come from: those as they are, any other
/// one wrapped.
pub(super) fn encode_signature(signature: Signature<'_>, own: Issuer) -> Text<'_> {
    if signature.issuer == own {
        signature.data
    } else {
        signature.wrap().into()
    }
}
