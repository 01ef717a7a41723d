//! The citations of a response, each decoded once and only as many as it may hold.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};

use super::cited_text::CitedText;
use super::grounding::{UpstreamCitationMetadata, UpstreamGrounding};
use crate::model::{Citation, FieldLocation, Losses};

/// The most bytes that the citations of a response take, with their addresses and titles. A source stands once in this
/// format, but in each of its citations elsewhere: a short response must not become a long one.
const MAX_CITED_BYTES: usize = 1 << 20;

/// What the citations of a response may still take.
pub(super) struct CitationBudget {
    bytes: usize,
    is_exceeded: bool,
}

impl Default for CitationBudget {
    fn default() -> CitationBudget {
        CitationBudget {
            bytes: MAX_CITED_BYTES,
            is_exceeded: false,
        }
    }
}

impl CitationBudget {
    /// Takes a citation with so many bytes of address and title. After one that is too much there is no other.
    fn take(&mut self, bytes: usize) -> bool {
        let rest = self.bytes.checked_sub(size_of::<Citation<'_>>() + bytes);
        self.is_exceeded |= rest.is_none();
        self.bytes = rest.unwrap_or(self.bytes);
        !self.is_exceeded
    }

    pub(super) fn report_losses(&self, losses: &mut Losses) {
        if self.is_exceeded {
            let path = "groundingMetadata.groundingSupports";
            losses.dropped(FieldLocation::Path(path.into()));
        }
    }
}

/// A citation by the hash of its source and its range, since a long address may be cited often.
type CitationKey = (u64, u64, u64);

/// The citations that the chunks of a candidate have had so far: later chunks may repeat them.
#[derive(Default)]
pub(super) struct KnownCitations {
    hasher: RandomState,
    keys: HashSet<CitationKey>,
}

impl KnownCitations {
    /// About how many bytes it takes.
    pub(super) fn held(&self) -> usize {
        2 * self.keys.len() * size_of::<CitationKey>()
    }

    /// Decodes the citations of one chunk that no chunk before had.
    pub(super) fn decode<'a>(
        &mut self,
        grounding: Option<&UpstreamGrounding<'a>>,
        metadata: Option<&UpstreamCitationMetadata<'a>>,
        text: &mut CitedText<'_>,
        budget: &mut CitationBudget,
    ) -> Vec<Citation<'a>> {
        if grounding.is_none() && metadata.is_none() {
            return Vec::new();
        }
        let text = text.indexed();
        let (mut citations, mut keys) = (Vec::new(), Vec::new());
        if let Some(grounding) = grounding {
            let sources: Vec<_> = grounding
                .sources()
                .map(|source| Some((source?, self.hasher.hash_one(source?))))
                .collect();
            for (number, start, end) in grounding.cited_ranges(&text) {
                let Some(Some((source, hash))) = sources.get(number) else {
                    continue;
                };
                let key = (*hash, start, end);
                if self.keys.contains(&key) {
                    continue;
                }
                if !budget.take(source.bytes()) {
                    break;
                }
                keys.push(key);
                citations.push(source.cite(start, end));
            }
        }
        for (source, start, end) in metadata.into_iter().flat_map(|all| all.sources(&text)) {
            let key = (self.hasher.hash_one(source), start, end);
            if !self.keys.contains(&key) {
                keys.push(key);
                citations.push(source.cite(start, end));
            }
        }
        self.keys.extend(keys);
        citations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The citations of metadata of one source that is cited so many times, chunk by chunk.
    fn decoded(address: &str, times: usize, chunks: usize) -> (Vec<usize>, Losses) {
        let metadata = serde_json::json!({
            "groundingChunks": [{"web": {"uri": address}}],
            "groundingSupports": [
                {"segment": {"endIndex": 5}, "groundingChunkIndices": vec![0; times]},
            ],
        });
        let metadata = metadata.to_string();
        let grounding: UpstreamGrounding<'_> =
            crate::json::decode_json(&metadata).expect("metadata");
        let mut text = CitedText::default();
        text.push(0, "Paris is large.".into());
        let (mut known, mut budget) = (KnownCitations::default(), CitationBudget::default());
        let numbers = (0..chunks).map(|_| {
            let citations = known.decode(Some(&grounding), None, &mut text, &mut budget);
            assert!(citations.iter().all(|citation| citation.url == address));
            citations.len()
        });
        let numbers = numbers.collect();
        let mut losses = Losses::default();
        budget.report_losses(&mut losses);
        (numbers, losses)
    }

    #[test]
    fn an_address_is_not_repeated_without_end() {
        for address in ["a", &"a".repeat(10_000)] {
            let each = size_of::<Citation<'_>>() + address.len();
            let (numbers, losses) = decoded(address, 100_000, 1);
            assert_eq!(numbers, [MAX_CITED_BYTES / each]);
            assert_ne!(losses, Losses::default());
        }
        // An address that is too long by itself.
        let (numbers, losses) = decoded(&"a".repeat(MAX_CITED_BYTES), 100_000, 2);
        assert_eq!(numbers, [0, 0]);
        assert_ne!(losses, Losses::default());
    }

    #[test]
    fn citations_that_a_chunk_repeats_are_known() {
        let (numbers, losses) = decoded("https://a.example", 3, 2);
        assert_eq!(numbers, [3, 0]);
        assert_eq!(losses, Losses::default());
    }
}
