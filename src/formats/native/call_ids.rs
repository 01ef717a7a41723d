//! Calls and their results, joined where the client left the ids out.

use crate::formats::identity::past_call_id;
use crate::model::{PartKind, Role, Text, Turn};

/// A call that waits for its result.
struct Open<'a> {
    name: Text<'a>,
    id: Text<'a>,
    /// The id is ours: the client gave none.
    made: bool,
}

/// Afterwards every call has an id, and every result that answers a call has that call's.
pub(super) fn pair(turns: &mut [Turn<'_>]) {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut before = Role::User;
    for turn in turns {
        // A new step of the model: what was not answered until now never will be.
        if turn.role == Role::Model && before != Role::Model {
            open.clear();
        }
        before = turn.role;
        let position = turn.at.unwrap_or_default();
        let mut ordinal = 0;
        for part in &mut turn.parts {
            match &mut part.kind {
                PartKind::Call(call) => {
                    let made = call.id.is_none();
                    let id = call
                        .id
                        .get_or_insert_with(|| past_call_id(position, ordinal, &call.name).into());
                    open.push(Open {
                        name: call.name.clone(),
                        id: id.clone(),
                        made,
                    });
                    ordinal += 1;
                }
                PartKind::Result(result) => {
                    let name = result.name.as_deref().unwrap_or_default();
                    if let Some(at) = answered(&open, result.id.as_deref(), name) {
                        result.id = Some(open.remove(at).id);
                    }
                }
                _ => {}
            }
        }
    }
}

/// By id; else the first call of that name, which must have had no id if the result has one.
fn answered(open: &[Open<'_>], id: Option<&str>, name: &str) -> Option<usize> {
    let same_id = open.iter().position(|call| Some(&*call.id) == id);
    same_id.or_else(|| {
        open.iter()
            .position(|call| call.name == name && (id.is_none() || call.made))
    })
}
