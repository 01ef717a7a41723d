//! The reply in pieces: a start, blocks one after another, then why and at what cost it ended.

use std::borrow::Cow;

use serde::Serialize;

use super::response::{
    Block, Counts, Ending, Input, Message, call_id, carried, redacted, source_id, stand_in,
};
use crate::formats::{ResponseOptions, StreamEncoder};
use crate::model::{
    self, ApiError, Delta, Event, Finish, Issuer, Signature, Text, ToolKind, Usage,
};
use crate::sse::SseWriter;

/// One event; its name on the wire is its type.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Sent<'a> {
    MessageStart {
        message: Message<'a>,
    },
    ContentBlockStart {
        index: u32,
        content_block: Block<'a>,
    },
    ContentBlockDelta {
        index: u32,
        delta: Piece<'a>,
    },
    ContentBlockStop {
        index: u32,
    },
    MessageDelta {
        delta: Ending,
        usage: Counts,
    },
    MessageStop,
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Piece<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    #[serde(rename = "signature_delta")]
    Signature { signature: &'a str },
    #[serde(rename = "input_json_delta")]
    Input { partial_json: &'a str },
}

impl Sent<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Sent::MessageStart { .. } => "message_start",
            Sent::ContentBlockStart { .. } => "content_block_start",
            Sent::ContentBlockDelta { .. } => "content_block_delta",
            Sent::ContentBlockStop { .. } => "content_block_stop",
            Sent::MessageDelta { .. } => "message_delta",
            Sent::MessageStop => "message_stop",
        }
    }

    fn write(&self, out: &mut SseWriter) {
        out.event(self.name(), self);
    }
}

pub(super) struct Encoder {
    asked: ResponseOptions,
    phase: Phase,
    /// Of the block that is begun, or else of the next one.
    index: u32,
    open: Option<Open>,
    calls: u32,
    refused: bool,
    ending: Option<Ending>,
    usage: Option<Usage>,
}

#[derive(PartialEq)]
enum Phase {
    Silent,
    /// With the id that the ids of calls are made from.
    Running(String),
    Over,
}

/// A block is begun on the wire with its first content: only then is it known what it must be,
/// and blocks that stay empty would be refused when the client sends them back.
enum Open {
    Text {
        begun: bool,
    },
    Reasoning {
        begun: bool,
        signature: Option<Signature<'static>>,
    },
    Call {
        /// What it will begin with; `None`: it has begun.
        waiting: Option<(String, String)>,
        kind: ToolKind,
        /// No argument has come but white space.
        blank: bool,
        /// Too late to stand before the call.
        signature: Option<Signature<'static>>,
    },
}

impl Encoder {
    pub(super) fn new(asked: &ResponseOptions) -> Encoder {
        Encoder {
            asked: asked.clone(),
            phase: Phase::Silent,
            index: 0,
            open: None,
            calls: 0,
            refused: false,
            ending: None,
            usage: None,
        }
    }
}

impl StreamEncoder for Encoder {
    fn event(&mut self, event: Event<'_>, out: &mut SseWriter) {
        match (&self.phase, event) {
            (Phase::Silent, Event::Start { id, model, .. }) => self.start(&id, &model, out),
            (Phase::Silent | Phase::Over, _) => {}
            (Phase::Running(_), Event::Open { choice: 0, block }) => self.open(block, out),
            (Phase::Running(_), Event::Delta { choice: 0, delta }) => self.delta(delta, out),
            (Phase::Running(_), Event::Close { choice: 0 }) => self.close(out),
            (Phase::Running(_), Event::Finish { choice: 0, reason }) => {
                self.ending = Some(Ending::of(&reason));
            }
            (Phase::Running(_), Event::Usage(usage)) => self.usage = Some(usage),
            (Phase::Running(_), Event::End) => self.end(out),
            // The format knows one start and one choice.
            (Phase::Running(_), _) => {}
        }
    }

    fn encode_error(&mut self, api_error: &ApiError, out: &mut SseWriter) {
        if self.phase != Phase::Over {
            super::error::encode_in_stream(api_error, out);
            self.phase = Phase::Over;
        }
    }
}

impl Encoder {
    fn start(&mut self, id: &str, model: &str, out: &mut SseWriter) {
        let source = source_id(id, &self.asked);
        let message = Message::begin(source, model, &self.asked);
        Sent::MessageStart { message }.write(out);
        self.phase = Phase::Running(source.to_owned());
    }

    fn open(&mut self, block: model::Block<'_>, out: &mut SseWriter) {
        self.close(out);
        match block {
            model::Block::Text => self.open = Some(Open::Text { begun: false }),
            model::Block::Refusal => {
                self.refused = true;
                self.open = Some(Open::Text { begun: false });
            }
            model::Block::Reasoning => {
                let (begun, signature) = (false, None);
                self.open = Some(Open::Reasoning { begun, signature });
            }
            model::Block::Call { id, name, kind } => {
                let id = self.call_id(id.as_ref());
                self.calls += 1;
                self.open = Some(Open::Call {
                    waiting: Some((id, name.into_owned())),
                    kind,
                    blank: true,
                    signature: None,
                });
            }
            model::Block::Media(media) => {
                self.open = Some(Open::Text { begun: false });
                self.text(stand_in(&media.mime).unwrap_or_default(), out);
            }
        }
    }

    fn call_id(&self, id: Option<&Text<'_>>) -> String {
        let source = match &self.phase {
            Phase::Running(source) => source,
            Phase::Silent | Phase::Over => "",
        };
        call_id(id, source, self.calls).into_owned()
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut SseWriter) {
        match delta {
            Delta::Text(text) => self.text(&text, out),
            Delta::Arguments(text) => self.arguments(&text, out),
            Delta::Signature(signature) => self.signature(signature, out),
            // Neither has a place in this format.
            Delta::Citation(_) | Delta::Logprob(_) => {}
        }
    }

    fn text(&mut self, text: &str, out: &mut SseWriter) {
        if text.is_empty() {
            return;
        }
        let (begun, block, delta) = match &mut self.open {
            Some(Open::Text { begun }) => (begun, Block::Text { text: "" }, Piece::Text { text }),
            Some(Open::Reasoning { begun, .. }) => {
                (begun, empty_thinking(), Piece::Thinking { thinking: text })
            }
            Some(Open::Call { .. }) | None => return,
        };
        let index = self.index;
        if !std::mem::replace(begun, true) {
            start_block(index, block, out);
        }
        Sent::ContentBlockDelta { index, delta }.write(out);
    }

    fn arguments(&mut self, text: &str, out: &mut SseWriter) {
        let index = self.index;
        let Some(Open::Call {
            waiting,
            kind,
            blank,
            ..
        }) = &mut self.open
        else {
            return;
        };
        begin_call(waiting, index, out);
        if text.is_empty() {
            return;
        }
        let json = match kind {
            ToolKind::Function => {
                *blank &= text.trim().is_empty();
                Cow::Borrowed(text)
            }
            ToolKind::Custom => {
                let head = if std::mem::replace(blank, false) {
                    FREE_TEXT_HEAD
                } else {
                    ""
                };
                Cow::Owned(format!("{head}{}", escaped(text)))
            }
        };
        write_arguments(index, &json, out);
    }

    fn signature(&mut self, new: Signature<'_>, out: &mut SseWriter) {
        match &mut self.open {
            // It goes in front of the call it belongs to: from there it finds back to it.
            Some(Open::Call {
                waiting: Some(_), ..
            }) => self.whole(redacted(&new), out),
            // A signature comes last in its block.
            Some(Open::Reasoning { signature, .. } | Open::Call { signature, .. }) => {
                *signature = Some(owned(new))
            }
            Some(Open::Text { .. }) | None => {}
        }
    }

    /// A block that is complete from the start.
    fn whole(&mut self, block: Block<'_>, out: &mut SseWriter) {
        start_block(self.index, block, out);
        self.stop_block(out);
    }

    fn stop_block(&mut self, out: &mut SseWriter) {
        Sent::ContentBlockStop { index: self.index }.write(out);
        self.index += 1;
    }

    fn close(&mut self, out: &mut SseWriter) {
        match self.open.take() {
            None | Some(Open::Text { begun: false }) => {}
            Some(Open::Text { begun: true }) => self.stop_block(out),
            Some(Open::Reasoning { begun, signature }) => self.close_thought(begun, signature, out),
            Some(Open::Call {
                mut waiting,
                kind,
                blank,
                signature,
            }) => {
                begin_call(&mut waiting, self.index, out);
                match (kind, blank) {
                    (ToolKind::Function, true) => write_arguments(self.index, "{}", out),
                    (ToolKind::Function, false) => {}
                    (ToolKind::Custom, true) => {
                        let whole = format!("{FREE_TEXT_HEAD}{FREE_TEXT_TAIL}");
                        write_arguments(self.index, &whole, out);
                    }
                    (ToolKind::Custom, false) => write_arguments(self.index, FREE_TEXT_TAIL, out),
                }
                self.stop_block(out);
                if let Some(signature) = signature {
                    self.whole(redacted(&signature), out);
                }
            }
        }
    }

    fn close_thought(
        &mut self,
        begun: bool,
        signature: Option<Signature<'_>>,
        out: &mut SseWriter,
    ) {
        match signature {
            None if !begun => {}
            Some(signature) if !begun && signature.issuer != Issuer::Thinking => {
                self.whole(redacted(&signature), out);
            }
            signature => {
                let index = self.index;
                if !begun {
                    start_block(index, empty_thinking(), out);
                }
                if let Some(signature) = &signature {
                    let signature = &carried(signature, Issuer::Thinking);
                    let delta = Piece::Signature { signature };
                    Sent::ContentBlockDelta { index, delta }.write(out);
                }
                self.stop_block(out);
            }
        }
    }

    /// Usage may come after the reason, so both wait for the end.
    fn end(&mut self, out: &mut SseWriter) {
        self.close(out);
        let ending = self.ending.take();
        let ending = ending.unwrap_or_else(|| Ending::of(&Finish::Other));
        Sent::MessageDelta {
            delta: ending.settle(self.calls > 0, self.refused),
            usage: Counts::of(self.usage),
        }
        .write(out);
        Sent::MessageStop.write(out);
        self.phase = Phase::Over;
    }
}

/// Free text travels as the one property of an object.
const FREE_TEXT_HEAD: &str = "{\"input\":\"";
const FREE_TEXT_TAIL: &str = "\"}";

fn escaped(text: &str) -> String {
    let quoted = serde_json::to_string(text).expect("a string is always valid JSON");
    quoted[1..quoted.len() - 1].to_owned()
}

fn owned(signature: Signature<'_>) -> Signature<'static> {
    Signature {
        issuer: signature.issuer,
        data: Cow::Owned(signature.data.into_owned()),
    }
}

const fn empty_thinking() -> Block<'static> {
    Block::Thinking {
        thinking: "",
        signature: Cow::Borrowed(""),
    }
}

fn start_block(index: u32, content_block: Block<'_>, out: &mut SseWriter) {
    Sent::ContentBlockStart {
        index,
        content_block,
    }
    .write(out);
}

fn begin_call(waiting: &mut Option<(String, String)>, index: u32, out: &mut SseWriter) {
    if let Some((id, name)) = waiting.take() {
        let block = Block::ToolUse {
            id: id.into(),
            name: &name,
            input: Input::Empty {},
        };
        start_block(index, block, out);
    }
}

fn write_arguments(index: u32, partial_json: &str, out: &mut SseWriter) {
    let delta = Piece::Input { partial_json };
    Sent::ContentBlockDelta { index, delta }.write(out);
}
