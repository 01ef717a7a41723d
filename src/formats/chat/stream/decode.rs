//! Decodes the chunks of an upstream into events.

use super::decoded_calls::DecodedCalls;
use crate::formats::block_sequencer::{BlockKey, BlockSequencer};
use crate::formats::chat::calls::CallFragment;
use crate::formats::chat::completion::{Completion, CompletionChoice};
use crate::formats::chat::finish_reason::ChoiceSummary;
use crate::formats::chat::fragment::ChatFragment;
use crate::formats::chat::output_media::STREAMED_AUDIO_TYPE;
use crate::formats::{ReportedUsage, StreamDecoder, check_choice, decode_event_data};
use crate::model::{ApiError, Block, Delta, Event, ToolKind, Usage};

/// Takes the decoded events.
type EventSink<'o> = &'o mut dyn FnMut(Event<'_>);

/// Decodes one stream.
#[derive(Debug, Default)]
pub(in crate::formats::chat) struct ChatStreamDecoder {
    blocks: BlockSequencer,
    choices: Vec<DecodedChoice>,
    has_started: bool,
    is_prompt_blocked: bool,
    is_over: bool,
    usage: Option<Usage>,
    /// What the last chunk has reported of it.
    reported: Option<ReportedUsage>,
}

/// The state of one choice.
#[derive(Debug, Default)]
struct DecodedChoice {
    has_plain_reasoning: bool,
    summary: ChoiceSummary,
    calls: DecodedCalls,
    images: u32,
    is_begun: bool,
    is_finished: bool,
}

impl StreamDecoder for ChatStreamDecoder {
    fn decode_event(&mut self, data: &str, out: EventSink<'_>) -> Result<(), ApiError> {
        if self.is_over {
            return Ok(());
        }
        let data = data.trim();
        if data == "[DONE]" {
            return self.end(out);
        }
        let mut completion: Completion<'_> = decode_event_data(data)?;
        if let Some(api_error) = completion.api_error() {
            return Err(api_error);
        }
        self.is_prompt_blocked |= completion.is_prompt_blocked();
        let has_choices = completion
            .choices
            .as_ref()
            .is_some_and(|choices| !choices.is_empty());
        let usage = completion.usage();
        // Azure OpenAI begins with a chunk about its content filters, without an id and without choices.
        if !self.has_started && (has_choices || usage.is_some()) {
            self.has_started = true;
            out(Event::Start {
                created: completion.created(),
                id: completion.id.take().unwrap_or_default(),
                model: completion.model.take().unwrap_or_default(),
            });
        }
        for choice in completion.choices.iter_mut().flatten() {
            self.choice(choice, out)?;
        }
        if let Some(usage) = usage {
            let report = ReportedUsage::of_whole(usage);
            self.reported = Some(report);
            // A report of zeros takes nothing back.
            self.usage = Some(report.after(self.usage));
            out(Event::Usage(self.usage.unwrap_or_default()));
        }
        Ok(())
    }

    fn held(&self) -> usize {
        let calls = self.choices.iter().map(|choice| choice.calls.held());
        self.blocks.held() + calls.sum::<usize>()
    }

    fn take_usage_report(&mut self) -> Option<ReportedUsage> {
        self.reported.take()
    }

    fn finish(&mut self, out: EventSink<'_>) -> Result<(), ApiError> {
        let mut begun = self.choices.iter().filter(|choice| choice.is_begun);
        let is_finished = self.has_started && begun.all(|choice| choice.is_finished);
        match (self.is_over, is_finished && !self.choices.is_empty()) {
            (true, _) => Ok(()),
            (false, true) => self.end(out),
            (false, false) => Err(ApiError::bad_gateway(
                "the upstream's stream ended before its response was complete",
            )),
        }
    }
}

impl ChatStreamDecoder {
    /// Decodes one choice of a chunk.
    fn choice(
        &mut self,
        choice: &mut CompletionChoice<'_>,
        out: EventSink<'_>,
    ) -> Result<(), ApiError> {
        let number = choice.index.unwrap_or(0);
        check_choice(number)?;
        let at = number as usize;
        if self.choices.len() <= at {
            self.choices.resize_with(at + 1, DecodedChoice::default);
        }
        let progress = &mut self.choices[at];
        progress.is_begun = true;
        progress.summary.is_prompt_blocked = self.is_prompt_blocked;
        let mut decoder = ChoiceDecoder {
            number,
            blocks: &mut self.blocks,
            calls: &mut progress.calls,
            images: &mut progress.images,
            summary: &mut progress.summary,
            out,
        };
        let message = choice.message.as_deref_mut();
        if let Some(message) = choice.delta.as_mut().or(message) {
            message.decode_fragments(
                &mut progress.has_plain_reasoning,
                STREAMED_AUDIO_TYPE,
                &mut |fragment| decoder.add(fragment),
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

    /// Ends the stream, and every choice without a finish reason.
    fn end(&mut self, out: EventSink<'_>) -> Result<(), ApiError> {
        if self.choices.is_empty() {
            return Err(ApiError::bad_gateway(
                "the upstream's stream has no content",
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

/// Decodes the fragments of one choice into events.
struct ChoiceDecoder<'w, 'o> {
    number: u32,
    blocks: &'w mut BlockSequencer,
    calls: &'w mut DecodedCalls,
    images: &'w mut u32,
    summary: &'w mut ChoiceSummary,
    out: EventSink<'o>,
}

impl ChoiceDecoder<'_, '_> {
    fn add(&mut self, fragment: ChatFragment<'_>) {
        match fragment {
            ChatFragment::Text(text) => {
                self.push(BlockKey::Text, || Block::Text, Some(Delta::Text(text)))
            }
            ChatFragment::Refusal(text) => {
                self.summary.has_refusal = true;
                self.push(
                    BlockKey::Refusal,
                    || Block::Refusal,
                    Some(Delta::Text(text)),
                );
            }
            ChatFragment::Reasoning(text) => {
                self.push(
                    BlockKey::Reasoning,
                    || Block::Reasoning,
                    Some(Delta::Text(text)),
                );
            }
            // The signature of a call comes after its block is closed, so it becomes one of reasoning.
            ChatFragment::Signature(signature) | ChatFragment::CallSignature { signature, .. } => {
                self.push(
                    BlockKey::Reasoning,
                    || Block::Reasoning,
                    Some(Delta::Signature(signature)),
                );
                self.blocks
                    .close(self.number, BlockKey::Reasoning, self.out);
            }
            ChatFragment::ForeignSignature => {}
            ChatFragment::Media(media) => {
                let key = BlockKey::Item(*self.images);
                *self.images += 1;
                self.push(key, || Block::Media(media), None);
                self.blocks.close(self.number, key, self.out);
            }
            ChatFragment::Citation(citation) => (self.out)(Event::Delta {
                choice: self.number,
                delta: Delta::Citation(citation),
            }),
            ChatFragment::Call(call) => self.call(call),
        }
    }

    fn call(&mut self, call: CallFragment<'_>) {
        self.summary.has_calls = true;
        let at = self.calls.position(&call);
        if self.calls.is_closed(at) {
            return;
        }
        let arguments = call.arguments.to_text();
        if call.kind == ToolKind::Function {
            self.calls.push_arguments(at, &arguments);
        }
        let key = BlockKey::Call(at as u32);
        let block = || Block::Call {
            id: call.id,
            name: call.name,
            kind: call.kind,
        };
        let delta = (!arguments.is_empty()).then_some(Delta::Arguments(arguments));
        self.push(key, block, delta);
    }

    /// Adds a delta to a block. Calls whose arguments are complete are closed first, so that the block
    /// does not wait for their end.
    fn push<'a>(
        &mut self,
        key: BlockKey,
        block: impl FnOnce() -> Block<'a>,
        delta: Option<Delta<'a>>,
    ) {
        let current = match key {
            BlockKey::Call(at) => Some(at as usize),
            _ => None,
        };
        while let Some(at) = self.calls.next_to_close(current) {
            let key = BlockKey::Call(at as u32);
            self.blocks.close(self.number, key, self.out);
        }
        self.blocks.push(self.number, key, block, delta, self.out);
    }
}
