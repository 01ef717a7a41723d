//! Ids of tool calls: which output answers which call, and the id that both have at the upstream.

use crate::formats::ids::{past_call_id, replaced_call_id};
use crate::formats::keyed_queue::KeyedQueue;
use crate::model::{Call, PartKind, Text, ToolKind, Turn};

/// The calls and the outputs of a conversation, each in the order of the turns.
#[derive(Default)]
pub(super) struct CallPairs<'r> {
    pub calls: Vec<PairedCall<'r>>,
    /// The index of the call that each output answers; `None`: there is no such call.
    pub outputs: Vec<Option<usize>>,
}

/// A call and the id it has at the upstream.
pub(super) struct PairedCall<'r> {
    pub id: Text<'r>,
    pub kind: ToolKind,
    pub answered: bool,
    /// The client's own id was too long for the format.
    pub replaced: bool,
}

impl<'r> CallPairs<'r> {
    /// Pairs the calls of a conversation with their outputs: by id, or by name where an output has no id.
    pub(super) fn of(turns: &'r [Turn<'_>]) -> CallPairs<'r> {
        let mut pairs = CallPairs::default();
        let mut by_id: KeyedQueue<&'r str, usize> = KeyedQueue::default();
        let mut by_name: KeyedQueue<&'r str, usize> = KeyedQueue::default();
        for turn in turns {
            let mut ordinal = 0;
            for part in &turn.parts {
                match &part.kind {
                    PartKind::Call(call) => {
                        let index = pairs.calls.len();
                        if let Some(id) = nonempty(&call.id) {
                            by_id.push(id, index);
                        }
                        by_name.push(&*call.name, index);
                        let position = turn.at.unwrap_or_default();
                        pairs.calls.push(assign_id(call, position, ordinal));
                        ordinal += 1;
                    }
                    PartKind::Result(result) => {
                        let (id, name) = (nonempty(&result.id), result.name.as_deref());
                        let (calls, key) = match id {
                            Some(id) => (&mut by_id, id),
                            None => (&mut by_name, name.unwrap_or_default()),
                        };
                        let mut of_key = std::iter::from_fn(|| calls.take(key));
                        let found = of_key.find(|call| !pairs.calls[*call].answered);
                        if let Some(call) = found {
                            pairs.calls[call].answered = true;
                        }
                        pairs.outputs.push(found);
                    }
                    _ => {}
                }
            }
        }
        pairs
    }
}

fn nonempty<'r>(id: &'r Option<Text<'_>>) -> Option<&'r str> {
    id.as_deref().filter(|id| !id.is_empty())
}

/// The longest `call_id` that the format accepts, in characters.
const MAX_LENGTH: usize = 64;

/// Keeps the client's id of a call where there is one that the format accepts; else derives one.
fn assign_id<'r>(call: &'r Call<'_>, position: u32, ordinal: u32) -> PairedCall<'r> {
    let (id, replaced) = match nonempty(&call.id) {
        Some(id) if id.chars().count() > MAX_LENGTH => (replaced_call_id(id).into(), true),
        Some(id) => (id.into(), false),
        None => (past_call_id(position, ordinal, &call.name).into(), false),
    };
    PairedCall {
        id,
        kind: call.kind,
        answered: false,
        replaced,
    }
}
