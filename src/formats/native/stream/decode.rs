//! Decoding the stream of an upstream.
//!
//! The format has no blocks: the kinds of the parts imply them. The finish reason may be repeated
//! and more parts may follow it, so its event is sent at the end.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::framing::DONE;
use super::partial_call::PartialCall;
use crate::formats::native::Native;
use crate::formats::native::candidate::UpstreamCandidate;
use crate::formats::native::cited_text::CitedText;
use crate::formats::native::finish_reason::{decode_finish_reason, report_decoded_reason};
use crate::formats::native::known_citations::{CitationBudget, KnownCitations};
use crate::formats::native::response::NativeUpstreamResponse;
use crate::formats::native::response_calls::UpstreamFunctionCall;
use crate::formats::native::response_parts::UpstreamPayload;
use crate::formats::{ErrorCodec, ReportedUsage, StreamDecoder, check_choice, decode_event_data};
use crate::model::{
    ApiError, Block, Delta, Event, Finish, Losses, Media, Signature, Text, ToolKind, Usage,
};

/// Decodes the stream of an upstream into events.
#[derive(Default)]
pub(in crate::formats::native) struct NativeStreamDecoder {
    begun: bool,
    candidates: BTreeMap<u32, CandidateDecoder>,
    citation_budget: CitationBudget,
    usage: Option<Usage>,
    /// What the last chunk has reported of it.
    reported: Option<ReportedUsage>,
    losses: Losses,
}

impl StreamDecoder for NativeStreamDecoder {
    fn decode_event(&mut self, data: &str, out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError> {
        if data == DONE {
            return Ok(());
        }
        let mut chunk: NativeUpstreamResponse<'_> = decode_event_data(data)?;
        if chunk.error.is_some() {
            return Err(Native.decode_error(200, data.as_bytes()));
        }
        let has_no_candidates = chunk.candidates.as_ref().is_none_or(SmallVec::is_empty);
        if let Some(message) = chunk.block_message().filter(|_| has_no_candidates) {
            self.candidates.entry(0).or_default().finish =
                Some(("SAFETY".to_owned(), Some(message)));
        }
        if let Some(usage) = &chunk.usage_metadata {
            self.reported = Some(usage.report(self.usage));
            self.usage = self.reported.map(|report| report.after(self.usage));
        }
        if !std::mem::replace(&mut self.begun, true) {
            let created = chunk.created();
            out(Event::Start {
                id: chunk.response_id.take().unwrap_or_default(),
                model: chunk.model_version.take().unwrap_or_default(),
                created,
            });
        }
        for candidate in chunk.candidates.iter_mut().flatten() {
            let choice = candidate.index();
            check_choice(choice)?;
            let decoder = self.candidates.entry(choice).or_default();
            let out = &mut ChoiceEvents { choice, out };
            decoder.decode_candidate(candidate, &mut self.citation_budget, out);
            if decoder.is_too_deep {
                let message = "the upstream's arguments of a call are nested too deep";
                return Err(ApiError::bad_gateway(message));
            }
        }
        Ok(())
    }

    fn take_usage_report(&mut self) -> Option<ReportedUsage> {
        self.reported.take()
    }

    fn take_losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
    }

    fn held(&self) -> usize {
        self.candidates.values().map(CandidateDecoder::held).sum()
    }

    fn finish(&mut self, out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError> {
        let is_finished = |candidate: &CandidateDecoder| candidate.finish.is_some();
        if self.candidates.is_empty() || !self.candidates.values().all(is_finished) {
            let message = "the upstream's stream ended before its response was complete";
            return Err(ApiError::bad_gateway(message));
        }
        for (choice, candidate) in std::mem::take(&mut self.candidates) {
            let reason = candidate.finish.as_ref().map(|(reason, _)| reason.as_str());
            report_decoded_reason(choice, reason, &mut self.losses);
            candidate.finish(&mut ChoiceEvents { choice, out });
        }
        self.citation_budget.report_losses(&mut self.losses);
        if let Some(usage) = self.usage {
            out(Event::Usage(usage));
        }
        out(Event::End);
        Ok(())
    }
}

/// Sends the events of one choice.
struct ChoiceEvents<'o> {
    choice: u32,
    out: &'o mut dyn FnMut(Event<'_>),
}

impl ChoiceEvents<'_> {
    fn open(&mut self, block: Block<'_>) {
        let choice = self.choice;
        (self.out)(Event::Open { choice, block });
    }

    fn delta(&mut self, delta: Delta<'_>) {
        let choice = self.choice;
        (self.out)(Event::Delta { choice, delta });
    }

    fn close(&mut self) {
        let choice = self.choice;
        (self.out)(Event::Close { choice });
    }
}

/// The state of one candidate.
#[derive(Default)]
struct CandidateDecoder {
    open: Option<OpenBlock>,
    /// A call whose arguments are still coming.
    partial_call: Option<PartialCall>,
    /// An argument of that call is nested too deep.
    is_too_deep: bool,
    has_calls: bool,
    /// The text so far, which citations refer to.
    text: CitedText<'static>,
    /// The number of parts so far; neighbours of one kind count as one.
    parts: usize,
    citations: KnownCitations,
    /// Whether the open text block has a signature.
    has_signature: bool,
    /// The signature of the open text block: it follows the block, as it would split it otherwise.
    deferred_signature: Option<Signature<'static>>,
    finish: Option<(String, Option<String>)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenBlock {
    Text,
    Reasoning,
}

impl CandidateDecoder {
    fn held(&self) -> usize {
        let call = self.partial_call.as_ref().map_or(0, |call| call.held);
        let signature = self.deferred_signature.as_ref();
        let signature = signature.map_or(0, |signature| signature.data.len());
        self.text.held() + self.citations.held() + call + signature
    }

    fn decode_candidate(
        &mut self,
        candidate: &mut UpstreamCandidate<'_>,
        citation_budget: &mut CitationBudget,
        out: &mut ChoiceEvents<'_>,
    ) {
        let reason = candidate.finish_reason.take();
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            let message = candidate
                .finish_message
                .take()
                .map(|message| message.into_owned());
            self.finish = Some((reason.into_owned(), message));
        }
        let parts = candidate.content.take().and_then(|content| content.parts);
        let parts = parts.unwrap_or_default();
        // Annotations belong to the text, so they are sent before a part that ends it.
        let text_parts = parts.iter().zip(1..).filter(|(part, _)| part.is_text());
        let end_of_text = text_parts.last().map_or(0, |(_, number)| number);
        let mut parts = parts.into_iter();
        for part in parts.by_ref().take(end_of_text) {
            let (payload, signature) = part.decode();
            self.decode_part(payload, signature, out);
        }
        self.decode_annotations(candidate, citation_budget, out);
        for part in parts {
            let (payload, signature) = part.decode();
            self.decode_part(payload, signature, out);
        }
    }

    /// Sends the log probabilities and the citations of the text.
    fn decode_annotations(
        &mut self,
        candidate: &mut UpstreamCandidate<'_>,
        citation_budget: &mut CitationBudget,
        out: &mut ChoiceEvents<'_>,
    ) {
        let logprobs = candidate.logprobs_result.take().into_iter();
        for logprob in logprobs.flat_map(|logprobs| logprobs.decode()) {
            out.delta(Delta::Logprob(logprob));
        }
        let citations = self.citations.decode(
            candidate.grounding_metadata.as_deref(),
            candidate.citation_metadata.as_deref(),
            &mut self.text,
            citation_budget,
        );
        for citation in citations {
            out.delta(Delta::Citation(citation));
        }
    }

    fn decode_part(
        &mut self,
        payload: UpstreamPayload<'_>,
        signature: Option<Signature<'_>>,
        out: &mut ChoiceEvents<'_>,
    ) {
        let payload = match payload {
            UpstreamPayload::Call(call) => return self.decode_call(call, signature, out),
            // An empty part does not even mean that the call before it is complete.
            UpstreamPayload::Text(text) if text.is_empty() && signature.is_none() => return,
            other => other,
        };
        self.end_partial_call(out);
        match payload {
            UpstreamPayload::Reasoning(text) => {
                self.open_block(OpenBlock::Reasoning, out);
                if !text.is_empty() {
                    out.delta(Delta::Text(text));
                }
                if signature.is_some() {
                    self.send_signature(signature, out);
                }
            }
            UpstreamPayload::Text(text) | UpstreamPayload::CodeOutput(text) => {
                self.send_signed_text(text, signature, out);
            }
            UpstreamPayload::Media(media) => {
                self.send_signature(signature, out);
                self.send_media(media, out);
            }
            UpstreamPayload::Unsupported | UpstreamPayload::Call(_) => {
                self.send_signed_text(Text::default(), signature, out);
            }
        }
    }

    /// Makes sure that a block of this kind is open.
    fn open_block(&mut self, kind: OpenBlock, out: &mut ChoiceEvents<'_>) {
        if self.open == Some(kind) {
            return;
        }
        self.close_block(out);
        self.parts += 1;
        self.open = Some(kind);
        out.open(match kind {
            OpenBlock::Text => Block::Text,
            OpenBlock::Reasoning => Block::Reasoning,
        });
    }

    fn close_block(&mut self, out: &mut ChoiceEvents<'_>) {
        if self.open.take().is_some() {
            out.close();
        }
        if let Some(signature) = self.deferred_signature.take() {
            out.open(Block::Reasoning);
            out.delta(Delta::Signature(signature));
            out.close();
        }
    }

    /// Sends a signature in a reasoning block: text and media have no signature of their own.
    fn send_signature(&mut self, signature: Option<Signature<'_>>, out: &mut ChoiceEvents<'_>) {
        if let Some(signature) = signature {
            self.open_block(OpenBlock::Reasoning, out);
            out.delta(Delta::Signature(signature));
            self.close_block(out);
        }
    }

    /// Sends text and its signature. The signature stands before its text, or follows it if some of
    /// the text is out already. A second signature begins a new text block.
    fn send_signed_text(
        &mut self,
        text: Text<'_>,
        signature: Option<Signature<'_>>,
        out: &mut ChoiceEvents<'_>,
    ) {
        let continues = self.open == Some(OpenBlock::Text);
        if continues && !(self.has_signature && signature.is_some()) {
            self.send_text(text, out);
            self.has_signature |= signature.is_some();
            let signature = signature.map(Signature::into_owned);
            self.deferred_signature = signature.or(self.deferred_signature.take());
        } else {
            self.has_signature = signature.is_some();
            self.send_signature(signature, out);
            self.send_text(text, out);
        }
    }

    fn send_text(&mut self, text: Text<'_>, out: &mut ChoiceEvents<'_>) {
        if text.is_empty() {
            return;
        }
        self.open_block(OpenBlock::Text, out);
        self.text.extend(self.parts - 1, &text);
        out.delta(Delta::Text(text));
    }

    fn send_media(&mut self, media: Media<'_>, out: &mut ChoiceEvents<'_>) {
        self.close_block(out);
        self.parts += 1;
        out.open(Block::Media(media));
        out.close();
    }

    fn decode_call(
        &mut self,
        call: UpstreamFunctionCall<'_>,
        signature: Option<Signature<'_>>,
        out: &mut ChoiceEvents<'_>,
    ) {
        let begins = call.name.as_ref().is_some_and(|name| !name.is_empty());
        let continues = call.will_continue == Some(true);
        if begins {
            self.end_partial_call(out);
        }
        if begins && (continues || call.partial_args.is_some()) {
            self.partial_call = Some(PartialCall::begin(&call, signature));
        } else if begins {
            let call = call.decode(signature);
            let arguments = call.arguments.to_text();
            return self.send_call(call.id, call.name, call.signature, arguments, out);
        }
        if let Some(partial_call) = &mut self.partial_call {
            for argument in call.partial_args.into_iter().flatten() {
                self.is_too_deep |= partial_call.add(argument).is_err();
            }
            if !continues && !begins {
                self.end_partial_call(out);
            }
        }
    }

    /// Sends the call whose arguments came one by one: the next part or the end completes it.
    fn end_partial_call(&mut self, out: &mut ChoiceEvents<'_>) {
        if let Some(call) = self.partial_call.take() {
            let arguments = call.arguments().into();
            let id = call.id.map(Text::from);
            self.send_call(id, call.name.into(), call.signature, arguments, out);
        }
    }

    fn send_call(
        &mut self,
        id: Option<Text<'_>>,
        name: Text<'_>,
        signature: Option<Signature<'_>>,
        arguments: Text<'_>,
        out: &mut ChoiceEvents<'_>,
    ) {
        self.close_block(out);
        self.parts += 1;
        self.has_calls = true;
        let kind = ToolKind::Function;
        out.open(Block::Call { id, name, kind });
        // Some formats must encode the signature before the call itself.
        if let Some(signature) = signature {
            out.delta(Delta::Signature(signature));
        }
        out.delta(Delta::Arguments(arguments));
        out.close();
    }

    fn finish(mut self, out: &mut ChoiceEvents<'_>) {
        let (reason, message) = self.finish.take().unwrap_or_default();
        let message = message.map(Text::from);
        // A call that was cut off at the token limit is left out.
        if decode_finish_reason(&reason, None, false) != Finish::Length {
            self.end_partial_call(out);
        }
        self.close_block(out);
        let choice = out.choice;
        let reason = decode_finish_reason(&reason, message, self.has_calls);
        (out.out)(Event::Finish { choice, reason });
    }
}
