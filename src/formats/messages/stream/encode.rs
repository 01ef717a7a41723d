//! Encodes the events of a client's stream.

use std::borrow::Cow;

use serde::Serialize;

use crate::formats::messages::blocks::ContentBlock;
use crate::formats::messages::call_ids::response_call_id;
use crate::formats::messages::calls::ToolInput;
use crate::formats::messages::error;
use crate::formats::messages::response::{MessagesResponse, media_placeholder, source_id};
use crate::formats::messages::stop_reason::{StopReason, encode_stop_reason};
use crate::formats::messages::thinking_blocks::{encode_redacted_thinking, encode_signature};
use crate::formats::messages::usage::{MessagesUsage, encode_usage};
use crate::formats::{ResponseOptions, StreamEncoder};
use crate::model::{
    ApiError, Block, Delta, Event, Finish, Issuer, Signature, Text, ToolKind, Usage,
};
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

/// The `delta` of a `content_block_delta`.
#[derive(Serialize)]
#[serde(tag = "type")]
enum ContentDelta<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    #[serde(rename = "signature_delta")]
    Signature { signature: &'a str },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: &'a str },
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

/// Encodes the events of the model as a stream.
pub(in crate::formats::messages) struct MessagesStreamEncoder {
    options: ResponseOptions,
    phase: MessagesEncoderPhase,
    /// The index of the block that has started, or else of the next one.
    index: u32,
    open: Option<MessagesOpenBlock>,
    calls: u32,
    refused: bool,
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

/// The block that is open in the model's events. Its `content_block_start` is sent with its first
/// content: only then its type is certain, and empty blocks would be refused when the client sends
/// them back.
enum MessagesOpenBlock {
    Text {
        started: bool,
    },
    Reasoning {
        started: bool,
        signature: Option<Signature<'static>>,
    },
    Call {
        /// Id and name until the block starts.
        unsent: Option<(String, String)>,
        kind: ToolKind,
        /// The arguments so far are white space only.
        blank: bool,
        /// A signature that came after the block had started; it is sent after the block.
        signature: Option<Signature<'static>>,
    },
}

impl MessagesStreamEncoder {
    pub(in crate::formats::messages) fn new(options: &ResponseOptions) -> MessagesStreamEncoder {
        MessagesStreamEncoder {
            options: options.clone(),
            phase: NotStarted,
            index: 0,
            open: None,
            calls: 0,
            refused: false,
            stop: None,
            usage: None,
        }
    }
}

impl StreamEncoder for MessagesStreamEncoder {
    fn encode_event(&mut self, event: Event<'_>, out: &mut SseWriter) {
        match (&self.phase, event) {
            (NotStarted, Event::Start { id, model, .. }) => self.encode_start(&id, &model, out),
            (NotStarted | Ended, _) => {}
            (Running(_), Event::Open { choice: 0, block }) => self.open_block(block, out),
            (Running(_), Event::Delta { choice: 0, delta }) => self.encode_delta(delta, out),
            (Running(_), Event::Close { choice: 0 }) => self.close_block(out),
            (Running(_), Event::Finish { choice: 0, reason }) => {
                self.stop = Some(encode_stop_reason(&reason));
            }
            (Running(_), Event::Usage(usage)) => self.usage = Some(usage),
            (Running(_), Event::End) => self.encode_stop(out),
            // The format has one start and one choice.
            (Running(_), _) => {}
        }
    }

    fn encode_error(&mut self, api_error: &ApiError, out: &mut SseWriter) {
        if self.phase != Ended {
            error::encode_in_stream(api_error, out);
            self.phase = Ended;
        }
    }
}

impl MessagesStreamEncoder {
    fn encode_start(&mut self, id: &str, model: &str, out: &mut SseWriter) {
        let source = source_id(id, &self.options);
        let message = MessagesResponse::start(source, model, &self.options);
        MessagesStreamEvent::MessageStart { message }.send(out);
        self.phase = Running(source.to_owned());
    }

    fn open_block(&mut self, block: Block<'_>, out: &mut SseWriter) {
        self.close_block(out);
        match block {
            Block::Text => self.open = Some(MessagesOpenBlock::Text { started: false }),
            Block::Refusal => {
                self.refused = true;
                self.open = Some(MessagesOpenBlock::Text { started: false });
            }
            Block::Reasoning => {
                let (started, signature) = (false, None);
                self.open = Some(MessagesOpenBlock::Reasoning { started, signature });
            }
            Block::Call { id, name, kind } => {
                let id = self.call_id(id.as_ref());
                self.calls += 1;
                self.open = Some(MessagesOpenBlock::Call {
                    unsent: Some((id, name.into_owned())),
                    kind,
                    blank: true,
                    signature: None,
                });
            }
            Block::Media(media) => {
                self.open = Some(MessagesOpenBlock::Text { started: false });
                self.encode_text(media_placeholder(&media.mime).unwrap_or_default(), out);
            }
        }
    }

    fn call_id(&self, id: Option<&Text<'_>>) -> String {
        let source = match &self.phase {
            Running(source) => source,
            NotStarted | Ended => "",
        };
        response_call_id(id, source, self.calls).into_owned()
    }

    fn encode_delta(&mut self, delta: Delta<'_>, out: &mut SseWriter) {
        match delta {
            Delta::Text(text) => self.encode_text(&text, out),
            Delta::Arguments(text) => self.encode_arguments(&text, out),
            Delta::Signature(signature) => self.encode_signature_delta(signature, out),
            // The format has no field for either.
            Delta::Citation(_) | Delta::Logprob(_) => {}
        }
    }

    fn encode_text(&mut self, text: &str, out: &mut SseWriter) {
        if text.is_empty() {
            return;
        }
        let (started, block, delta) = match &mut self.open {
            Some(MessagesOpenBlock::Text { started }) => (
                started,
                ContentBlock::Text { text: "" },
                ContentDelta::Text { text },
            ),
            Some(MessagesOpenBlock::Reasoning { started, .. }) => (
                started,
                empty_thinking(),
                ContentDelta::Thinking { thinking: text },
            ),
            Some(MessagesOpenBlock::Call { .. }) | None => return,
        };
        let index = self.index;
        if !std::mem::replace(started, true) {
            start_block(index, block, out);
        }
        MessagesStreamEvent::ContentBlockDelta { index, delta }.send(out);
    }

    fn encode_arguments(&mut self, text: &str, out: &mut SseWriter) {
        let index = self.index;
        let Some(MessagesOpenBlock::Call {
            unsent,
            kind,
            blank,
            ..
        }) = &mut self.open
        else {
            return;
        };
        start_call(unsent, index, out);
        if text.is_empty() {
            return;
        }
        let json = match kind {
            ToolKind::Function => {
                *blank &= text.trim().is_empty();
                Cow::Borrowed(text)
            }
            ToolKind::Custom => {
                let start = if std::mem::replace(blank, false) {
                    FREE_TEXT_START
                } else {
                    ""
                };
                Cow::Owned(format!("{start}{}", escaped(text)))
            }
        };
        send_arguments(index, &json, out);
    }

    fn encode_signature_delta(&mut self, new: Signature<'_>, out: &mut SseWriter) {
        match &mut self.open {
            // Sent before its call, where the decoder of the next request finds it.
            Some(MessagesOpenBlock::Call {
                unsent: Some(_), ..
            }) => self.send_complete_block(encode_redacted_thinking(&new), out),
            // Sent at the end of its block.
            Some(
                MessagesOpenBlock::Reasoning { signature, .. }
                | MessagesOpenBlock::Call { signature, .. },
            ) => *signature = Some(new.into_owned()),
            Some(MessagesOpenBlock::Text { .. }) | None => {}
        }
    }

    /// Sends a block that has no deltas.
    fn send_complete_block(&mut self, block: ContentBlock<'_>, out: &mut SseWriter) {
        start_block(self.index, block, out);
        self.stop_block(out);
    }

    fn stop_block(&mut self, out: &mut SseWriter) {
        MessagesStreamEvent::ContentBlockStop { index: self.index }.send(out);
        self.index += 1;
    }

    fn close_block(&mut self, out: &mut SseWriter) {
        match self.open.take() {
            None | Some(MessagesOpenBlock::Text { started: false }) => {}
            Some(MessagesOpenBlock::Text { started: true }) => self.stop_block(out),
            Some(MessagesOpenBlock::Reasoning { started, signature }) => {
                self.close_reasoning(started, signature, out)
            }
            Some(MessagesOpenBlock::Call {
                mut unsent,
                kind,
                blank,
                signature,
            }) => {
                start_call(&mut unsent, self.index, out);
                match (kind, blank) {
                    (ToolKind::Function, true) => send_arguments(self.index, "{}", out),
                    (ToolKind::Function, false) => {}
                    (ToolKind::Custom, true) => {
                        let json = format!("{FREE_TEXT_START}{FREE_TEXT_END}");
                        send_arguments(self.index, &json, out);
                    }
                    (ToolKind::Custom, false) => send_arguments(self.index, FREE_TEXT_END, out),
                }
                self.stop_block(out);
                if let Some(signature) = signature {
                    self.send_complete_block(encode_redacted_thinking(&signature), out);
                }
            }
        }
    }

    fn close_reasoning(
        &mut self,
        started: bool,
        signature: Option<Signature<'_>>,
        out: &mut SseWriter,
    ) {
        match signature {
            None if !started => {}
            Some(signature) if !started && signature.issuer != Issuer::Thinking => {
                self.send_complete_block(encode_redacted_thinking(&signature), out);
            }
            signature => {
                let index = self.index;
                if !started {
                    start_block(index, empty_thinking(), out);
                }
                if let Some(signature) = &signature {
                    let signature = &encode_signature(signature, Issuer::Thinking);
                    let delta = ContentDelta::Signature { signature };
                    MessagesStreamEvent::ContentBlockDelta { index, delta }.send(out);
                }
                self.stop_block(out);
            }
        }
    }

    /// Sends `message_delta` and `message_stop`. Usage may come after the reason, so both wait until here.
    fn encode_stop(&mut self, out: &mut SseWriter) {
        self.close_block(out);
        let stop = self.stop.take();
        let stop = stop.unwrap_or_else(|| encode_stop_reason(&Finish::Other));
        MessagesStreamEvent::MessageDelta {
            delta: stop.with_content(self.calls > 0, self.refused),
            usage: encode_usage(self.usage),
        }
        .send(out);
        MessagesStreamEvent::MessageStop.send(out);
        self.phase = Ended;
    }
}

/// The JSON around the text for a custom tool, which is the one property of an object.
const FREE_TEXT_START: &str = "{\"input\":\"";
const FREE_TEXT_END: &str = "\"}";

fn escaped(text: &str) -> String {
    let quoted = serde_json::to_string(text).expect("a string is always valid JSON");
    quoted[1..quoted.len() - 1].to_owned()
}

const fn empty_thinking() -> ContentBlock<'static> {
    ContentBlock::Thinking {
        thinking: "",
        signature: Cow::Borrowed(""),
    }
}

fn start_block(index: u32, content_block: ContentBlock<'_>, out: &mut SseWriter) {
    MessagesStreamEvent::ContentBlockStart {
        index,
        content_block,
    }
    .send(out);
}

fn start_call(unsent: &mut Option<(String, String)>, index: u32, out: &mut SseWriter) {
    if let Some((id, name)) = unsent.take() {
        let block = ContentBlock::ToolUse {
            id: id.into(),
            name: &name,
            input: ToolInput::Empty {},
        };
        start_block(index, block, out);
    }
}

fn send_arguments(index: u32, partial_json: &str, out: &mut SseWriter) {
    let delta = ContentDelta::InputJson { partial_json };
    MessagesStreamEvent::ContentBlockDelta { index, delta }.send(out);
}
