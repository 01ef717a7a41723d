//! Puts interleaved blocks in sequence: at most one block of a choice is open at a time.

use crate::model::{Block, Delta, Event};

/// The block of a choice that a delta belongs to, as the format numbers them.
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
    /// Tells whether the format ends the block explicitly; text ends where another block begins.
    const fn ends_explicitly(self) -> bool {
        matches!(self, BlockKey::Call(_) | BlockKey::Item(_))
    }
}

/// Makes events of blocks that may be interleaved.
#[derive(Debug, Default)]
pub(in crate::formats) struct BlockSequencer {
    choices: Vec<ChoiceBlocks>,
}

#[derive(Debug, Default)]
struct ChoiceBlocks {
    open: Option<BlockKey>,
    /// The blocks that came while another was open, in their order.
    buffered: Vec<BufferedBlock>,
}

#[derive(Debug)]
struct BufferedBlock {
    key: BlockKey,
    block: Block<'static>,
    deltas: Vec<Delta<'static>>,
    complete: bool,
}

impl BlockSequencer {
    /// Adds a delta to the block `key`, and opens it as `block` if it is new. Text ends where another
    /// block begins; a call stays open until it is closed.
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
            Some(open) if open.ends_explicitly() => {
                return state.buffer(key, block, delta);
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

    /// Adds a delta to a block that is open, if there is one.
    pub(in crate::formats) fn extend(
        &mut self,
        choice: u32,
        key: BlockKey,
        delta: Delta<'_>,
        out: &mut dyn FnMut(Event<'_>),
    ) {
        let state = self.choice(choice);
        let mut buffered = state.buffered.iter_mut();
        if state.open == Some(key) {
            out(Event::Delta { choice, delta });
        } else if let Some(buffered) =
            buffered.find(|buffered| buffered.key == key && !buffered.complete)
        {
            buffered.deltas.push(delta.into_owned());
        }
    }

    /// Closes a block.
    pub(in crate::formats) fn close(
        &mut self,
        choice: u32,
        key: BlockKey,
        out: &mut dyn FnMut(Event<'_>),
    ) {
        let state = self.choice(choice);
        if state.open != Some(key) {
            let mut buffered = state.buffered.iter_mut();
            if let Some(buffered) =
                buffered.find(|buffered| buffered.key == key && !buffered.complete)
            {
                buffered.complete = true;
            }
            return;
        }
        out(Event::Close { choice });
        state.open = None;
        while state.open.is_none() && !state.buffered.is_empty() {
            let mut buffered = state.buffered.remove(0);
            // The block after a text has ended it.
            buffered.complete |= !buffered.key.ends_explicitly() && !state.buffered.is_empty();
            state.open = buffered.send(choice, out);
        }
    }

    /// Closes all blocks of a choice.
    pub(in crate::formats) fn finish(&mut self, choice: u32, out: &mut dyn FnMut(Event<'_>)) {
        while let Some(key) = self.choice(choice).open {
            self.close(choice, key, out);
        }
    }

    /// Tells whether a block is open or buffered.
    pub(in crate::formats) fn is_open(&mut self, choice: u32, key: BlockKey) -> bool {
        let state = self.choice(choice);
        let is_buffered = |buffered: &BufferedBlock| buffered.key == key && !buffered.complete;
        state.open == Some(key) || state.buffered.iter().any(is_buffered)
    }

    fn choice(&mut self, choice: u32) -> &mut ChoiceBlocks {
        let at = choice as usize;
        if self.choices.len() <= at {
            self.choices.resize_with(at + 1, ChoiceBlocks::default);
        }
        &mut self.choices[at]
    }
}

impl ChoiceBlocks {
    fn buffer<'a>(
        &mut self,
        key: BlockKey,
        block: impl FnOnce() -> Block<'a>,
        delta: Option<Delta<'a>>,
    ) {
        let last = self.buffered.len().saturating_sub(1);
        let is_same = |at: usize, buffered: &BufferedBlock| {
            buffered.key == key && !buffered.complete && (key.ends_explicitly() || at == last)
        };
        let at = (0..)
            .zip(&self.buffered)
            .find_map(|(at, buffered)| is_same(at, buffered).then_some(at))
            .unwrap_or_else(|| {
                self.buffered.push(BufferedBlock {
                    key,
                    block: block().into_owned(),
                    deltas: Vec::new(),
                    complete: false,
                });
                self.buffered.len() - 1
            });
        self.buffered[at]
            .deltas
            .extend(delta.map(Delta::into_owned));
    }
}

impl BufferedBlock {
    /// Sends the events of the block, which stays open if more may come.
    fn send(self, choice: u32, out: &mut dyn FnMut(Event<'_>)) -> Option<BlockKey> {
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
    fn interleaved_calls_are_put_in_sequence() {
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
