//! Encodes a response as a stream: text in the planned deltas, each event as a chunk of its own.

use bytes::Bytes;
use memchr::memmem;

use super::plan::ResponsePlan;
use crate::formats::{Codec, Framing, ResponseOptions, StreamEncoder};
use crate::model::{ApiError, ApiErrorKind, Block, Delta, Event, Response};
use crate::sse::SseWriter;

/// The number of characters of a delta of arguments.
const ARGUMENT_CHARACTERS: usize = 12;

/// Encodes the chunks of a stream.
pub(super) fn encode_chunks(
    codec: &dyn Codec,
    response: &Response<'_>,
    options: &ResponseOptions,
    plan: &ResponsePlan,
) -> Vec<Bytes> {
    let mut chunker = StreamChunker {
        encoder: codec.stream_encoder(options),
        framing: options.framing,
        writer: SseWriter::default(),
        chunks: Vec::new(),
        deltas_left: plan.stream_error,
        no_end: plan.no_end,
        over: false,
    };
    let mut in_reasoning = false;
    response.unfold(&mut |event| {
        if let Event::Open { block, .. } = &event {
            in_reasoning = *block == Block::Reasoning;
        }
        let count = plan.events.filter(|_| !in_reasoning);
        split_event(event, count, &mut |event| chunker.push(event));
    });
    chunker.chunks
}

/// The error that ends a stream by plan.
pub(super) fn planned_error() -> ApiError {
    ApiError::new(
        ApiErrorKind::Internal,
        "The mock broke off, as it was told.",
    )
}

/// Encodes events until the plan ends the stream.
struct StreamChunker {
    encoder: Box<dyn StreamEncoder>,
    framing: Framing,
    writer: SseWriter,
    chunks: Vec<Bytes>,
    /// Until the stream fails.
    deltas_left: Option<usize>,
    no_end: bool,
    over: bool,
}

impl StreamChunker {
    fn push(&mut self, event: Event<'_>) {
        if self.over {
            return;
        }
        let ending = matches!(event, Event::Finish { .. });
        let delta = matches!(event, Event::Delta { .. });
        let failing = match &mut self.deltas_left {
            Some(0) => delta || ending,
            Some(_) if ending => true,
            Some(left) if delta => {
                *left -= 1;
                false
            }
            _ => false,
        };
        if failing {
            self.encoder
                .encode_error(&planned_error(), &mut self.writer);
        } else if !(ending && self.no_end) {
            self.encoder.encode_event(event, &mut self.writer);
        }
        self.over = failing || (ending && self.no_end);
        self.take_chunks();
    }

    /// Takes what was encoded: one event may be several on the wire.
    fn take_chunks(&mut self) {
        let encoded = self.writer.take();
        match self.framing {
            Framing::Sse => split_events(&encoded, &mut self.chunks),
            Framing::Array if encoded.is_empty() => {}
            Framing::Array => self.chunks.push(encoded),
        }
    }
}

/// Splits events at blank lines: payloads are JSON and have none.
fn split_events(encoded: &Bytes, chunks: &mut Vec<Bytes>) {
    let mut start = 0;
    for end in memmem::find_iter(encoded, b"\n\n") {
        chunks.push(encoded.slice(start..end + 2));
        start = end + 2;
    }
    if start < encoded.len() {
        chunks.push(encoded.slice(start..));
    }
}

/// Splits the deltas of text and arguments, and passes on other events.
fn split_event(event: Event<'_>, count: Option<usize>, out: &mut dyn FnMut(Event<'_>)) {
    let Event::Delta { choice, delta } = event else {
        return out(event);
    };
    let mut each = |delta| out(Event::Delta { choice, delta });
    match &delta {
        Delta::Text(text) => {
            let chunks = match count {
                Some(count) => split_evenly(text, count),
                None => text.split_inclusive(char::is_whitespace).collect(),
            };
            for chunk in chunks {
                each(Delta::Text(chunk.into()));
            }
        }
        Delta::Arguments(text) => {
            let count = text.chars().count().div_ceil(ARGUMENT_CHARACTERS);
            for chunk in split_evenly(text, count) {
                each(Delta::Arguments(chunk.into()));
            }
        }
        other => each(other.clone()),
    }
}

/// Splits a text into this many parts, or one per character where it is too short. Parts end at
/// words where there are enough of them.
fn split_evenly(text: &str, count: usize) -> Vec<&str> {
    let word_ends = text
        .split_inclusive(char::is_whitespace)
        .scan(0, |end, word| {
            *end += word.len();
            Some(*end)
        });
    let mut ends: Vec<usize> = word_ends.collect();
    if ends.len() < count {
        let starts = text.char_indices().map(|(start, _)| start);
        ends = starts.skip(1).chain([text.len()]).collect();
    }
    let count = if text.is_empty() {
        0
    } else {
        count.min(ends.len())
    };
    let mut start = 0;
    (1..=count)
        .map(|number| {
            let end = ends[number * ends.len() / count - 1];
            let chunk = &text[start..end];
            start = end;
            chunk
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_splits_into_exactly_as_many_parts() {
        assert_eq!(
            split_evenly("one two three four", 2),
            ["one two ", "three four"]
        );
        assert_eq!(split_evenly("one two", 3), ["on", "e ", "two"]);
        assert_eq!(split_evenly("äöü", 9), ["ä", "ö", "ü"]);
        assert!(split_evenly("", 3).is_empty());
        let text = "seven wise owls watch in silence";
        for count in 1..=text.len() {
            let chunks = split_evenly(text, count);
            assert_eq!(chunks.len(), count);
            assert_eq!(chunks.concat(), text);
            assert!(chunks.iter().all(|chunk| !chunk.is_empty()));
        }
    }

    #[test]
    fn text_is_split_into_words_and_arguments_into_short_deltas() {
        let split = |delta| {
            let mut deltas = Vec::new();
            let event = Event::Delta { choice: 0, delta };
            split_event(event, None, &mut |event| match event {
                Event::Delta {
                    delta: Delta::Text(text) | Delta::Arguments(text),
                    ..
                } => deltas.push(text.into_owned()),
                other => panic!("only deltas, not {other:?}"),
            });
            deltas
        };
        assert_eq!(
            split(Delta::Text("You said: hi".into())),
            ["You ", "said: ", "hi"]
        );
        assert_eq!(
            split(Delta::Arguments(r#"{"city":"Paris"}"#.into())),
            [r#"{"city":"#, r#""Paris"}"#]
        );
    }

    #[test]
    fn every_event_is_a_chunk() {
        let mut chunks = Vec::new();
        let encoded = Bytes::from_static(b"event: a\ndata: {}\n\ndata: {}\n\n: rest");
        split_events(&encoded, &mut chunks);
        assert_eq!(chunks, ["event: a\ndata: {}\n\n", "data: {}\n\n", ": rest"]);
    }
}
