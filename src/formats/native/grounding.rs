//! Sources of the answer: characters of the whole text become bytes of a part.

use serde::Serialize;

use crate::model::{Citation, Text};

/// A part of plain words, and its number among the parts.
pub(super) struct Run<'a> {
    pub(super) part: usize,
    pub(super) text: Text<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Grounding<'a> {
    grounding_chunks: Vec<Chunk<'a>>,
    grounding_supports: Vec<Support>,
}

#[derive(Serialize)]
struct Chunk<'a> {
    web: Web<'a>,
}

#[derive(Serialize)]
struct Web<'a> {
    uri: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Support {
    segment: Segment,
    grounding_chunk_indices: [usize; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Segment {
    #[serde(skip_serializing_if = "Option::is_none")]
    part_index: Option<usize>,
    start_index: usize,
    end_index: usize,
    text: String,
}

/// One chunk per address, one support per citation whose words are there.
pub(super) fn ground<'a>(runs: &[Run<'_>], citations: &'a [Citation<'_>]) -> Option<Grounding<'a>> {
    let mut chunks: Vec<Chunk<'a>> = Vec::new();
    let mut supports = Vec::new();
    for citation in citations {
        let known = chunks
            .iter()
            .position(|chunk| chunk.web.uri == citation.url);
        let number = known.unwrap_or(chunks.len());
        if known.is_none() {
            let web = Web {
                uri: &citation.url,
                title: citation.title.as_deref(),
            };
            chunks.push(Chunk { web });
        }
        supports.extend(locate(runs, citation).map(|segment| Support {
            segment,
            grounding_chunk_indices: [number],
        }));
    }
    (!chunks.is_empty()).then_some(Grounding {
        grounding_chunks: chunks,
        grounding_supports: supports,
    })
}

/// Within the part where it begins: a segment cannot reach into the next one.
fn locate(runs: &[Run<'_>], citation: &Citation<'_>) -> Option<Segment> {
    let mut start = usize::try_from(citation.start).ok()?;
    let length = usize::try_from(citation.end.checked_sub(citation.start)?).ok()?;
    for run in runs {
        let characters = run.text.chars().count();
        if start < characters {
            let start_index = byte_at(&run.text, start);
            let rest = &run.text[start_index..];
            let text = &rest[..byte_at(rest, length)];
            return (!text.is_empty()).then(|| Segment {
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

fn byte_at(text: &str, character: usize) -> usize {
    text.char_indices()
        .nth(character)
        .map_or(text.len(), |(byte, _)| byte)
}
