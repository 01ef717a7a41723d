//! Citations of texts, and log probabilities of their tokens.

use super::ResponsesStreamEncoder;
use crate::formats::responses::output_items::{OutputContent, OutputItem};
use crate::formats::responses::stream::events::{EventBody, position_of};
use crate::model::{Citation, Logprob};
use crate::sse::SseWriter;

impl ResponsesStreamEncoder {
    pub(super) fn encode_citation(&mut self, citation: Citation<'_>, out: &mut SseWriter) {
        let citation = citation.into_owned();
        if citation.start < self.builder.characters() {
            return self.encode_annotation(citation, out);
        }
        let early = self.early_citations.entry(citation.start).or_default();
        early.push(citation);
    }

    /// Sends the early citations of the text before this character.
    pub(super) fn encode_early_citations(&mut self, end: u64, out: &mut SseWriter) {
        while let Some(first) = self.early_citations.first_entry()
            && *first.key() < end
        {
            for citation in first.remove() {
                self.encode_annotation(citation, out);
            }
        }
    }

    /// Sends an annotation if its text is still open; the final response has all of them.
    fn encode_annotation(&mut self, citation: Citation<'static>, out: &mut SseWriter) {
        let Some(cited) = self.builder.cite(citation) else {
            return;
        };
        if let Some((output_index, item @ OutputItem::Message { content, .. })) =
            self.builder.open_item()
            && (output_index, content.len()) == (cited.item, cited.content + 1)
            && let Some(OutputContent::OutputText { annotations, .. }) = content.last()
        {
            let body = EventBody::Annotation {
                at: position_of(output_index, item),
                content_index: cited.content,
                annotation_index: cited.annotation,
                annotation: &annotations[cited.annotation],
            };
            let name = "response.output_text.annotation.added";
            self.sequence.send(name, body, out);
        }
    }

    pub(super) fn encode_logprob(&mut self, logprob: Logprob<'_>, out: &mut SseWriter) {
        self.builder.add_logprob(logprob.into_owned());
        if let Some((output_index, item @ OutputItem::Message { content, .. })) =
            self.builder.open_item()
            && let Some(OutputContent::OutputText { logprobs, .. }) = content.last()
        {
            let body = EventBody::TextDelta {
                at: position_of(output_index, item),
                content_index: content.len() - 1,
                delta: "",
                logprobs: &logprobs[logprobs.len().saturating_sub(1)..],
            };
            self.sequence.send("response.output_text.delta", body, out);
        }
    }
}
