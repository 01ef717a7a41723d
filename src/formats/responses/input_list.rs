//! The items of `input` in the order that upstreams insist on.

use super::call_ids::CallPairs;
use super::content::InputContent;
use super::input_items::{self, InputItem};
use crate::model::{Call, FieldLocation, Losses};

/// The output of a call that the client never answered: upstreams refuse a call without one.
const MISSING_OUTPUT: &str = "(no result)";

/// The encoded items of a conversation. Reasoning stands right before the item that it led to, and every call has
/// an output.
pub(super) struct InputList<'r, 'l> {
    pub items: Vec<InputItem<'r>>,
    /// Encrypted reasoning is among the items.
    pub has_reasoning: bool,
    pairs: CallPairs<'r>,
    /// How many calls and outputs of `pairs` have been encoded.
    calls: usize,
    outputs: usize,
    /// Calls that no output answers, until the outputs of their step are over.
    unanswered: Vec<usize>,
    /// How many of them are of an earlier turn.
    overdue: usize,
    /// Reasoning that no item of the model follows yet: upstreams accept it only before what it led to.
    pending_reasoning: Vec<(InputItem<'r>, FieldLocation)>,
    pub losses: &'l mut Losses,
}

impl<'r, 'l> InputList<'r, 'l> {
    /// Begins an empty list.
    pub(super) fn new(pairs: CallPairs<'r>, losses: &'l mut Losses) -> InputList<'r, 'l> {
        InputList {
            items: Vec::new(),
            has_reasoning: false,
            pairs,
            calls: 0,
            outputs: 0,
            unanswered: Vec::new(),
            overdue: 0,
            pending_reasoning: Vec::new(),
            losses,
        }
    }

    /// Notes that a turn begins: calls of earlier turns get no more outputs than those that come next.
    pub(super) fn begin_turn(&mut self) {
        self.overdue = self.unanswered.len();
    }

    /// Completes the list after the last turn.
    pub(super) fn finish(&mut self) {
        self.drop_pending_reasoning();
        self.overdue = self.unanswered.len();
        self.push_missing_outputs();
    }

    /// Adds an item other than an output; outputs may come in any number after their calls.
    pub(super) fn push(&mut self, item: InputItem<'r>) {
        self.push_missing_outputs();
        self.items.push(item);
    }

    /// Adds an item of the model, right after the reasoning that led to it.
    pub(super) fn push_model_item(&mut self, item: InputItem<'r>) {
        for (reasoning, _) in std::mem::take(&mut self.pending_reasoning) {
            self.push(reasoning);
            self.has_reasoning = true;
        }
        self.push(item);
    }

    /// Holds reasoning back until an item of the model follows it.
    pub(super) fn push_reasoning(&mut self, item: InputItem<'r>, location: FieldLocation) {
        self.pending_reasoning.push((item, location));
    }

    /// Drops the reasoning that led to nothing.
    pub(super) fn drop_pending_reasoning(&mut self) {
        for (_, location) in std::mem::take(&mut self.pending_reasoning) {
            self.losses.dropped(location);
        }
    }

    /// Adds the next call of the conversation.
    pub(super) fn push_call(&mut self, call: &'r Call<'_>, location: FieldLocation) {
        let index = self.calls;
        self.calls += 1;
        let paired = &self.pairs.calls[index];
        if paired.replaced {
            self.losses.approximated(location.clone());
        }
        let answered = paired.answered;
        let item = input_items::encode_call(call, paired.id.clone());
        self.push_model_item(item);
        if !answered {
            self.losses.approximated(location);
            self.unanswered.push(index);
        }
    }

    /// The index of the call that the next output of the conversation answers; `None`: there is no such call.
    pub(super) fn next_answered_call(&mut self) -> Option<usize> {
        let call = self.pairs.outputs[self.outputs];
        self.outputs += 1;
        call
    }

    /// Adds the output of a call.
    pub(super) fn push_output(&mut self, call: usize, output: InputContent<'r>) {
        let call = &self.pairs.calls[call];
        let item = input_items::encode_call_output(call.kind, call.id.clone(), output);
        self.items.push(item);
    }

    /// Adds an output for each call of an earlier turn that has none.
    fn push_missing_outputs(&mut self) {
        let overdue: Vec<usize> = self.unanswered.drain(..self.overdue).collect();
        self.overdue = 0;
        for call in overdue {
            self.push_output(call, InputContent::Text(MISSING_OUTPUT));
        }
    }
}
