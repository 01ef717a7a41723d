//! The reply in pieces: every piece is a whole reply that holds only what is new.

use std::collections::BTreeMap;

use super::error;
use super::framing::Framer;
use super::grounding::{Run, ground};
use super::response::{
    Candidate, PromptFeedback, Repeated, Reply, WirePart, average, call_part, content,
    finish_words, is_cut_off, logprobs_result, whole_arguments,
};
use super::usage::UsageMetadata;
use crate::formats::written::written;
use crate::formats::{ResponseOptions, StreamEncoder};
use crate::model::{
    ApiError, Arguments, Block, Call, Citation, Delta, Event, Finish, Logprob, Signature, Text,
    Usage, blocked_prompt,
};
use crate::sse::SseWriter;

pub(super) struct Encoder {
    pieces: Pieces,
    choices: BTreeMap<u32, Progress>,
    usage: Option<Usage>,
    over: bool,
}

/// What all pieces say alike, and the way they go out.
struct Pieces {
    model: String,
    id: String,
    created: i64,
    /// The three as JSON, written once.
    repeated: Vec<u8>,
    framer: Framer,
}

/// One choice, as far as it has come.
#[derive(Default)]
struct Progress {
    open: Open,
    /// A call goes out whole: the one being written, or the last one if it may have been cut off.
    call: Option<Call<'static>>,
    /// A refusal that may turn out to be why the prompt was not let pass.
    held: Option<String>,
    runs: Vec<Run<'static>>,
    /// Parts so far, as a client that joins neighbouring words would number them.
    parts: usize,
    last: Option<Open>,
    citations: Vec<Citation<'static>>,
    logprobs: Vec<Logprob<'static>>,
    finish: Option<Finish<'static>>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Open {
    #[default]
    Words,
    Refusal,
    Reasoning,
    Call,
}

impl Encoder {
    pub(super) fn new(asked: &ResponseOptions) -> Encoder {
        let (model, id, created) = (&asked.model, &asked.request_id, asked.at);
        Encoder {
            pieces: Pieces {
                model: model.clone(),
                id: id.clone(),
                created,
                repeated: repeated(model, created, id),
                framer: Framer::new(asked.framing),
            },
            choices: BTreeMap::new(),
            usage: None,
            over: false,
        }
    }

    fn open(&mut self, number: u32, block: Block<'_>, out: &mut SseWriter) {
        let choice = self.choices.entry(number).or_default();
        // What follows proves that the call before was not the end of the reply.
        choice.send_call(number, &mut self.pieces, out);
        choice.send_held(number, &mut self.pieces, out);
        match block {
            Block::Text => choice.open = Open::Words,
            Block::Refusal => choice.open = Open::Refusal,
            Block::Reasoning => choice.open = Open::Reasoning,
            Block::Call { id, name, kind } => {
                choice.open = Open::Call;
                choice.call = Some(Call {
                    id: id.map(own),
                    name: own(name),
                    arguments: Arguments::Text(Text::default()),
                    signature: None,
                    kind,
                });
            }
            Block::Media(media) => {
                choice.open = Open::Words;
                choice.count(None);
                let part = WirePart::media(&media);
                self.pieces.send(number, part, out);
            }
        }
    }

    fn delta(&mut self, number: u32, delta: Delta<'_>, out: &mut SseWriter) {
        let choice = self.choices.entry(number).or_default();
        match (delta, choice.open) {
            (Delta::Text(text), _) if text.is_empty() => {}
            (Delta::Text(text), Open::Reasoning) => {
                choice.count(Some(Open::Reasoning));
                let part = WirePart::thought(&text, None);
                self.pieces.send(number, part, out);
            }
            (Delta::Text(text), Open::Refusal) if choice.may_be_about_the_prompt(&text) => {
                choice.held = Some(text.into_owned());
            }
            (Delta::Text(text), _) => {
                choice.send_held(number, &mut self.pieces, out);
                choice.add_words(&text);
                self.pieces.send(number, WirePart::words(&text), out);
            }
            (Delta::Arguments(more), _) => {
                if let Some(Arguments::Text(text)) =
                    choice.call.as_mut().map(|call| &mut call.arguments)
                {
                    text.to_mut().push_str(&more);
                }
            }
            (Delta::Signature(signature), Open::Call) => {
                if let Some(call) = &mut choice.call {
                    call.signature = Some(Signature {
                        issuer: signature.issuer,
                        data: own(signature.data),
                    });
                }
            }
            (Delta::Signature(signature), _) => {
                choice.count(Some(Open::Reasoning));
                let part = WirePart::thought("", Some(&signature));
                self.pieces.send(number, part, out);
            }
            (Delta::Citation(citation), _) => choice.citations.push(Citation {
                url: own(citation.url),
                title: citation.title.map(own),
                ..citation
            }),
            (Delta::Logprob(logprob), _) => choice.logprobs.push(Logprob {
                token: own(logprob.token),
                logprob: logprob.logprob,
                top: own_pairs(logprob.top),
            }),
        }
    }

    fn close(&mut self, number: u32, out: &mut SseWriter) {
        let choice = self.choices.entry(number).or_default();
        choice.open = Open::Words;
        // A call with half its arguments waits: the reply may have been cut off right here.
        if choice
            .call
            .as_ref()
            .is_some_and(|call| whole_arguments(call).is_some())
        {
            choice.send_call(number, &mut self.pieces, out);
        }
    }

    fn finish(&mut self, number: u32, reason: Finish<'_>, out: &mut SseWriter) {
        let choice = self.choices.entry(number).or_default();
        if is_cut_off(&reason) {
            choice.call = None;
        }
        choice.send_call(number, &mut self.pieces, out);
        if !matches!(reason, Finish::Filtered(None)) {
            choice.send_held(number, &mut self.pieces, out);
        }
        choice.finish = Some(match reason {
            Finish::Filtered(words) => Finish::Filtered(words.map(own)),
            Finish::StopSequence(_) | Finish::Stop => Finish::Stop,
            Finish::Length => Finish::Length,
            Finish::ContextFull => Finish::ContextFull,
            Finish::Tools => Finish::Tools,
            Finish::Refused => Finish::Refused,
            Finish::Paused => Finish::Paused,
            Finish::MalformedCall => Finish::MalformedCall,
            Finish::Other => Finish::Other,
        });
    }

    fn release(&mut self, out: &mut SseWriter) {
        for (number, choice) in &mut self.choices {
            choice.send_held(*number, &mut self.pieces, out);
        }
    }

    /// The last piece: why it ended, what it cost, and what is known only now.
    fn end(&mut self, out: &mut SseWriter) {
        let is_blocked = self.choices.len() == 1;
        let is_blocked = is_blocked && self.choices.values().all(|only| only.blocked().is_some());
        if !is_blocked {
            self.release(out);
        }
        let blocked = self.choices.values().find_map(Progress::blocked);
        let blocked = blocked.filter(|_| is_blocked);
        let candidates = self
            .choices
            .iter()
            .map(|(index, choice)| choice.last_words(*index));
        let reply = Reply {
            candidates: blocked.is_none().then(|| candidates.collect::<Vec<_>>()),
            prompt_feedback: blocked.map(|block_reason| PromptFeedback { block_reason }),
            usage_metadata: self.usage.map(UsageMetadata::from),
        };
        self.pieces.framer.join(&self.pieces.repeated, &reply, out);
        self.pieces.framer.close(out);
    }
}

impl Pieces {
    /// What the upstream left out stays as it was asked for.
    fn start(&mut self, id: Text<'_>, model: Text<'_>, created: i64) {
        if !id.is_empty() {
            self.id = id.into_owned();
        }
        if !model.is_empty() {
            self.model = model.into_owned();
        }
        if created != 0 {
            self.created = created;
        }
        self.repeated = repeated(&self.model, self.created, &self.id);
    }

    fn send(&mut self, choice: u32, part: WirePart<'_>, out: &mut SseWriter) {
        let candidate = Candidate {
            content: content([part]),
            finish_reason: None,
            finish_message: None,
            index: choice,
            grounding_metadata: None,
            avg_logprobs: None,
            logprobs_result: None,
        };
        let reply = Reply {
            candidates: Some([candidate]),
            prompt_feedback: None,
            usage_metadata: None,
        };
        self.framer.join(&self.repeated, &reply, out);
    }
}

fn repeated(model: &str, created: i64, id: &str) -> Vec<u8> {
    written(&Repeated::new(model, created, id), 0)
}

impl Progress {
    fn send_call(&mut self, number: u32, pieces: &mut Pieces, out: &mut SseWriter) {
        if let Some(call) = self.call.take() {
            self.count(None);
            pieces.send(number, call_part(&call, whole_arguments(&call)), out);
        }
    }

    fn may_be_about_the_prompt(&self, refusal: &str) -> bool {
        self.parts == 0 && self.held.is_none() && blocked_prompt(refusal).is_some()
    }

    /// It was a refusal like any other.
    fn send_held(&mut self, number: u32, pieces: &mut Pieces, out: &mut SseWriter) {
        if let Some(text) = self.held.take() {
            self.add_words(&text);
            pieces.send(number, WirePart::words(&text), out);
        }
    }

    /// Why the prompt was not let pass, if nothing else was said.
    fn blocked(&self) -> Option<&str> {
        let Some(Finish::Filtered(words)) = &self.finish else {
            return None;
        };
        let words = words.as_deref().or(self.held.as_deref())?;
        blocked_prompt(words).filter(|_| self.parts == 0)
    }

    /// Neighbours of one kind are one part, unless they are of no kind that joins.
    fn count(&mut self, kind: Option<Open>) {
        if kind.is_none() || self.last != kind {
            self.parts += 1;
        }
        self.last = kind;
    }

    fn add_words(&mut self, words: &str) {
        self.count(Some(Open::Words));
        let part = self.parts - 1;
        match self.runs.last_mut() {
            Some(run) if run.part == part => run.text.to_mut().push_str(words),
            _ => self.runs.push(Run {
                part,
                text: words.to_owned().into(),
            }),
        }
    }

    fn last_words(&self, index: u32) -> Candidate<'_, [WirePart<'_>; 1]> {
        let finish = self.finish.as_ref().unwrap_or(&Finish::Other);
        let (finish_reason, finish_message) = finish_words(finish);
        Candidate {
            content: content([WirePart::words("")]),
            finish_reason: Some(finish_reason),
            finish_message,
            index,
            grounding_metadata: ground(&self.runs, &self.citations),
            avg_logprobs: average(&self.logprobs),
            logprobs_result: logprobs_result(&self.logprobs),
        }
    }
}

fn own(text: Text<'_>) -> Text<'static> {
    Text::Owned(text.into_owned())
}

fn own_pairs(pairs: Vec<(Text<'_>, f64)>) -> Vec<(Text<'static>, f64)> {
    let own_pair = |(token, value)| (own(token), value);
    pairs.into_iter().map(own_pair).collect()
}

impl StreamEncoder for Encoder {
    fn event(&mut self, event: Event<'_>, out: &mut SseWriter) {
        if self.over {
            return;
        }
        match event {
            Event::Start { id, model, created } => self.pieces.start(id, model, created),
            Event::Open { choice, block } => self.open(choice, block, out),
            Event::Delta { choice, delta } => self.delta(choice, delta, out),
            Event::Close { choice } => self.close(choice, out),
            Event::Finish { choice, reason } => self.finish(choice, reason, out),
            Event::Usage(usage) => self.usage = Some(usage),
            Event::End => {
                self.end(out);
                self.over = true;
            }
        }
    }

    fn encode_error(&mut self, api_error: &ApiError, out: &mut SseWriter) {
        if !std::mem::replace(&mut self.over, true) {
            self.release(out);
            self.pieces.framer.write(&error::body(api_error), out);
            self.pieces.framer.close(out);
        }
    }
}
