//! The `reasoning` object of a request: effort and summary.

use serde::Serialize;

use crate::formats::Capabilities;
use crate::formats::effort::{NO_EFFORT, decode_effort};
use crate::json::Fields;
use crate::model::{ApiError, Depth, Effort, FieldLocation, Losses, Setting, Thinking};

/// Decodes the `reasoning` object.
pub(super) fn decode(
    fields: &mut Fields<'_, '_>,
    thinking: &mut Thinking,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let Some(node) = fields.node("reasoning") else {
        return Ok(());
    };
    node.fields(|mut fields| {
        thinking.depth = fields.node("effort").map(decode_effort).transpose()?;
        // `generate_summary` is the older name of `summary`.
        let older = fields.text("generate_summary")?;
        let summary = fields.text("summary")?.or(older);
        thinking.show = summary.map(|_| true);
        fields.finish(losses);
        Ok(())
    })
}

/// The `reasoning` object as it is encoded.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct ReasoningSettings {
    effort: Option<&'static str>,
    summary: Option<&'static str>,
}

/// Encodes the `reasoning` object, in the efforts that the model supports.
pub(super) fn encode(
    thinking: &Thinking,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Option<ReasoningSettings> {
    let requested = match thinking.depth {
        None | Some(Depth::Dynamic) => None,
        Some(Depth::Off) => Some(None),
        Some(Depth::Effort(effort)) => Some(Some(effort)),
        Some(Depth::Budget(tokens)) => {
            losses.approximated(FieldLocation::Setting(Setting::Thinking));
            Some((tokens > 0).then(|| Effort::of_budget(tokens)))
        }
    };
    let effort = requested.map(|requested| {
        let known = supported_effort(requested, capabilities);
        if known != requested {
            losses.approximated(FieldLocation::Setting(Setting::Thinking));
        }
        known.map_or(NO_EFFORT, Effort::name)
    });
    let shown = thinking.show == Some(true) && effort != Some(NO_EFFORT);
    let summary = shown.then_some("auto");
    (effort.is_some() || summary.is_some()).then_some(ReasoningSettings { effort, summary })
}

/// Maps an effort to one that the model supports; `None`: no reasoning at all.
fn supported_effort(requested: Option<Effort>, capabilities: &Capabilities) -> Option<Effort> {
    let known = capabilities.efforts.as_deref();
    match requested {
        None if capabilities.off_effort => None,
        // Reasoning cannot be turned off: the lowest effort comes nearest.
        None => Some(capabilities.nearest_effort(Effort::Minimal)),
        Some(_) if known == Some(&[]) => None,
        Some(effort) => Some(capabilities.nearest_effort(effort)),
    }
}

/// Says whether the response may contain reasoning that a later request has to send back.
pub(super) fn may_reason(
    thinking: &Thinking,
    capabilities: &Capabilities,
    has_reasoning: bool,
) -> bool {
    match thinking.depth {
        Some(Depth::Off | Depth::Budget(0)) => !capabilities.off_effort,
        Some(_) => true,
        None => has_reasoning || thinking.show == Some(true),
    }
}
