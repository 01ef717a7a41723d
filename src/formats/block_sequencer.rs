//! At most one block open per choice, for formats that interleave blocks or only imply them.

use crate::model::{Block, Delta, Event};

/// Which block of a choice a delta belongs to, as the wire counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::formats) enum BlockKey {
    Text,
    Refusal,
    Reasoning,
    Call(u32),
    /// For formats that number every block.
    Item(u32),
}

impl BlockKey {
    /// Running text ends where something else begins; other blocks end when the wire says so.
    const fn is_told_to_close(self) -> bool {
        matches!(self, BlockKey::Call(_) | BlockKey::Item(_))
    }
}

#[derive(Debug, Default)]
pub(in crate::formats) struct BlockSequencer {
    choices: Vec<Choice>,
}

#[derive(Debug, Default)]
struct Choice {
    open: Option<BlockKey>,
    /// What came while a call was open, in the order in which it began.
    parked: Vec<Parked>,
}

#[derive(Debug)]
struct Parked {
    key: BlockKey,
    block: Block<'static>,
    deltas: Vec<Delta<'static>>,
    complete: bool,
}

impl BlockSequencer {
    /// A piece of the block `key`, which begins as `block` when it is not there yet. Running
    /// text ends where something else begins; a call stays open until it is told to close.
    pub(in crate::formats) fn push<'a>(
        &mut self,
        choice: u32,
        key: BlockKey,
        block: impl FnOnce() -> Block<'a>,
        delta: Option<Delta<'a>>,
        out: &mut dyn FnMut(Event<'_>),
    ) {
        let state = self.choice(choice);
        match state.open {
            Some(open) if open == key => {}
            Some(open) if open.is_told_to_close() => {
                return state.park(key, block, delta);
            }
            open => {
                if open.is_some() {
                    out(Event::Close { choice });
                }
                let block = block();
                out(Event::Open { choice, block });
                state.open = Some(key);
            }
        }
        if let Some(delta) = delta {
            out(Event::Delta { choice, delta });
        }
    }

    /// More of a block that has begun, if there is one.
    pub(in crate::formats) fn extend(
        &mut self,
        choice: u32,
        key: BlockKey,
        delta: Delta<'_>,
        out: &mut dyn FnMut(Event<'_>),
    ) {
        let state = self.choice(choice);
        let mut parked = state.parked.iter_mut();
        if state.open == Some(key) {
            out(Event::Delta { choice, delta });
        } else if let Some(parked) = parked.find(|parked| parked.key == key && !parked.complete) {
            parked.deltas.push(delta.into_owned());
        }
    }

    /// The wire says that this block is complete.
    pub(in crate::formats) fn close(
        &mut self,
        choice: u32,
        key: BlockKey,
        out: &mut dyn FnMut(Event<'_>),
    ) {
        let state = self.choice(choice);
        if state.open != Some(key) {
            let mut parked = state.parked.iter_mut();
            if let Some(parked) = parked.find(|parked| parked.key == key && !parked.complete) {
                parked.complete = true;
            }
            return;
        }
        out(Event::Close { choice });
        state.open = None;
        while state.open.is_none() && !state.parked.is_empty() {
            let mut parked = state.parked.remove(0);
            // What came after running text has ended it.
            parked.complete |= !parked.key.is_told_to_close() && !state.parked.is_empty();
            state.open = parked.release(choice, out);
        }
    }

    /// Nothing more will come for this choice.
    pub(in crate::formats) fn finish(&mut self, choice: u32, out: &mut dyn FnMut(Event<'_>)) {
        while let Some(key) = self.choice(choice).open {
            self.close(choice, key, out);
        }
    }

    pub(in crate::formats) fn is_open(&mut self, choice: u32, key: BlockKey) -> bool {
        let state = self.choice(choice);
        let waits = |parked: &Parked| parked.key == key && !parked.complete;
        state.open == Some(key) || state.parked.iter().any(waits)
    }

    fn choice(&mut self, choice: u32) -> &mut Choice {
        let at = choice as usize;
        if self.choices.len() <= at {
            self.choices.resize_with(at + 1, Choice::default);
        }
        &mut self.choices[at]
    }
}

impl Choice {
    fn park<'a>(
        &mut self,
        key: BlockKey,
        block: impl FnOnce() -> Block<'a>,
        delta: Option<Delta<'a>>,
    ) {
        let last = self.parked.len().saturating_sub(1);
        let is_same = |at: usize, parked: &Parked| {
            parked.key == key && !parked.complete && (key.is_told_to_close() || at == last)
        };
        let at = (0..)
            .zip(&self.parked)
            .find_map(|(at, parked)| is_same(at, parked).then_some(at))
            .unwrap_or_else(|| {
                self.parked.push(Parked {
                    key,
                    block: block().into_owned(),
                    deltas: Vec::new(),
                    complete: false,
                });
                self.parked.len() - 1
            });
        self.parked[at].deltas.extend(delta.map(Delta::into_owned));
    }
}

impl Parked {
    /// Out with what waited; stays open when more may come.
    fn release(self, choice: u32, out: &mut dyn FnMut(Event<'_>)) -> Option<BlockKey> {
        let block = self.block;
        out(Event::Open { choice, block });
        for delta in self.deltas {
            out(Event::Delta { choice, delta });
        }
        if self.complete {
            out(Event::Close { choice });
            return None;
        }
        Some(self.key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ToolKind;

    fn call(name: &'static str) -> Block<'static> {
        Block::Call {
            id: None,
            name: name.into(),
            kind: ToolKind::Function,
        }
    }

    fn text(words: &'static str) -> Option<Delta<'static>> {
        Some(Delta::Text(words.into()))
    }

    fn arguments(words: &'static str) -> Option<Delta<'static>> {
        Some(Delta::Arguments(words.into()))
    }

    #[test]
    fn interleaved_calls_come_out_one_after_the_other() {
        let mut blocks = BlockSequencer::default();
        let mut seen = Vec::new();
        let mut out = |event: Event<'_>| seen.push(format!("{event:?}"));
        blocks.push(0, BlockKey::Text, || Block::Text, text("a"), &mut out);
        blocks.push(0, BlockKey::Call(0), || call("x"), arguments("1"), &mut out);
        blocks.push(0, BlockKey::Call(1), || call("y"), arguments("2"), &mut out);
        blocks.push(0, BlockKey::Call(0), || call("x"), arguments("3"), &mut out);
        blocks.push(0, BlockKey::Call(1), || call("y"), arguments("4"), &mut out);
        blocks.finish(0, &mut out);
        let order: Vec<_> = seen
            .iter()
            .filter_map(|event| event.split('"').nth(1).map(str::to_owned))
            .collect();
        assert_eq!(order, ["a", "x", "1", "3", "y", "2", "4"]);
        let opens = seen
            .iter()
            .filter(|event| event.starts_with("Open"))
            .count();
        let closes = seen
            .iter()
            .filter(|event| event.starts_with("Close"))
            .count();
        assert_eq!((opens, closes), (3, 3));
    }
}
