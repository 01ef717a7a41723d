//! The reply in pieces.
//!
//! An item is opened by its first delta and closed by the next item or by the end: only then is it
//! known whether more text follows, which sources it has, and whether it is complete.

use super::draft::{Draft, picture};
use super::error;
use super::events::{Body, Sequence, at, delta_event, done_events};
use super::reply::{COMPLETED, Content, Ending, IN_PROGRESS, Item, Reply, ending};
use super::response::NO_ARGUMENTS;
use crate::formats::{ResponseOptions, StreamEncoder};
use crate::model::{
    ApiError, Block, Citation, Delta, Event, Finish, Logprob, Signature, Text, ToolKind, Usage,
};
use crate::sse::SseWriter;

pub(super) struct Encoder {
    asked: ResponseOptions,
    sequence: Sequence,
    draft: Draft<'static>,
    started: bool,
    ended: bool,
    /// What deltas are for.
    block: Writing,
    /// Seals that came when the call they belong to was already out.
    late: Vec<Signature<'static>>,
    ending: Ending,
    /// A filter's own words, said as the last of the reply.
    filter: Option<String>,
    usage: Option<Usage>,
}

enum Writing {
    Nothing,
    Text,
    Refusal,
    Reasoning {
        begun: bool,
    },
    /// A call that waits for its first delta: its signature would have to be written before it.
    Announced {
        id: Option<Text<'static>>,
        name: Text<'static>,
        kind: ToolKind,
    },
    Call,
}

impl Encoder {
    pub(super) fn new(asked: &ResponseOptions) -> Encoder {
        Encoder {
            asked: asked.clone(),
            sequence: Sequence::default(),
            draft: Draft::new("", "", 0, asked),
            started: false,
            ended: false,
            block: Writing::Nothing,
            late: Vec::new(),
            ending: ending(&Finish::Other),
            filter: None,
            usage: None,
        }
    }

    fn start(&mut self, out: &mut SseWriter) {
        self.started = true;
        for name in ["response.created", "response.in_progress"] {
            let response = &self.draft.reply(IN_PROGRESS, &[]);
            self.sequence.send(name, Body::Response { response }, out);
        }
    }

    fn open(&mut self, block: Block<'_>, out: &mut SseWriter) {
        self.block = match block {
            Block::Text => Writing::Text,
            Block::Refusal => Writing::Refusal,
            Block::Reasoning => Writing::Reasoning { begun: false },
            Block::Call { id, name, kind } => Writing::Announced {
                id: id.map(owned),
                name: owned(name),
                kind,
            },
            Block::Media(media) => {
                if let Some(data) = picture(&media) {
                    self.write_picture(data, out);
                }
                Writing::Nothing
            }
        };
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut SseWriter) {
        match delta {
            Delta::Text(text) => self.write_text(&text, out),
            Delta::Arguments(text) => {
                self.begin_announced(out);
                if matches!(self.block, Writing::Call) {
                    self.grow(&text, out);
                }
            }
            Delta::Signature(signature) => self.write_seal(signature, out),
            Delta::Citation(citation) => self.cite(citation, out),
            Delta::Logprob(logprob) => self.write_logprob(logprob, out),
        }
    }

    fn write_text(&mut self, text: &str, out: &mut SseWriter) {
        if text.is_empty() {
            return;
        }
        match self.block {
            Writing::Text => self.enter_content(Content::text(), out),
            Writing::Refusal => self.enter_content(Content::refusal(), out),
            Writing::Reasoning { .. } => self.enter_summary(out),
            Writing::Nothing | Writing::Announced { .. } | Writing::Call => return,
        }
        self.grow(text, out);
    }

    fn enter_content(&mut self, fresh: Content<'static>, out: &mut SseWriter) {
        if self.draft.continues(&fresh) {
            return;
        }
        if self.draft.in_message() {
            self.finish_part(out);
        } else {
            self.close_item(COMPLETED, out);
            self.draft.begin_message();
            self.announce_item(out);
        }
        self.draft.begin_content(fresh);
        if let Some((output_index, item @ Item::Message { content, .. })) = self.draft.growing()
            && let Some(part) = content.last()
        {
            let body = Body::Content {
                at: at(output_index, item),
                content_index: content.len() - 1,
                part,
            };
            self.sequence.send("response.content_part.added", body, out);
        }
    }

    fn enter_thought(&mut self, signature: Option<&Signature<'_>>, out: &mut SseWriter) {
        if let Writing::Reasoning {
            begun: begun @ false,
        } = &mut self.block
        {
            *begun = true;
            self.close_item(COMPLETED, out);
            self.draft.begin_thought(signature);
            self.announce_item(out);
        }
    }

    fn enter_summary(&mut self, out: &mut SseWriter) {
        self.enter_thought(None, out);
        match self.draft.growing() {
            Some((_, Item::Reasoning { summary, .. })) if summary.is_empty() => {}
            _ => return,
        }
        self.draft.begin_summary();
        if let Some((output_index, item @ Item::Reasoning { summary, .. })) = self.draft.growing()
            && let Some(part) = summary.last()
        {
            let body = Body::Summary {
                at: at(output_index, item),
                summary_index: 0,
                part,
            };
            let name = "response.reasoning_summary_part.added";
            self.sequence.send(name, body, out);
        }
    }

    fn begin_announced(&mut self, out: &mut SseWriter) {
        if let Writing::Announced { id, name, kind } = &mut self.block {
            let (id, name, kind) = (id.take(), std::mem::take(name), *kind);
            self.block = Writing::Call;
            self.close_item(COMPLETED, out);
            self.draft.begin_call(id, name, kind);
            self.announce_item(out);
        }
    }

    fn write_seal(&mut self, signature: Signature<'_>, out: &mut SseWriter) {
        match self.block {
            Writing::Reasoning { .. } => {
                self.enter_thought(Some(&signature), out);
                self.draft.signature(&signature);
            }
            Writing::Announced { .. } => self.write_sealed_item(&signature, out),
            Writing::Call | Writing::Text | Writing::Refusal => self.late.push(Signature {
                issuer: signature.issuer,
                data: owned(signature.data),
            }),
            Writing::Nothing => {}
        }
    }

    /// A thought of which only the signature is to be seen.
    fn write_sealed_item(&mut self, signature: &Signature<'_>, out: &mut SseWriter) {
        self.close_item(COMPLETED, out);
        self.draft.begin_thought(Some(signature));
        self.announce_item(out);
        self.draft.signature(signature);
        self.close_item(COMPLETED, out);
    }

    fn write_picture(&mut self, data: &str, out: &mut SseWriter) {
        self.close_item(COMPLETED, out);
        self.draft.begin_picture();
        self.announce_item(out);
        self.draft.append_piece(data);
        self.close_item(COMPLETED, out);
    }

    /// Only a text that is still open can have its sources announced; the final reply holds all.
    fn cite(&mut self, citation: Citation<'_>, out: &mut SseWriter) {
        let citation = Citation {
            url: owned(citation.url),
            title: citation.title.map(owned),
            start: citation.start,
            end: citation.end,
        };
        let Some(cited) = self.draft.cite(citation) else {
            return;
        };
        if let Some((output_index, item @ Item::Message { content, .. })) = self.draft.growing()
            && (output_index, content.len()) == (cited.item, cited.content + 1)
            && let Some(Content::OutputText { annotations, .. }) = content.last()
        {
            let body = Body::Annotation {
                at: at(output_index, item),
                content_index: cited.content,
                annotation_index: cited.annotation,
                annotation: &annotations[cited.annotation],
            };
            let name = "response.output_text.annotation.added";
            self.sequence.send(name, body, out);
        }
    }

    fn write_logprob(&mut self, logprob: Logprob<'_>, out: &mut SseWriter) {
        let top = logprob.top.into_iter();
        self.draft.add_logprob(Logprob {
            token: owned(logprob.token),
            logprob: logprob.logprob,
            top: top.map(|(token, value)| (owned(token), value)).collect(),
        });
        if let Some((output_index, item @ Item::Message { content, .. })) = self.draft.growing()
            && let Some(Content::OutputText { logprobs, .. }) = content.last()
        {
            let body = Body::TextDelta {
                at: at(output_index, item),
                content_index: content.len() - 1,
                delta: "",
                logprobs: &logprobs[logprobs.len().saturating_sub(1)..],
            };
            self.sequence.send("response.output_text.delta", body, out);
        }
    }

    fn announce_item(&mut self, out: &mut SseWriter) {
        if let Some((output_index, item)) = self.draft.growing() {
            let body = Body::Item { output_index, item };
            self.sequence.send("response.output_item.added", body, out);
        }
    }

    fn grow(&mut self, more: &str, out: &mut SseWriter) {
        let Some((output_index, item)) = self.draft.growing().filter(|_| !more.is_empty()) else {
            return;
        };
        if let Some((name, body)) = delta_event(at(output_index, item), item, more) {
            self.sequence.send(name, body, out);
        }
        self.draft.append_piece(more);
    }

    /// The events that repeat what the deltas said.
    fn finish_part(&mut self, out: &mut SseWriter) {
        let Some((output_index, item)) = self.draft.growing() else {
            return;
        };
        for (name, body) in done_events(at(output_index, item), item)
            .into_iter()
            .flatten()
        {
            self.sequence.send(name, body, out);
        }
    }

    fn close_item(&mut self, status: &'static str, out: &mut SseWriter) {
        if let Some((output_index, item)) = self.draft.growing() {
            if matches!(item, Item::FunctionCall { arguments, .. } if arguments.is_empty()) {
                self.grow(NO_ARGUMENTS, out);
            }
            self.finish_part(out);
            self.draft.close(status);
            if let Some(item) = self.draft.items.last() {
                let body = Body::Item { output_index, item };
                self.sequence.send("response.output_item.done", body, out);
            }
        }
        for signature in std::mem::take(&mut self.late) {
            self.write_sealed_item(&signature, out);
        }
    }

    fn end(&mut self, out: &mut SseWriter) {
        self.ended = true;
        if let Some(words) = self.filter.take() {
            self.block = Writing::Refusal;
            self.write_text(&words, out);
        }
        let (status, incomplete_details) = self.ending;
        self.close_item(status, out);
        let name = match incomplete_details {
            None => "response.completed",
            Some(_) => "response.incomplete",
        };
        let response = &Reply {
            incomplete_details,
            usage: self.usage.map(Into::into),
            ..self.draft.reply(status, &self.draft.items)
        };
        self.sequence.send(name, Body::Response { response }, out);
    }
}

impl StreamEncoder for Encoder {
    fn event(&mut self, event: Event<'_>, out: &mut SseWriter) {
        if self.ended {
            return;
        }
        if !self.started {
            if let Event::Start { id, model, created } = &event {
                self.draft = Draft::new(id, model, *created, &self.asked);
            }
            self.start(out);
        }
        match event {
            Event::Start { .. } => {}
            Event::Usage(usage) => self.usage = Some(usage),
            Event::End => self.end(out),
            // The format has no choices but the first.
            Event::Open { choice: 1.., .. }
            | Event::Delta { choice: 1.., .. }
            | Event::Close { choice: 1.. }
            | Event::Finish { choice: 1.., .. } => {}
            Event::Open { block, .. } => self.open(block, out),
            Event::Delta { delta, .. } => self.delta(delta, out),
            Event::Close { .. } => {
                self.begin_announced(out);
                self.block = Writing::Nothing;
            }
            Event::Finish { reason, .. } => {
                self.ending = ending(&reason);
                if let Finish::Filtered(words) = reason {
                    self.filter = words.map(Text::into_owned);
                }
            }
        }
    }

    fn encode_error(&mut self, api_error: &ApiError, out: &mut SseWriter) {
        if self.ended {
            return;
        }
        if !self.started {
            self.start(out);
        }
        self.ended = true;
        error::encode_in_stream(api_error, self.sequence.next(), out);
        let response = &Reply {
            usage: self.usage.map(Into::into),
            ..self.draft.failed(api_error)
        };
        self.sequence
            .send("response.failed", Body::Response { response }, out);
    }
}

fn owned(text: Text<'_>) -> Text<'static> {
    Text::Owned(text.into_owned())
}

#[cfg(test)]
#[path = "tests/stream.rs"]
mod tests;
