//! `groundingMetadata` and `citationMetadata`: the sources of an answer.
//!
//! The format counts in bytes of a part; the model of the gateway counts in characters of the whole
//! text.

use serde::Serialize;

use crate::json::{Present, from_json};
use crate::model::{Citation, FieldLocation, Losses, Text};

/// A part of the answer that holds text, and its index among all parts.
pub(super) struct TextRun<'a> {
    pub(super) part: usize,
    pub(super) text: Text<'a>,
}

/// Appends streamed text to the run of its part.
pub(super) fn push_text(runs: &mut Vec<TextRun<'static>>, part: usize, text: &str) {
    match runs.last_mut() {
        Some(run) if run.part == part => run.text.to_mut().push_str(text),
        _ => runs.push(TextRun {
            part,
            text: text.to_owned().into(),
        }),
    }
}

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

impl<'a> UpstreamGrounding<'a> {
    /// Decodes one citation for each source of each segment.
    pub(super) fn citations(&self, runs: &[TextRun<'_>]) -> Vec<Citation<'a>> {
        let mut citations = Vec::new();
        for support in self.grounding_supports.iter().flatten() {
            let Some(segment) = &support.segment else {
                continue;
            };
            let part = segment.part_index.unwrap_or_default();
            let start = character_index(runs, part, segment.start_index.unwrap_or_default());
            let end = character_index(runs, part, segment.end_index.unwrap_or_default());
            for &number in support.grounding_chunk_indices.iter().flatten() {
                let source = self.source(number);
                citations.extend(source.and_then(|source| source.cite(start, end)));
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
    pub(super) fn citations(self, runs: &[TextRun<'_>]) -> Vec<Citation<'a>> {
        let sources = self.citation_sources.into_iter().flatten();
        let cite = |cited: UpstreamCitationSource<'a>| {
            let start = character_index(runs, usize::MAX, cited.start_index.unwrap_or_default());
            let end = character_index(runs, usize::MAX, cited.end_index.unwrap_or_default());
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

/// Converts the index of a byte in a part to the index of a character in the whole text. Where the
/// part has no such byte, the index counts through all of the text.
fn character_index(runs: &[TextRun<'_>], part: usize, byte: usize) -> u64 {
    let inside = |run: &TextRun<'_>| run.part == part && byte <= run.text.len();
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

/// Counts the characters that begin within the first `bytes` bytes.
fn count_characters(text: &str, bytes: usize) -> usize {
    let bytes = &text.as_bytes()[..bytes.min(text.len())];
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GroundingSegment {
    #[serde(skip_serializing_if = "Option::is_none")]
    part_index: Option<usize>,
    start_index: usize,
    end_index: usize,
    text: String,
}

/// Encodes citations: one chunk for each address, one support for each citation that refers to text.
pub(super) fn encode_grounding<'a>(
    runs: &[TextRun<'_>],
    citations: &'a [Citation<'_>],
) -> Option<EncodedGrounding<'a>> {
    let mut chunks: Vec<GroundingChunk<'a>> = Vec::new();
    let mut supports = Vec::new();
    for citation in citations {
        let known = chunks
            .iter()
            .position(|chunk| chunk.web.uri == citation.url);
        let number = known.unwrap_or(chunks.len());
        if known.is_none() {
            let web = WebSource {
                uri: &citation.url,
                title: citation.title.as_deref(),
            };
            chunks.push(GroundingChunk { web });
        }
        supports.extend(
            find_segment(runs, citation).map(|segment| GroundingSupport {
                segment,
                grounding_chunk_indices: [number],
            }),
        );
    }
    (!chunks.is_empty()).then_some(EncodedGrounding {
        grounding_chunks: chunks,
        grounding_supports: supports,
    })
}

/// Finds the segment of a citation. It ends with the part in which it begins, as a segment cannot
/// reach into the next part.
fn find_segment(runs: &[TextRun<'_>], citation: &Citation<'_>) -> Option<GroundingSegment> {
    let mut start = usize::try_from(citation.start).ok()?;
    let length = usize::try_from(citation.end.checked_sub(citation.start)?).ok()?;
    for run in runs {
        let characters = run.text.chars().count();
        if start < characters {
            let start_index = byte_index(&run.text, start);
            let rest = &run.text[start_index..];
            let text = &rest[..byte_index(rest, length)];
            return (!text.is_empty()).then(|| GroundingSegment {
                part_index: (run.part > 0).then_some(run.part),
                start_index,
                end_index: start_index + text.len(),
                text: text.to_owned(),
            });
        }
        start -= characters;
    }
    None
}

fn byte_index(text: &str, character: usize) -> usize {
    text.char_indices()
        .nth(character)
        .map_or(text.len(), |(byte, _)| byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Vec<TextRun<'static>> {
        [(1, "Café."), (3, "Über")]
            .map(|(part, text)| TextRun {
                part,
                text: text.into(),
            })
            .into()
    }

    #[test]
    fn a_byte_of_a_part_becomes_a_character_of_the_text() {
        let runs = runs();
        assert_eq!(character_index(&runs, 1, 0), 0);
        assert_eq!(character_index(&runs, 1, 6), 5);
        assert_eq!(character_index(&runs, 3, 2), 6);
        assert_eq!(character_index(&runs, 3, 5), 9);
    }

    #[test]
    fn an_index_into_no_text_part_counts_through_all_of_the_text() {
        let runs = runs();
        assert_eq!(character_index(&runs, 0, 6), 5);
        assert_eq!(character_index(&runs, 0, 8), 6);
        assert_eq!(character_index(&runs, 0, 999), 9);
        assert_eq!(character_index(&[], 0, 3), 0);
    }
}
