//! Encodes the events of a response as chunks.

use std::collections::BTreeMap;

use super::chunk::{ChoiceChunks, encode_head, write_usage};
use crate::formats::chat::annotations::ChatAnnotation;
use crate::formats::chat::choice_encoder::ChoiceEncoder;
use crate::formats::chat::delta::{ChatDelta, DeltaSink as _};
use crate::formats::chat::error::encode_stream_error;
use crate::formats::chat::identity::ChatIdentity;
use crate::formats::chat::logprobs::ChatLogprobs;
use crate::formats::chat::reasoning::ReasoningDetails;
use crate::formats::{ResponseOptions, StreamEncoder};
use crate::model::{ApiError, Citation, Delta, Event, Finish, Usage, own};
use crate::sse::SseWriter;

/// Encodes one stream.
pub(in crate::formats::chat) struct ChatStreamEncoder {
    options: ResponseOptions,
    identity: ChatIdentity<'static>,
    /// The identity as JSON, encoded once.
    head: Vec<u8>,
    choices: BTreeMap<u32, StreamedChoice>,
    usage: Option<Usage>,
    is_over: bool,
}

/// A choice, and what of it is delayed to the end.
#[derive(Default)]
struct StreamedChoice {
    encoder: ChoiceEncoder<'static>,
    /// Clients join lists only if they come at once or have numbered entries.
    citations: Vec<Citation<'static>>,
    /// About how many bytes these take.
    citation_bytes: usize,
    /// Nothing of a choice may follow it.
    finish_reason: Option<&'static str>,
}

impl StreamedChoice {
    /// Begins a choice, with the chunk that holds its role.
    fn start(chunks: &mut ChoiceChunks<'_>) -> StreamedChoice {
        chunks.push(ChatDelta {
            role: Some("assistant"),
            content: Some("".into()),
            ..ChatDelta::default()
        });
        StreamedChoice {
            encoder: ChoiceEncoder::new(chunks.choice, ReasoningDetails::default()),
            ..StreamedChoice::default()
        }
    }

    fn encode_event(
        &mut self,
        event: Event<'_>,
        identity: &ChatIdentity<'_>,
        chunks: &mut ChoiceChunks<'_>,
    ) {
        if let Event::Delta { delta, .. } = &event {
            match delta {
                Delta::Citation(citation) => {
                    self.citation_bytes += delta.size();
                    self.citations.push(citation.clone().into_owned());
                }
                Delta::Logprob(logprob) => {
                    let logprobs = ChatLogprobs::new(std::slice::from_ref(logprob));
                    chunks.write(ChatDelta::default(), Some(logprobs), None);
                }
                // A chunk would say nothing.
                Delta::Text(text) | Delta::Arguments(text) if text.is_empty() => return,
                _ => {}
            }
        }
        match event {
            Event::Finish { reason, .. } => {
                self.finish_reason = Some(self.encoder.finish(&reason, chunks));
            }
            event => self.encoder.encode_event(event, identity, chunks),
        }
    }

    /// Encodes what was delayed.
    fn end(&mut self, chunks: &mut ChoiceChunks<'_>) {
        if !self.citations.is_empty() {
            chunks.push(ChatDelta {
                annotations: Some(self.citations.iter().map(ChatAnnotation::new).collect()),
                ..ChatDelta::default()
            });
        }
        let reason = self.finish_reason;
        let reason = reason.unwrap_or_else(|| self.encoder.finish(&Finish::Other, chunks));
        chunks.write(ChatDelta::default(), None, Some(reason));
    }
}

impl ChatStreamEncoder {
    /// Encodes a response to a request with these options.
    pub(in crate::formats::chat) fn new(options: &ResponseOptions) -> ChatStreamEncoder {
        let identity = ChatIdentity::new("".into(), 0, "", options);
        ChatStreamEncoder {
            options: options.clone(),
            head: encode_head(&identity),
            identity,
            choices: BTreeMap::new(),
            usage: None,
            is_over: false,
        }
    }

    /// Encodes what was delayed to the end, the usage and `[DONE]`.
    fn end(&mut self, out: &mut SseWriter) {
        let head = &self.head;
        for (&choice, state) in &mut self.choices {
            state.encoder.close(&mut ChoiceChunks { head, choice, out });
        }
        for (&choice, state) in &mut self.choices {
            state.end(&mut ChoiceChunks { head, choice, out });
        }
        if let Some(usage) = self.usage.filter(|_| self.options.include_usage) {
            write_usage(head, usage.into(), out);
        }
        out.word("[DONE]");
        self.is_over = true;
    }
}

impl StreamEncoder for ChatStreamEncoder {
    fn held(&self) -> usize {
        let choices = self.choices.values();
        choices
            .map(|choice| choice.encoder.held_bytes + choice.citation_bytes)
            .sum()
    }

    fn encode_event(&mut self, event: Event<'_>, out: &mut SseWriter) {
        if self.is_over {
            return;
        }
        let is_end = matches!(event, Event::End);
        let choice = match &event {
            Event::Start { id, model, created } => {
                let id = own(id.clone());
                self.identity = ChatIdentity::new(id, *created, model, &self.options);
                self.head = encode_head(&self.identity);
                0
            }
            Event::Open { choice, .. }
            | Event::Delta { choice, .. }
            | Event::Close { choice }
            | Event::Finish { choice, .. } => *choice,
            Event::Usage(usage) => {
                self.usage = Some(*usage);
                return;
            }
            Event::End => 0,
        };
        let head = &self.head;
        let mut chunks = ChoiceChunks { head, choice, out };
        let entry = self.choices.entry(choice);
        // Clients take the first choice without a check, so it is there from start to end.
        let state = entry.or_insert_with(|| StreamedChoice::start(&mut chunks));
        state.encode_event(event, &self.identity, &mut chunks);
        if is_end {
            self.end(out);
        }
    }

    fn encode_error(&mut self, api_error: &ApiError, out: &mut SseWriter) {
        if !self.is_over {
            encode_stream_error(api_error, out);
            self.is_over = true;
        }
    }
}
