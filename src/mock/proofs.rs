//! Signatures as the vendors' models give them: made for what they stand on, and refused when they
//! come back on anything else or in any other shape.

use sha2::{Digest as _, Sha256};

use crate::model::{ApiError, Format, Issuer, Part, PartKind, Request, Role, Signature};

const PREFIX: &str = "mock";
const DIGITS: usize = 12;

/// The proof of a thought, in the formats that have one.
pub(super) fn of_thought(format: Format, mark: &str, text: &str) -> Option<Signature<'static>> {
    let (issuer, data) = match format {
        Format::Chat | Format::Images => return None,
        Format::Messages => (Issuer::Thinking, signed(format, mark, text)),
        Format::Native => (Issuer::Native, signed(format, mark, "")),
        Format::Responses => {
            // The item is the first of the reply, and its id has to say so.
            let id = format!("rs_{PREFIX}{mark}_0");
            let proof = signed(format, mark, &id);
            (Issuer::Responses, format!("{id}\n{proof}"))
        }
    };
    let data = data.into();
    Some(Signature { issuer, data })
}

/// The proof of a call, in the one format that has it.
pub(super) fn of_call(mark: &str, name: &str) -> Signature<'static> {
    Signature {
        issuer: Issuer::Native,
        data: signed(Format::Native, mark, name).into(),
    }
}

/// Base64, as the real ones are: clients may decode and encode it.
fn signed(format: Format, mark: &str, what: &str) -> String {
    let digest = Sha256::digest(format!("{}\n{mark}\n{what}", format.name()));
    let check: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{mark}{}", &check[..DIGITS])
}

/// How many of its own proofs a request holds; one that is not what it was is refused.
pub(super) fn count(request: &Request<'_>, format: Format) -> Result<usize, ApiError> {
    let turns = request.turns.iter().filter(|turn| turn.role == Role::Model);
    let mut found = 0;
    for part in turns.flat_map(|turn| &turn.parts) {
        found += usize::from(is_ours(part, format)?);
    }
    Ok(found)
}

fn is_ours(part: &Part<'_>, format: Format) -> Result<bool, ApiError> {
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
    let mark = rest.get(..DIGITS).unwrap_or(rest);
    let fits = |what: &str| signed(format, mark, what) == data;
    // A native thought is proven by a part that has no words of its own.
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
    fn a_proof_holds_for_its_own_words_and_format_only() {
        let mark = "0123456789ab";
        for format in [Format::Messages, Format::Native, Format::Responses] {
            let signature = of_thought(format, mark, "So be it.");
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
        let signature = of_thought(Format::Messages, mark, "So be it.");
        assert_eq!(counted(Format::Messages, "So be it!", signature), None);
        let foreign = Some(Signature {
            issuer: Issuer::Thinking,
            data: "EqQBCkYIBRgC".into(),
        });
        assert_eq!(counted(Format::Messages, "", foreign), Some(0));
    }
}
