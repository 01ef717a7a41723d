//! Sources of an upstream's answer: bytes of a part become characters of the whole text.

use super::grounding::Run;
use crate::json::{Present, from_json};
use crate::model::{Citation, FieldLocation, Losses, Text};

from_json! {
    pub(super) struct GroundingMetadata<'a> {
        "groundingChunks" => grounding_chunks: Option<Vec<Chunk<'a>>>,
        "groundingSupports" => grounding_supports: Option<Vec<Support>>,
        "webSearchQueries" => web_search_queries: Option<Present>,
        "imageSearchQueries" => image_search_queries: Option<Present>,
        "searchEntryPoint" => search_entry_point: Option<Present>,
        "retrievalMetadata" => retrieval_metadata: Option<Present>,
        "googleMapsWidgetContextToken" => google_maps_widget_context_token: Option<Present>,
    }
}

from_json! {
    /// Where it is from, whichever kind of search has found it.
    struct Chunk<'a> {
        "web" => web: Option<Address<'a>>,
        "maps" => maps: Option<Address<'a>>,
        "retrievedContext" => retrieved_context: Option<Address<'a>>,
    }
}

from_json! {
    struct Address<'a> {
        "uri" => uri: Option<Text<'a>>,
        "title" => title: Option<Text<'a>>,
    }
}

from_json! {
    struct Support {
        "segment" => segment: Option<Segment>,
        "groundingChunkIndices" => grounding_chunk_indices: Option<Vec<usize>>,
        "confidenceScores" => confidence_scores: Option<Present>,
    }
}

from_json! {
    /// A first part and a beginning are left out.
    struct Segment {
        "partIndex" => part_index: Option<usize>,
        "startIndex" => start_index: Option<usize>,
        "endIndex" => end_index: Option<usize>,
    }
}

from_json! {
    pub(super) struct CitationMetadata<'a> {
        "citationSources" | "citations" => citation_sources: Option<Vec<CitationSource<'a>>>,
    }
}

from_json! {
    struct CitationSource<'a> {
        "startIndex" => start_index: Option<usize>,
        "endIndex" => end_index: Option<usize>,
        "uri" => uri: Option<Text<'a>>,
        "title" => title: Option<Text<'a>>,
        "license" => license: Option<Present>,
    }
}

impl<'a> Address<'a> {
    fn cite(&self, start: u64, end: u64) -> Option<Citation<'a>> {
        let url = self.uri.as_ref().filter(|uri| !uri.is_empty())?;
        Some(Citation {
            url: url.clone(),
            title: self.title.clone(),
            start,
            end,
        })
    }
}

impl<'a> GroundingMetadata<'a> {
    /// One for each source of each stretch of text.
    pub(super) fn citations(&self, runs: &[Run<'_>]) -> Vec<Citation<'a>> {
        let mut citations = Vec::new();
        for support in self.grounding_supports.iter().flatten() {
            let Some(segment) = &support.segment else {
                continue;
            };
            let part = segment.part_index.unwrap_or_default();
            let start = characters(runs, part, segment.start_index.unwrap_or_default());
            let end = characters(runs, part, segment.end_index.unwrap_or_default());
            for &number in support.grounding_chunk_indices.iter().flatten() {
                let address = self.address(number);
                citations.extend(address.and_then(|address| address.cite(start, end)));
            }
        }
        citations
    }

    fn address(&self, number: usize) -> Option<&Address<'a>> {
        let chunk = self.grounding_chunks.as_ref()?.get(number)?;
        let known = [&chunk.web, &chunk.maps, &chunk.retrieved_context];
        known.into_iter().find_map(Option::as_ref)
    }

    pub(super) fn report(&self, losses: &mut Losses) {
        let supports = || self.grounding_supports.iter().flatten();
        let cited = supports().any(|support| support.grounding_chunk_indices.is_some());
        for (lost, path) in [
            (
                supports().any(|support| support.confidence_scores.is_some()),
                "groundingMetadata.groundingSupports.confidenceScores",
            ),
            (
                self.grounding_chunks.is_some() && !cited,
                "groundingMetadata.groundingChunks",
            ),
            (
                self.web_search_queries.is_some(),
                "groundingMetadata.webSearchQueries",
            ),
            (
                self.image_search_queries.is_some(),
                "groundingMetadata.imageSearchQueries",
            ),
            (
                self.search_entry_point.is_some(),
                "groundingMetadata.searchEntryPoint",
            ),
            (
                self.retrieval_metadata.is_some(),
                "groundingMetadata.retrievalMetadata",
            ),
            (
                self.google_maps_widget_context_token.is_some(),
                "groundingMetadata.googleMapsWidgetContextToken",
            ),
        ] {
            if lost {
                losses.dropped(FieldLocation::Path(path.into()));
            }
        }
    }
}

impl<'a> CitationMetadata<'a> {
    pub(super) fn citations(self, runs: &[Run<'_>]) -> Vec<Citation<'a>> {
        let sources = self.citation_sources.into_iter().flatten();
        let cite = |source: CitationSource<'a>| {
            let start = characters(runs, usize::MAX, source.start_index.unwrap_or_default());
            let end = characters(runs, usize::MAX, source.end_index.unwrap_or_default());
            let address = Address {
                uri: source.uri,
                title: source.title,
            };
            address.cite(start, end)
        };
        sources.filter_map(cite).collect()
    }

    pub(super) fn report(&self, losses: &mut Losses) {
        let mut sources = self.citation_sources.iter().flatten();
        if sources.any(|source| source.license.is_some() || source.uri.is_none()) {
            let path = "citationMetadata.citationSources";
            losses.dropped(FieldLocation::Path(path.into()));
        }
    }
}

/// How many characters stand before a byte of a part. Where that part has no such byte, the
/// upstream counts through all of the text.
fn characters(runs: &[Run<'_>], part: usize, byte: usize) -> u64 {
    let inside = |run: &Run<'_>| run.part == part && byte <= run.text.len();
    let first = runs.iter().position(inside);
    let before = &runs[..first.unwrap_or_default()];
    let mut count: usize = before
        .iter()
        .map(|run| count_characters(&run.text, usize::MAX))
        .sum();
    let mut rest = byte;
    for run in &runs[before.len()..] {
        count += count_characters(&run.text, rest);
        rest = rest.saturating_sub(run.text.len());
    }
    count as u64
}

/// Those that begin within the first so many bytes.
fn count_characters(text: &str, bytes: usize) -> usize {
    let bytes = &text.as_bytes()[..bytes.min(text.len())];
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Vec<Run<'static>> {
        [(1, "Café."), (3, "Über")]
            .map(|(part, text)| Run {
                part,
                text: text.into(),
            })
            .into()
    }

    #[test]
    fn bytes_of_a_part_become_characters_of_the_text() {
        let runs = runs();
        assert_eq!(characters(&runs, 1, 0), 0);
        assert_eq!(characters(&runs, 1, 6), 5);
        assert_eq!(characters(&runs, 3, 2), 6);
        assert_eq!(characters(&runs, 3, 5), 9);
    }

    #[test]
    fn a_part_that_is_not_text_means_all_of_the_text() {
        let runs = runs();
        assert_eq!(characters(&runs, 0, 6), 5);
        assert_eq!(characters(&runs, 0, 8), 6);
        assert_eq!(characters(&runs, 0, 999), 9);
        assert_eq!(characters(&[], 0, 3), 0);
    }
}
