//! Calls under an empty id, which some backends give, and their results in the same order.

use crate::formats::identity::past_call_id;
use crate::model::{PartKind, Role, Text, Turn};

/// Afterwards such a call has an id of ours, and so has the result that answers it.
pub(super) fn pair(turns: &mut [Turn<'_>]) {
    let mut open: Vec<String> = Vec::new();
    for turn in turns {
        // What the model left unanswered before it went on never will be.
        if turn.role == Role::Model {
            open.clear();
        }
        let position = turn.at.unwrap_or_default();
        let mut ordinal = 0;
        for part in &mut turn.parts {
            match &mut part.kind {
                PartKind::Call(call) => {
                    if is_empty(call.id.as_ref()) {
                        let id = past_call_id(position, ordinal, &call.name);
                        open.push(id.clone());
                        call.id = Some(id.into());
                    }
                    ordinal += 1;
                }
                PartKind::Result(result) if is_empty(result.id.as_ref()) && !open.is_empty() => {
                    result.id = Some(open.remove(0).into());
                }
                _ => {}
            }
        }
    }
}

fn is_empty(id: Option<&Text<'_>>) -> bool {
    id.is_some_and(|id| id.is_empty())
}
