//! Ids of calls and results, for clients that leave them out.

use crate::formats::ids::past_call_id;
use crate::model::{PartKind, Role, Text, Turn};

/// A call without a result so far.
struct UnansweredCall<'a> {
    name: Text<'a>,
    id: Text<'a>,
    /// Whether the id is ours because the client sent none.
    generated: bool,
}

/// Gives every call an id, and every result the id of the call that it answers.
pub(super) fn assign_call_ids(turns: &mut [Turn<'_>]) {
    let mut unanswered: Vec<UnansweredCall<'_>> = Vec::new();
    let mut previous_role = Role::User;
    for turn in turns {
        // A new step of the model begins: the calls of the one before stay unanswered.
        if turn.role == Role::Model && previous_role != Role::Model {
            unanswered.clear();
        }
        previous_role = turn.role;
        let position = turn.at.unwrap_or_default();
        let mut ordinal = 0;
        for part in &mut turn.parts {
            match &mut part.kind {
                PartKind::Call(call) => {
                    let generated = call.id.is_none();
                    let id = call
                        .id
                        .get_or_insert_with(|| past_call_id(position, ordinal, &call.name).into());
                    unanswered.push(UnansweredCall {
                        name: call.name.clone(),
                        id: id.clone(),
                        generated,
                    });
                    ordinal += 1;
                }
                PartKind::Result(result) => {
                    let name = result.name.as_deref().unwrap_or_default();
                    if let Some(at) = answered_call(&unanswered, result.id.as_deref(), name) {
                        result.id = Some(unanswered.remove(at).id);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Finds the call that a result answers by its id, else the first one of that name. A result that
/// has an id answers by name only a call that had none.
fn answered_call(unanswered: &[UnansweredCall<'_>], id: Option<&str>, name: &str) -> Option<usize> {
    let by_id = unanswered.iter().position(|call| Some(&*call.id) == id);
    by_id.or_else(|| {
        unanswered
            .iter()
            .position(|call| call.name == name && (id.is_none() || call.generated))
    })
}
