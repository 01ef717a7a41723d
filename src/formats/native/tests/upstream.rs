//! Functions that decode responses of an upstream for the tests.

use serde_json::{Value, json};

use super::Losses;
use crate::formats::native::Native;
use crate::formats::{ResponseCodec as _, StreamCodec as _};
use crate::model::{Action, ApiError, Event, FieldLocation, Fold, Response};

/// Decodes a JSON response, with the paths of what it lost.
pub(super) fn decode_body(
    body: &Value,
) -> Result<(Response<'static>, Vec<(Action, String)>), ApiError> {
    let body = serde_json::to_vec(body).unwrap();
    let mut losses = Losses::default();
    let response = Native.decode_response(&body, &mut losses)?;
    let mut fold = Fold::default();
    response.unfold(&mut |event| fold.push(event));
    let losses = losses.0.into_iter().map(|loss| match loss.location {
        FieldLocation::Path(path) => (loss.action, path.into_owned()),
        other => panic!("a response has no {other:?}"),
    });
    Ok((fold.finish(), losses.collect()))
}

/// Decodes the chunks of a stream into a response.
pub(super) fn decode_stream(chunks: &[Value]) -> Result<Response<'static>, ApiError> {
    let mut decoder = Native.stream_decoder();
    let mut fold = Fold::default();
    let mut grammar = NativeEventGrammar::default();
    let mut out = |event: Event<'_>| {
        grammar.check(&event);
        fold.push(event);
    };
    for chunk in chunks {
        decoder.decode_event(&chunk.to_string(), &mut out)?;
    }
    decoder.finish(&mut out)?;
    assert!(grammar.ended);
    Ok(fold.finish())
}

/// Checks the grammar of events: `Start ( Open Delta* Close | Finish | Usage )* End` for one choice.
#[derive(Default)]
struct NativeEventGrammar {
    begun: bool,
    open: bool,
    ended: bool,
}

impl NativeEventGrammar {
    fn check(&mut self, event: &Event<'_>) {
        assert!(!self.ended, "{event:?} after the end");
        match event {
            Event::Start { .. } => assert!(!std::mem::replace(&mut self.begun, true)),
            Event::Open { .. } => assert!(!std::mem::replace(&mut self.open, true)),
            Event::Close { .. } => assert!(std::mem::replace(&mut self.open, false)),
            Event::Finish { .. } | Event::Usage(_) => assert!(!self.open),
            Event::End => self.ended = true,
            Event::Delta { .. } => {}
        }
        assert!(self.begun);
    }
}

/// A response with one candidate.
pub(super) fn response(parts: Value, reason: &str) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason}],
        "responseId": "r", "modelVersion": "m"})
}
