//! Why a response ended: `stop_reason`, `stop_sequence` and `stop_details`.

use serde::Serialize;

use crate::json::{Present, from_json};
use crate::model::{Finish, Text};

from_json! {
    /// The `stop_details` of a response or of a `message_delta`.
    pub(super) struct RawStopDetails<'a> {
        "category" => pub(super) category: Option<Present>,
        "explanation" => explanation: Option<Text<'a>>,
    }
}

/// Decodes `stop_reason` with its details.
pub(super) fn decode_stop_reason<'a>(
    reason: Option<&str>,
    sequence: Option<Text<'a>>,
    details: Option<RawStopDetails<'a>>,
) -> Finish<'a> {
    match reason {
        Some("end_turn") => Finish::Stop,
        Some("max_tokens") => Finish::Length,
        Some("stop_sequence") => Finish::StopSequence(sequence),
        Some("tool_use") => Finish::Tools,
        Some("refusal") => Finish::Filtered(details.and_then(|details| details.explanation)),
        Some("pause_turn" | "compaction") => Finish::Paused,
        Some("model_context_window_exceeded") => Finish::ContextFull,
        _ => Finish::Other,
    }
}

/// The stop fields of a response to a client; all of them empty at the start of a stream.
#[derive(Serialize, Default)]
pub(super) struct StopReason {
    stop_reason: Option<&'static str>,
    stop_sequence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_details: Option<StopDetails>,
    /// The reason stays even if the response holds calls.
    #[serde(skip)]
    is_final: bool,
}

#[derive(Serialize)]
struct StopDetails {
    r#type: &'static str,
    category: Option<&'static str>,
    explanation: String,
}

/// Encodes `stop_reason` with its details.
pub(super) fn encode_stop_reason(finish: &Finish<'_>) -> StopReason {
    let reason = match finish {
        Finish::Stop | Finish::MalformedCall | Finish::Other => "end_turn",
        Finish::StopSequence(_) => "stop_sequence",
        Finish::Length => "max_tokens",
        Finish::ContextFull => "model_context_window_exceeded",
        Finish::Tools => "tool_use",
        Finish::Filtered(_) | Finish::Refused => "refusal",
        Finish::Paused => "pause_turn",
    };
    let mut stop = StopReason {
        stop_reason: Some(reason),
        is_final: matches!(
            finish,
            Finish::Length | Finish::ContextFull | Finish::Filtered(_)
        ),
        ..StopReason::default()
    };
    match finish {
        Finish::StopSequence(Some(text)) => stop.stop_sequence = Some(text.to_string()),
        Finish::Filtered(Some(text)) => {
            stop.stop_details = Some(StopDetails {
                r#type: "refusal",
                category: None,
                explanation: text.to_string(),
            });
        }
        _ => {}
    }
    stop
}

impl StopReason {
    /// Corrects the reason by the content of the response: clients look at nothing else to find out
    /// whether it holds tool calls or a refusal.
    pub(super) fn with_content(self, has_calls: bool, has_refusal: bool) -> StopReason {
        let reason = match self.stop_reason {
            _ if self.is_final => return self,
            _ if has_calls => "tool_use",
            Some("end_turn") if has_refusal => "refusal",
            _ => return self,
        };
        StopReason {
            stop_reason: Some(reason),
            ..StopReason::default()
        }
    }
}
