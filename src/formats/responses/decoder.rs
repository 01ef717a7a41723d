//! Streams of an upstream of this format.
//!
//! Pieces belong to the item of their `output_index`: ids change from event to event at some
//! upstreams. What an item or the final reply holds and no piece said is said when they come.

use super::error;
use super::frame::{Frame, tree, words};
use super::incoming::{Content, Whole, moved};
use super::items_in::{self, PARAGRAPH, Said, Spoken};
use super::progress::{Item, Items, Voice};
use crate::formats::blocks::{Blocks, Key};
use crate::formats::{StreamDecoder, read_event};
use crate::json::RawJson;
use crate::model::{
    ApiError, Block, Call, Citation, Delta, Event, Finish, Json, Logprob, Signature, Text,
};

#[derive(Default)]
pub(super) struct Decoder {
    blocks: Blocks,
    items: Items,
    content: Content,
    started: bool,
    ended: bool,
    /// The text, and the thought, that the last piece belonged to.
    speaking: Option<(u32, u32)>,
    thinking: Option<u32>,
    /// Length of all texts so far.
    characters: u64,
}

type Out<'o> = &'o mut dyn FnMut(Event<'_>);

impl StreamDecoder for Decoder {
    fn event(&mut self, data: &str, out: Out<'_>) -> Result<(), ApiError> {
        // A few proxies end the stream in the chat format's way.
        if self.ended || data == "[DONE]" {
            return Ok(());
        }
        let frame: Frame<'_> = read_event(data)?;
        let index = frame.output_index;
        match frame.kind.as_ref() {
            "error" | "response.failed" => return Err(error::decode_in_stream(data)),
            "" if frame.error.is_some() => return Err(error::decode_in_stream(data)),
            "response.created" | "response.queued" | "response.in_progress" => {
                self.start(frame.response, out)?;
            }
            "response.completed" | "response.incomplete" | "response.cancelled" => {
                return self.end(&frame, data, out);
            }
            "response.output_item.added" => self.begin_item(index, tree(frame.item), out),
            "response.output_item.done" => self.complete_item(index, tree(frame.item), out),
            "response.output_text.delta" => self.hear_text(&frame, out),
            "response.refusal.delta" => {
                let part = (index, frame.content_index);
                self.refuse(part, words(frame.delta), out);
            }
            "response.reasoning_summary_text.delta" => {
                let section = (Voice::Summary, frame.summary_index);
                self.think(index, section, words(frame.delta), out);
            }
            "response.reasoning_text.delta" => {
                let section = (Voice::Thoughts, frame.content_index);
                self.think(index, section, words(frame.delta), out);
            }
            "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
                self.argue(index, words(frame.delta), out);
            }
            "response.output_text.annotation.added" => {
                let part = (index, frame.content_index);
                self.cite(part, tree(frame.annotation), out);
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, _out: Out<'_>) -> Result<(), ApiError> {
        if self.ended {
            return Ok(());
        }
        let message = "the upstream's stream ended before its reply was complete";
        Err(ApiError::bad_gateway(message))
    }
}

impl Decoder {
    fn start(&mut self, response: Option<RawJson<'_>>, out: Out<'_>) -> Result<(), ApiError> {
        if self.started {
            return Ok(());
        }
        self.started = true;
        let Some(response) = response else {
            out(nameless());
            return Ok(());
        };
        let whole: Whole<'_> = read_event(response.get())?;
        out(Event::Start {
            created: whole.created(),
            id: whole.id.unwrap_or_default(),
            model: whole.model.unwrap_or_default(),
        });
        Ok(())
    }

    /// A piece of a block, after the start that some upstreams leave out.
    fn push<'a>(
        &mut self,
        key: Key,
        block: impl FnOnce() -> Block<'a>,
        delta: Option<Delta<'a>>,
        out: Out<'_>,
    ) {
        if !self.started {
            self.started = true;
            out(nameless());
        }
        self.blocks.push(0, key, block, delta, out);
    }

    fn close_block(&mut self, key: Key, out: Out<'_>) {
        if self.blocks.is_open(0, key) {
            self.blocks.close(0, key, out);
        }
    }

    fn hear_text(&mut self, frame: &Frame<'_>, out: Out<'_>) {
        let part = (frame.output_index, frame.content_index);
        self.speak(part, words(frame.delta), out);
        if let Some(raw) = frame.logprobs
            && raw.get() != "[]"
            && let Json::Array(list) = tree(Some(raw))
        {
            self.add_logprobs(part, items_in::read_logprobs(list), out);
        }
    }

    /// Parts of a message are texts of their own.
    fn enter_part(&mut self, part: (u32, u32), out: Out<'_>) {
        if self.speaking != Some(part) {
            self.close_block(Key::Text, out);
            self.close_block(Key::Refusal, out);
            self.speaking = Some(part);
        }
    }

    fn speak(&mut self, part: (u32, u32), text: Text<'_>, out: Out<'_>) {
        if text.is_empty() {
            return;
        }
        self.enter_part(part, out);
        let written = self.items.of(part.0).part(part.1);
        if written.bytes == 0 {
            written.start = self.characters;
        }
        written.add(&text);
        self.characters += text.chars().count() as u64;
        self.push(Key::Text, || Block::Text, Some(Delta::Text(text)), out);
    }

    fn refuse(&mut self, part: (u32, u32), text: Text<'_>, out: Out<'_>) {
        if text.is_empty() {
            return;
        }
        self.enter_part(part, out);
        self.content.refused = true;
        self.items.of(part.0).part(part.1).add(&text);
        self.push(
            Key::Refusal,
            || Block::Refusal,
            Some(Delta::Text(text)),
            out,
        );
    }

    fn add_logprobs(&mut self, part: (u32, u32), logprobs: Vec<Logprob<'_>>, out: Out<'_>) {
        self.items.of(part.0).part(part.1).logprobs += logprobs.len();
        for logprob in logprobs {
            let delta = Delta::Logprob(logprob);
            self.blocks.extend(0, Key::Text, delta, out);
        }
    }

    fn cite(&mut self, part: (u32, u32), annotation: Json<'_>, out: Out<'_>) {
        let written = self.items.of(part.0).part(part.1);
        written.sources += 1;
        let start = written.start;
        if let Some(source) = items_in::read_source(annotation) {
            self.add_source(moved(source, start), out);
        }
    }

    /// With the text that it belongs to, if that is still to come.
    fn add_source(&mut self, source: Citation<'_>, out: Out<'_>) {
        let delta = Delta::Citation(source);
        if self.blocks.is_open(0, Key::Text) {
            self.blocks.extend(0, Key::Text, delta, out);
        } else {
            out(Event::Delta { choice: 0, delta });
        }
    }

    /// Whichever of summary and thoughts comes first is what the item says.
    fn think(&mut self, index: u32, section: (Voice, u32), text: Text<'_>, out: Out<'_>) {
        let item = self.items.of(index);
        let (voice, before) = *item.section.get_or_insert(section);
        if text.is_empty() || voice != section.0 {
            return;
        }
        item.section = Some(section);
        let written = item.part(0);
        let text = if before != section.1 && written.bytes > 0 {
            format!("{PARAGRAPH}{text}").into()
        } else {
            text
        };
        written.add(&text);
        self.add_thought(index, Delta::Text(text), out);
    }

    fn add_thought(&mut self, index: u32, delta: Delta<'_>, out: Out<'_>) {
        if self.thinking != Some(index) {
            self.close_block(Key::Reasoning, out);
            self.thinking = Some(index);
        }
        self.push(Key::Reasoning, || Block::Reasoning, Some(delta), out);
    }

    fn begin_item(&mut self, index: u32, item: Json<'_>, out: Out<'_>) {
        if let (_, Said::Call(call)) = items_in::read(item)
            && !call.name.is_empty()
        {
            self.begin_call(index, &call, out);
        }
    }

    fn begin_call(&mut self, index: u32, call: &Call<'_>, out: Out<'_>) {
        let item = self.items.of(index);
        if item.called {
            return;
        }
        item.called = true;
        self.content.called = true;
        let block = || Block::Call {
            id: call.id.clone(),
            name: call.name.clone(),
            kind: call.kind,
        };
        self.push(Key::Call(index), block, None, out);
    }

    /// Pieces of a call that was not announced come with the whole item.
    fn argue(&mut self, index: u32, text: Text<'_>, out: Out<'_>) {
        let item = self.items.of(index);
        if text.is_empty() || !item.called {
            return;
        }
        item.part(0).add(&text);
        let delta = Delta::Arguments(text);
        self.blocks.extend(0, Key::Call(index), delta, out);
    }

    fn complete_item(&mut self, index: u32, item: Json<'_>, out: Out<'_>) {
        let (id, said) = items_in::read(item);
        let done = self.items.of(index).done;
        match said {
            // Sources may be found when their text is long complete.
            Said::Message(spoken) if done => self.add_late_sources(index, spoken, out),
            // And a signature may stand in the final reply alone.
            Said::Reasoning { text, signature } => {
                self.complete_thought(index, &text, signature, out)
            }
            _ if done => return,
            Said::Message(spoken) => self.complete_message(index, spoken, out),
            Said::Call(call) => {
                self.begin_call(index, &call, out);
                let arguments = call.arguments.to_text();
                let rest = self.items.of(index).missing(0, &arguments);
                self.argue(index, rest.into(), out);
                self.close_block(Key::Call(index), out);
            }
            Said::Image(media) => {
                self.push(Key::Item(index), || Block::Media(media), None, out);
                self.close_block(Key::Item(index), out);
            }
            Said::Hosted => {}
        }
        let item: &mut Item = self.items.of(index);
        item.done = true;
        item.id = id.into_owned();
    }

    fn complete_thought(
        &mut self,
        index: u32,
        text: &str,
        signature: Option<Signature<'_>>,
        out: Out<'_>,
    ) {
        let item = self.items.of(index);
        let signature = signature.filter(|_| !item.sealed);
        if item.done && signature.is_none() {
            return;
        }
        item.sealed |= signature.is_some();
        let rest = item.missing(0, text);
        if !rest.is_empty() {
            self.add_thought(index, Delta::Text(rest.into()), out);
        }
        if let Some(signature) = signature {
            self.add_thought(index, Delta::Signature(signature), out);
        }
        if self.thinking == Some(index) {
            self.close_block(Key::Reasoning, out);
        }
    }

    fn complete_message(&mut self, index: u32, spoken: Vec<Spoken<'_>>, out: Out<'_>) {
        for (number, spoken) in (0u32..).zip(spoken) {
            let part = (index, number);
            match spoken {
                Spoken::Refusal(text) => {
                    let rest = self.items.of(index).missing(number, &text);
                    self.refuse(part, rest.into(), out);
                }
                Spoken::Text {
                    text,
                    sources,
                    logprobs,
                } => {
                    let rest = self.items.of(index).missing(number, &text);
                    self.speak(part, rest.into(), out);
                    self.add_sources(part, sources, out);
                    let told = self.items.of(index).part(number).logprobs;
                    let rest = logprobs.into_iter().skip(told).collect();
                    self.add_logprobs(part, rest, out);
                }
            }
        }
        if self.speaking.is_some_and(|(item, _)| item == index) {
            self.close_block(Key::Text, out);
            self.close_block(Key::Refusal, out);
        }
    }

    fn add_late_sources(&mut self, index: u32, spoken: Vec<Spoken<'_>>, out: Out<'_>) {
        for (number, spoken) in (0u32..).zip(spoken) {
            if let Spoken::Text { sources, .. } = spoken {
                self.add_sources((index, number), sources, out);
            }
        }
    }

    /// Those of a text that have not come yet.
    fn add_sources(&mut self, part: (u32, u32), sources: Vec<Option<Citation<'_>>>, out: Out<'_>) {
        let written = self.items.of(part.0).part(part.1);
        let (start, told) = (written.start, written.sources);
        written.sources = told.max(sources.len());
        for source in sources.into_iter().skip(told).flatten() {
            self.add_source(moved(source, start), out);
        }
    }

    fn end(&mut self, frame: &Frame<'_>, data: &str, out: Out<'_>) -> Result<(), ApiError> {
        self.start(frame.response, out)?;
        let response = frame.response.map_or("{}", RawJson::get);
        let whole: Whole<'_> = read_event(response)?;
        for (index, item) in (0u32..).zip(whole.items()) {
            let index = self.items.number_of(index, &item);
            self.complete_item(index, item, out);
        }
        let reason = match whole.finish(self.content, data)? {
            Finish::Stop if frame.kind == "response.incomplete" => Finish::Other,
            reason => reason,
        };
        self.ended = true;
        self.blocks.finish(0, out);
        out(Event::Finish { choice: 0, reason });
        if let Some(usage) = whole.usage() {
            out(Event::Usage(usage));
        }
        out(Event::End);
        Ok(())
    }
}

fn nameless() -> Event<'static> {
    Event::Start {
        id: Text::default(),
        model: Text::default(),
        created: 0,
    }
}

#[cfg(test)]
#[path = "tests/decoder.rs"]
mod tests;
