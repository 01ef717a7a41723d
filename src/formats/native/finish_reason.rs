//! What a reply loses on its way to a client of this format.

use super::response::{Args, is_cut_off};
use crate::model::{Call, FieldLocation, Finish, Losses, PartKind, Response, ToolKind};

pub(super) fn report(response: &Response<'_>, losses: &mut Losses) {
    if response.usage.is_some_and(|usage| usage.cache_written > 0) {
        losses.dropped(FieldLocation::Path(
            "usageMetadata: tokens written to the cache".into(),
        ));
    }
    if response.blocked_prompt().is_some() {
        return;
    }
    for (index, choice) in response.choices.iter().enumerate() {
        let reason = || FieldLocation::Path(format!("candidates[{index}].finishReason").into());
        match &choice.finish {
            Finish::ContextFull | Finish::Paused => losses.approximated(reason()),
            // Which sequence it was.
            Finish::StopSequence(Some(_)) => losses.dropped(reason()),
            _ => {}
        }
        for (number, part) in choice.parts.iter().enumerate() {
            // A refusal looks like any other words.
            if matches!(part.kind, PartKind::Refusal(_)) {
                losses.approximated(part_place(index, number));
            }
        }
    }
}

/// `args`: what could be read of the arguments. Whether the call can be told at all.
pub(super) fn keeps_call(
    call: &Call<'_>,
    args: Option<&Args<'_>>,
    last: bool,
    finish: &Finish<'_>,
    place: impl FnOnce() -> FieldLocation,
    losses: &mut Losses,
) -> bool {
    if args.is_none() && last && is_cut_off(finish) {
        losses.dropped(place());
        return false;
    }
    let blank = || call.arguments.to_text().trim_ascii().is_empty();
    if call.kind == ToolKind::Custom || args.is_none() && !blank() {
        losses.approximated(place());
    }
    true
}

pub(super) fn part_place(candidate: usize, part: usize) -> FieldLocation {
    FieldLocation::Path(format!("candidates[{candidate}].content.parts[{part}]").into())
}
