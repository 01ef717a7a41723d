//! Encodes the content of one choice as deltas of its message, for a JSON response as for a stream.

use std::mem::replace;

use super::calls::ChatToolCall;
use super::delta::{ChatDelta, DeltaSink};
use super::finish_reason::encode_finish_reason;
use super::identity::ChatIdentity;
use super::output_media::ChatOutputMedia;
use super::reasoning::ReasoningDetails;
use crate::formats::ids::call_id;
use crate::model::{Block, Delta, Event, Finish, Media, Text, ToolKind, borrowed};

/// The state of one choice.
#[derive(Default)]
pub(super) struct ChoiceEncoder<'held> {
    number: u32,
    details: ReasoningDetails<'held>,
    open: Option<OpenChatBlock<'held>>,
    calls: u32,
    has_refusal: bool,
    images: u32,
    has_audio: bool,
    /// About how many bytes of reasoning were held until its block was closed.
    pub(super) held_bytes: usize,
}

/// The block that is being encoded.
struct OpenChatBlock<'held> {
    kind: ChatBlockKind,
    /// The text of reasoning, or the id of a call.
    held: Text<'held>,
    /// The signature of either, wrapped.
    signature: Option<String>,
    has_arguments: bool,
}

#[derive(Clone, Copy)]
enum ChatBlockKind {
    Text,
    Refusal,
    Reasoning,
    Call(ToolKind),
    Media,
}

impl<'event, 'held: 'event> ChoiceEncoder<'held> {
    /// Begins the choice of this number, with what is known of its reasoning.
    pub(super) fn new(number: u32, details: ReasoningDetails<'held>) -> Self {
        ChoiceEncoder {
            number,
            details,
            ..ChoiceEncoder::default()
        }
    }

    /// Encodes an event of a block.
    pub(super) fn encode_event(
        &mut self,
        event: Event<'event>,
        identity: &ChatIdentity<'_>,
        sink: &mut impl DeltaSink<'event, 'held>,
    ) {
        match event {
            Event::Open { block, .. } => self.open(block, identity, sink),
            Event::Delta { delta, .. } => self.encode_delta(delta, sink),
            Event::Close { .. } => self.close(sink),
            Event::Start { .. } | Event::Finish { .. } | Event::Usage(_) | Event::End => {}
        }
    }

    /// Opens a block; the one before it is closed.
    fn open(
        &mut self,
        block: Block<'event>,
        identity: &ChatIdentity<'_>,
        sink: &mut impl DeltaSink<'event, 'held>,
    ) {
        self.close(sink);
        let mut held = Text::default();
        let kind = match block {
            Block::Text => ChatBlockKind::Text,
            Block::Refusal => {
                self.has_refusal = true;
                ChatBlockKind::Refusal
            }
            Block::Reasoning => ChatBlockKind::Reasoning,
            Block::Call { id, name, kind } => {
                let made = || call_id(&identity.upstream_id, self.number, self.calls).into();
                let id = id.unwrap_or_else(made);
                sink.hold(&mut held, &id);
                let call = ChatToolCall::complete(id, kind, name, Text::default());
                sink.push(ChatDelta::of_call(call.numbered(self.calls)));
                self.calls += 1;
                ChatBlockKind::Call(kind)
            }
            Block::Media(media) => {
                sink.push(self.encode_media(media, identity));
                ChatBlockKind::Media
            }
        };
        self.open = Some(OpenChatBlock {
            kind,
            held,
            signature: None,
            has_arguments: false,
        });
    }

    /// Encodes media as one delta: images are numbered, later audio continues the first.
    fn encode_media(
        &mut self,
        media: Media<'event>,
        identity: &ChatIdentity<'_>,
    ) -> ChatDelta<'event> {
        let mut delta = ChatDelta::default();
        match ChatOutputMedia::new(media, identity) {
            ChatOutputMedia::Image(mut image) => {
                image.index = Some(self.images);
                delta.images = Some([image]);
                self.images += 1;
            }
            ChatOutputMedia::Audio(audio) => {
                let is_later = replace(&mut self.has_audio, true);
                delta.audio = Some(if is_later { audio.continued() } else { audio });
            }
        }
        delta
    }

    fn encode_delta(&mut self, delta: Delta<'event>, sink: &mut impl DeltaSink<'event, 'held>) {
        let Some(open) = &mut self.open else {
            return;
        };
        let mut encoded = ChatDelta::default();
        match (open.kind, delta) {
            (ChatBlockKind::Text, Delta::Text(text)) => encoded.content = Some(text),
            (ChatBlockKind::Refusal, Delta::Text(text)) => encoded.refusal = Some(text),
            (ChatBlockKind::Reasoning, Delta::Text(text)) => {
                sink.hold(&mut open.held, &text);
                self.held_bytes += text.len();
                encoded.reasoning_content = Some(text);
            }
            (ChatBlockKind::Call(kind), Delta::Arguments(text)) => {
                open.has_arguments |= !text.trim().is_empty();
                let call = ChatToolCall::new(kind, None, text);
                encoded = ChatDelta::of_call(call.numbered(self.calls - 1));
            }
            (ChatBlockKind::Reasoning | ChatBlockKind::Call(_), Delta::Signature(signature)) => {
                open.signature = Some(signature.wrap());
                return;
            }
            // The grammar of events allows no other combination.
            _ => return,
        }
        sink.push(encoded);
    }

    /// Closes the open block: what is known only at its end is encoded here.
    pub(super) fn close(&mut self, sink: &mut impl DeltaSink<'event, 'held>) {
        let Some(open) = self.open.take() else {
            return;
        };
        if let ChatBlockKind::Call(kind @ ToolKind::Function) = open.kind
            && !open.has_arguments
        {
            let call = ChatToolCall::new(kind, None, "{}".into());
            sink.push(ChatDelta::of_call(call.numbered(self.calls - 1)));
        }
        let (text, call_id) = match open.kind {
            ChatBlockKind::Call(_) => (Text::default(), Some(open.held)),
            _ => (open.held, None),
        };
        self.details
            .add(text, call_id, open.signature, &mut |detail| {
                sink.push(ChatDelta {
                    reasoning_details: Some([detail]),
                    ..ChatDelta::default()
                });
            });
    }

    /// Encodes the finish reason; the explanation of a filter becomes a refusal.
    pub(super) fn finish(
        &mut self,
        finish: &'event Finish<'_>,
        sink: &mut impl DeltaSink<'event, 'held>,
    ) -> &'static str {
        if let Finish::Filtered(Some(explanation)) = finish
            && !replace(&mut self.has_refusal, true)
        {
            sink.push(ChatDelta {
                refusal: Some(borrowed(explanation)),
                ..ChatDelta::default()
            });
        }
        encode_finish_reason(finish, self.calls > 0)
    }
}
