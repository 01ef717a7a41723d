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

/// The address of a source, and its title.
#[derive(Clone, Copy, Hash)]
pub(super) struct CitedSource<'s, 'a> {
    url: &'s Text<'a>,
    title: Option<&'s Text<'a>>,
}

impl<'s, 'a> CitedSource<'s, 'a> {
    /// `None` for a source without an address.
    fn new(url: &'s Option<Text<'a>>, title: &'s Option<Text<'a>>) -> Option<CitedSource<'s, 'a>> {
        let url = url.as_ref().filter(|url| !url.is_empty())?;
        let title = title.as_ref();
        Some(CitedSource { url, title })
    }

    /// The bytes of both.
    pub(super) fn bytes(self) -> usize {
        self.url.len() + self.title.map_or(0, |title| title.len())
    }

    /// The citation of a range of characters.
    pub(super) fn cite(self, start: u64, end: u64) -> Citation<'a> {
        Citation {
            url: self.url.clone(),
            title: self.title.cloned(),
            start,
            end,
        }
    }
}

impl<'a> UpstreamGrounding<'a> {
    /// The sources that have an address, by their numbers.
    pub(super) fn sources(&self) -> impl Iterator<Item = Option<CitedSource<'_, 'a>>> {
        self.grounding_chunks.iter().flatten().map(|chunk| {
            let known = [&chunk.web, &chunk.maps, &chunk.retrieved_context];
            let source = known.into_iter().find_map(Option::as_ref)?;
            CitedSource::new(&source.uri, &source.title)
        })
    }

    /// The number of each source of each segment, and the range of characters that it is cited for.
    pub(super) fn cited_ranges(
        &self,
        text: &IndexedText<'_>,
    ) -> impl Iterator<Item = (usize, u64, u64)> {
        let supports = self.grounding_supports.iter().flatten();
        supports.flat_map(move |support| {
            let range = support.segment.as_ref().map(|segment| {
                let part = segment.part_index.unwrap_or_default();
                let character =
                    |byte: Option<usize>| text.character_in_part(part, byte.unwrap_or_default());
                (character(segment.start_index), character(segment.end_index))
            });
            let numbers = support.grounding_chunk_indices.iter().flatten();
            numbers.filter_map(move |number| range.map(|(start, end)| (*number, start, end)))
        })
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
    /// The sources, and the ranges of characters that they are cited for: their indexes count through all of the text.
    pub(super) fn sources(
        &self,
        text: &IndexedText<'_>,
    ) -> impl Iterator<Item = (CitedSource<'_, 'a>, u64, u64)> {
        self.citation_sources.iter().flatten().filter_map(|cited| {
            let character = |byte: Option<usize>| text.character(byte.unwrap_or_default());
            let source = CitedSource::new(&cited.uri, &cited.title)?;
            Some((
                source,
                character(cited.start_index),
                character(cited.end_index),
            ))
        })
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
}
