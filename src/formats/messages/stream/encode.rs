//! Encodes the events of a client's stream.

use serde::Serialize;

use crate::formats::messages::blocks::{ContentBlock, ContentDelta};
use crate::formats::messages::content_encoder::{BlockSink, ContentEncoder};
use crate::formats::messages::error;
use crate::formats::messages::response::{MessagesResponse, source_id};
use crate::formats::messages::stop_reason::{StopReason, encode_stop_reason};
use crate::formats::messages::usage::{MessagesUsage, encode_usage};
use crate::formats::{ResponseOptions, StreamEncoder};
use crate::model::{ApiError, Event, Finish, Text, Usage, own};
use crate::sse::SseWriter;

use MessagesEncoderPhase::{Ended, NotStarted, Running};

/// An event of the stream; its SSE name is its type.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum MessagesStreamEvent<'a> {
    MessageStart {
        message: MessagesResponse<'a>,
    },
    ContentBlockStart {
        index: u32,
        content_block: ContentBlock<'a>,
    },
    ContentBlockDelta {
        index: u32,
        delta: ContentDelta<'a>,
    },
    ContentBlockStop {
        index: u32,
    },
    MessageDelta {
        delta: StopReason,
        usage: MessagesUsage,
    },
    MessageStop,
}

impl MessagesStreamEvent<'_> {
    const fn name(&self) -> &'static str {
        match self {
            MessagesStreamEvent::MessageStart { .. } => "message_start",
            MessagesStreamEvent::ContentBlockStart { .. } => "content_block_start",
            MessagesStreamEvent::ContentBlockDelta { .. } => "content_block_delta",
            MessagesStreamEvent::ContentBlockStop { .. } => "content_block_stop",
            MessagesStreamEvent::MessageDelta { .. } => "message_delta",
            MessagesStreamEvent::MessageStop => "message_stop",
        }
    }

    fn send(&self, out: &mut SseWriter) {
        out.event(self.name(), self);
    }
}

/// Sends the blocks of a stream one after another.
struct BlockEvents<'o> {
    /// The index of the block that has started, or else of the next one.
    index: &'o mut u32,
    out: &'o mut SseWriter,
}

impl<'event> BlockSink<'event, 'static> for BlockEvents<'_> {
    fn start(&mut self, content_block: ContentBlock<'event>) {
        let index = *self.index;
        MessagesStreamEvent::ContentBlockStart {
            index,
            content_block,
        }
        .send(self.out);
    }

    fn add(&mut self, delta: ContentDelta<'event>) {
        let index = *self.index;
        MessagesStreamEvent::ContentBlockDelta { index, delta }.send(self.out);
    }

    fn stop(&mut self) {
        let index = *self.index;
        MessagesStreamEvent::ContentBlockStop { index }.send(self.out);
        *self.index += 1;
    }

    fn hold(&self, text: Text<'event>) -> Text<'static> {
        own(text)
    }
}

/// Encodes the events of the model as a stream.
pub(in crate::formats::messages) struct MessagesStreamEncoder {
    options: ResponseOptions,
    phase: MessagesEncoderPhase,
    content: ContentEncoder<'static>,
    /// The index of the block that has started, or else of the next one.
    index: u32,
    stop: Option<StopReason>,
    usage: Option<Usage>,
}

#[derive(PartialEq)]
enum MessagesEncoderPhase {
    NotStarted,
    /// Between `message_start` and `message_stop`, with the id that call ids are derived from.
    Running(String),
    Ended,
}

impl MessagesStreamEncoder {
    pub(in crate::formats::messages) fn new(options: &ResponseOptions) -> MessagesStreamEncoder {
        MessagesStreamEncoder {
            options: options.clone(),
            phase: NotStarted,
            content: ContentEncoder::default(),
            index: 0,
            stop: None,
            usage: None,
        }
    }

    fn encode_start(&mut self, id: &str, model: &str, out: &mut SseWriter) {
        let source = source_id(id, &self.options);
        let message = MessagesResponse::start(source, model, &self.options);
        MessagesStreamEvent::MessageStart { message }.send(out);
        self.phase = Running(source.to_owned());
    }

    /// Sends `message_delta` and `message_stop`. Usage may come after the reason, so both wait until here.
    fn encode_stop(&mut self, out: &mut SseWriter) {
        let stop = self.stop.take();
        let stop = stop.unwrap_or_else(|| encode_stop_reason(&Finish::Other));
        MessagesStreamEvent::MessageDelta {
            delta: self.content.correct(stop),
            usage: encode_usage(self.usage),
        }
        .send(out);
        MessagesStreamEvent::MessageStop.send(out);
        self.phase = Ended;
    }
}

impl StreamEncoder for MessagesStreamEncoder {
    fn encode_event(&mut self, event: Event<'_>, out: &mut SseWriter) {
        let source = match (&self.phase, &event) {
            (NotStarted, Event::Start { id, model, .. }) => {
                return self.encode_start(id, model, out);
            }
            (NotStarted | Ended, _) => return,
            (Running(source), _) => source,
        };
        let index = &mut self.index;
        let mut blocks = BlockEvents { index, out };
        match event {
            Event::Open { choice: 0, .. }
            | Event::Delta { choice: 0, .. }
            | Event::Close { choice: 0 } => self.content.encode_event(event, source, &mut blocks),
            Event::Finish { choice: 0, reason } => self.stop = Some(encode_stop_reason(&reason)),
            Event::Usage(usage) => self.usage = Some(usage),
            Event::End => {
                self.content.close(&mut blocks);
                self.encode_stop(out);
            }
            // The format has one start and one choice.
            _ => {}
        }
    }

    fn encode_error(&mut self, api_error: &ApiError, out: &mut SseWriter) {
        if self.phase != Ended {
            error::encode_in_stream(api_error, out);
            self.phase = Ended;
        }
    }
}
