//! A reply in pieces: text cut into the planned deltas, each wire event a chunk of its own.

use bytes::Bytes;
use memchr::memmem;

use super::script::Plan;
use crate::formats::{Codec, Framing, ResponseOptions, StreamEncoder};
use crate::model::{ApiError, ApiErrorKind, Block, Delta, Event, Response};
use crate::sse::SseWriter;

/// Arguments come in pieces of so many characters, as models write them.
const ARGUMENT_CHARACTERS: usize = 12;

pub(super) fn pieces(
    codec: &dyn Codec,
    response: &Response<'_>,
    asked: &ResponseOptions,
    plan: &Plan,
) -> Vec<Bytes> {
    let mut telling = Telling {
        encoder: codec.stream_encoder(asked),
        framing: asked.framing,
        writer: SseWriter::default(),
        pieces: Vec::new(),
        deltas_left: plan.stream_error,
        no_end: plan.no_end,
        over: false,
    };
    let mut thinking = false;
    response.unfold(&mut |event| {
        if let Event::Open { block, .. } = &event {
            thinking = *block == Block::Reasoning;
        }
        let count = plan.events.filter(|_| !thinking);
        split_event(event, count, &mut |event| telling.tell(event));
    });
    telling.pieces
}

pub(super) fn broken_off() -> ApiError {
    ApiError::new(
        ApiErrorKind::Internal,
        "The mock broke off, as it was told.",
    )
}

/// Writes events until the plan says otherwise.
struct Telling {
    encoder: Box<dyn StreamEncoder>,
    framing: Framing,
    writer: SseWriter,
    pieces: Vec<Bytes>,
    /// Until the stream fails.
    deltas_left: Option<usize>,
    no_end: bool,
    over: bool,
}

impl Telling {
    fn tell(&mut self, event: Event<'_>) {
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
            self.encoder.encode_error(&broken_off(), &mut self.writer);
        } else if !(ending && self.no_end) {
            self.encoder.encode_event(event, &mut self.writer);
        }
        self.over = failing || (ending && self.no_end);
        self.keep();
    }

    /// One event of the model may be several on the wire.
    fn keep(&mut self) {
        let written = self.writer.take();
        match self.framing {
            Framing::Sse => cut_events(&written, &mut self.pieces),
            Framing::Array if written.is_empty() => {}
            Framing::Array => self.pieces.push(written),
        }
    }
}

/// Payloads are JSON, so a blank line is always the end of an event.
fn cut_events(written: &Bytes, pieces: &mut Vec<Bytes>) {
    let mut start = 0;
    for end in memmem::find_iter(written, b"\n\n") {
        pieces.push(written.slice(start..end + 2));
        start = end + 2;
    }
    if start < written.len() {
        pieces.push(written.slice(start..));
    }
}

/// Hands on every event, the deltas of a block in pieces.
fn split_event(event: Event<'_>, count: Option<usize>, out: &mut dyn FnMut(Event<'_>)) {
    let Event::Delta { choice, delta } = event else {
        return out(event);
    };
    let mut each = |delta| out(Event::Delta { choice, delta });
    match &delta {
        Delta::Text(text) => {
            let pieces = match count {
                Some(count) => split_evenly(text, count),
                None => text.split_inclusive(char::is_whitespace).collect(),
            };
            for piece in pieces {
                each(Delta::Text(piece.into()));
            }
        }
        Delta::Arguments(text) => {
            let count = text.chars().count().div_ceil(ARGUMENT_CHARACTERS);
            for piece in split_evenly(text, count) {
                each(Delta::Arguments(piece.into()));
            }
        }
        other => each(other.clone()),
    }
}

/// As many pieces as asked for, or one a character where the text is too short for that.
/// Pieces end at words when there is a word for each.
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
            let piece = &text[start..end];
            start = end;
            piece
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_splits_into_exactly_the_pieces_asked_for() {
        assert_eq!(
            split_evenly("one two three four", 2),
            ["one two ", "three four"]
        );
        assert_eq!(split_evenly("one two", 3), ["on", "e ", "two"]);
        assert_eq!(split_evenly("äöü", 9), ["ä", "ö", "ü"]);
        assert!(split_evenly("", 3).is_empty());
        let text = "seven wise owls watch in silence";
        for count in 1..=text.len() {
            let pieces = split_evenly(text, count);
            assert_eq!(pieces.len(), count);
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| !piece.is_empty()));
        }
    }

    #[test]
    fn deltas_come_word_by_word_and_arguments_in_short_pieces() {
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
    fn every_wire_event_is_a_piece() {
        let mut pieces = Vec::new();
        let written = Bytes::from_static(b"event: a\ndata: {}\n\ndata: {}\n\n: rest");
        cut_events(&written, &mut pieces);
        assert_eq!(pieces, ["event: a\ndata: {}\n\n", "data: {}\n\n", ": rest"]);
    }
}
