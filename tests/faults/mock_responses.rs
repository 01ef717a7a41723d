//! Responses of the mock, recorded so that the faulty upstream can send them with faults that the mock does not have.

use std::collections::HashMap;

use omniglot_test_support::{FORMATS, Mock, NATIVE_ARRAY, is_end, post, request, stream_events};
use serde_json::Value;

/// Stands in every recorded reply; whoever is answered finds a word of their own in its place.
pub const WORD: &str = "word-0000000";

/// How a reply is framed: one document, events, or the elements of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    Json,
    Events,
    Array,
}

#[derive(Debug, Clone)]
pub struct RecordedResponse {
    pub way: &'static str,
    pub shape: Shape,
    pub status: u16,
    /// The parts that can be told one from the other: events, elements, or the document.
    pub parts: Vec<String>,
}

impl RecordedResponse {
    pub fn content_type(&self) -> &'static str {
        match self.shape {
            Shape::Events => "text/event-stream",
            Shape::Json | Shape::Array => "application/json",
        }
    }

    pub fn text(&self) -> String {
        self.parts.concat()
    }

    /// How many parts come before the mark of a proper end.
    pub fn before_end(&self) -> usize {
        let pieces = stream_events(self.way, &self.text());
        let end = pieces.iter().position(|piece| is_end(self.way, piece));
        end.expect("the mock ends its streams")
    }

    /// Whether a client has been told anything of the answer after so many parts.
    pub fn has_content(&self, parts: usize) -> bool {
        let said = self.parts[..parts].concat();
        said.contains("You") || said.contains(WORD)
    }

    pub fn with_word(&self, word: &str) -> RecordedResponse {
        let mut response = self.clone();
        for part in &mut response.parts {
            *part = part.replace(WORD, word);
        }
        response
    }
}

/// By format, shape and the words that made the mock answer so.
pub struct RecordedResponses(HashMap<(&'static str, Shape, String), RecordedResponse>);

impl RecordedResponses {
    /// Every prompt in every format and shape.
    pub async fn of(mock: &Mock, words: &[String]) -> RecordedResponses {
        let mut all = HashMap::new();
        for (format, _) in FORMATS {
            for shape in [Shape::Json, Shape::Events, Shape::Array] {
                if shape == Shape::Array && format != "native" {
                    continue;
                }
                for words in words {
                    let reply = record(mock, format, shape, words).await;
                    all.insert((format, shape, words.clone()), reply);
                }
            }
        }
        RecordedResponses(all)
    }

    pub fn reply(&self, format: &'static str, shape: Shape, words: &str) -> &RecordedResponse {
        let found = self.0.get(&(format, shape, words.to_owned()));
        found.unwrap_or_else(|| panic!("{format} {shape:?} {words:?} was not recorded"))
    }
}

async fn record(mock: &Mock, format: &'static str, shape: Shape, words: &str) -> RecordedResponse {
    let prompt = format!("{words} {WORD} two");
    let (mut path, body) = request(format, "m", &prompt, shape != Shape::Json);
    if shape == Shape::Array {
        path = path.replace("?alt=sse", "");
    }
    let response = post(mock.url(&path), body.to_string()).await;
    let text = response.text();
    let streamed = response.status == 200;
    let parts = match shape {
        Shape::Events if streamed => text.split_inclusive("\n\n").map(str::to_owned).collect(),
        Shape::Array if streamed => elements(text),
        _ => vec![text.to_owned()],
    };
    RecordedResponse {
        way: if shape == Shape::Array {
            NATIVE_ARRAY
        } else {
            format
        },
        shape,
        status: response.status,
        parts,
    }
}

/// Each element with what stands before it, and the bracket at the end.
fn elements(text: &str) -> Vec<String> {
    let array: Vec<Value> = serde_json::from_str(text).expect("an array");
    let separators = std::iter::once("[").chain(std::iter::repeat(",\n"));
    let elements = separators.zip(&array);
    let mut parts: Vec<String> = elements
        .map(|(before, element)| format!("{before}{element}"))
        .collect();
    parts.push("]".to_owned());
    parts
}
