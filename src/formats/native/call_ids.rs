//! Ids of calls and results, for clients that leave them out or send wrong ones.

use crate::formats::ids::past_call_id;
use crate::formats::keyed_queue::KeyedQueue;
use crate::model::{FieldLocation, Losses, PartKind, Role, Text, ToolResult, Turn};

/// Gives every call an id, and every result the id of the call that it answers.
pub(super) fn assign_call_ids(turns: &mut [Turn<'_>], losses: &mut Losses) {
    // Results answer calls of their own step: the model's turns and those of the user after them.
    let steps =
        turns.chunk_by_mut(|turn, next| turn.role == Role::Model || next.role != Role::Model);
    for step in steps {
        let mut calls = name_calls(step);
        pair_results(step, &mut calls, losses);
    }
}

/// Gives every call of a step an id.
fn name_calls<'a>(step: &mut [Turn<'a>]) -> UnansweredCalls<'a> {
    let mut calls = UnansweredCalls::default();
    for turn in step {
        let position = turn.at.unwrap_or_default();
        let mut ordinal = 0;
        for part in &mut turn.parts {
            if let PartKind::Call(call) = &mut part.kind {
                let generated = call.id.is_none();
                let id = call
                    .id
                    .get_or_insert_with(|| past_call_id(position, ordinal, &call.name).into());
                calls.push(&call.name, id, generated);
                ordinal += 1;
            }
        }
    }
    calls
}

/// Pairs the results of a step with its calls: by id, those that remain by name, and those that still
/// remain by their order. A call without a result is refused by upstreams.
fn pair_results<'a>(step: &mut [Turn<'a>], calls: &mut UnansweredCalls<'a>, losses: &mut Losses) {
    let mut results: Vec<(FieldLocation, &mut ToolResult<'a>)> = Vec::new();
    for turn in step {
        for part in &mut turn.parts {
            if let PartKind::Result(result) = &mut part.kind {
                let (turn, part) = (turn.at, part.at);
                results.push((FieldLocation::Part { turn, part }, result));
            }
        }
    }
    results.retain_mut(|(_, result)| !calls.answer_by_id(result));
    results.retain_mut(|(location, result)| match calls.answer_by_name(result) {
        Some(is_certain) => {
            if !is_certain {
                losses.approximated(location.clone());
            }
            false
        }
        None => true,
    });
    for (location, result) in results {
        // What answers nothing is left to the encoders, which drop it.
        if calls.answer_next(result) {
            losses.approximated(location);
        }
    }
}

/// The calls of one step that have no result so far.
#[derive(Default)]
struct UnansweredCalls<'a> {
    /// The id of each call; `None`: it has been answered.
    ids: Vec<Option<Text<'a>>>,
    by_id: KeyedQueue<Text<'a>, usize>,
    by_name: KeyedQueue<Text<'a>, usize>,
    /// Those whose id is ours, because the client sent none.
    generated: KeyedQueue<Text<'a>, usize>,
    /// All calls before this one have been answered.
    next: usize,
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

    fn answer_by_id(&mut self, result: &mut ToolResult<'a>) -> bool {
        let id = result.id.as_deref();
        let call = id.and_then(|id| first(&mut self.by_id, id, &mut self.ids));
        set_id(result, call)
    }

    /// Answers the first call of the result's name, and tells whether the client's ids allow that.
    fn answer_by_name(&mut self, result: &mut ToolResult<'a>) -> Option<bool> {
        let name = result.name.as_deref().unwrap_or_default();
        let generated = match result.id {
            Some(_) => first(&mut self.generated, name, &mut self.ids),
            None => None,
        };
        let is_certain = result.id.is_none() || generated.is_some();
        let call = generated.or_else(|| first(&mut self.by_name, name, &mut self.ids));
        set_id(result, call).then_some(is_certain)
    }

    fn answer_next(&mut self, result: &mut ToolResult<'a>) -> bool {
        let mut call = None;
        while call.is_none() && self.next < self.ids.len() {
            call = self.ids[self.next].take();
            self.next += 1;
        }
        set_id(result, call)
    }
}

/// Gives a result the id of the call that it answers, if there is one.
fn set_id<'a>(result: &mut ToolResult<'a>, call: Option<Text<'a>>) -> bool {
    let is_found = call.is_some();
    if is_found {
        result.id = call;
    }
    is_found
}

/// Takes the id of the first call of a key that was not answered under another key.
fn first<'a>(
    calls: &mut KeyedQueue<Text<'a>, usize>,
    key: &str,
    ids: &mut [Option<Text<'a>>],
) -> Option<Text<'a>> {
    std::iter::from_fn(|| calls.take(key)).find_map(|index| ids[index].take())
}
