//! Puts interleaved blocks in sequence: at most one block of a choice is open at a time.

use std::collections::{BTreeMap, VecDeque};

use crate::model::{Block, Delta, Event};

/// The block of a choice that a delta belongs to, as the format numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
    buffered: VecDeque<BufferedBlock>,
    /// About how many bytes these take.
    held: usize,
    /// How many buffered blocks were sent.
    sent: usize,
    /// The last buffered block of a key that is not complete, counted with those that were sent.
    incomplete: BTreeMap<BlockKey, usize>,
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
        if state.open == Some(key) {
            out(Event::Delta { choice, delta });
        } else if let Some(buffered) = state.incomplete(key) {
            let size = delta.size();
            buffered.deltas.push(delta.into_owned());
            state.held += size;
        }
    }

    /// About how many bytes are buffered until the open blocks are closed.
    pub(in crate::formats) fn held(&self) -> usize {
        self.choices.iter().map(|choice| choice.held).sum()
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
            if let Some(buffered) = state.incomplete(key) {
                buffered.complete = true;
                state.incomplete.remove(&key);
            }
            return;
        }
        out(Event::Close { choice });
        state.open = None;
        while state.open.is_none()
            && let Some(mut buffered) = state.next_buffered()
        {
            // The block after a text has ended it.
            buffered.complete |= !buffered.key.ends_explicitly() && !state.buffered.is_empty();
            state.held = state.held.saturating_sub(buffered.size());
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
        state.open == Some(key) || state.incomplete.contains_key(&key)
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
        // Text goes on only where nothing came after it.
        let is_last = self.buffered.back().is_some_and(|last| last.key == key);
        let is_known = is_last || key.ends_explicitly();
        if !is_known || self.incomplete(key).is_none() {
            let at = self.sent + self.buffered.len();
            self.incomplete.insert(key, at);
            let buffered = BufferedBlock {
                key,
                block: block().into_owned(),
                deltas: Vec::new(),
                complete: false,
            };
            self.held += buffered.size();
            self.buffered.push_back(buffered);
        }
        if let (Some(buffered), Some(delta)) = (self.incomplete(key), delta) {
            let size = delta.size();
            buffered.deltas.push(delta.into_owned());
            self.held += size;
        }
    }

    fn incomplete(&mut self, key: BlockKey) -> Option<&mut BufferedBlock> {
        let at = self.incomplete.get(&key)?;
        self.buffered.get_mut(at - self.sent)
    }

    fn next_buffered(&mut self) -> Option<BufferedBlock> {
        let buffered = self.buffered.pop_front()?;
        if self.incomplete.get(&buffered.key) == Some(&self.sent) {
            self.incomplete.remove(&buffered.key);
        }
        self.sent += 1;
        Some(buffered)
    }
}

impl BufferedBlock {
    fn size(&self) -> usize {
        let deltas = self.deltas.iter().map(Delta::size);
        size_of::<BufferedBlock>() + self.block.size() + deltas.sum::<usize>()
    }

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
        let held = blocks.held();
        assert!(held > 2 * size_of::<Delta>(), "{held}");
        blocks.finish(0, &mut out);
        assert_eq!(blocks.held(), 0);
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
