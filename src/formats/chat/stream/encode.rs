//! Encodes the events of a response as chunks.

use std::collections::BTreeMap;

use super::chunk::{ChatDelta, encode_head, write_choice, write_chunk, write_delta};
use crate::formats::chat::annotations::ChatAnnotation;
use crate::formats::chat::calls::ChatToolCall;
use crate::formats::chat::error::encode_stream_error;
use crate::formats::chat::finish_reason::encode_finish_reason;
use crate::formats::chat::identity::ChatIdentity;
use crate::formats::chat::logprobs::ChatLogprobs;
use crate::formats::chat::output_media::ChatOutputMedia;
use crate::formats::chat::reasoning::ChatReasoningDetail;
use crate::formats::ids::call_id;
use crate::formats::{ResponseOptions, StreamEncoder};
use crate::model::{ApiError, Block, Citation, Delta, Event, Finish, Media, Text, ToolKind, Usage};
use crate::sse::SseWriter;

/// Encodes one stream.
pub(in crate::formats::chat) struct ChatStreamEncoder {
    options: ResponseOptions,
    identity: ChatIdentity,
    /// The identity as JSON, encoded once.
    head: Vec<u8>,
    /// The upstream's id of the response, from which the ids of calls are made.
    upstream_id: String,
    choices: BTreeMap<u32, EncodedChoice>,
    usage: Option<Usage>,
    is_over: bool,
}

/// The state of one choice.
#[derive(Default)]
struct EncodedChoice {
    open: Option<OpenChatBlock>,
    calls: u32,
    details: usize,
    /// Reasoning without a signature, as long as no other has come with one.
    unsigned: Vec<String>,
    has_signed_text: bool,
    has_refusal: bool,
    images: u32,
    has_audio: bool,
    /// Delayed to the end: clients join lists only if they come at once or have numbered entries.
    citations: Vec<Citation<'static>>,
    /// About how many bytes reasoning and citations have taken.
    held: usize,
    /// Delayed to the end: nothing of a choice may follow it.
    finish: Option<&'static str>,
}

impl EncodedChoice {
    /// Ends a reasoning block. Once one has text and a signature, all of them go to `reasoning_details`.
    fn close_reasoning(
        &mut self,
        text: String,
        signature: Option<String>,
        mut emit: impl FnMut(ChatReasoningDetail<'_>),
    ) {
        if signature.is_some() && !text.is_empty() {
            self.has_signed_text = true;
            for text in std::mem::take(&mut self.unsigned) {
                emit(ChatReasoningDetail::unsigned(&text, self.details));
                self.details += 1;
            }
        }
        match signature {
            Some(signature) => emit(ChatReasoningDetail::signed(&text, signature, self.details)),
            None if text.is_empty() => return,
            None if self.has_signed_text => {
                emit(ChatReasoningDetail::unsigned(&text, self.details))
            }
            None => return self.unsigned.push(text),
        }
        self.details += 1;
    }

    /// Encodes media as one delta: images are numbered, later audio continues the first.
    fn encode_media<'a>(&mut self, media: &'a Media<'_>, identity: &ChatIdentity) -> ChatDelta<'a> {
        let mut chunk_delta = ChatDelta::default();
        match ChatOutputMedia::new(media, identity) {
            ChatOutputMedia::Image(image) => {
                chunk_delta.images = Some([image.numbered(self.images)]);
                self.images += 1;
            }
            ChatOutputMedia::Audio(audio) if self.has_audio => {
                chunk_delta.audio = Some(audio.continued());
            }
            ChatOutputMedia::Audio(audio) => {
                self.has_audio = true;
                chunk_delta.audio = Some(audio);
            }
        }
        chunk_delta
    }
}

/// The block that is being encoded.
enum OpenChatBlock {
    Text,
    Refusal,
    Reasoning {
        text: String,
        signature: Option<String>,
    },
    Call {
        id: String,
        kind: ToolKind,
        has_arguments: bool,
        signature: Option<String>,
    },
    Media,
}

impl ChatStreamEncoder {
    /// Encodes a response to a request with these options.
    pub(in crate::formats::chat) fn new(options: &ResponseOptions) -> ChatStreamEncoder {
        let identity = ChatIdentity::new("", 0, "", options);
        ChatStreamEncoder {
            options: options.clone(),
            head: encode_head(&identity),
            identity,
            upstream_id: String::new(),
            choices: BTreeMap::new(),
            usage: None,
            is_over: false,
        }
    }

    /// Opens a block; the one before it is closed.
    fn open(&mut self, choice: u32, block: Block<'_>, out: &mut SseWriter) {
        self.close(choice, out);
        let progress = choice_entry(&mut self.choices, &self.head, choice, out);
        progress.open = Some(match block {
            Block::Text => OpenChatBlock::Text,
            Block::Refusal => {
                progress.has_refusal = true;
                OpenChatBlock::Refusal
            }
            Block::Reasoning => OpenChatBlock::Reasoning {
                text: String::new(),
                signature: None,
            },
            Block::Call { id, name, kind } => {
                let generated = || call_id(&self.upstream_id, choice, progress.calls);
                let id = id.map_or_else(generated, Text::into_owned);
                let call = ChatToolCall::first(progress.calls, &id, kind, &name);
                write_delta(&self.head, choice, ChatDelta::of_call(call), out);
                progress.calls += 1;
                OpenChatBlock::Call {
                    id,
                    kind,
                    has_arguments: false,
                    signature: None,
                }
            }
            Block::Media(media) => {
                let chunk_delta = progress.encode_media(&media, &self.identity);
                write_delta(&self.head, choice, chunk_delta, out);
                OpenChatBlock::Media
            }
        });
    }

    /// Encodes a delta of the open block.
    fn delta(&mut self, choice: u32, delta: &Delta<'_>, out: &mut SseWriter) {
        let head = &self.head;
        let progress = choice_entry(&mut self.choices, head, choice, out);
        let mut chunk_delta = ChatDelta::default();
        match (&mut progress.open, delta) {
            (_, Delta::Citation(citation)) => {
                progress.held += delta.size();
                return progress.citations.push(citation.clone().into_owned());
            }
            (_, Delta::Logprob(logprob)) => {
                let logprobs = ChatLogprobs::new(std::slice::from_ref(logprob));
                return write_choice(head, choice, chunk_delta, Some(logprobs), None, out);
            }
            (_, Delta::Text(text) | Delta::Arguments(text)) if text.is_empty() => return,
            (Some(OpenChatBlock::Text), Delta::Text(text)) => chunk_delta.content = Some(text),
            (Some(OpenChatBlock::Refusal), Delta::Text(text)) => chunk_delta.refusal = Some(text),
            (Some(OpenChatBlock::Reasoning { text: whole, .. }), Delta::Text(text)) => {
                whole.push_str(text);
                progress.held += text.len();
                chunk_delta.reasoning_content = Some(text);
            }
            (
                Some(OpenChatBlock::Call {
                    kind,
                    has_arguments,
                    ..
                }),
                Delta::Arguments(text),
            ) => {
                *has_arguments |= !text.trim().is_empty();
                chunk_delta =
                    ChatDelta::of_call(ChatToolCall::continued(progress.calls - 1, *kind, text));
            }
            (
                Some(
                    OpenChatBlock::Reasoning { signature, .. }
                    | OpenChatBlock::Call { signature, .. },
                ),
                Delta::Signature(new),
            ) => {
                *signature = Some(new.wrap());
                return;
            }
            // The grammar of events allows no other combination.
            (_, Delta::Text(_) | Delta::Arguments(_) | Delta::Signature(_)) => return,
        }
        write_delta(head, choice, chunk_delta, out);
    }

    /// Closes the open block: what is known only at its end is encoded here.
    fn close(&mut self, choice: u32, out: &mut SseWriter) {
        let head = &self.head;
        let progress = choice_entry(&mut self.choices, head, choice, out);
        let index = progress.details;
        match progress.open.take() {
            Some(OpenChatBlock::Reasoning { text, signature }) => {
                progress.close_reasoning(text, signature, |detail| {
                    write_delta(head, choice, ChatDelta::of_detail(detail), out);
                })
            }
            Some(OpenChatBlock::Call {
                id,
                kind,
                has_arguments,
                signature,
            }) => {
                if !has_arguments && kind == ToolKind::Function {
                    let call = ChatToolCall::continued(progress.calls - 1, kind, "{}");
                    write_delta(head, choice, ChatDelta::of_call(call), out);
                }
                if let Some(signature) = signature {
                    let detail = ChatReasoningDetail::of_call(id.into(), signature, index);
                    write_delta(head, choice, ChatDelta::of_detail(detail), out);
                    progress.details += 1;
                }
            }
            Some(OpenChatBlock::Text | OpenChatBlock::Refusal | OpenChatBlock::Media) | None => {}
        }
    }

    /// Notes the finish reason; the explanation of a filter becomes a refusal.
    fn finish(&mut self, choice: u32, reason: &Finish<'_>, out: &mut SseWriter) {
        let progress = choice_entry(&mut self.choices, &self.head, choice, out);
        if let Finish::Filtered(Some(explanation)) = reason
            && !progress.has_refusal
        {
            progress.has_refusal = true;
            let chunk_delta = ChatDelta {
                refusal: Some(explanation),
                ..ChatDelta::default()
            };
            write_delta(&self.head, choice, chunk_delta, out);
        }
        progress.finish = Some(encode_finish_reason(reason, progress.calls > 0));
    }

    /// Encodes what was delayed to the end, the usage and `[DONE]`.
    fn end(&mut self, out: &mut SseWriter) {
        choice_entry(&mut self.choices, &self.head, 0, out);
        let numbers: Vec<u32> = self.choices.keys().copied().collect();
        for choice in numbers {
            self.close(choice, out);
        }
        for (choice, progress) in &self.choices {
            let default_reason = encode_finish_reason(&Finish::Other, progress.calls > 0);
            let reason = progress.finish.unwrap_or(default_reason);
            if !progress.citations.is_empty() {
                let annotations = progress.citations.iter().map(ChatAnnotation::new).collect();
                let chunk_delta = ChatDelta {
                    annotations: Some(annotations),
                    ..ChatDelta::default()
                };
                write_delta(&self.head, *choice, chunk_delta, out);
            }
            let chunk_delta = ChatDelta::default();
            write_choice(&self.head, *choice, chunk_delta, None, Some(reason), out);
        }
        if let Some(usage) = self.usage.filter(|_| self.options.include_usage) {
            write_chunk(&self.head, &[], Some(usage.into()), out);
        }
        out.word("[DONE]");
        self.is_over = true;
    }
}

impl StreamEncoder for ChatStreamEncoder {
    fn held(&self) -> usize {
        self.choices.values().map(|choice| choice.held).sum()
    }

    fn encode_event(&mut self, event: Event<'_>, out: &mut SseWriter) {
        if self.is_over {
            return;
        }
        match event {
            Event::Start { id, model, created } => {
                self.identity = ChatIdentity::new(&id, created, &model, &self.options);
                self.head = encode_head(&self.identity);
                self.upstream_id = id.into_owned();
                choice_entry(&mut self.choices, &self.head, 0, out);
            }
            Event::Open { choice, block } => self.open(choice, block, out),
            Event::Delta { choice, delta } => self.delta(choice, &delta, out),
            Event::Close { choice } => self.close(choice, out),
            Event::Finish { choice, reason } => self.finish(choice, &reason, out),
            Event::Usage(usage) => self.usage = Some(usage),
            Event::End => self.end(out),
        }
    }

    fn encode_error(&mut self, api_error: &ApiError, out: &mut SseWriter) {
        if !self.is_over {
            encode_stream_error(api_error, out);
            self.is_over = true;
        }
    }
}

/// The state of a choice; the first chunk of a new one holds its role.
fn choice_entry<'p>(
    choices: &'p mut BTreeMap<u32, EncodedChoice>,
    head: &[u8],
    choice: u32,
    out: &mut SseWriter,
) -> &'p mut EncodedChoice {
    choices.entry(choice).or_insert_with(|| {
        let chunk_delta = ChatDelta {
            role: Some("assistant"),
            content: Some(""),
            ..ChatDelta::default()
        };
        write_delta(head, choice, chunk_delta, out);
        EncodedChoice::default()
    })
}
