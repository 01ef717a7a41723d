//! Signatures like those of the vendors: made for a part, and refused on any other part or when
//! they were changed.

use sha2::{Digest as _, Sha256};

use crate::model::{ApiError, Format, Issuer, Part, PartKind, Request, Role, Signature};

const PREFIX: &str = "mock";
const DIGITS: usize = 12;

/// Signs reasoning, in the formats that do.
pub(super) fn of_reasoning(format: Format, hash: &str, text: &str) -> Option<Signature<'static>> {
    let (issuer, data) = match format {
        Format::Chat | Format::Images => return None,
        Format::Messages => (Issuer::Thinking, signed(format, hash, text)),
        Format::Native => (Issuer::Native, signed(format, hash, "")),
        Format::Responses => {
            // The item is the first of the response, as its id says.
            let id = format!("rs_{PREFIX}{hash}_0");
            let signature = signed(format, hash, &id);
            (Issuer::Responses, format!("{id}\n{signature}"))
        }
    };
    let data = data.into();
    Some(Signature { issuer, data })
}

/// Signs a call, for the one format that does.
pub(super) fn of_call(hash: &str, name: &str) -> Signature<'static> {
    Signature {
        issuer: Issuer::Native,
        data: signed(Format::Native, hash, name).into(),
    }
}

/// Makes the data of a signature. It is valid base64, as clients may decode and encode it.
fn signed(format: Format, hash: &str, what: &str) -> String {
    let digest = Sha256::digest(format!("{}\n{hash}\n{what}", format.name()));
    let check: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{hash}{}", &check[..DIGITS])
}

/// Counts the mock's own signatures in a request, and refuses those that were changed.
pub(super) fn count(request: &Request<'_>, format: Format) -> Result<usize, ApiError> {
    let turns = request.turns.iter().filter(|turn| turn.role == Role::Model);
    let mut found = 0;
    for part in turns.flat_map(|turn| &turn.parts) {
        found += usize::from(is_own_signature(part, format)?);
    }
    Ok(found)
}

fn is_own_signature(part: &Part<'_>, format: Format) -> Result<bool, ApiError> {
    let (signature, what) = match &part.kind {
        PartKind::Reasoning {
            text,
            signature: Some(signature),
        } => (signature, text.as_ref()),
        PartKind::Call(call) => match &call.signature {
            Some(signature) => (signature, call.name.as_ref()),
            None => return Ok(false),
        },
        _ => return Ok(false),
    };
    if signature.issuer.format() != format || signature.issuer == Issuer::Redacted {
        return Ok(false);
    }
    let (what, data) = match (format, signature.data.split_once('\n')) {
        (Format::Responses, Some((id, data))) => (id, data),
        _ => (what, signature.data.as_ref()),
    };
    let Some(rest) = data.strip_prefix(PREFIX) else {
        return Ok(false);
    };
    let hash = rest.get(..DIGITS).unwrap_or(rest);
    let fits = |what: &str| signed(format, hash, what) == data;
    // The signature of native reasoning stands on a part without text.
    if fits(what) || (format == Format::Native && fits("")) {
        return Ok(true);
    }
    Err(ApiError::invalid(format!(
        "the signature {data} does not belong to what it stands on"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Turn;

    fn counted(
        format: Format,
        text: &'static str,
        signature: Option<Signature<'static>>,
    ) -> Option<usize> {
        let text = text.into();
        let kind = PartKind::Reasoning { text, signature };
        let turn = Turn {
            role: Role::Model,
            parts: vec![Part { kind, at: None }],
            at: None,
        };
        let request = Request {
            turns: vec![turn],
            ..Request::default()
        };
        count(&request, format).ok()
    }

    #[test]
    fn a_signature_is_valid_for_its_own_text_and_format_only() {
        let hash = "0123456789ab";
        for format in [Format::Messages, Format::Native, Format::Responses] {
            let signature = of_reasoning(format, hash, "So be it.");
            assert_eq!(counted(format, "So be it.", signature.clone()), Some(1));
            assert_eq!(
                counted(Format::Chat, "So be it.", signature.clone()),
                Some(0)
            );
            let mut broken = signature.expect("a signature");
            let mut data = broken.data.into_owned();
            data.pop();
            broken.data = data.into();
            assert_eq!(counted(format, "So be it.", Some(broken)), None);
        }
        let signature = of_reasoning(Format::Messages, hash, "So be it.");
        assert_eq!(counted(Format::Messages, "So be it!", signature), None);
        let foreign = Some(Signature {
            issuer: Issuer::Thinking,
            data: "EqQBCkYIBRgC".into(),
        });
        assert_eq!(counted(Format::Messages, "", foreign), Some(0));
    }
}
