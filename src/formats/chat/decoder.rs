//! Streams of an upstream of this format.

use super::nesting::Nesting;
use super::reply_in::{Choice, Reply, Summary};
use super::said::{Bit, CallBit, SOUND_IN_PIECES};
use crate::formats::blocks::{Blocks, Key};
use crate::formats::few::Few;
use crate::formats::{StreamDecoder, read_event};
use crate::model::{ApiError, Block, Delta, Event, ToolKind};

type Out<'o> = &'o mut dyn FnMut(Event<'_>);

#[derive(Debug, Default)]
pub(super) struct Decoder {
    blocks: Blocks,
    choices: Vec<Progress>,
    has_started: bool,
    is_prompt_blocked: bool,
    is_over: bool,
}

/// How far one choice has come.
#[derive(Debug, Default)]
struct Progress {
    has_plain_thoughts: bool,
    summary: Summary,
    calls: Vec<CallProgress>,
    images: u32,
    is_begun: bool,
    is_finished: bool,
}

#[derive(Debug)]
struct CallProgress {
    index: Option<u32>,
    id: Option<String>,
    arguments: Nesting,
    is_closed: bool,
}

impl StreamDecoder for Decoder {
    fn event(&mut self, data: &str, out: Out<'_>) -> Result<(), ApiError> {
        if self.is_over {
            return Ok(());
        }
        let data = data.trim();
        if data == "[DONE]" {
            return self.end(out);
        }
        let mut reply: Reply<'_> = read_event(data)?;
        if let Some(api_error) = reply.api_error() {
            return Err(api_error);
        }
        self.is_prompt_blocked |= reply.is_prompt_blocked();
        let says_something = reply.choices.as_ref().is_some_and(|said| !said.is_empty());
        let usage = reply.usage();
        // One backend opens with a piece about its filters, which has no id and says nothing.
        if !self.has_started && (says_something || usage.is_some()) {
            self.has_started = true;
            out(Event::Start {
                created: reply.created(),
                id: reply.id.take().unwrap_or_default(),
                model: reply.model.take().unwrap_or_default(),
            });
        }
        for choice in reply.choices.iter_mut().flat_map(Few::iter_mut) {
            self.choice(choice, out)?;
        }
        if let Some(usage) = usage {
            out(Event::Usage(usage));
        }
        Ok(())
    }

    fn close(&mut self, out: Out<'_>) -> Result<(), ApiError> {
        let mut begun = self.choices.iter().filter(|choice| choice.is_begun);
        let is_finished = self.has_started && begun.all(|choice| choice.is_finished);
        match (self.is_over, is_finished && !self.choices.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => self.end(out),
            (false, false) => Err(ApiError::bad_gateway(
                "the upstream's stream ended before its answer did",
            )),
        }
    }
}

impl Decoder {
    fn choice(&mut self, choice: &mut Choice<'_>, out: Out<'_>) -> Result<(), ApiError> {
        let number = choice.index.unwrap_or(0);
        let at = number as usize;
        if at >= MOST_CHOICES {
            return Err(ApiError::bad_gateway(
                "the upstream numbers its answers wildly",
            ));
        }
        if self.choices.len() <= at {
            self.choices.resize_with(at + 1, Progress::default);
        }
        let progress = &mut self.choices[at];
        progress.is_begun = true;
        progress.summary.is_prompt_blocked = self.is_prompt_blocked;
        let mut writer = Writer {
            number,
            blocks: &mut self.blocks,
            calls: &mut progress.calls,
            images: &mut progress.images,
            summary: &mut progress.summary,
            out,
        };
        let message = choice.message.as_deref_mut();
        if let Some(said) = choice.delta.as_mut().or(message) {
            said.walk(
                &mut progress.has_plain_thoughts,
                SOUND_IN_PIECES,
                &mut |bit| writer.add(bit),
            );
        }
        for logprob in choice.logprobs() {
            out(Event::Delta {
                choice: number,
                delta: Delta::Logprob(logprob),
            });
        }
        let finish = choice.finish(progress.summary)?;
        if let Some(reason) = finish.filter(|_| !progress.is_finished) {
            progress.is_finished = true;
            self.blocks.finish(number, out);
            out(Event::Finish {
                choice: number,
                reason,
            });
        }
        Ok(())
    }

    /// The format's own last word; a choice that gave no reason until now has just ended.
    fn end(&mut self, out: Out<'_>) -> Result<(), ApiError> {
        if self.choices.is_empty() {
            return Err(ApiError::bad_gateway(
                "the upstream's stream held no answer",
            ));
        }
        for (number, progress) in (0..).zip(&self.choices) {
            self.blocks.finish(number, out);
            if progress.is_begun && !progress.is_finished {
                let reason = progress.summary.finish();
                out(Event::Finish {
                    choice: number,
                    reason,
                });
            }
        }
        self.is_over = true;
        out(Event::End);
        Ok(())
    }
}

/// The format's own limit of choices.
const MOST_CHOICES: usize = 128;

/// Writes what one choice says.
struct Writer<'w, 'o> {
    number: u32,
    blocks: &'w mut Blocks,
    calls: &'w mut Vec<CallProgress>,
    images: &'w mut u32,
    summary: &'w mut Summary,
    out: Out<'o>,
}

impl Writer<'_, '_> {
    fn add(&mut self, bit: Bit<'_>) {
        match bit {
            Bit::Text(text) => self.push(Key::Text, || Block::Text, Some(Delta::Text(text))),
            Bit::Refusal(text) => {
                self.summary.has_refusal = true;
                self.push(Key::Refusal, || Block::Refusal, Some(Delta::Text(text)));
            }
            Bit::Reasoning(text) => {
                self.push(Key::Reasoning, || Block::Reasoning, Some(Delta::Text(text)));
            }
            // A call's signature comes when its arguments are out: too late for it, never for a thought.
            Bit::Signature(signature) | Bit::CallSeal { signature, .. } => {
                self.push(
                    Key::Reasoning,
                    || Block::Reasoning,
                    Some(Delta::Signature(signature)),
                );
                self.blocks.close(self.number, Key::Reasoning, self.out);
            }
            Bit::ForeignSeal => {}
            Bit::Media(media) => {
                let key = Key::Item(*self.images);
                *self.images += 1;
                self.push(key, || Block::Media(media), None);
                self.blocks.close(self.number, key, self.out);
            }
            Bit::Citation(citation) => (self.out)(Event::Delta {
                choice: self.number,
                delta: Delta::Citation(citation),
            }),
            Bit::Call(call) => self.call(call),
        }
    }

    fn call(&mut self, call: CallBit<'_>) {
        self.summary.has_calls = true;
        let at = self.position(&call);
        let progress = &mut self.calls[at];
        if progress.is_closed {
            return;
        }
        let arguments = call.arguments.to_text();
        if call.kind == ToolKind::Function {
            progress.arguments.push(&arguments);
        }
        let key = Key::Call(at as u32);
        let block = || Block::Call {
            id: call.id,
            name: call.name,
            kind: call.kind,
        };
        let delta = (!arguments.is_empty()).then_some(Delta::Arguments(arguments));
        self.push(key, block, delta);
    }

    /// Which call a piece belongs to. Some backends give no index, or the same one to every call:
    /// then a new id is a new call.
    fn position(&mut self, call: &CallBit<'_>) -> usize {
        let is_same = |known: &CallProgress| match (call.id.as_deref(), call.index) {
            (None, None) => true,
            (None, index) => known.index == index,
            (Some(id), index) => {
                (index.is_none() || known.index == index)
                    && known.id.as_deref().is_none_or(|known| known == id)
            }
        };
        if let Some(at) = self.calls.iter().rposition(is_same) {
            return at;
        }
        self.calls.push(CallProgress {
            index: call.index,
            id: call.id.as_deref().map(str::to_owned),
            arguments: Nesting::default(),
            is_closed: false,
        });
        self.calls.len() - 1
    }

    /// Calls whose arguments are complete end where something else begins, so that nothing waits.
    fn push<'a>(&mut self, key: Key, block: impl FnOnce() -> Block<'a>, delta: Option<Delta<'a>>) {
        for (at, call) in (0..).zip(&mut *self.calls) {
            let is_other = key != Key::Call(at);
            if is_other && call.arguments.is_complete() && !call.is_closed {
                call.is_closed = true;
                self.blocks.close(self.number, Key::Call(at), self.out);
            }
        }
        self.blocks.push(self.number, key, block, delta, self.out);
    }
}
