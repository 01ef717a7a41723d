//! Encodes the content of a response as blocks, for a JSON response as for a stream.

use std::mem::{replace, take};

use super::blocks::{ContentBlock, ContentDelta};
use super::calls::ToolInput;
use super::stop_reason::StopReason;
use super::thinking_blocks::{encode_redacted_thinking, encode_signature};
use crate::formats::ids;
use crate::model::{Block, Call, Delta, Event, Issuer, Signature, Text, ToolKind, borrowed};

/// Takes the blocks of a response: a stream sends them piece by piece, a JSON response gathers them.
pub(super) trait BlockSink<'event, 'held> {
    /// Starts a block.
    fn start(&mut self, block: ContentBlock<'event>);
    /// Adds to the block that has started.
    fn add(&mut self, delta: ContentDelta<'event>);
    /// Stops it.
    fn stop(&mut self);
    /// Keeps text of an event that is needed after it. A stream copies it; a JSON response borrows it.
    fn hold(&self, text: Text<'event>) -> Text<'held>;
    /// Takes a block that has no deltas.
    fn add_complete(&mut self, block: ContentBlock<'event>) {
        self.start(block);
        self.stop();
    }
}

/// The state of a response's content.
#[derive(Default)]
pub(super) struct ContentEncoder<'held> {
    open: Option<MessagesOpenBlock<'held>>,
    calls: u32,
    has_refusal: bool,
}

/// The block that is open in the model's events.
struct MessagesOpenBlock<'held> {
    kind: MessagesBlockKind<'held>,
    /// A block starts with its first content: only then its type is certain, and empty blocks would be refused when
    /// the client sends them back.
    started: bool,
    /// The arguments so far are white space only.
    blank: bool,
    /// The signature of reasoning, or one that came after its call had started.
    signature: Option<Signature<'held>>,
}

enum MessagesBlockKind<'held> {
    Text,
    Reasoning,
    Call {
        id: Text<'held>,
        name: Text<'held>,
        kind: ToolKind,
    },
}

impl<'event, 'held: 'event> MessagesOpenBlock<'held> {
    fn start(&mut self, sink: &mut impl BlockSink<'event, 'held>) {
        if replace(&mut self.started, true) {
            return;
        }
        sink.start(match &mut self.kind {
            MessagesBlockKind::Text => ContentBlock::Text { text: "".into() },
            MessagesBlockKind::Reasoning => ContentBlock::Thinking {
                thinking: "".into(),
                signature: "".into(),
            },
            MessagesBlockKind::Call { id, name, .. } => ContentBlock::ToolUse {
                id: take(id),
                name: take(name),
                input: ToolInput::Empty {},
            },
        });
    }
}

impl<'event, 'held: 'event> ContentEncoder<'held> {
    /// Encodes an event of a block; `source` is the id that ids of calls are derived from.
    pub(super) fn encode_event(
        &mut self,
        event: Event<'event>,
        source: &str,
        sink: &mut impl BlockSink<'event, 'held>,
    ) {
        match event {
            Event::Open { block, .. } => self.open(block, source, sink),
            Event::Delta { delta, .. } => self.encode_delta(delta, sink),
            Event::Close { .. } => self.close(sink),
            Event::Start { .. } | Event::Finish { .. } | Event::Usage(_) | Event::End => {}
        }
    }

    /// Encodes a whole call: unlike the arguments of a stream, its input can be checked before it is sent.
    pub(super) fn encode_call(
        &mut self,
        call: &'event Call<'_>,
        input: ToolInput<'event>,
        source: &str,
        sink: &mut impl BlockSink<'event, 'held>,
    ) {
        let id = self.next_call_id(call.id.as_ref().map(borrowed), source);
        if let Some(signature) = &call.signature {
            sink.add_complete(encode_redacted_thinking(signature.borrowed()));
        }
        let name = borrowed(&call.name);
        sink.add_complete(ContentBlock::ToolUse { id, name, input });
    }

    /// Leaves out a call, which still counts.
    pub(super) const fn skip_call(&mut self) {
        self.calls += 1;
    }

    /// The id of a call: the upstream's, or one derived from the response's id (`source`) and the call's position.
    fn next_call_id(&mut self, id: Option<Text<'event>>, source: &str) -> Text<'event> {
        let ordinal = self.calls;
        self.calls += 1;
        let id = id.filter(|id| !id.is_empty());
        id.unwrap_or_else(|| ids::call_id(source, 0, ordinal).into())
    }

    /// Opens a block; the one before it is closed.
    fn open(
        &mut self,
        block: Block<'event>,
        source: &str,
        sink: &mut impl BlockSink<'event, 'held>,
    ) {
        self.close(sink);
        self.has_refusal |= matches!(block, Block::Refusal);
        let mut placeholder = "";
        let kind = match block {
            Block::Text | Block::Refusal => MessagesBlockKind::Text,
            Block::Reasoning => MessagesBlockKind::Reasoning,
            Block::Call { id, name, kind } => {
                let id = sink.hold(self.next_call_id(id, source));
                let name = sink.hold(name);
                MessagesBlockKind::Call { id, name, kind }
            }
            Block::Media(media) => {
                // Responses of the format have no media blocks.
                if media.mime.is_empty() || media.mime.starts_with("image/") {
                    placeholder = "[image]";
                }
                MessagesBlockKind::Text
            }
        };
        self.open = Some(MessagesOpenBlock {
            kind,
            started: false,
            blank: true,
            signature: None,
        });
        self.encode_delta(Delta::Text(placeholder.into()), sink);
    }

    /// Encodes a delta of the open block.
    fn encode_delta(&mut self, delta: Delta<'event>, sink: &mut impl BlockSink<'event, 'held>) {
        let Some(open) = &mut self.open else {
            return;
        };
        match (&open.kind, delta) {
            (MessagesBlockKind::Text, Delta::Text(text)) if !text.is_empty() => {
                open.start(sink);
                sink.add(ContentDelta::Text { text });
            }
            (MessagesBlockKind::Reasoning, Delta::Text(thinking)) if !thinking.is_empty() => {
                open.start(sink);
                sink.add(ContentDelta::Thinking { thinking });
            }
            (&MessagesBlockKind::Call { kind, .. }, Delta::Arguments(text)) => {
                open.start(sink);
                if !text.is_empty() {
                    let partial_json = encode_arguments(text, kind, &mut open.blank);
                    sink.add(ContentDelta::InputJson { partial_json });
                }
            }
            // Before its call, where the decoder of the next request finds it.
            (MessagesBlockKind::Call { .. }, Delta::Signature(signature)) if !open.started => {
                sink.add_complete(encode_redacted_thinking(signature));
            }
            (
                MessagesBlockKind::Reasoning | MessagesBlockKind::Call { .. },
                Delta::Signature(Signature { issuer, data }),
            ) => {
                let data = sink.hold(data);
                open.signature = Some(Signature { issuer, data });
            }
            // The format has no field for citations and log probabilities.
            _ => {}
        }
    }

    /// Closes the open block: what is known only at its end is encoded here.
    pub(super) fn close(&mut self, sink: &mut impl BlockSink<'event, 'held>) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        match open.kind {
            MessagesBlockKind::Text => {}
            MessagesBlockKind::Reasoning => {
                let fits = |it: &mut Signature<'_>| open.started || it.issuer == Issuer::Thinking;
                if let Some(signature) = open.signature.take_if(fits) {
                    open.start(sink);
                    let signature = encode_signature(signature, Issuer::Thinking);
                    sink.add(ContentDelta::Signature { signature });
                }
            }
            MessagesBlockKind::Call { kind, .. } => {
                open.start(sink);
                let end = match (kind, open.blank) {
                    (ToolKind::Function, true) => "{}",
                    (ToolKind::Function, false) => "",
                    (ToolKind::Custom, true) => "{\"input\":\"\"}",
                    (ToolKind::Custom, false) => "\"}",
                };
                if !end.is_empty() {
                    let partial_json = end.into();
                    sink.add(ContentDelta::InputJson { partial_json });
                }
            }
        }
        if open.started {
            sink.stop();
        }
        // A foreign signature of reasoning without text, or one that came too late for its call.
        if let Some(signature) = open.signature {
            sink.add_complete(encode_redacted_thinking(signature));
        }
    }

    /// Corrects the reason why the response ended by its content.
    pub(super) fn correct(&self, stop: StopReason) -> StopReason {
        stop.with_content(self.calls > 0, self.has_refusal)
    }
}

/// Encodes a delta of arguments. The text for a custom tool is the one property of an object.
fn encode_arguments<'event>(text: Text<'event>, kind: ToolKind, blank: &mut bool) -> Text<'event> {
    match kind {
        ToolKind::Function => {
            *blank &= text.trim().is_empty();
            text
        }
        ToolKind::Custom => {
            let start = if replace(blank, false) {
                "{\"input\":\""
            } else {
                ""
            };
            let quoted = serde_json::to_string(&text).expect("a string is always valid JSON");
            format!("{start}{}", &quoted[1..quoted.len() - 1]).into()
        }
    }
}
