//! Decodes the stream of an upstream.
//!
//! A delta belongs to the item of its `output_index`: at some upstreams ids change from event to event. What a
//! complete item or the final response contains beyond the deltas is passed on when it comes.

mod citations;

use super::super::annotations::decode_logprobs;
use super::super::error;
use super::super::output_items::{self, DecodedItem, MessageContent, PARAGRAPH};
use super::super::response_object::ReceivedResponse;
use super::super::status::OutputFlags;
use super::events::{ReceivedEvent, decode_text, decode_value};
use super::progress::{OutputProgress, ReasoningField};
use crate::formats::block_sequencer::{BlockKey, BlockSequencer};
use crate::formats::{ReportedUsage, StreamDecoder, decode_event_data};
use crate::json::RawJson;
use crate::model::{ApiError, Block, Call, Delta, Event, Finish, Json, Logprob, Signature, Text};

/// Decodes the events of one stream.
#[derive(Default)]
pub(in crate::formats::responses) struct ResponsesStreamDecoder {
    blocks: BlockSequencer,
    items: OutputProgress,
    flags: OutputFlags,
    started: bool,
    ended: bool,
    /// The text part, and the reasoning item, that the last delta belonged to.
    current_text: Option<(u32, u32)>,
    current_reasoning: Option<u32>,
    /// The length of all texts so far.
    characters: u64,
    /// The usage that the last event has reported.
    reported: Option<ReportedUsage>,
}

/// Receives the decoded events.
type Emit<'o> = &'o mut dyn FnMut(Event<'_>);

impl StreamDecoder for ResponsesStreamDecoder {
    fn decode_event(&mut self, data: &str, out: Emit<'_>) -> Result<(), ApiError> {
        // Some proxies end the stream as the chat format does.
        if self.ended || data == "[DONE]" {
            return Ok(());
        }
        let event: ReceivedEvent<'_> = decode_event_data(data)?;
        let index = event.output_index;
        match event.kind.as_ref() {
            "error" | "response.failed" => return Err(error::decode_in_stream(data)),
            "" if event.error.is_some() => return Err(error::decode_in_stream(data)),
            "response.created" | "response.queued" | "response.in_progress" => {
                self.start(event.response, out)?;
            }
            "response.completed" | "response.incomplete" | "response.cancelled" => {
                return self.end(&event, data, out);
            }
            "response.output_item.added" => self.begin_item(index, decode_value(event.item), out),
            "response.output_item.done" => self.complete_item(index, decode_value(event.item), out),
            "response.output_text.delta" => self.add_text_event(&event, out),
            "response.refusal.delta" => {
                let part = (index, event.content_index);
                self.add_refusal(part, decode_text(event.delta), out);
            }
            "response.reasoning_summary_text.delta" => {
                let part = (ReasoningField::Summary, event.summary_index);
                self.add_reasoning_text(index, part, decode_text(event.delta), out);
            }
            "response.reasoning_text.delta" => {
                let part = (ReasoningField::Content, event.content_index);
                self.add_reasoning_text(index, part, decode_text(event.delta), out);
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.add_arguments(index, decode_text(event.delta), out);
            }
            "response.output_text.annotation.added" => {
                let part = (index, event.content_index);
                self.add_annotation(part, decode_value(event.annotation), out);
            }
            _ => {}
        }
        Ok(())
    }

    fn held(&self) -> usize {
        self.blocks.held() + self.items.held()
    }

    fn take_usage_report(&mut self) -> Option<ReportedUsage> {
        self.reported.take()
    }

    fn finish(&mut self, _out: Emit<'_>) -> Result<(), ApiError> {
        if self.ended {
            return Ok(());
        }
        let message = "the upstream's stream ended before its response was complete";
        Err(ApiError::bad_gateway(message))
    }
}

impl ResponsesStreamDecoder {
    fn start(&mut self, response: Option<RawJson<'_>>, out: Emit<'_>) -> Result<(), ApiError> {
        if self.started {
            return Ok(());
        }
        self.started = true;
        let Some(response) = response else {
            out(anonymous_start());
            return Ok(());
        };
        let response: ReceivedResponse<'_> = decode_event_data(response.get())?;
        self.reported = response.usage().map(ReportedUsage::of_whole);
        out(Event::Start {
            created: response.created(),
            id: response.id.unwrap_or_default(),
            model: response.model.unwrap_or_default(),
        });
        Ok(())
    }

    /// Begins the response where an upstream leaves out its start.
    fn start_if_needed(&mut self, out: Emit<'_>) {
        if !self.started {
            self.started = true;
            out(anonymous_start());
        }
    }

    /// Passes on a block or a delta of it.
    fn push<'a>(
        &mut self,
        key: BlockKey,
        block: impl FnOnce() -> Block<'a>,
        delta: Option<Delta<'a>>,
        out: Emit<'_>,
    ) {
        self.start_if_needed(out);
        self.blocks.push(0, key, block, delta, out);
    }

    fn close_block(&mut self, key: BlockKey, out: Emit<'_>) {
        if self.blocks.is_open(0, key) {
            self.blocks.close(0, key, out);
        }
    }

    fn add_text_event(&mut self, event: &ReceivedEvent<'_>, out: Emit<'_>) {
        let part = (event.output_index, event.content_index);
        self.add_text(part, decode_text(event.delta), out);
        if let Some(raw) = event.logprobs
            && raw.get() != "[]"
            && let Json::Array(list) = decode_value(Some(raw))
        {
            self.add_logprobs(part, decode_logprobs(list), out);
        }
    }

    /// Closes the text of another part: each part of a message is a block of its own.
    fn enter_part(&mut self, part: (u32, u32), out: Emit<'_>) {
        if self.current_text != Some(part) {
            self.close_block(BlockKey::Text, out);
            self.close_block(BlockKey::Refusal, out);
            self.current_text = Some(part);
        }
    }

    fn add_text(&mut self, part: (u32, u32), text: Text<'_>, out: Emit<'_>) {
        if text.is_empty() {
            return;
        }
        self.enter_part(part, out);
        let progress = self.items.part(part);
        if progress.bytes == 0 {
            progress.start = self.characters;
        }
        progress.add(&text);
        self.characters += text.chars().count() as u64;
        self.push(BlockKey::Text, || Block::Text, Some(Delta::Text(text)), out);
    }

    fn add_refusal(&mut self, part: (u32, u32), text: Text<'_>, out: Emit<'_>) {
        if text.is_empty() {
            return;
        }
        self.enter_part(part, out);
        self.flags.has_refusal = true;
        self.items.part(part).add(&text);
        self.push(
            BlockKey::Refusal,
            || Block::Refusal,
            Some(Delta::Text(text)),
            out,
        );
    }

    fn add_logprobs(&mut self, part: (u32, u32), logprobs: Vec<Logprob<'_>>, out: Emit<'_>) {
        self.items.part(part).logprobs += logprobs.len();
        for logprob in logprobs {
            let delta = Delta::Logprob(logprob);
            self.blocks.extend(0, BlockKey::Text, delta, out);
        }
    }

    /// Adds text of reasoning. An item may have a summary and content: only the one that comes first is passed on.
    fn add_reasoning_text(
        &mut self,
        index: u32,
        part: (ReasoningField, u32),
        text: Text<'_>,
        out: Emit<'_>,
    ) {
        let item = self.items.item(index);
        let (field, before) = *item.reasoning_part.get_or_insert(part);
        if text.is_empty() || field != part.0 {
            return;
        }
        item.reasoning_part = Some(part);
        let progress = self.items.part((index, 0));
        let text = if before != part.1 && progress.bytes > 0 {
            format!("{PARAGRAPH}{text}").into()
        } else {
            text
        };
        progress.add(&text);
        self.add_reasoning(index, Delta::Text(text), out);
    }

    fn add_reasoning(&mut self, index: u32, delta: Delta<'_>, out: Emit<'_>) {
        if self.current_reasoning != Some(index) {
            self.close_block(BlockKey::Reasoning, out);
            self.current_reasoning = Some(index);
        }
        self.push(BlockKey::Reasoning, || Block::Reasoning, Some(delta), out);
    }

    /// Begins an item that is announced; only a call can be passed on before its first delta.
    fn begin_item(&mut self, index: u32, item: Json<'_>, out: Emit<'_>) {
        if let (_, DecodedItem::Call(call)) = output_items::decode(item)
            && !call.name.is_empty()
        {
            self.begin_call(index, &call, out);
        }
    }

    fn begin_call(&mut self, index: u32, call: &Call<'_>, out: Emit<'_>) {
        let item = self.items.item(index);
        if item.is_call {
            return;
        }
        item.is_call = true;
        self.flags.has_call = true;
        let block = || Block::Call {
            id: call.id.clone(),
            name: call.name.clone(),
            kind: call.kind,
        };
        self.push(BlockKey::Call(index), block, None, out);
    }

    /// Adds arguments of a call; those of a call that was not announced come with the complete item.
    fn add_arguments(&mut self, index: u32, text: Text<'_>, out: Emit<'_>) {
        let item = self.items.item(index);
        if text.is_empty() || !item.is_call {
            return;
        }
        self.items.part((index, 0)).add(&text);
        let delta = Delta::Arguments(text);
        self.blocks.extend(0, BlockKey::Call(index), delta, out);
    }

    /// Passes on what of a complete item has not come yet.
    fn complete_item(&mut self, index: u32, item: Json<'_>, out: Emit<'_>) {
        let (id, decoded) = output_items::decode(item);
        let is_done = self.items.item(index).is_done;
        match decoded {
            // The upstream may find citations after the text is complete.
            DecodedItem::Message(content) if is_done => {
                self.add_late_citations(index, content, out)
            }
            // A signature may be in the final response only.
            DecodedItem::Reasoning { text, signature } => {
                self.complete_reasoning(index, &text, signature, out)
            }
            _ if is_done => return,
            DecodedItem::Message(content) => self.complete_message(index, content, out),
            DecodedItem::Call(call) => {
                self.begin_call(index, &call, out);
                let arguments = call.arguments.to_text();
                let rest = self.items.part((index, 0)).missing(&arguments);
                self.add_arguments(index, rest.into(), out);
                self.close_block(BlockKey::Call(index), out);
            }
            DecodedItem::Image(media) => {
                self.push(BlockKey::Item(index), || Block::Media(media), None, out);
                self.close_block(BlockKey::Item(index), out);
            }
            DecodedItem::Hosted => {}
        }
        self.items.complete(index, id);
    }

    fn complete_reasoning(
        &mut self,
        index: u32,
        text: &str,
        signature: Option<Signature<'_>>,
        out: Emit<'_>,
    ) {
        let item = self.items.item(index);
        let signature = signature.filter(|_| !item.has_signature);
        if item.is_done && signature.is_none() {
            return;
        }
        item.has_signature |= signature.is_some();
        let rest = self.items.part((index, 0)).missing(text);
        if !rest.is_empty() {
            self.add_reasoning(index, Delta::Text(rest.into()), out);
        }
        if let Some(signature) = signature {
            self.add_reasoning(index, Delta::Signature(signature), out);
        }
        if self.current_reasoning == Some(index) {
            self.close_block(BlockKey::Reasoning, out);
        }
    }

    fn complete_message(&mut self, index: u32, content: Vec<MessageContent<'_>>, out: Emit<'_>) {
        for (number, content) in (0u32..).zip(content) {
            let part = (index, number);
            match content {
                MessageContent::Refusal(text) => {
                    let rest = self.items.part(part).missing(&text);
                    self.add_refusal(part, rest.into(), out);
                }
                MessageContent::Text {
                    text,
                    citations,
                    logprobs,
                } => {
                    let rest = self.items.part(part).missing(&text);
                    self.add_text(part, rest.into(), out);
                    self.add_missing_citations(part, citations, out);
                    let known = self.items.part(part).logprobs;
                    let rest = logprobs.into_iter().skip(known).collect();
                    self.add_logprobs(part, rest, out);
                }
            }
        }
        if self.current_text.is_some_and(|(item, _)| item == index) {
            self.close_block(BlockKey::Text, out);
            self.close_block(BlockKey::Refusal, out);
        }
    }

    fn end(
        &mut self,
        event: &ReceivedEvent<'_>,
        data: &str,
        out: Emit<'_>,
    ) -> Result<(), ApiError> {
        self.start(event.response, out)?;
        let response = event.response.map_or("{}", RawJson::get);
        let response: ReceivedResponse<'_> = decode_event_data(response)?;
        for (index, item) in (0u32..).zip(response.items()) {
            let index = self.items.index_of(index, &item);
            self.complete_item(index, item, out);
        }
        let reason = match response.finish(self.flags, data)? {
            Finish::Stop | Finish::Tools | Finish::Refused
                if event.kind == "response.incomplete" =>
            {
                Finish::Other
            }
            reason => reason,
        };
        self.ended = true;
        self.blocks.finish(0, out);
        out(Event::Finish { choice: 0, reason });
        if let Some(usage) = response.usage() {
            self.reported = Some(ReportedUsage::of_whole(usage));
            out(Event::Usage(usage));
        }
        out(Event::End);
        Ok(())
    }
}

/// The start of a response whose id and model the upstream does not send.
fn anonymous_start() -> Event<'static> {
    Event::Start {
        id: Text::default(),
        model: Text::default(),
        created: 0,
    }
}
