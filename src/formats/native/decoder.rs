//! Streams of an upstream of this format.
//!
//! Every piece is a whole reply that holds only what is new; blocks are implied by the kinds of
//! its parts. The reason to stop may be repeated and more may follow it, so it is told at the end.

use std::collections::BTreeMap;

use super::candidate::{arguments, report_finish};
use super::error;
use super::grounding::Run;
use super::partial::PartialCall;
use super::response_parts::{CallIn, Candidate, END_ELSEWHERE, Piece, Said, read_finish};
use crate::formats::few::Few;
use crate::formats::{StreamDecoder, read_event};
use crate::model::{
    ApiError, Arguments, Block, Citation, Delta, Event, Finish, Losses, Media, Signature, Text,
    ToolKind, Usage,
};

#[derive(Default)]
pub(super) struct Decoder {
    begun: bool,
    choices: BTreeMap<u32, Progress>,
    usage: Option<Usage>,
    losses: Losses,
}

/// One choice, as far as it has come.
#[derive(Default)]
struct Progress {
    open: Option<Open>,
    /// A call that comes in pieces.
    partial: Option<PartialCall>,
    has_calls: bool,
    /// Words so far, which sources are placed in.
    runs: Vec<Run<'static>>,
    /// Parts so far, neighbours of one kind counted once.
    parts: usize,
    /// Sources so far: later pieces may name them again.
    cited: Vec<Citation<'static>>,
    /// The words that are open have a proof.
    proven: bool,
    /// A proof of words that are still open: it follows them, else it would part them.
    late: Option<Signature<'static>>,
    finish: Option<(String, Option<String>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Words,
    Reasoning,
}

type Out<'o> = &'o mut dyn FnMut(Event<'_>);

impl StreamDecoder for Decoder {
    fn event(&mut self, data: &str, out: Out<'_>) -> Result<(), ApiError> {
        if data == END_ELSEWHERE {
            return Ok(());
        }
        let mut piece: Piece<'_> = read_event(data)?;
        if piece.error.is_some() {
            return Err(error::decode(200, data.as_bytes()));
        }
        let is_silent = piece.candidates.as_ref().is_none_or(Few::is_empty);
        if let Some(words) = piece.blocked().filter(|_| is_silent) {
            self.choices.entry(0).or_default().finish = Some(("SAFETY".to_owned(), Some(words)));
        }
        if let Some(usage) = &piece.usage_metadata {
            self.usage = Some(usage.read());
        }
        if !std::mem::replace(&mut self.begun, true) {
            let created = piece.created();
            out(Event::Start {
                id: piece.response_id.take().unwrap_or_default(),
                model: piece.model_version.take().unwrap_or_default(),
                created,
            });
        }
        for candidate in piece.candidates.iter_mut().flat_map(Few::iter_mut) {
            let choice = candidate.number();
            let progress = self.choices.entry(choice).or_default();
            progress.read(
                candidate,
                &mut Choice {
                    number: choice,
                    out,
                },
            );
        }
        Ok(())
    }

    fn usage_so_far(&self) -> Option<Usage> {
        self.usage
    }

    fn take_losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
    }

    fn close(&mut self, out: Out<'_>) -> Result<(), ApiError> {
        let whole = |progress: &Progress| progress.finish.is_some();
        if self.choices.is_empty() || !self.choices.values().all(whole) {
            let message = "the upstream's stream broke off before its end";
            return Err(ApiError::bad_gateway(message));
        }
        for (number, progress) in std::mem::take(&mut self.choices) {
            let reason = progress.finish.as_ref().map(|(reason, _)| reason.as_str());
            report_finish(number, reason, &mut self.losses);
            progress.finish(&mut Choice { number, out });
        }
        if let Some(usage) = self.usage {
            out(Event::Usage(usage));
        }
        out(Event::End);
        Ok(())
    }
}

/// Where the events of one choice go.
struct Choice<'o> {
    number: u32,
    out: Out<'o>,
}

impl Choice<'_> {
    fn open(&mut self, block: Block<'_>) {
        let choice = self.number;
        (self.out)(Event::Open { choice, block });
    }

    fn delta(&mut self, delta: Delta<'_>) {
        let choice = self.number;
        (self.out)(Event::Delta { choice, delta });
    }

    fn close(&mut self) {
        let choice = self.number;
        (self.out)(Event::Close { choice });
    }
}

impl Progress {
    fn read(&mut self, candidate: &mut Candidate<'_>, out: &mut Choice<'_>) {
        if let Some(reason) = candidate.finish_reason.take() {
            let words = candidate
                .finish_message
                .take()
                .map(|words| words.into_owned());
            self.finish = Some((reason.into_owned(), words));
        }
        let parts = candidate.content.take().and_then(|content| content.parts);
        let parts = parts.unwrap_or_default();
        // What is told of the words belongs to them, so it comes before whatever ends them.
        let words = parts.iter().zip(1..).filter(|(part, _)| part.is_words());
        let words = words.last().map_or(0, |(_, number)| number);
        let mut parts = parts.into_iter();
        for part in parts.by_ref().take(words) {
            let (said, signature) = part.read();
            self.part(said, signature, out);
        }
        self.notes(candidate, out);
        for part in parts {
            let (said, signature) = part.read();
            self.part(said, signature, out);
        }
    }

    /// What is known of the words besides themselves.
    fn notes(&mut self, candidate: &mut Candidate<'_>, out: &mut Choice<'_>) {
        let logprobs = candidate.logprobs_result.take().into_iter();
        for logprob in logprobs.flat_map(|logprobs| logprobs.read()) {
            out.delta(Delta::Logprob(logprob));
        }
        let known = self.cited.len();
        if let Some(grounding) = candidate.grounding_metadata.take() {
            self.cite(known, grounding.citations(&self.runs), out);
        }
        if let Some(metadata) = candidate.citation_metadata.take() {
            self.cite(known, metadata.citations(&self.runs), out);
        }
    }

    /// Those that are not among the first so many.
    fn cite(&mut self, known: usize, citations: Vec<Citation<'_>>, out: &mut Choice<'_>) {
        for citation in citations {
            if !self.cited[..known].contains(&citation) {
                self.cited.push(citation.clone().into_owned());
                out.delta(Delta::Citation(citation));
            }
        }
    }

    fn part(&mut self, said: Said<'_>, signature: Option<Signature<'_>>, out: &mut Choice<'_>) {
        let said = match said {
            Said::Call(call) => return self.call(call, signature, out),
            // It says nothing, not even that the call before it is complete.
            Said::Words(text) if text.is_empty() && signature.is_none() => return,
            other => other,
        };
        self.end_partial(out);
        match said {
            Said::Reasoning(text) => {
                self.enter(Open::Reasoning, out);
                if !text.is_empty() {
                    out.delta(Delta::Text(text));
                }
                if signature.is_some() {
                    self.signature(signature, out);
                }
            }
            Said::Words(text) | Said::Printed(text) => self.sealed_words(text, signature, out),
            Said::Media(media) => {
                self.signature(signature, out);
                self.media(media, out);
            }
            Said::Foreign | Said::Call(_) => self.sealed_words(Text::default(), signature, out),
        }
    }

    /// A block of this kind is open afterwards.
    fn enter(&mut self, kind: Open, out: &mut Choice<'_>) {
        if self.open == Some(kind) {
            return;
        }
        self.leave(out);
        self.parts += 1;
        self.open = Some(kind);
        out.open(match kind {
            Open::Words => Block::Text,
            Open::Reasoning => Block::Reasoning,
        });
    }

    fn leave(&mut self, out: &mut Choice<'_>) {
        if self.open.take().is_some() {
            out.close();
        }
        if let Some(signature) = self.late.take() {
            out.open(Block::Reasoning);
            out.delta(Delta::Signature(signature));
            out.close();
        }
    }

    /// Only thoughts and calls carry a proof: one of other parts goes to the thought before them.
    fn signature(&mut self, signature: Option<Signature<'_>>, out: &mut Choice<'_>) {
        if let Some(signature) = signature {
            self.enter(Open::Reasoning, out);
            out.delta(Delta::Signature(signature));
            self.leave(out);
        }
    }

    /// A proof comes before its words, unless some of them are out: then it waits for the last.
    /// A second one belongs to words of its own.
    fn sealed_words(
        &mut self,
        text: Text<'_>,
        signature: Option<Signature<'_>>,
        out: &mut Choice<'_>,
    ) {
        let goes_on = self.open == Some(Open::Words);
        if goes_on && !(self.proven && signature.is_some()) {
            self.words(text, out);
            self.proven |= signature.is_some();
            self.late = signature.map(Signature::into_owned).or(self.late.take());
        } else {
            self.proven = signature.is_some();
            self.signature(signature, out);
            self.words(text, out);
        }
    }

    fn words(&mut self, text: Text<'_>, out: &mut Choice<'_>) {
        if text.is_empty() {
            return;
        }
        self.enter(Open::Words, out);
        let part = self.parts - 1;
        match self.runs.last_mut() {
            Some(run) if run.part == part => run.text.to_mut().push_str(&text),
            _ => self.runs.push(Run {
                part,
                text: Text::Owned(text.clone().into_owned()),
            }),
        }
        out.delta(Delta::Text(text));
    }

    fn media(&mut self, media: Media<'_>, out: &mut Choice<'_>) {
        self.leave(out);
        self.parts += 1;
        out.open(Block::Media(media));
        out.close();
    }

    fn call(&mut self, call: CallIn<'_>, signature: Option<Signature<'_>>, out: &mut Choice<'_>) {
        let begins = call.name.as_ref().is_some_and(|name| !name.is_empty());
        let continues = call.will_continue == Some(true);
        if begins {
            self.end_partial(out);
        }
        if begins && (continues || call.partial_args.is_some()) {
            self.partial = Some(PartialCall::begin(&call, signature));
        } else if begins {
            let arguments = Arguments::Tree(arguments(call.args)).to_text();
            let id = call.id.filter(|id| !id.is_empty());
            return self.whole_call(id, call.name.unwrap_or_default(), signature, arguments, out);
        }
        if let Some(partial) = &mut self.partial {
            for argument in call.partial_args.into_iter().flatten() {
                partial.add(argument);
            }
            if !continues && !begins {
                self.end_partial(out);
            }
        }
    }

    /// Whatever comes next, the call before it is complete.
    fn end_partial(&mut self, out: &mut Choice<'_>) {
        if let Some(partial) = self.partial.take() {
            let arguments = partial.arguments().into();
            let id = partial.id.map(Text::from);
            self.whole_call(id, partial.name.into(), partial.signature, arguments, out);
        }
    }

    fn whole_call(
        &mut self,
        id: Option<Text<'_>>,
        name: Text<'_>,
        signature: Option<Signature<'_>>,
        arguments: Text<'_>,
        out: &mut Choice<'_>,
    ) {
        self.leave(out);
        self.parts += 1;
        self.has_calls = true;
        let kind = ToolKind::Function;
        out.open(Block::Call { id, name, kind });
        // Some formats must write it before the call itself.
        if let Some(signature) = signature {
            out.delta(Delta::Signature(signature));
        }
        out.delta(Delta::Arguments(arguments));
        out.close();
    }

    fn finish(mut self, out: &mut Choice<'_>) {
        let (reason, words) = self.finish.take().unwrap_or_default();
        let words = words.map(Text::from);
        // A call that was being written when the tokens ran out is no call.
        if read_finish(&reason, None, false) != Finish::Length {
            self.end_partial(out);
        }
        self.leave(out);
        let choice = out.number;
        let reason = read_finish(&reason, words, self.has_calls);
        (out.out)(Event::Finish { choice, reason });
    }
}
