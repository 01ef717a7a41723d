//! Encodes the stream to a client.
//!
//! An item is opened by its first delta and closed by the next item or by the end: only then is it known whether more
//! text follows, which citations it has, and whether it is complete.

mod citations;

use std::collections::BTreeMap;

use super::super::error;
use super::super::image_generation::image_data;
use super::super::output_items::{NO_ARGUMENTS, OutputContent, OutputItem};
use super::super::response_builder::ResponseBuilder;
use super::super::response_object::ResponseObject;
use super::super::status::{COMPLETED, IN_PROGRESS, ResponseEnding, encode_finish};
use super::events::{EventBody, SequenceNumbers, encode_delta, encode_done, position_of};
use crate::formats::{ResponseOptions, StreamEncoder};
use crate::model::{
    ApiError, Block, Citation, Delta, Event, Finish, Signature, Text, ToolKind, Usage, own,
};
use crate::sse::SseWriter;

/// Encodes the events of one stream.
pub(in crate::formats::responses) struct ResponsesStreamEncoder {
    options: ResponseOptions,
    sequence: SequenceNumbers,
    builder: ResponseBuilder<'static>,
    started: bool,
    ended: bool,
    /// The block that deltas belong to.
    block: EncodedBlock,
    /// Signatures that came after the start of the call they belong to had been sent.
    late_signatures: Vec<Signature<'static>>,
    /// Citations of text that has not come yet, by its first character.
    early_citations: BTreeMap<u64, Vec<Citation<'static>>>,
    ending: ResponseEnding,
    /// The message of a content filter, sent as the last of the response.
    filter_message: Option<String>,
    usage: Option<Usage>,
    /// About how many bytes the response takes so far, all of which its last event repeats.
    held: usize,
}

/// The open block, as far as its item has begun.
enum EncodedBlock {
    None,
    Text,
    Refusal,
    Reasoning {
        begun: bool,
    },
    /// A call before its first delta: its signature would have to be sent before the call.
    Announced {
        id: Option<Text<'static>>,
        name: Text<'static>,
        kind: ToolKind,
    },
    Call,
}

impl ResponsesStreamEncoder {
    /// Begins a stream.
    pub(in crate::formats::responses) fn new(options: &ResponseOptions) -> ResponsesStreamEncoder {
        ResponsesStreamEncoder {
            options: options.clone(),
            sequence: SequenceNumbers::default(),
            builder: ResponseBuilder::new("", "", 0, options),
            started: false,
            ended: false,
            block: EncodedBlock::None,
            late_signatures: Vec::new(),
            early_citations: BTreeMap::new(),
            ending: encode_finish(&Finish::Other),
            filter_message: None,
            usage: None,
            held: 0,
        }
    }

    fn encode_start(&mut self, out: &mut SseWriter) {
        self.started = true;
        for name in ["response.created", "response.in_progress"] {
            let response = &self.builder.response(IN_PROGRESS, &[]);
            self.sequence
                .send(name, EventBody::Response { response }, out);
        }
    }

    fn open_block(&mut self, block: Block<'_>, out: &mut SseWriter) {
        self.held += size_of::<OutputItem<'_>>() + block.size();
        self.block = match block {
            Block::Text => EncodedBlock::Text,
            Block::Refusal => EncodedBlock::Refusal,
            Block::Reasoning => EncodedBlock::Reasoning { begun: false },
            Block::Call { id, name, kind } => EncodedBlock::Announced {
                id: id.map(own),
                name: own(name),
                kind,
            },
            Block::Media(media) => {
                if let Some(data) = image_data(&media) {
                    self.encode_image(data, out);
                }
                EncodedBlock::None
            }
        };
    }

    fn encode_block_delta(&mut self, delta: Delta<'_>, out: &mut SseWriter) {
        self.held += match &delta {
            Delta::Text(_) | Delta::Arguments(_) => delta.text_size(),
            _ => delta.size(),
        };
        match delta {
            Delta::Text(text) => self.encode_text(&text, out),
            Delta::Arguments(text) => {
                self.begin_announced_call(out);
                if matches!(self.block, EncodedBlock::Call) {
                    self.encode_item_delta(&text, out);
                }
            }
            Delta::Signature(signature) => self.encode_signature(signature, out),
            Delta::Citation(citation) => self.encode_citation(citation, out),
            Delta::Logprob(logprob) => self.encode_logprob(logprob, out),
        }
    }

    fn encode_text(&mut self, text: &str, out: &mut SseWriter) {
        if text.is_empty() {
            return;
        }
        match self.block {
            EncodedBlock::Text => self.enter_content(OutputContent::text(), out),
            EncodedBlock::Refusal => self.enter_content(OutputContent::refusal(), out),
            EncodedBlock::Reasoning { .. } => self.enter_summary(out),
            EncodedBlock::None | EncodedBlock::Announced { .. } | EncodedBlock::Call => return,
        }
        self.encode_item_delta(text, out);
    }

    fn enter_content(&mut self, fresh: OutputContent<'static>, out: &mut SseWriter) {
        if self.builder.continues(&fresh) {
            return;
        }
        if self.builder.in_message() {
            self.finish_part(out);
        } else {
            self.close_item(COMPLETED, out);
            self.builder.begin_message();
            self.encode_item_added(out);
        }
        self.builder.begin_content(fresh);
        if let Some((output_index, item @ OutputItem::Message { content, .. })) =
            self.builder.open_item()
            && let Some(part) = content.last()
        {
            let body = EventBody::Content {
                at: position_of(output_index, item),
                content_index: content.len() - 1,
                part,
            };
            self.sequence.send("response.content_part.added", body, out);
        }
    }

    fn enter_reasoning(&mut self, signature: Option<&Signature<'_>>, out: &mut SseWriter) {
        if let EncodedBlock::Reasoning {
            begun: begun @ false,
        } = &mut self.block
        {
            *begun = true;
            self.close_item(COMPLETED, out);
            self.builder.begin_reasoning(signature);
            self.encode_item_added(out);
        }
    }

    fn enter_summary(&mut self, out: &mut SseWriter) {
        self.enter_reasoning(None, out);
        match self.builder.open_item() {
            Some((_, OutputItem::Reasoning { summary, .. })) if summary.is_empty() => {}
            _ => return,
        }
        self.builder.begin_summary();
        if let Some((output_index, item @ OutputItem::Reasoning { summary, .. })) =
            self.builder.open_item()
            && let Some(part) = summary.last()
        {
            let body = EventBody::Summary {
                at: position_of(output_index, item),
                summary_index: 0,
                part,
            };
            let name = "response.reasoning_summary_part.added";
            self.sequence.send(name, body, out);
        }
    }

    fn begin_announced_call(&mut self, out: &mut SseWriter) {
        if let EncodedBlock::Announced { id, name, kind } = &mut self.block {
            let (id, name, kind) = (id.take(), std::mem::take(name), *kind);
            self.block = EncodedBlock::Call;
            self.close_item(COMPLETED, out);
            self.builder.begin_call(id, name, kind);
            self.encode_item_added(out);
        }
    }

    fn encode_signature(&mut self, signature: Signature<'_>, out: &mut SseWriter) {
        match self.block {
            EncodedBlock::Reasoning { .. } => {
                self.enter_reasoning(Some(&signature), out);
                self.builder.set_signature(&signature);
            }
            EncodedBlock::Announced { .. } => self.encode_signature_item(&signature, out),
            EncodedBlock::Call | EncodedBlock::Text | EncodedBlock::Refusal => {
                self.late_signatures.push(signature.into_owned())
            }
            EncodedBlock::None => {}
        }
    }

    /// Sends reasoning that has a signature and no text.
    fn encode_signature_item(&mut self, signature: &Signature<'_>, out: &mut SseWriter) {
        self.close_item(COMPLETED, out);
        self.builder.begin_reasoning(Some(signature));
        self.encode_item_added(out);
        self.builder.set_signature(signature);
        self.close_item(COMPLETED, out);
    }

    fn encode_image(&mut self, data: &str, out: &mut SseWriter) {
        self.close_item(COMPLETED, out);
        self.builder.begin_image();
        self.encode_item_added(out);
        self.builder.append_delta(data);
        self.close_item(COMPLETED, out);
    }

    fn encode_item_added(&mut self, out: &mut SseWriter) {
        if let Some((output_index, item)) = self.builder.open_item() {
            let body = EventBody::Item { output_index, item };
            self.sequence.send("response.output_item.added", body, out);
        }
    }

    fn encode_item_delta(&mut self, more: &str, out: &mut SseWriter) {
        let Some((output_index, item)) = self.builder.open_item().filter(|_| !more.is_empty())
        else {
            return;
        };
        if let Some((name, body)) = encode_delta(position_of(output_index, item), item, more) {
            self.sequence.send(name, body, out);
        }
        self.builder.append_delta(more);
    }

    /// Sends the events that repeat the last part as a whole.
    fn finish_part(&mut self, out: &mut SseWriter) {
        self.encode_early_citations(self.builder.characters(), out);
        let Some((output_index, item)) = self.builder.open_item() else {
            return;
        };
        for (name, body) in encode_done(position_of(output_index, item), item)
            .into_iter()
            .flatten()
        {
            self.sequence.send(name, body, out);
        }
    }

    fn close_item(&mut self, status: &'static str, out: &mut SseWriter) {
        if let Some((output_index, item)) = self.builder.open_item() {
            if matches!(item, OutputItem::FunctionCall { arguments, .. } if arguments.is_empty()) {
                self.encode_item_delta(NO_ARGUMENTS, out);
            }
            self.finish_part(out);
            self.builder.close(status);
            if let Some(item) = self.builder.items.last() {
                let body = EventBody::Item { output_index, item };
                self.sequence.send("response.output_item.done", body, out);
            }
        }
        for signature in std::mem::take(&mut self.late_signatures) {
            self.encode_signature_item(&signature, out);
        }
    }

    fn encode_end(&mut self, out: &mut SseWriter) {
        self.ended = true;
        if let Some(text) = self.filter_message.take() {
            self.block = EncodedBlock::Refusal;
            self.encode_text(&text, out);
        }
        self.encode_early_citations(u64::MAX, out);
        let (status, incomplete_details) = self.ending;
        self.close_item(status, out);
        let name = match incomplete_details {
            None => "response.completed",
            Some(_) => "response.incomplete",
        };
        let response = &ResponseObject {
            incomplete_details,
            usage: self.usage.map(Into::into),
            ..self.builder.response(status, &self.builder.items)
        };
        self.sequence
            .send(name, EventBody::Response { response }, out);
    }
}

impl StreamEncoder for ResponsesStreamEncoder {
    fn held(&self) -> usize {
        self.held
    }

    fn encode_event(&mut self, event: Event<'_>, out: &mut SseWriter) {
        if self.ended {
            return;
        }
        if !self.started {
            if let Event::Start { id, model, created } = &event {
                self.builder = ResponseBuilder::new(id, model, *created, &self.options);
            }
            self.encode_start(out);
        }
        match event {
            Event::Start { .. } => {}
            Event::Usage(usage) => self.usage = Some(usage),
            Event::End => self.encode_end(out),
            // The format has the first choice only.
            Event::Open { choice: 1.., .. }
            | Event::Delta { choice: 1.., .. }
            | Event::Close { choice: 1.. }
            | Event::Finish { choice: 1.., .. } => {}
            Event::Open { block, .. } => self.open_block(block, out),
            Event::Delta { delta, .. } => self.encode_block_delta(delta, out),
            Event::Close { .. } => {
                self.begin_announced_call(out);
                self.block = EncodedBlock::None;
            }
            Event::Finish { reason, .. } => {
                self.ending = encode_finish(&reason);
                if let Finish::Filtered(text) = reason {
                    self.filter_message = text.map(Text::into_owned);
                }
            }
        }
    }

    fn encode_error(&mut self, api_error: &ApiError, out: &mut SseWriter) {
        if self.ended {
            return;
        }
        if !self.started {
            self.encode_start(out);
        }
        self.ended = true;
        error::encode_in_stream(api_error, self.sequence.next(), out);
        let response = &ResponseObject {
            usage: self.usage.map(Into::into),
            ..self.builder.failed(api_error)
        };
        self.sequence
            .send("response.failed", EventBody::Response { response }, out);
    }
}
