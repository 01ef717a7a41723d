//! Annotations and log probabilities of an output text.

use serde::Serialize;

use super::lenient_object::LenientObject;
use crate::model::{Citation, Json, Logprob, Text};

/// Decodes an annotation; `None`: one that cites no URL.
pub(super) fn decode_annotation<'a>(annotation: Json<'a>) -> Option<Citation<'a>> {
    let mut annotation = LenientObject::of(annotation);
    if annotation.text("type") != "url_citation" {
        return None;
    }
    let title = annotation.text("title");
    Some(Citation {
        url: annotation.text("url"),
        title: Some(title).filter(|title| !title.is_empty()),
        start: annotation.number("start_index"),
        end: annotation.number("end_index"),
    })
}

/// Shifts a citation by the text before it: the format counts from the start of each text, the model from the start
/// of all of them.
pub(super) fn shifted(citation: Citation<'_>, before: u64) -> Citation<'_> {
    Citation {
        start: citation.start.saturating_add(before),
        end: citation.end.saturating_add(before),
        ..citation
    }
}

/// An annotation as it is encoded.
#[derive(Serialize)]
#[serde(tag = "type", rename = "url_citation")]
pub(super) struct UrlCitationAnnotation<'a> {
    start_index: u64,
    end_index: u64,
    url: Text<'a>,
    title: Text<'a>,
}

impl<'a> UrlCitationAnnotation<'a> {
    /// Encodes a citation. `start`: the length of the text before the one that cites.
    pub(super) fn new(citation: Citation<'a>, start: u64) -> UrlCitationAnnotation<'a> {
        UrlCitationAnnotation {
            start_index: citation.start.saturating_sub(start),
            end_index: citation.end.saturating_sub(start),
            url: citation.url,
            title: citation.title.unwrap_or_default(),
        }
    }
}

/// Decodes the log probabilities of a text.
pub(super) fn decode_logprobs<'a>(list: Vec<Json<'a>>) -> Vec<Logprob<'a>> {
    let token = |entry: &mut LenientObject<'a>| {
        let logprob = entry.take("logprob").as_f64().unwrap_or_default();
        (entry.text("token"), logprob)
    };
    list.into_iter()
        .map(|entry| {
            let mut entry = LenientObject::of(entry);
            let top = entry.list("top_logprobs").into_iter();
            let top = top
                .map(|entry| token(&mut LenientObject::of(entry)))
                .collect();
            let (token, logprob) = token(&mut entry);
            Logprob {
                token,
                logprob,
                top,
            }
        })
        .collect()
}

/// The log probability of one token as it is encoded.
#[derive(Serialize)]
pub(super) struct TokenLogprob<'a> {
    #[serde(flatten)]
    token: TokenProbability<'a>,
    top_logprobs: Vec<TokenProbability<'a>>,
}

/// A token and its log probability.
#[derive(Serialize)]
struct TokenProbability<'a> {
    bytes: Vec<u8>,
    logprob: f64,
    token: Text<'a>,
}

impl<'a> From<Logprob<'a>> for TokenLogprob<'a> {
    fn from(logprob: Logprob<'a>) -> TokenLogprob<'a> {
        let token = |(token, logprob): (Text<'a>, f64)| TokenProbability {
            bytes: token.as_bytes().to_vec(),
            logprob,
            token,
        };
        TokenLogprob {
            token: token((logprob.token, logprob.logprob)),
            top_logprobs: logprob.top.into_iter().map(token).collect(),
        }
    }
}
