//! Streams of an upstream of this format.

use std::mem::take;

use super::incoming::{self, CITED_PAGE};
use super::pass::RawUsage;
use crate::formats::blocks::{Blocks, Key};
use crate::formats::{StreamDecoder, read_event};
use crate::json::{RawJson, from_json};
use crate::model::{
    ApiError, Block, Citation, Delta, Event, Finish, Issuer, Signature, Text, ToolKind, Usage,
};

from_json! {
    struct Wire<'a> {
        "type" required => kind: Text<'a>,
        "index" => index: u32,
        "message" => message: Option<RequestHead<'a>>,
        "content_block" => content_block: Option<RawJson<'a>>,
        "delta" => delta: Option<Piece<'a>>,
        "usage" => usage: Option<RawUsage>,
    }
}

from_json! {
    struct RequestHead<'a> {
        "id" => id: Text<'a>,
        "model" => model: Text<'a>,
        "usage" => usage: Option<RawUsage>,
    }
}

from_json! {
    /// What a block begins with; blocks of the upstream's own tools may hold anything.
    struct Kind<'a> {
        "type" required => kind: Text<'a>,
    }
}

from_json! {
    struct Start<'a> {
        "text" => text: Text<'a>,
        "thinking" => thinking: Text<'a>,
        "signature" => signature: Text<'a>,
        "data" => data: Text<'a>,
        "id" => id: Text<'a>,
        "name" => name: Text<'a>,
        "input" => input: Option<RawJson<'a>>,
    }
}

from_json! {
    /// A piece of a block, or the end of the whole.
    struct Piece<'a> {
        "type" => kind: Text<'a>,
        "text" => text: Text<'a>,
        "thinking" => thinking: Text<'a>,
        "signature" => signature: Text<'a>,
        "partial_json" => partial_json: Text<'a>,
        "citation" => citation: Option<RawJson<'a>>,
        "stop_reason" => stop_reason: Option<Text<'a>>,
        "stop_sequence" => stop_sequence: Option<Text<'a>>,
        "stop_details" => stop_details: Option<Details<'a>>,
    }
}

from_json! {
    struct Details<'a> {
        "explanation" => explanation: Option<Text<'a>>,
    }
}

from_json! {
    struct Source<'a> {
        "type" required => kind: Text<'a>,
        "url" => url: Option<Text<'a>>,
        "title" => title: Option<Text<'a>>,
    }
}

#[derive(Debug, Default)]
pub(super) struct Decoder {
    phase: Phase,
    blocks: Blocks,
    running: Vec<Running>,
    /// Of the text so far, which citations are counted from.
    characters: u64,
    /// Why it ends, once that has been told.
    finish: Option<Finish<'static>>,
    usage: Option<Usage>,
}

#[derive(Debug, Default, PartialEq)]
enum Phase {
    #[default]
    Silent,
    /// With the reply's id.
    Running(String),
    Over,
}

/// A block that the wire has not ended yet.
#[derive(Debug)]
struct Running {
    index: u32,
    /// Where its text begins.
    start: u64,
    sources: Vec<(String, Option<String>)>,
}

type Out<'o> = &'o mut dyn FnMut(Event<'_>);

impl StreamDecoder for Decoder {
    fn event(&mut self, data: &str, out: Out<'_>) -> Result<(), ApiError> {
        // Some servers end every stream like this.
        if data == "[DONE]" || self.phase == Phase::Over {
            return Ok(());
        }
        let mut wire: Wire<'_> = read_event(data)?;
        if let Some(usage) = &wire.usage {
            self.usage = Some(usage.merge(self.usage));
        }
        match wire.kind.as_ref() {
            "message_start" => self.start(wire.message, out)?,
            "content_block_start" => self.open(wire.index, wire.content_block, out)?,
            "content_block_delta" => {
                if let Some(piece) = &mut wire.delta {
                    self.extend(wire.index, piece, out);
                }
            }
            "content_block_stop" => self.close_block(wire.index, out),
            "message_delta" => self.note_finish(wire.delta),
            "message_stop" => self.end(out)?,
            "error" => return Err(super::error::decode(200, data.as_bytes())),
            // Signs of life, and whatever the format learns to say.
            _ => {}
        }
        Ok(())
    }

    fn usage_so_far(&self) -> Option<Usage> {
        self.usage
    }

    fn close(&mut self, _out: Out<'_>) -> Result<(), ApiError> {
        if self.phase == Phase::Over {
            return Ok(());
        }
        Err(broken_off())
    }
}

fn broken_off() -> ApiError {
    ApiError::bad_gateway("the upstream's stream ended before its end")
}

impl Decoder {
    /// Some servers repeat the start; a second answer in the middle of the first is an error.
    fn start(&mut self, head: Option<RequestHead<'_>>, out: Out<'_>) -> Result<(), ApiError> {
        let head = head.unwrap_or_default();
        if let Phase::Running(id) = &self.phase {
            if *id == head.id {
                return Ok(());
            }
            return Err(ApiError::bad_gateway(
                "the upstream began a second reply within the first",
            ));
        }
        if let Some(usage) = &head.usage {
            self.usage = Some(usage.merge(self.usage));
        }
        self.phase = Phase::Running(head.id.to_string());
        out(Event::Start {
            id: head.id,
            model: head.model,
            created: 0,
        });
        Ok(())
    }

    fn open(&mut self, index: u32, raw: Option<RawJson<'_>>, out: Out<'_>) -> Result<(), ApiError> {
        let raw = raw.map_or("{\"type\":\"\"}", RawJson::get);
        let kind: Kind<'_> = read_event(raw)?;
        let known = ["text", "thinking", "redacted_thinking", "tool_use"];
        if self.phase == Phase::Silent || !known.contains(&kind.kind.as_ref()) {
            return Ok(());
        }
        let start: Start<'_> = read_event(raw)?;
        self.running.push(Running {
            index,
            start: self.characters,
            sources: Vec::new(),
        });
        let mut begin = |block, deltas: [Option<Delta<'_>>; 2]| {
            self.blocks.push(0, Key::Item(index), || block, None, out);
            for delta in deltas.into_iter().flatten() {
                push(&mut self.blocks, index, delta, out);
            }
        };
        match kind.kind.as_ref() {
            "text" => {
                self.characters += start.text.chars().count() as u64;
                begin(Block::Text, [words(start.text), None]);
            }
            "thinking" => {
                let proof = signature(start.signature, Issuer::Thinking);
                begin(Block::Reasoning, [words(start.thinking), proof]);
            }
            "redacted_thinking" => {
                begin(
                    Block::Reasoning,
                    [signature(start.data, Issuer::Redacted), None],
                );
            }
            _ => {
                let call = Block::Call {
                    id: Some(start.id).filter(|id| !id.is_empty()),
                    name: start.name,
                    kind: ToolKind::Function,
                };
                // Arguments follow in pieces, except from servers that say them all at once.
                let whole = start.input.map(RawJson::get);
                let whole = whole.filter(|json| !matches!(*json, "{}" | "null"));
                begin(
                    call,
                    [whole.map(|json| Delta::Arguments(json.into())), None],
                );
            }
        }
        Ok(())
    }

    fn extend(&mut self, index: u32, piece: &mut Piece<'_>, out: Out<'_>) {
        let Some(running) = self.running.iter_mut().find(|block| block.index == index) else {
            return;
        };
        let delta = match piece.kind.as_ref() {
            "text_delta" => {
                self.characters += piece.text.chars().count() as u64;
                words(take(&mut piece.text))
            }
            "thinking_delta" => words(take(&mut piece.thinking)),
            "signature_delta" => signature(take(&mut piece.signature), Issuer::Thinking),
            "input_json_delta" => Some(take(&mut piece.partial_json))
                .filter(|json| !json.is_empty())
                .map(Delta::Arguments),
            "citations_delta" => {
                running.sources.extend(piece.citation.and_then(read_source));
                None
            }
            _ => None,
        };
        if let Some(delta) = delta {
            push(&mut self.blocks, index, delta, out);
        }
    }

    /// A source stands for the whole block, so it waits for the block's end.
    fn close_block(&mut self, index: u32, out: Out<'_>) {
        let Some(at) = self.running.iter().position(|block| block.index == index) else {
            return;
        };
        let running = self.running.remove(at);
        for (url, title) in running.sources {
            let citation = Citation {
                url: url.into(),
                title: title.map(Text::Owned),
                start: running.start,
                end: self.characters,
            };
            push(&mut self.blocks, index, Delta::Citation(citation), out);
        }
        self.blocks.close(0, Key::Item(index), out);
    }

    fn note_finish(&mut self, piece: Option<Piece<'_>>) {
        let piece = piece.unwrap_or_default();
        if piece.stop_reason.is_none() {
            self.finish.get_or_insert(Finish::Other);
            return;
        }
        let explanation = piece.stop_details.and_then(|details| details.explanation);
        self.finish = Some(incoming::finish(
            piece.stop_reason.as_deref(),
            piece.stop_sequence.map(owned),
            explanation.map(owned),
        ));
    }

    fn end(&mut self, out: Out<'_>) -> Result<(), ApiError> {
        if self.phase == Phase::Silent {
            return Err(ApiError::bad_gateway(
                "the upstream's stream held no answer",
            ));
        }
        // Without it the answer may be any part of what it was to be.
        let reason = self.finish.take().ok_or_else(broken_off)?;
        self.blocks.finish(0, out);
        out(Event::Finish { choice: 0, reason });
        if let Some(usage) = self.usage {
            out(Event::Usage(usage));
        }
        out(Event::End);
        self.phase = Phase::Over;
        Ok(())
    }
}

/// Of a block that has begun: what it would begin as does not matter any more.
fn push(blocks: &mut Blocks, index: u32, delta: Delta<'_>, out: Out<'_>) {
    blocks.push(0, Key::Item(index), || Block::Text, Some(delta), out);
}

fn words(text: Text<'_>) -> Option<Delta<'_>> {
    (!text.is_empty()).then_some(Delta::Text(text))
}

fn signature(data: Text<'_>, issuer: Issuer) -> Option<Delta<'_>> {
    (!data.is_empty()).then_some(Delta::Signature(Signature { issuer, data }))
}

fn owned(text: Text<'_>) -> Text<'static> {
    Text::Owned(text.into_owned())
}

/// `None`: a source without an address.
fn read_source(raw: RawJson<'_>) -> Option<(String, Option<String>)> {
    let source: Source<'_> = read_event(raw.get()).ok()?;
    let url = source.url.filter(|_| source.kind == CITED_PAGE)?;
    Some((url.into_owned(), source.title.map(Text::into_owned)))
}
