//! Encoding a stream for a client.

use std::collections::BTreeMap;

use super::framing::ChunkFramer;
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::native::candidate::{ClientCandidate, ClientContent};
use crate::formats::native::cited_text::CitedText;
use crate::formats::native::error;
use crate::formats::native::finish_reason::{encode_finish_reason, is_cut_off};
use crate::formats::native::grounding::encode_grounding;
use crate::formats::native::logprobs::{average_logprob, encode_logprobs};
use crate::formats::native::response::{ClientResponse, PromptFeedback, ResponseIdentity};
use crate::formats::native::response_calls::encode_args;
use crate::formats::native::response_parts::ClientPart;
use crate::formats::native::usage::UsageMetadata;
use crate::formats::{ResponseOptions, StreamEncoder};
use crate::model::{
    ApiError, Arguments, Block, Call, Citation, Delta, Event, Finish, Logprob, Signature, Text,
    Usage, blocked_prompt, own,
};
use crate::sse::SseWriter;

/// Encodes events as the chunks of a stream.
pub(in crate::formats::native) struct NativeStreamEncoder {
    chunks: ChunkWriter,
    candidates: BTreeMap<u32, CandidateEncoder>,
    usage: Option<Usage>,
    hides_reasoning: bool,
    ended: bool,
}

impl StreamEncoder for NativeStreamEncoder {
    fn held(&self) -> usize {
        self.candidates.values().map(CandidateEncoder::held).sum()
    }

    fn encode_event(&mut self, event: Event<'_>, out: &mut SseWriter) {
        if self.ended {
            return;
        }
        match event {
            Event::Start { id, model, created } => self.chunks.start(id, model, created),
            Event::Open { choice, block } => self.open(choice, block, out),
            Event::Delta { choice, delta } => self.encode_delta(choice, delta, out),
            Event::Close { choice } => self.close(choice, out),
            Event::Finish { choice, reason } => self.finish(choice, reason, out),
            Event::Usage(usage) => self.usage = Some(usage),
            Event::End => {
                self.end(out);
                self.ended = true;
            }
        }
    }

    fn encode_error(&mut self, api_error: &ApiError, out: &mut SseWriter) {
        if !std::mem::replace(&mut self.ended, true) {
            self.send_held_refusals(out);
            let body = error::error_body(api_error);
            self.chunks.framer.write_chunk(&body, out);
            self.chunks.framer.close(out);
        }
    }
}

impl NativeStreamEncoder {
    pub(in crate::formats::native) fn new(options: &ResponseOptions) -> NativeStreamEncoder {
        let (model, id, created) = (&options.model, &options.request_id, options.created_at);
        NativeStreamEncoder {
            chunks: ChunkWriter {
                model: model.clone(),
                id: id.clone(),
                created,
                identity: encode_identity(model, created, id),
                framer: ChunkFramer::new(options.framing),
            },
            candidates: BTreeMap::new(),
            usage: None,
            hides_reasoning: options.translation_state.hides_reasoning,
            ended: false,
        }
    }

    fn open(&mut self, index: u32, block: Block<'_>, out: &mut SseWriter) {
        let candidate = self.candidates.entry(index).or_default();
        // A block that follows shows that the response was not cut off in the call before.
        candidate.send_call(index, &mut self.chunks, out);
        candidate.send_held_refusal(index, &mut self.chunks, out);
        match block {
            Block::Text => candidate.open = ClientBlock::Text,
            Block::Refusal => candidate.open = ClientBlock::Refusal,
            Block::Reasoning => candidate.open = ClientBlock::Reasoning,
            Block::Call { id, name, kind } => {
                candidate.open = ClientBlock::Call;
                candidate.call = Some(Call {
                    id: id.map(own),
                    name: own(name),
                    arguments: Arguments::Text(Text::default()),
                    signature: None,
                    kind,
                });
            }
            Block::Media(media) => {
                candidate.open = ClientBlock::Text;
                candidate.count_part(None);
                let hidden = candidate.hidden.take();
                let part = ClientPart::media(&media).signed_with(hidden.as_ref());
                self.chunks.send_part(index, part, out);
            }
        }
    }

    fn encode_delta(&mut self, index: u32, delta: Delta<'_>, out: &mut SseWriter) {
        let candidate = self.candidates.entry(index).or_default();
        if matches!(delta, Delta::Citation(_) | Delta::Logprob(_)) {
            candidate.annotation_bytes += delta.size();
        }
        match (delta, candidate.open) {
            (Delta::Text(text), _) if text.is_empty() => {}
            (Delta::Text(_), ClientBlock::Reasoning) if self.hides_reasoning => {}
            (Delta::Text(text), ClientBlock::Reasoning) => {
                candidate.count_part(Some(ClientBlock::Reasoning));
                let part = ClientPart::reasoning(&text, None);
                self.chunks.send_part(index, part, out);
            }
            (Delta::Text(text), ClientBlock::Refusal) if candidate.may_be_block_reason(&text) => {
                candidate.held_refusal = Some(text.into_owned());
            }
            (Delta::Text(text), _) => {
                candidate.send_held_refusal(index, &mut self.chunks, out);
                candidate.send_text(&text, index, &mut self.chunks, out);
            }
            (Delta::Arguments(more), _) => {
                if let Some(Arguments::Text(text)) =
                    candidate.call.as_mut().map(|call| &mut call.arguments)
                {
                    text.to_mut().push_str(&more);
                }
            }
            (Delta::Signature(signature), ClientBlock::Call) => {
                if let Some(call) = &mut candidate.call {
                    call.signature = Some(signature.into_owned());
                }
            }
            (Delta::Signature(signature), _) if self.hides_reasoning => {
                candidate.send_hidden(index, &mut self.chunks, out);
                candidate.hidden = Some(signature.into_owned());
            }
            (Delta::Signature(signature), _) => {
                candidate.count_part(Some(ClientBlock::Reasoning));
                let part = ClientPart::reasoning("", Some(&signature));
                self.chunks.send_part(index, part, out);
            }
            (Delta::Citation(citation), _) => candidate.citations.push(citation.into_owned()),
            (Delta::Logprob(logprob), _) => candidate.logprobs.push(logprob.into_owned()),
        }
    }

    fn close(&mut self, index: u32, out: &mut SseWriter) {
        let candidate = self.candidates.entry(index).or_default();
        candidate.open = ClientBlock::Text;
        // A call with incomplete arguments waits: the response may have been cut off in it.
        if candidate
            .call
            .as_ref()
            .is_some_and(|call| encode_args(call).is_some())
        {
            candidate.send_call(index, &mut self.chunks, out);
        }
    }

    fn finish(&mut self, index: u32, reason: Finish<'_>, out: &mut SseWriter) {
        let candidate = self.candidates.entry(index).or_default();
        if is_cut_off(&reason) {
            candidate.call = None;
        }
        candidate.send_call(index, &mut self.chunks, out);
        if !matches!(reason, Finish::Filtered(None)) {
            candidate.send_held_refusal(index, &mut self.chunks, out);
        }
        candidate.finish = Some(reason.into_owned());
    }

    fn send_held_refusals(&mut self, out: &mut SseWriter) {
        for (index, candidate) in &mut self.candidates {
            candidate.send_held_refusal(*index, &mut self.chunks, out);
        }
    }

    /// Sends the last chunk: finish reasons, usage, and the citations and log probabilities.
    fn end(&mut self, out: &mut SseWriter) {
        let is_blocked = self.candidates.len() == 1;
        let mut candidates = self.candidates.values();
        let is_blocked = is_blocked && candidates.all(|only| only.block_reason().is_some());
        if !is_blocked {
            self.send_held_refusals(out);
        }
        let mut candidates = self.candidates.values();
        let block_reason = candidates.find_map(CandidateEncoder::block_reason);
        let block_reason = block_reason.filter(|_| is_blocked).map(str::to_owned);
        let candidates = self
            .candidates
            .iter_mut()
            .map(|(index, candidate)| candidate.encode_end(*index));
        let chunk = ClientResponse {
            candidates: block_reason
                .is_none()
                .then(|| candidates.collect::<Vec<_>>()),
            prompt_feedback: block_reason
                .as_deref()
                .map(|block_reason| PromptFeedback { block_reason }),
            usage_metadata: self.usage.map(UsageMetadata::from),
        };
        let ChunkWriter {
            identity, framer, ..
        } = &mut self.chunks;
        framer.write_joined(identity, &chunk, out);
        framer.close(out);
    }
}

/// Writes chunks with the fields that every chunk repeats.
struct ChunkWriter {
    model: String,
    id: String,
    created: i64,
    /// The three as JSON, encoded once.
    identity: Vec<u8>,
    framer: ChunkFramer,
}

impl ChunkWriter {
    /// Takes the identity that the upstream sent; what it left out stays that of the request.
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
        self.identity = encode_identity(&self.model, self.created, &self.id);
    }

    fn send_part(&mut self, index: u32, part: ClientPart<'_>, out: &mut SseWriter) {
        let candidate = ClientCandidate {
            content: ClientContent::new([part]),
            finish_reason: None,
            finish_message: None,
            index,
            grounding_metadata: None,
            avg_logprobs: None,
            logprobs_result: None,
        };
        let chunk = ClientResponse {
            candidates: Some([candidate]),
            prompt_feedback: None,
            usage_metadata: None,
        };
        self.framer.write_joined(&self.identity, &chunk, out);
    }
}

fn encode_identity(model: &str, created: i64, id: &str) -> Vec<u8> {
    to_json_bytes(&ResponseIdentity::new(model, created, id), 0)
}

/// The state of one candidate.
#[derive(Default)]
struct CandidateEncoder {
    open: ClientBlock,
    /// The call that is being received. It is sent complete, and only when it was not cut off.
    call: Option<Call<'static>>,
    /// A refusal that may turn out to be the reason why the prompt was blocked.
    held_refusal: Option<String>,
    /// The signature of hidden reasoning, which is sent on the next part.
    hidden: Option<Signature<'static>>,
    text: CitedText<'static>,
    /// The number of parts so far, as a client counts them that joins neighbouring text.
    parts: usize,
    last_part: Option<ClientBlock>,
    citations: Vec<Citation<'static>>,
    logprobs: Vec<Logprob<'static>>,
    /// About how many bytes these take.
    annotation_bytes: usize,
    finish: Option<Finish<'static>>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum ClientBlock {
    #[default]
    Text,
    Refusal,
    Reasoning,
    Call,
}

impl CandidateEncoder {
    fn held(&self) -> usize {
        let call = self.call.as_ref().map_or(0, |call| match &call.arguments {
            Arguments::Text(text) => text.len(),
            Arguments::Tree(_) => 0,
        });
        let refusal = self.held_refusal.as_ref().map_or(0, String::len);
        self.text.held() + self.annotation_bytes + call + refusal
    }

    fn send_call(&mut self, index: u32, chunks: &mut ChunkWriter, out: &mut SseWriter) {
        if let Some(call) = self.call.take() {
            if call.signature.is_some() {
                self.send_hidden(index, chunks, out);
            }
            self.count_part(None);
            let hidden = self.hidden.take();
            let part = ClientPart::call(&call, encode_args(&call)).signed_with(hidden.as_ref());
            chunks.send_part(index, part, out);
        }
    }

    /// Sends the signature of hidden reasoning in a part of its own.
    fn send_hidden(&mut self, index: u32, chunks: &mut ChunkWriter, out: &mut SseWriter) {
        if let Some(hidden) = self.hidden.take() {
            self.count_part(None);
            chunks.send_part(index, ClientPart::signature(&hidden), out);
        }
    }

    fn send_text(&mut self, text: &str, index: u32, chunks: &mut ChunkWriter, out: &mut SseWriter) {
        let hidden = self.hidden.take();
        // A signed part does not join the one before it.
        if hidden.is_some() {
            self.last_part = None;
        }
        self.add_text(text);
        let part = ClientPart::text(text).signed_with(hidden.as_ref());
        chunks.send_part(index, part, out);
    }

    fn may_be_block_reason(&self, refusal: &str) -> bool {
        self.parts == 0 && self.held_refusal.is_none() && blocked_prompt(refusal).is_some()
    }

    /// Sends a refusal that is not the reason of a blocked prompt after all.
    fn send_held_refusal(&mut self, index: u32, chunks: &mut ChunkWriter, out: &mut SseWriter) {
        if let Some(text) = self.held_refusal.take() {
            self.send_text(&text, index, chunks, out);
        }
    }

    /// The reason why the prompt was blocked, if the candidate has no other content.
    fn block_reason(&self) -> Option<&str> {
        let Some(Finish::Filtered(message)) = &self.finish else {
            return None;
        };
        let message = message.as_deref().or(self.held_refusal.as_deref())?;
        blocked_prompt(message).filter(|_| self.parts == 0)
    }

    /// Counts a part. Neighbours of one kind are one part; `None` is a kind that never joins.
    fn count_part(&mut self, kind: Option<ClientBlock>) {
        if kind.is_none() || self.last_part != kind {
            self.parts += 1;
        }
        self.last_part = kind;
    }

    fn add_text(&mut self, text: &str) {
        self.count_part(Some(ClientBlock::Text));
        self.text.extend(self.parts - 1, text);
    }

    /// Encodes the candidate of the last chunk.
    fn encode_end(&mut self, index: u32) -> ClientCandidate<'_, [ClientPart<'_>; 1]> {
        let finish = self.finish.as_ref().unwrap_or(&Finish::Other);
        let (finish_reason, finish_message) = encode_finish_reason(finish);
        let last = ClientPart::text("").signed_with(self.hidden.as_ref());
        ClientCandidate {
            content: ClientContent::new([last]),
            finish_reason: Some(finish_reason),
            finish_message,
            index,
            grounding_metadata: encode_grounding(&mut self.text, &self.citations),
            avg_logprobs: average_logprob(&self.logprobs),
            logprobs_result: encode_logprobs(&self.logprobs),
        }
    }
}
