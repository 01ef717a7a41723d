//! The reply in pieces.

use std::collections::BTreeMap;

use serde::Serialize;

use super::reasoning::Detail;
use super::usage::Tokens;
use super::wire::{Annotation, Audio, Heading, Image, Logprobs, Shown, ToolCall, finish_reason};
use crate::formats::identity::call_id;
use crate::formats::written::written;
use crate::formats::{ResponseOptions, StreamEncoder};
use crate::model::{ApiError, Block, Citation, Delta, Event, Finish, Media, Text, ToolKind, Usage};
use crate::sse::SseWriter;

/// What every chunk of a stream begins with.
#[derive(Serialize)]
struct Repeated<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
}

/// What else it says.
#[derive(Serialize)]
struct Chunk<'a> {
    choices: &'a [ChunkChoice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Tokens>,
}

#[derive(Serialize)]
struct ChunkChoice<'a> {
    index: u32,
    delta: Piece<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<Logprobs<'a>>,
    finish_reason: Option<&'static str>,
}

#[derive(Default, Serialize)]
struct Piece<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[ToolCall<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<[Detail<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<Vec<Annotation<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    images: Option<[Image<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<Audio<'a>>,
}

pub(super) struct Encoder {
    asked: ResponseOptions,
    heading: Heading,
    /// The heading as JSON, written once.
    repeated: Vec<u8>,
    /// Ids of calls are made from it.
    upstream_id: String,
    choices: BTreeMap<u32, Progress>,
    usage: Option<Usage>,
    over: bool,
}

/// How far one choice has come.
#[derive(Default)]
struct Progress {
    open: Option<Open>,
    calls: u32,
    details: usize,
    /// Thoughts without a proof, as long as no other came with one.
    unproven: Vec<String>,
    is_proven: bool,
    refused: bool,
    images: u32,
    has_sound: bool,
    /// Held back: clients put lists together that come at once, or whose entries have numbers.
    citations: Vec<Citation<'static>>,
    /// Held back to the end: nothing of a choice may follow it.
    finish: Option<&'static str>,
}

impl Progress {
    /// Once one thought is told with its proof, all of them are told in that way.
    fn close_thought(
        &mut self,
        text: String,
        signature: Option<String>,
        mut tell: impl FnMut(Detail<'_>),
    ) {
        if signature.is_some() && !text.is_empty() {
            self.is_proven = true;
            for text in std::mem::take(&mut self.unproven) {
                tell(Detail::unproven(&text, self.details));
                self.details += 1;
            }
        }
        match signature {
            Some(signature) => tell(Detail::of_thought(&text, signature, self.details)),
            None if text.is_empty() => return,
            None if self.is_proven => tell(Detail::unproven(&text, self.details)),
            None => return self.unproven.push(text),
        }
        self.details += 1;
    }
}

/// The block that is being written.
enum Open {
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

impl Encoder {
    pub(super) fn new(asked: &ResponseOptions) -> Encoder {
        let heading = Heading::new("", 0, "", asked);
        Encoder {
            asked: asked.clone(),
            repeated: repeated(&heading),
            heading,
            upstream_id: String::new(),
            choices: BTreeMap::new(),
            usage: None,
            over: false,
        }
    }

    fn open(&mut self, choice: u32, block: Block<'_>, out: &mut SseWriter) {
        self.close(choice, out);
        let progress = begin(&mut self.choices, &self.repeated, choice, out);
        progress.open = Some(match block {
            Block::Text => Open::Text,
            Block::Refusal => {
                progress.refused = true;
                Open::Refusal
            }
            Block::Reasoning => Open::Reasoning {
                text: String::new(),
                signature: None,
            },
            Block::Call { id, name, kind } => {
                let made = || call_id(&self.upstream_id, choice, progress.calls);
                let id = id.map_or_else(made, Text::into_owned);
                let call = ToolCall::first(progress.calls, &id, kind, &name);
                write(&self.repeated, choice, Piece::of_call(call), out);
                progress.calls += 1;
                Open::Call {
                    id,
                    kind,
                    has_arguments: false,
                    signature: None,
                }
            }
            Block::Media(media) => {
                let piece = Piece::of_media(&media, &self.heading, progress);
                write(&self.repeated, choice, piece, out);
                Open::Media
            }
        });
    }

    fn delta(&mut self, choice: u32, delta: &Delta<'_>, out: &mut SseWriter) {
        let repeated = &self.repeated;
        let progress = begin(&mut self.choices, repeated, choice, out);
        let mut piece = Piece::default();
        match (&mut progress.open, delta) {
            (_, Delta::Citation(citation)) => {
                return progress.citations.push(citation.clone().into_owned());
            }
            (_, Delta::Logprob(logprob)) => {
                let logprobs = Logprobs::new(std::slice::from_ref(logprob));
                return write_choice(repeated, choice, piece, Some(logprobs), None, out);
            }
            (_, Delta::Text(text) | Delta::Arguments(text)) if text.is_empty() => return,
            (Some(Open::Text), Delta::Text(text)) => piece.content = Some(text),
            (Some(Open::Refusal), Delta::Text(text)) => piece.refusal = Some(text),
            (Some(Open::Reasoning { text: whole, .. }), Delta::Text(text)) => {
                whole.push_str(text);
                piece.reasoning_content = Some(text);
            }
            (
                Some(Open::Call {
                    kind,
                    has_arguments,
                    ..
                }),
                Delta::Arguments(text),
            ) => {
                *has_arguments |= !text.trim().is_empty();
                piece = Piece::of_call(ToolCall::later(progress.calls - 1, *kind, text));
            }
            (
                Some(Open::Reasoning { signature, .. } | Open::Call { signature, .. }),
                Delta::Signature(new),
            ) => {
                *signature = Some(new.wrap());
                return;
            }
            // The grammar allows no other pairing.
            (_, Delta::Text(_) | Delta::Arguments(_) | Delta::Signature(_)) => return,
        }
        write(repeated, choice, piece, out);
    }

    fn close(&mut self, choice: u32, out: &mut SseWriter) {
        let repeated = &self.repeated;
        let progress = begin(&mut self.choices, repeated, choice, out);
        let index = progress.details;
        match progress.open.take() {
            Some(Open::Reasoning { text, signature }) => {
                progress.close_thought(text, signature, |detail| {
                    write(repeated, choice, Piece::of_detail(detail), out);
                })
            }
            Some(Open::Call {
                id,
                kind,
                has_arguments,
                signature,
            }) => {
                if !has_arguments && kind == ToolKind::Function {
                    let call = ToolCall::later(progress.calls - 1, kind, "{}");
                    write(repeated, choice, Piece::of_call(call), out);
                }
                if let Some(signature) = signature {
                    let detail = Detail::of_call(id.into(), signature, index);
                    write(repeated, choice, Piece::of_detail(detail), out);
                    progress.details += 1;
                }
            }
            Some(Open::Text | Open::Refusal | Open::Media) | None => {}
        }
    }

    fn finish(&mut self, choice: u32, reason: &Finish<'_>, out: &mut SseWriter) {
        let progress = begin(&mut self.choices, &self.repeated, choice, out);
        if let Finish::Filtered(Some(words)) = reason
            && !progress.refused
        {
            progress.refused = true;
            let piece = Piece {
                refusal: Some(words),
                ..Piece::default()
            };
            write(&self.repeated, choice, piece, out);
        }
        progress.finish = Some(finish_reason(reason, progress.calls > 0));
    }

    fn end(&mut self, out: &mut SseWriter) {
        begin(&mut self.choices, &self.repeated, 0, out);
        let numbers: Vec<u32> = self.choices.keys().copied().collect();
        for choice in numbers {
            self.close(choice, out);
        }
        for (choice, progress) in &self.choices {
            let unsaid = finish_reason(&Finish::Other, progress.calls > 0);
            let reason = progress.finish.unwrap_or(unsaid);
            if !progress.citations.is_empty() {
                let annotations = progress.citations.iter().map(Annotation::new).collect();
                let piece = Piece {
                    annotations: Some(annotations),
                    ..Piece::default()
                };
                write(&self.repeated, *choice, piece, out);
            }
            let piece = Piece::default();
            write_choice(&self.repeated, *choice, piece, None, Some(reason), out);
        }
        if let Some(usage) = self.usage.filter(|_| self.asked.include_usage) {
            write_chunk(&self.repeated, &[], Some(usage.into()), out);
        }
        out.word("[DONE]");
        self.over = true;
    }
}

impl StreamEncoder for Encoder {
    fn event(&mut self, event: Event<'_>, out: &mut SseWriter) {
        if self.over {
            return;
        }
        match event {
            Event::Start { id, model, created } => {
                self.heading = Heading::new(&id, created, &model, &self.asked);
                self.repeated = repeated(&self.heading);
                self.upstream_id = id.into_owned();
                begin(&mut self.choices, &self.repeated, 0, out);
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
        if !self.over {
            super::error::encode_in_stream(api_error, out);
            self.over = true;
        }
    }
}

impl<'a> Piece<'a> {
    fn of_call(call: ToolCall<'a>) -> Piece<'a> {
        Piece {
            tool_calls: Some([call]),
            ..Piece::default()
        }
    }

    fn of_detail(detail: Detail<'a>) -> Piece<'a> {
        Piece {
            reasoning_details: Some([detail]),
            ..Piece::default()
        }
    }

    fn of_media(media: &'a Media<'_>, heading: &Heading, progress: &mut Progress) -> Piece<'a> {
        let mut piece = Piece::default();
        match Shown::new(media, heading) {
            Shown::Image(image) => {
                piece.images = Some([image.numbered(progress.images)]);
                progress.images += 1;
            }
            Shown::Audio(audio) if progress.has_sound => piece.audio = Some(audio.later()),
            Shown::Audio(audio) => {
                progress.has_sound = true;
                piece.audio = Some(audio);
            }
        }
        piece
    }
}

/// The choice's progress; a choice that is new says first who speaks.
fn begin<'p>(
    choices: &'p mut BTreeMap<u32, Progress>,
    repeated: &[u8],
    choice: u32,
    out: &mut SseWriter,
) -> &'p mut Progress {
    choices.entry(choice).or_insert_with(|| {
        let piece = Piece {
            role: Some("assistant"),
            content: Some(""),
            ..Piece::default()
        };
        write(repeated, choice, piece, out);
        Progress::default()
    })
}

fn write(repeated: &[u8], choice: u32, piece: Piece<'_>, out: &mut SseWriter) {
    write_choice(repeated, choice, piece, None, None, out);
}

fn write_choice(
    repeated: &[u8],
    index: u32,
    delta: Piece<'_>,
    logprobs: Option<Logprobs<'_>>,
    finish_reason: Option<&'static str>,
    out: &mut SseWriter,
) {
    let choice = ChunkChoice {
        index,
        delta,
        logprobs,
        finish_reason,
    };
    write_chunk(repeated, &[choice], None, out);
}

fn write_chunk(
    repeated: &[u8],
    choices: &[ChunkChoice<'_>],
    usage: Option<Tokens>,
    out: &mut SseWriter,
) {
    out.joined(repeated, &Chunk { choices, usage });
}

fn repeated(heading: &Heading) -> Vec<u8> {
    let repeated = Repeated {
        id: &heading.id,
        object: "chat.completion.chunk",
        created: heading.created,
        model: &heading.model,
    };
    written(&repeated, 0)
}
