//! Which result answers which call, and under which id both go to an upstream of this format.

use crate::formats::identity::{past_call_id, replaced_call_id};
use crate::model::{Call, PartKind, Text, ToolKind, Turn};

/// The calls and the results of a conversation, each in the order of the turns.
#[derive(Default)]
pub(super) struct Pairs<'r> {
    pub calls: Vec<Paired<'r>>,
    /// The number of the call that is answered; `None`: there is none.
    pub results: Vec<Option<usize>>,
}

pub(super) struct Paired<'r> {
    pub id: Text<'r>,
    pub kind: ToolKind,
    pub answered: bool,
    /// The id is not the client's own, which was too long.
    pub replaced: bool,
}

/// A call that waits for its result, by the words of the client.
struct Open<'r> {
    call: usize,
    id: Option<&'r str>,
    name: &'r str,
}

pub(super) fn pair<'r>(turns: &'r [Turn<'_>]) -> Pairs<'r> {
    let mut pairs = Pairs::default();
    let mut open: Vec<Open<'r>> = Vec::new();
    for turn in turns {
        let mut ordinal = 0;
        for part in &turn.parts {
            match &part.kind {
                PartKind::Call(call) => {
                    open.push(Open {
                        call: pairs.calls.len(),
                        id: given(&call.id),
                        name: &call.name,
                    });
                    let position = turn.at.unwrap_or_default();
                    pairs.calls.push(name_call(call, position, ordinal));
                    ordinal += 1;
                }
                PartKind::Result(result) => {
                    let (id, name) = (given(&result.id), result.name.as_deref());
                    let answers = |call: &Open<'_>| match id {
                        Some(_) => call.id == id,
                        None => Some(call.name) == name,
                    };
                    let found = open.iter().position(answers).map(|at| open.remove(at).call);
                    if let Some(call) = found {
                        pairs.calls[call].answered = true;
                    }
                    pairs.results.push(found);
                }
                _ => {}
            }
        }
    }
    pairs
}

fn given<'r>(id: &'r Option<Text<'_>>) -> Option<&'r str> {
    id.as_deref().filter(|id| !id.is_empty())
}

/// The longest id that the format takes.
const MOST: usize = 64;

fn name_call<'r>(call: &'r Call<'_>, position: u32, ordinal: u32) -> Paired<'r> {
    let (id, replaced) = match given(&call.id) {
        Some(id) if id.chars().count() > MOST => (replaced_call_id(id).into(), true),
        Some(id) => (id.into(), false),
        None => (past_call_id(position, ordinal, &call.name).into(), false),
    };
    Paired {
        id,
        kind: call.kind,
        answered: false,
        replaced,
    }
}
