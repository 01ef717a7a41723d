//! Decodes the events of an upstream's stream.

use std::collections::HashMap;
use std::mem::take;

use crate::formats::block_sequencer::{BlockKey, BlockSequencer};
use crate::formats::messages::Messages;
use crate::formats::messages::citations::decode_citation;
use crate::formats::messages::response::{NO_INPUT, RawBlock, RawMessage};
use crate::formats::messages::stop_reason::{RawStopDetails, decode_stop_reason};
use crate::formats::messages::usage::RawMessagesUsage;
use crate::formats::{ErrorCodec, ReportedUsage, StreamDecoder, decode_event_data};
use crate::json::{RawJson, from_json};
use crate::model::{
    ApiError, Block, Citation, Delta, Event, Finish, Issuer, Losses, PartKind, Signature, Text,
    Usage,
};

use MessagesDecoderPhase::{Ended, NotStarted, Running};

from_json! {
    /// An event of a stream.
    struct MessagesEvent<'a> {
        "type" required => kind: Text<'a>,
        "index" => index: u32,
        "message" => message: Option<Box<RawMessage<'a>>>,
        "content_block" => content_block: Option<Box<RawBlock<'a>>>,
        "delta" => delta: Option<MessagesDelta<'a>>,
        "usage" => usage: Option<RawMessagesUsage>,
    }
}

from_json! {
    /// The `delta` of `content_block_delta` or `message_delta`.
    struct MessagesDelta<'a> {
        "type" => kind: Text<'a>,
        "text" => text: Text<'a>,
        "thinking" => thinking: Text<'a>,
        "signature" => signature: Text<'a>,
        "partial_json" => partial_json: Text<'a>,
        "citation" => citation: Option<RawJson<'a>>,
        "stop_reason" => stop_reason: Option<Text<'a>>,
        "stop_sequence" => stop_sequence: Option<Text<'a>>,
        "stop_details" => stop_details: Option<RawStopDetails<'a>>,
    }
}

/// Decodes a stream into the events of the model.
#[derive(Debug, Default)]
pub(in crate::formats::messages) struct MessagesStreamDecoder {
    phase: MessagesDecoderPhase,
    blocks: BlockSequencer,
    /// The blocks that are open, by their index.
    running: HashMap<u32, RunningBlock>,
    /// About how many bytes these take.
    running_bytes: usize,
    /// How many blocks came complete in `message_start`.
    complete_blocks: u32,
    /// The length of the text so far, which citations refer to.
    characters: u64,
    /// Set by `message_delta`, or by a `message_start` that is a whole response.
    finish: Option<Finish<'static>>,
    usage: Option<Usage>,
    /// What the last event has reported of it.
    reported: Option<ReportedUsage>,
}

#[derive(Debug, Default, PartialEq)]
enum MessagesDecoderPhase {
    #[default]
    NotStarted,
    /// Between `message_start` and `message_stop`, with the id of the response.
    Running(String),
    Ended,
}

/// A block between its `content_block_start` and its `content_block_stop`.
#[derive(Debug)]
struct RunningBlock {
    /// The position of its first character in the whole text.
    start: u64,
    /// URL and title of each citation.
    citations: Vec<(String, Option<String>)>,
    /// About how many bytes it takes.
    bytes: usize,
}

impl RunningBlock {
    fn new(start: u64) -> RunningBlock {
        RunningBlock {
            start,
            citations: Vec::new(),
            bytes: 2 * size_of::<RunningBlock>(),
        }
    }

    fn cite(&mut self, (url, title): (Text<'_>, Option<Text<'_>>)) {
        self.bytes += size_of::<(String, Option<String>)>() + url.len();
        self.bytes += title.as_ref().map_or(0, |title| title.len());
        self.citations
            .push((url.into_owned(), title.map(Text::into_owned)));
    }
}

impl StreamDecoder for MessagesStreamDecoder {
    fn decode_event(&mut self, data: &str, out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError> {
        // Some servers end a stream of any format with this.
        if data == "[DONE]" || self.phase == Ended {
            return Ok(());
        }
        let mut event: MessagesEvent<'_> = decode_event_data(data)?;
        if let Some(usage) = &event.usage {
            self.reported = Some(usage.report(self.usage));
            self.usage = self.reported.map(|report| report.after(self.usage));
        }
        match event.kind.as_ref() {
            "message_start" => self.decode_start(event.message, out)?,
            "content_block_start" => {
                self.decode_block_start(event.index, event.content_block.as_deref(), out)?;
            }
            "content_block_delta" => {
                if let Some(delta) = &mut event.delta {
                    self.decode_delta(event.index, delta, out);
                }
            }
            "content_block_stop" => self.decode_block_stop(event.index, out),
            "message_delta" => self.decode_message_delta(event.delta),
            "message_stop" => self.decode_stop(out)?,
            "error" => return Err(Messages.decode_error(200, data.as_bytes())),
            // `ping`, and events that the format may add.
            _ => {}
        }
        Ok(())
    }

    fn held(&self) -> usize {
        self.blocks.held() + self.running_bytes
    }

    fn take_usage_report(&mut self) -> Option<ReportedUsage> {
        self.reported.take()
    }

    fn finish(&mut self, _out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError> {
        if self.phase == Ended {
            return Ok(());
        }
        Err(ended_early())
    }
}

fn ended_early() -> ApiError {
    ApiError::bad_gateway("the upstream's stream ended before its response was complete")
}

impl MessagesStreamDecoder {
    /// Decodes `message_start`. Some servers repeat it; one with another id is an error.
    fn decode_start(
        &mut self,
        start: Option<Box<RawMessage<'_>>>,
        out: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), ApiError> {
        let start = *start.unwrap_or_default();
        let id = start.id.unwrap_or_default();
        if let Running(known) = &self.phase {
            if *known == id {
                return Ok(());
            }
            return Err(ApiError::bad_gateway(
                "the upstream's stream starts a second message within the first",
            ));
        }
        if let Some(usage) = &start.usage {
            self.reported = Some(usage.report(self.usage));
            self.usage = self.reported.map(|report| report.after(self.usage));
        }
        self.phase = Running(id.to_string());
        out(Event::Start {
            id,
            model: start.model.unwrap_or_default(),
            created: 0,
        });
        for (index, block) in (0..).zip(start.content.unwrap_or_default()) {
            self.decode_block_start(index, Some(&block), out)?;
            self.decode_block_stop(index, out);
            self.complete_blocks = index + 1;
        }
        if start.stop_reason.is_some() {
            self.set_finish(start.stop_reason, start.stop_sequence, start.stop_details);
        }
        Ok(())
    }

    fn decode_block_start(
        &mut self,
        index: u32,
        block: Option<&RawBlock<'_>>,
        out: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), ApiError> {
        let is_repeated = index < self.complete_blocks;
        let Some(block) = block.filter(|_| self.phase != NotStarted && !is_repeated) else {
            return Ok(());
        };
        let Some(part) = block.decode()? else {
            return Ok(());
        };
        let citations = block.decode_citations(&mut Losses::default())?;
        let mut running = RunningBlock::new(self.characters);
        for citation in citations {
            running.cite(citation);
        }
        self.running_bytes += running.bytes;
        if let Some(replaced) = self.running.insert(index, running) {
            self.running_bytes -= replaced.bytes;
        }
        let (block, deltas) = match part {
            PartKind::Reasoning { text, signature } => {
                let signature = signature.map(Delta::Signature);
                (Block::Reasoning, [text_delta(text), signature])
            }
            PartKind::Call(call) => {
                // The arguments follow as deltas, except from servers that send them all here.
                let input = Some(call.arguments.to_text()).filter(|json| json != NO_INPUT);
                let (id, name, kind) = (call.id, call.name, call.kind);
                let deltas = [input.map(Delta::Arguments), None];
                (Block::Call { id, name, kind }, deltas)
            }
            PartKind::Text(text) => {
                self.characters += text.chars().count() as u64;
                (Block::Text, [text_delta(text), None])
            }
            // No block of the format is decoded as one of these.
            PartKind::Refusal(_) | PartKind::Media(_) | PartKind::Result(_) => return Ok(()),
        };
        let key = BlockKey::Item(index);
        self.blocks.push(0, key, || block, None, out);
        for delta in deltas.into_iter().flatten() {
            push(&mut self.blocks, index, delta, out);
        }
        Ok(())
    }

    fn decode_delta(
        &mut self,
        index: u32,
        delta: &mut MessagesDelta<'_>,
        out: &mut dyn FnMut(Event<'_>),
    ) {
        let Some(running) = self.running.get_mut(&index) else {
            return;
        };
        let delta = match delta.kind.as_ref() {
            "text_delta" => {
                self.characters += delta.text.chars().count() as u64;
                text_delta(take(&mut delta.text))
            }
            "thinking_delta" => text_delta(take(&mut delta.thinking)),
            "signature_delta" => signature_delta(take(&mut delta.signature), Issuer::Thinking),
            "input_json_delta" => Some(take(&mut delta.partial_json))
                .filter(|json| !json.is_empty())
                .map(Delta::Arguments),
            "citations_delta" => {
                let losses = &mut Losses::default();
                let citation = delta.citation.and_then(|raw| decode_citation(raw, losses));
                if let Some(citation) = citation {
                    self.running_bytes -= running.bytes;
                    running.cite(citation);
                    self.running_bytes += running.bytes;
                }
                None
            }
            _ => None,
        };
        if let Some(delta) = delta {
            push(&mut self.blocks, index, delta, out);
        }
    }

    /// Decodes `content_block_stop`. Citations cover the whole block, so they are sent at its end.
    fn decode_block_stop(&mut self, index: u32, out: &mut dyn FnMut(Event<'_>)) {
        let Some(running) = self.running.remove(&index) else {
            return;
        };
        self.running_bytes -= running.bytes;
        for (url, title) in running.citations {
            let citation = Citation {
                url: url.into(),
                title: title.map(Text::Owned),
                start: running.start,
                end: self.characters,
            };
            push(&mut self.blocks, index, Delta::Citation(citation), out);
        }
        self.blocks.close(0, BlockKey::Item(index), out);
    }

    fn decode_message_delta(&mut self, delta: Option<MessagesDelta<'_>>) {
        let delta = delta.unwrap_or_default();
        if delta.stop_reason.is_none() {
            self.finish.get_or_insert(Finish::Other);
            return;
        }
        self.set_finish(delta.stop_reason, delta.stop_sequence, delta.stop_details);
    }

    fn set_finish(
        &mut self,
        reason: Option<Text<'_>>,
        sequence: Option<Text<'_>>,
        details: Option<RawStopDetails<'_>>,
    ) {
        self.finish = Some(decode_stop_reason(reason.as_deref(), sequence, details).into_owned());
    }

    fn decode_stop(&mut self, out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError> {
        if self.phase == NotStarted {
            return Err(ApiError::bad_gateway(
                "the upstream's stream has no content",
            ));
        }
        // Without a `message_delta` the response may be incomplete.
        let reason = self.finish.take().ok_or_else(ended_early)?;
        self.blocks.finish(0, out);
        out(Event::Finish { choice: 0, reason });
        if let Some(usage) = self.usage {
            out(Event::Usage(usage));
        }
        out(Event::End);
        self.phase = Ended;
        Ok(())
    }
}

/// Pushes a delta to a block that is open already, so the type to open it with is never used.
fn push(blocks: &mut BlockSequencer, index: u32, delta: Delta<'_>, out: &mut dyn FnMut(Event<'_>)) {
    blocks.push(0, BlockKey::Item(index), || Block::Text, Some(delta), out);
}

fn text_delta(text: Text<'_>) -> Option<Delta<'_>> {
    (!text.is_empty()).then_some(Delta::Text(text))
}

fn signature_delta(data: Text<'_>, issuer: Issuer) -> Option<Delta<'_>> {
    (!data.is_empty()).then_some(Delta::Signature(Signature { issuer, data }))
}
