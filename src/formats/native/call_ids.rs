//! Ids of calls and results, for clients that leave them out.

use crate::formats::ids::past_call_id;
use crate::formats::keyed_queue::KeyedQueue;
use crate::model::{PartKind, Role, Text, Turn};

/// The calls of one step of the model that have no result so far.
#[derive(Default)]
struct UnansweredCalls<'a> {
    /// The id of each call; `None`: it has been answered.
    ids: Vec<Option<Text<'a>>>,
    by_id: KeyedQueue<Text<'a>, usize>,
    by_name: KeyedQueue<Text<'a>, usize>,
    /// Those whose id is ours, because the client sent none.
    generated: KeyedQueue<Text<'a>, usize>,
}

impl<'a> UnansweredCalls<'a> {
    fn push(&mut self, name: &Text<'a>, id: &Text<'a>, is_generated: bool) {
        let index = self.ids.len();
        self.ids.push(Some(id.clone()));
        self.by_id.push(id.clone(), index);
        self.by_name.push(name.clone(), index);
        if is_generated {
            self.generated.push(name.clone(), index);
        }
    }

    /// Finds the call that a result answers by its id, else the first one of that name. A result
    /// that has an id answers by name only a call that had none.
    fn answer(&mut self, id: Option<&str>, name: &str) -> Option<Text<'a>> {
        let by_name = match id {
            Some(_) => &mut self.generated,
            None => &mut self.by_name,
        };
        let by_id = id.and_then(|id| first(&mut self.by_id, id, &mut self.ids));
        by_id.or_else(|| first(by_name, name, &mut self.ids))
    }
}

/// Takes the id of the first call of a key that was not answered under another key.
fn first<'a>(
    calls: &mut KeyedQueue<Text<'a>, usize>,
    key: &str,
    ids: &mut [Option<Text<'a>>],
) -> Option<Text<'a>> {
    std::iter::from_fn(|| calls.take(key)).find_map(|index| ids[index].take())
}

/// Gives every call an id, and every result the id of the call that it answers.
pub(super) fn assign_call_ids(turns: &mut [Turn<'_>]) {
    let mut unanswered = UnansweredCalls::default();
    let mut previous_role = Role::User;
    for turn in turns {
        // A new step of the model begins: the calls of the one before stay unanswered.
        if turn.role == Role::Model && previous_role != Role::Model {
            unanswered = UnansweredCalls::default();
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
                    unanswered.push(&call.name, id, generated);
                    ordinal += 1;
                }
                PartKind::Result(result) => {
                    let name = result.name.as_deref().unwrap_or_default();
                    if let Some(id) = unanswered.answer(result.id.as_deref(), name) {
                        result.id = Some(id);
                    }
                }
                _ => {}
            }
        }
    }
}
