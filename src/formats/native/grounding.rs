//! `groundingMetadata` and `citationMetadata`: the sources of an answer.
//!
//! The format counts in bytes of a part; the model of the gateway counts in characters of the whole
//! text.

use std::collections::HashMap;

use serde::Serialize;

use super::cited_text::{CitedText, IndexedText, TextSegment};
use crate::json::{Present, from_json};
use crate::model::{Citation, FieldLocation, Losses, Text};

from_json! {
    pub(super) struct UpstreamGrounding<'a> {
        "groundingChunks" => grounding_chunks: Option<Vec<UpstreamGroundingChunk<'a>>>,
        "groundingSupports" => grounding_supports: Option<Vec<UpstreamSupport>>,
        "webSearchQueries" => web_search_queries: Option<Present>,
        "imageSearchQueries" => image_search_queries: Option<Present>,
        "searchEntryPoint" => search_entry_point: Option<Present>,
        "retrievalMetadata" => retrieval_metadata: Option<Present>,
        "googleMapsWidgetContextToken" => google_maps_widget_context_token: Option<Present>,
    }
}

from_json! {
    /// A source, under the key of the search that found it.
    struct UpstreamGroundingChunk<'a> {
        "web" => web: Option<UpstreamSource<'a>>,
        "maps" => maps: Option<UpstreamSource<'a>>,
        "retrievedContext" => retrieved_context: Option<UpstreamSource<'a>>,
    }
}

from_json! {
    struct UpstreamSource<'a> {
        "uri" => uri: Option<Text<'a>>,
        "title" => title: Option<Text<'a>>,
    }
}

from_json! {
    struct UpstreamSupport {
        "segment" => segment: Option<UpstreamSegment>,
        "groundingChunkIndices" => grounding_chunk_indices: Option<Vec<usize>>,
        "confidenceScores" => confidence_scores: Option<Present>,
    }
}

from_json! {
    /// A range of bytes in a part. Indexes of 0 are left out.
    struct UpstreamSegment {
        "partIndex" => part_index: Option<usize>,
        "startIndex" => start_index: Option<usize>,
        "endIndex" => end_index: Option<usize>,
    }
}

from_json! {
    pub(super) struct UpstreamCitationMetadata<'a> {
        "citationSources" | "citations" => citation_sources: Option<Vec<UpstreamCitationSource<'a>>>,
    }
}

from_json! {
    struct UpstreamCitationSource<'a> {
        "startIndex" => start_index: Option<usize>,
        "endIndex" => end_index: Option<usize>,
        "uri" => uri: Option<Text<'a>>,
        "title" => title: Option<Text<'a>>,
        "license" => license: Option<Present>,
    }
}

impl<'a> UpstreamSource<'a> {
    /// The citation of a range of characters; `None` for a source without an address.
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

/// The most bytes of addresses and titles in the citations of a candidate. A source stands once in this format, but in
/// each of its citations elsewhere: a short response must not become a long one.
const MAX_CITED_BYTES: usize = 1 << 20;

/// What the citations of a candidate may still repeat of its sources.
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
    pub(super) fn take(&mut self, citation: &Citation<'_>) -> bool {
        let title = citation.title.as_ref().map_or(0, |title| title.len());
        let rest = self.bytes.checked_sub(citation.url.len() + title);
        self.bytes = rest.unwrap_or(self.bytes);
        self.is_exceeded |= rest.is_none();
        rest.is_some()
    }

    pub(super) fn report_losses(&self, losses: &mut Losses) {
        if self.is_exceeded {
            let path = "groundingMetadata.groundingSupports";
            losses.dropped(FieldLocation::Path(path.into()));
        }
    }
}

impl<'a> UpstreamGrounding<'a> {
    /// Decodes one citation for each source of each segment, and returns those to keep.
    pub(super) fn citations(
        &self,
        text: &IndexedText<'_>,
        mut keep: impl FnMut(&Citation<'_>) -> bool,
    ) -> Vec<Citation<'a>> {
        let mut citations = Vec::new();
        for support in self.grounding_supports.iter().flatten() {
            let Some(segment) = &support.segment else {
                continue;
            };
            let part = segment.part_index.unwrap_or_default();
            let start = text.character_in_part(part, segment.start_index.unwrap_or_default());
            let end = text.character_in_part(part, segment.end_index.unwrap_or_default());
            for &number in support.grounding_chunk_indices.iter().flatten() {
                let source = self.source(number);
                let citation = source.and_then(|source| source.cite(start, end));
                citations.extend(citation.filter(&mut keep));
            }
        }
        citations
    }

    fn source(&self, number: usize) -> Option<&UpstreamSource<'a>> {
        let chunk = self.grounding_chunks.as_ref()?.get(number)?;
        let known = [&chunk.web, &chunk.maps, &chunk.retrieved_context];
        known.into_iter().find_map(Option::as_ref)
    }

    /// Reports the fields that no other format has.
    pub(super) fn report_losses(&self, losses: &mut Losses) {
        let supports = || self.grounding_supports.iter().flatten();
        let cited = supports().any(|support| support.grounding_chunk_indices.is_some());
        for (is_lost, path) in [
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
            if is_lost {
                losses.dropped(FieldLocation::Path(path.into()));
            }
        }
    }
}

impl<'a> UpstreamCitationMetadata<'a> {
    /// Decodes one citation for each source, whose indexes count through all of the text.
    pub(super) fn citations(self, text: &IndexedText<'_>) -> Vec<Citation<'a>> {
        let sources = self.citation_sources.into_iter().flatten();
        let cite = |cited: UpstreamCitationSource<'a>| {
            let start = text.character(cited.start_index.unwrap_or_default());
            let end = text.character(cited.end_index.unwrap_or_default());
            let source = UpstreamSource {
                uri: cited.uri,
                title: cited.title,
            };
            source.cite(start, end)
        };
        sources.filter_map(cite).collect()
    }

    /// Reports the fields that no other format has.
    pub(super) fn report_losses(&self, losses: &mut Losses) {
        let mut sources = self.citation_sources.iter().flatten();
        if sources.any(|source| source.license.is_some() || source.uri.is_none()) {
            let path = "citationMetadata.citationSources";
            losses.dropped(FieldLocation::Path(path.into()));
        }
    }
}

/// The `groundingMetadata` of a response to a client.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EncodedGrounding<'a> {
    grounding_chunks: Vec<GroundingChunk<'a>>,
    grounding_supports: Vec<GroundingSupport>,
}

#[derive(Serialize)]
struct GroundingChunk<'a> {
    web: WebSource<'a>,
}

#[derive(Serialize)]
struct WebSource<'a> {
    uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroundingSupport {
    segment: GroundingSegment,
    grounding_chunk_indices: [usize; 1],
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroundingSegment {
    part_index: Option<usize>,
    start_index: usize,
    end_index: usize,
    text: Option<String>,
}

/// How many times the text may be repeated in its citations. The indexes say the same, and a response
/// must not grow with the product of its text and its citations.
const MAX_REPETITIONS: usize = 4;

/// Encodes citations: one chunk for each address, one support for each citation that refers to text.
pub(super) fn encode_grounding<'a>(
    text: &mut CitedText<'_>,
    citations: &'a [Citation<'_>],
) -> Option<EncodedGrounding<'a>> {
    if citations.is_empty() {
        return None;
    }
    let text = text.indexed();
    let mut chunks: Vec<GroundingChunk<'a>> = Vec::new();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut supports = Vec::new();
    let mut repeatable = text.len() * MAX_REPETITIONS;
    for citation in citations {
        let number = *numbers.entry(&citation.url).or_insert_with(|| {
            let web = WebSource {
                uri: &citation.url,
                title: citation.title.as_deref(),
            };
            chunks.push(GroundingChunk { web });
            chunks.len() - 1
        });
        let segment = text.segment(citation.start, citation.end);
        supports.extend(segment.map(|segment| GroundingSupport {
            segment: encode_segment(&segment, &mut repeatable),
            grounding_chunk_indices: [number],
        }));
    }
    Some(EncodedGrounding {
        grounding_chunks: chunks,
        grounding_supports: supports,
    })
}

fn encode_segment(segment: &TextSegment<'_>, repeatable: &mut usize) -> GroundingSegment {
    let rest = repeatable.checked_sub(segment.text.len());
    *repeatable = rest.unwrap_or(*repeatable);
    GroundingSegment {
        part_index: (segment.part > 0).then_some(segment.part),
        start_index: segment.start,
        end_index: segment.start + segment.text.len(),
        text: rest.map(|_| segment.text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_cited_whole_by_many_citations_is_repeated_a_few_times_only() {
        let mut text = CitedText::default();
        text.push(0, "Paris is large.".into());
        let citation = Citation {
            url: "https://a.example".into(),
            title: None,
            start: 0,
            end: 15,
        };
        let citations = vec![citation; 100];
        let encoded = encode_grounding(&mut text, &citations).expect("citations");
        let repeated = encoded.grounding_supports.iter();
        let repeated = repeated.filter(|support| support.segment.text.is_some());
        assert_eq!(repeated.count(), MAX_REPETITIONS);
        assert_eq!(encoded.grounding_supports.len(), citations.len());
        assert_eq!(encoded.grounding_chunks.len(), 1);
    }

    #[test]
    fn a_long_address_is_not_repeated_without_end() {
        let supports = vec![
            serde_json::json!({"segment": {"endIndex": 5}, "groundingChunkIndices": [0]});
            5000
        ];
        let address = format!("https://a.example/{}", "a".repeat(10_000));
        let metadata = serde_json::json!({
            "groundingChunks": [{"web": {"uri": address}}],
            "groundingSupports": supports,
        });
        let metadata = metadata.to_string();
        let grounding: UpstreamGrounding<'_> =
            crate::json::decode_json(&metadata).expect("metadata");
        let mut text = CitedText::default();
        text.push(0, "Paris is large.".into());
        let mut budget = CitationBudget::default();
        let citations = grounding.citations(&text.indexed(), |citation| budget.take(citation));
        let repeated: usize = citations.iter().map(|citation| citation.url.len()).sum();
        assert!(
            repeated > MAX_CITED_BYTES / 2 && repeated <= MAX_CITED_BYTES,
            "{repeated}"
        );
        let mut losses = Losses::default();
        budget.report_losses(&mut losses);
        assert_ne!(losses, Losses::default());
    }
}
