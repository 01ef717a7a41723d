//! Streams of an upstream of this format.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::incoming::{self, CITED_PAGE};
use super::pass::RawUsage;
use crate::formats::blocks::{Blocks, Key};
use crate::formats::{StreamDecoder, read_event};
use crate::model::{
    Block, Citation, Delta, Event, Fault, Finish, Issuer, Seal, Text, ToolKind, Usage,
};

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(default)]
    index: u32,
    #[serde(borrow)]
    message: Option<Head<'a>>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<Piece<'a>>,
    usage: Option<RawUsage>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    #[serde(borrow, default)]
    model: Cow<'a, str>,
    usage: Option<RawUsage>,
}

/// What a block begins with; blocks of the upstream's own tools may hold anything.
#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Start<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    thinking: Cow<'a, str>,
    #[serde(borrow)]
    signature: Cow<'a, str>,
    #[serde(borrow)]
    data: Cow<'a, str>,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

/// A piece of a block, or the end of the whole.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Piece<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
    #[serde(borrow)]
    thinking: Cow<'a, str>,
    #[serde(borrow)]
    signature: Cow<'a, str>,
    #[serde(borrow)]
    partial_json: Cow<'a, str>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    stop_reason: Option<String>,
    stop_sequence: Option<String>,
    stop_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    explanation: Option<String>,
}

#[derive(Deserialize)]
struct Source {
    r#type: String,
    url: Option<String>,
    title: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct Decoder {
    phase: Phase,
    blocks: Blocks,
    running: Vec<Running>,
    /// Of the text so far, which citations are counted from.
    characters: u64,
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
    fn event(&mut self, data: &str, out: Out<'_>) -> Result<(), Fault> {
        // Some servers end every stream like this.
        if data == "[DONE]" || self.phase == Phase::Over {
            return Ok(());
        }
        let wire: Wire<'_> = read_event(data)?;
        if let Some(usage) = &wire.usage {
            self.usage = Some(usage.merge(self.usage));
        }
        match wire.r#type.as_ref() {
            "message_start" => self.start(wire.message, out)?,
            "content_block_start" => self.open(wire.index, wire.content_block, out)?,
            "content_block_delta" => {
                if let Some(piece) = wire.delta {
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

    fn close(&mut self, _out: Out<'_>) -> Result<(), Fault> {
        if self.phase == Phase::Over {
            return Ok(());
        }
        Err(Fault::bad_gateway(
            "the upstream's stream ended before its end",
        ))
    }
}

impl Decoder {
    /// Some servers repeat the start; a second answer in the middle of the first is a fault.
    fn start(&mut self, head: Option<Head<'_>>, out: Out<'_>) -> Result<(), Fault> {
        let head = head.unwrap_or_else(|| Head {
            id: Cow::default(),
            model: Cow::default(),
            usage: None,
        });
        if let Phase::Running(id) = &self.phase {
            if *id == head.id {
                return Ok(());
            }
            return Err(Fault::bad_gateway(
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

    fn open(&mut self, index: u32, raw: Option<&RawValue>, out: Out<'_>) -> Result<(), Fault> {
        let raw = raw.map_or("{\"type\":\"\"}", RawValue::get);
        let kind: Kind<'_> = read_event(raw)?;
        let known = ["text", "thinking", "redacted_thinking", "tool_use"];
        if self.phase == Phase::Silent || !known.contains(&kind.r#type.as_ref()) {
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
        match kind.r#type.as_ref() {
            "text" => {
                self.characters += start.text.chars().count() as u64;
                begin(Block::Text, [words(start.text), None]);
            }
            "thinking" => {
                let proof = seal(start.signature, Issuer::Thinking);
                begin(Block::Thought, [words(start.thinking), proof]);
            }
            "redacted_thinking" => {
                begin(Block::Thought, [seal(start.data, Issuer::Redacted), None]);
            }
            _ => {
                let call = Block::Call {
                    id: Some(start.id).filter(|id| !id.is_empty()),
                    name: start.name,
                    kind: ToolKind::Function,
                };
                // Arguments follow in pieces, except from servers that say them all at once.
                let whole = start.input.map(RawValue::get);
                let whole = whole.filter(|json| !matches!(*json, "{}" | "null"));
                begin(
                    call,
                    [whole.map(|json| Delta::Arguments(json.into())), None],
                );
            }
        }
        Ok(())
    }

    fn extend(&mut self, index: u32, piece: Piece<'_>, out: Out<'_>) {
        let Some(running) = self.running.iter_mut().find(|block| block.index == index) else {
            return;
        };
        let delta = match piece.r#type.as_ref() {
            "text_delta" => {
                self.characters += piece.text.chars().count() as u64;
                words(piece.text)
            }
            "thinking_delta" => words(piece.thinking),
            "signature_delta" => seal(piece.signature, Issuer::Thinking),
            "input_json_delta" => Some(piece.partial_json)
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
            return;
        }
        let explanation = piece.stop_details.and_then(|details| details.explanation);
        self.finish = Some(incoming::finish(
            piece.stop_reason.as_deref(),
            piece.stop_sequence.map(Text::Owned),
            explanation.map(Text::Owned),
        ));
    }

    fn end(&mut self, out: Out<'_>) -> Result<(), Fault> {
        if self.phase == Phase::Silent {
            return Err(Fault::bad_gateway("the upstream's stream held no answer"));
        }
        self.blocks.finish(0, out);
        out(Event::Finish {
            choice: 0,
            reason: self.finish.take().unwrap_or(Finish::Other),
        });
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

fn seal(data: Text<'_>, issuer: Issuer) -> Option<Delta<'_>> {
    (!data.is_empty()).then_some(Delta::Seal(Seal { issuer, data }))
}

/// `None`: a source without an address.
fn read_source(raw: &RawValue) -> Option<(String, Option<String>)> {
    let source: Source = serde_json::from_str(raw.get()).ok()?;
    let url = source.url.filter(|_| source.r#type == CITED_PAGE)?;
    Some((url, source.title))
}
