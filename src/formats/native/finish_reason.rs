//! `finishReason`: why a candidate ended.

use crate::model::{FieldLocation, Finish, Losses, Text};

/// Decodes a finish reason. A turn that ends in calls has the reason `STOP` too, so the caller tells
/// whether there were any.
pub(super) fn decode_finish_reason<'a>(
    reason: &str,
    message: Option<Text<'a>>,
    has_calls: bool,
) -> Finish<'a> {
    match reason {
        "MAX_TOKENS" | "CONTINUATION" => Finish::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR" => Finish::Filtered(message),
        _ if has_calls => Finish::Tools,
        "STOP" => Finish::Stop,
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE" => Finish::MalformedCall,
        _ => Finish::Other,
    }
}

/// Encodes a finish reason and the message beside it.
pub(super) fn encode_finish_reason<'a>(finish: &'a Finish<'_>) -> (&'static str, Option<&'a str>) {
    match finish {
        Finish::Stop | Finish::StopSequence(_) | Finish::Tools | Finish::Refused => ("STOP", None),
        Finish::Length | Finish::ContextFull => ("MAX_TOKENS", None),
        Finish::Filtered(message) => ("SAFETY", message.as_deref()),
        Finish::MalformedCall => ("MALFORMED_FUNCTION_CALL", None),
        Finish::Paused | Finish::Other => ("OTHER", None),
    }
}

/// Reports a decoded reason that not every format has: there a failed call looks like a normal end.
pub(super) fn report_decoded_reason(candidate: u32, reason: Option<&str>, losses: &mut Losses) {
    let is_exact = |reason: &str| matches!(reason, "STOP" | "MAX_TOKENS" | "SAFETY");
    if reason.is_some_and(|reason| !is_exact(reason)) {
        let path = format!("candidates[{candidate}].finishReason");
        losses.approximated(FieldLocation::Path(path.into()));
    }
}

/// Reports a reason that the format cannot encode exactly.
pub(super) fn report_encoded_reason(candidate: usize, finish: &Finish<'_>, losses: &mut Losses) {
    let path = || FieldLocation::Path(format!("candidates[{candidate}].finishReason").into());
    match finish {
        Finish::ContextFull | Finish::Paused => losses.approximated(path()),
        // The format does not name the sequence.
        Finish::StopSequence(Some(_)) => losses.dropped(path()),
        _ => {}
    }
}

/// Whether a response ended at a token limit: the call at its end may be incomplete.
pub(super) fn is_cut_off(finish: &Finish<'_>) -> bool {
    matches!(finish, Finish::Length | Finish::ContextFull)
}
