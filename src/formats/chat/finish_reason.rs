//! The `finish_reason` of a choice.

use crate::model::{ApiError, ApiErrorKind, Finish, PROMPT_BLOCKED, Text};

/// The content of a choice, as far as its finish depends on it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChoiceSummary {
    pub(super) has_calls: bool,
    pub(super) has_refusal: bool,
    /// A content filter has blocked the prompt.
    pub(super) is_prompt_blocked: bool,
}

impl ChoiceSummary {
    /// The reason of a filter that blocked the prompt, for a choice that holds nothing else.
    fn block_reason(self) -> Option<Text<'static>> {
        let is_empty = !self.has_calls && !self.has_refusal;
        (is_empty && self.is_prompt_blocked).then(|| format!("{PROMPT_BLOCKED}SAFETY").into())
    }

    /// The finish of a choice that gives no reason, or only `stop`.
    pub(super) const fn finish(self) -> Finish<'static> {
        match self {
            ChoiceSummary {
                has_calls: true, ..
            } => Finish::Tools,
            ChoiceSummary {
                has_refusal: true, ..
            } => Finish::Refused,
            _ => Finish::Stop,
        }
    }
}

/// Decodes a `finish_reason`; where it is `stop` or unknown, the content of the choice decides.
pub(super) fn decode_finish_reason(
    reason: Option<&str>,
    summary: ChoiceSummary,
) -> Result<Option<Finish<'static>>, ApiError> {
    Ok(match reason {
        Some("error") => {
            let message = "the upstream failed to answer";
            return Err(ApiError::sent(ApiErrorKind::BadGateway, message));
        }
        None | Some("") => None,
        Some("length" | "model_length") => Some(Finish::Length),
        Some("content_filter") => Some(Finish::Filtered(summary.block_reason())),
        Some("tool_calls" | "function_call") => Some(Finish::Tools),
        Some(_) => Some(summary.finish()),
    })
}

/// Whether a `finish_reason` is one of the format or of a known dialect.
pub(super) fn is_known_finish_reason(reason: Option<&str>) -> bool {
    matches!(
        reason.unwrap_or_default(),
        "" | "stop"
            | "eos"
            | "length"
            | "model_length"
            | "tool_calls"
            | "function_call"
            | "content_filter"
            | "error"
    )
}

/// Encodes a `finish_reason`. Calls count more than every reason except a limit or a filter: agents run
/// tools where they find `tool_calls`.
pub(super) const fn encode_finish_reason(finish: &Finish<'_>, has_calls: bool) -> &'static str {
    match finish {
        Finish::Length | Finish::ContextFull => "length",
        Finish::Filtered(_) => "content_filter",
        Finish::Tools => "tool_calls",
        Finish::Stop
        | Finish::StopSequence(_)
        | Finish::Refused
        | Finish::Paused
        | Finish::MalformedCall
        | Finish::Other => {
            if has_calls {
                "tool_calls"
            } else {
                "stop"
            }
        }
    }
}
