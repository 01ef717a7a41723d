//! Citations of texts: those that come with the text, and those that only the complete item has.

use super::{Emit, ResponsesStreamDecoder};
use crate::formats::block_sequencer::BlockKey;
use crate::formats::responses::annotations::{decode_annotation, shifted};
use crate::formats::responses::output_items::MessageContent;
use crate::model::{Citation, Delta, Event, Json};

impl ResponsesStreamDecoder {
    pub(super) fn add_annotation(&mut self, part: (u32, u32), annotation: Json<'_>, out: Emit<'_>) {
        let progress = self.items.part(part);
        progress.citations += 1;
        let start = progress.start;
        if let Some(citation) = decode_annotation(annotation) {
            self.add_citation(shifted(citation, start), out);
        }
    }

    /// Passes on a citation, within the text it belongs to if that is still open.
    pub(super) fn add_citation(&mut self, citation: Citation<'_>, out: Emit<'_>) {
        self.start_if_needed(out);
        let delta = Delta::Citation(citation);
        if self.blocks.is_open(0, BlockKey::Text) {
            self.blocks.extend(0, BlockKey::Text, delta, out);
        } else {
            out(Event::Delta { choice: 0, delta });
        }
    }

    pub(super) fn add_late_citations(
        &mut self,
        index: u32,
        content: Vec<MessageContent<'_>>,
        out: Emit<'_>,
    ) {
        for (number, content) in (0u32..).zip(content) {
            if let MessageContent::Text { citations, .. } = content {
                self.add_missing_citations((index, number), citations, out);
            }
        }
    }

    /// Adds the citations of a text that have not come yet.
    pub(super) fn add_missing_citations(
        &mut self,
        part: (u32, u32),
        citations: Vec<Option<Citation<'_>>>,
        out: Emit<'_>,
    ) {
        let progress = self.items.part(part);
        let (start, known) = (progress.start, progress.citations);
        progress.citations = known.max(citations.len());
        for citation in citations.into_iter().skip(known).flatten() {
            self.add_citation(shifted(citation, start), out);
        }
    }
}
