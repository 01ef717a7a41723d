//! Status: how a response ended.

use serde::Serialize;

use super::error;
use crate::model::{ApiError, ApiErrorKind, Finish};

/// The statuses of a response and of its items.
pub(super) const IN_PROGRESS: &str = "in_progress";
pub(super) const COMPLETED: &str = "completed";
pub(super) const INCOMPLETE: &str = "incomplete";
pub(super) const FAILED: &str = "failed";

/// What the output contains, as far as it decides how a complete response ended.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OutputFlags {
    pub has_call: bool,
    pub has_refusal: bool,
}

/// Decodes `status` and the reason in `incomplete_details`. `Err`: the response failed or is not complete yet; `data`
/// is the upstream's JSON, which holds the error.
pub(super) fn decode_finish(
    status: Option<&str>,
    reason: Option<&str>,
    output: OutputFlags,
    data: &str,
) -> Result<Finish<'static>, ApiError> {
    let finish = match (status, reason) {
        (Some(FAILED), _) => return Err(error::decode_in_stream(data)),
        (Some(status @ ("cancelled" | "queued" | IN_PROGRESS)), _) => {
            let message = format!("the upstream's response ended with the status {status}");
            return Err(ApiError::sent(ApiErrorKind::BadGateway, message));
        }
        (Some(INCOMPLETE), Some(MAX_OUTPUT_TOKENS | "max_messages")) => Finish::Length,
        (Some(INCOMPLETE), Some(CONTENT_FILTER)) => Finish::Filtered(None),
        // Whatever it holds: nobody knows what would have followed.
        (Some(INCOMPLETE), _) => Finish::Other,
        _ if output.has_call => Finish::Tools,
        (Some(COMPLETED) | None, _) if output.has_refusal => Finish::Refused,
        (Some(COMPLETED) | None, _) => Finish::Stop,
        _ => Finish::Other,
    };
    Ok(finish)
}

const MAX_OUTPUT_TOKENS: &str = "max_output_tokens";
const CONTENT_FILTER: &str = "content_filter";

/// `incomplete_details` as it is encoded.
#[derive(Serialize, Clone, Copy)]
pub(super) struct IncompleteDetails {
    pub reason: &'static str,
}

/// The status of a response and of its last item, and why it is not complete.
pub(super) type ResponseEnding = (&'static str, Option<IncompleteDetails>);

/// Encodes the end of a response.
pub(super) fn encode_finish(finish: &Finish<'_>) -> ResponseEnding {
    let reason = match finish {
        Finish::Length | Finish::ContextFull => MAX_OUTPUT_TOKENS,
        Finish::Filtered(_) => CONTENT_FILTER,
        Finish::Stop
        | Finish::StopSequence(_)
        | Finish::Tools
        | Finish::Refused
        | Finish::Paused
        | Finish::MalformedCall
        | Finish::Other => return (COMPLETED, None),
    };
    (INCOMPLETE, Some(IncompleteDetails { reason }))
}
