//! Every recorded stream is passed through and translated to every other format, the same wherever it is cut.

use std::collections::BTreeSet;

use bytes::Bytes;
use omniglot::formats::{Framing, Operation, ResponseObserver};
use omniglot::model::{ApiError, Format, Usage};
use omniglot::sse::SseFrames;
use omniglot::translate::{RequestSummary, ResponseTranslator};
use serde_json::Value;

use crate::corpus::{others, recordings, response_options};
use crate::refusals::{BROKEN, is_right};
use crate::usage::{counted, pair};

const LIMIT: usize = 16 << 20;
/// Streams shorter than this are cut at every offset.
const SHORT: usize = 4 << 10;

/// What became of a stream.
#[derive(Debug, PartialEq)]
pub struct StreamResult {
    pub out: Vec<u8>,
    pub api_error: Option<ApiError>,
    pub observer: ResponseObserver,
}

impl StreamResult {
    pub fn start(
        client: Format,
        upstream: Format,
        expected: &RequestSummary,
        mime: &str,
    ) -> ResponseTranslator {
        let request = response_options(&expected.model, true);
        ResponseTranslator::new(client, upstream, expected, request, mime, LIMIT).expect("a stream")
    }

    fn of(mut response: ResponseTranslator, pieces: &[Bytes]) -> StreamResult {
        let (mut out, mut api_error) = (Vec::new(), None);
        for (number, piece) in pieces.iter().enumerate() {
            let mut chunk = Some(piece.clone());
            let pushed = response.translate_chunk(&mut chunk, number + 1 == pieces.len());
            out.extend_from_slice(&chunk.unwrap_or_default());
            if let Err(broken) = pushed {
                out.extend_from_slice(&response.encode_stream_error(&broken));
                api_error = Some(broken);
                break;
            }
        }
        let observer = response.observer().clone();
        StreamResult {
            out,
            api_error,
            observer,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub enum Cuts {
    /// At every offset of short streams, at fifty of longer ones.
    Many,
    Few,
}

/// What a whole stream becomes, after checking that cuts change nothing.
pub fn cut_anywhere(
    name: &str,
    bytes: &Bytes,
    cuts: Cuts,
    start: &dyn Fn() -> ResponseTranslator,
) -> StreamResult {
    let whole = StreamResult::of(start(), std::slice::from_ref(bytes));
    let count = match cuts {
        Cuts::Many if bytes.len() < SHORT => bytes.len(),
        Cuts::Many => 50,
        Cuts::Few => 7,
    };
    for cut in (0..=bytes.len()).step_by((bytes.len() / count).max(1)) {
        let pieces = [bytes.slice(..cut), bytes.slice(cut..)];
        assert!(
            StreamResult::of(start(), &pieces) == whole,
            "{name} cut at {cut}"
        );
    }
    whole
}

pub fn request_summary(format: Format, operation: Operation, model: &str) -> RequestSummary {
    let body = serde_json::json!({
        "model": model, "stream": true, "stream_options": {"include_usage": true},
    });
    let path_model = (format == Format::Native).then_some(model);
    let body = body.to_string();
    RequestSummary::new(format.codec(), operation, path_model, body.as_bytes()).expect("a request")
}

pub fn streamed(format: Format, model: &str) -> RequestSummary {
    let operation = match format {
        Format::Native => Operation::Stream(Framing::Sse),
        Format::Chat | Format::Messages | Format::Responses | Format::Images => Operation::Generate,
    };
    request_summary(format, operation, model)
}

pub fn events(bytes: &[u8]) -> Vec<(String, String)> {
    let mut seen = Vec::new();
    let mut frames = SseFrames::default();
    let mut note = |frame: omniglot::sse::SseFrame<'_>| {
        let data = frame.data.map(|data| data.into_owned());
        seen.extend(data.map(|data| (frame.name.into_owned(), data)));
    };
    frames.push(bytes, &mut note);
    frames.finish(&mut note);
    seen
}

/// The upstream's own names for the model, as the stream says them.
fn models_in(format: Format, events: &[(String, String)]) -> BTreeSet<String> {
    let model = |(_, data): &(String, String)| {
        let observation = format
            .codec()
            .observe_event(data, &mut ResponseObserver::default());
        serde_json::from_str(&data[observation.ok()?.model?]).ok()
    };
    events.iter().filter_map(model).collect()
}

#[test]
fn every_stream_passes_wherever_it_is_cut() {
    let mut passed = 0;
    for recording in recordings() {
        let Some(bytes) = recording.stream.map(Bytes::from) else {
            continue;
        };
        let (format, name) = (recording.format, &recording.name);
        let events = events(&bytes);
        let models = models_in(format, &events);
        let model = models.iter().find(|model| !model.is_empty());
        let expected = streamed(format, model.map_or("m", String::as_str));
        let start = || StreamResult::start(format, format, &expected, "text/event-stream");
        let whole = cut_anywhere(name, &bytes, Cuts::Many, &start);
        assert_eq!(whole.api_error, None, "{name}");
        // One that calls its model by two names cannot be asked for by both.
        assert!(
            whole.out == bytes || models.len() > 1,
            "{name}: bytes changed"
        );
        let payloads: Vec<Value> = events
            .iter()
            .filter_map(|(_, data)| serde_json::from_str(data).ok())
            .collect();
        assert_eq!(
            pair(whole.observer.usage),
            counted(format, &payloads),
            "{name}"
        );
        passed += 1;
    }
    eprintln!("{passed} streams passed");
}

#[test]
fn every_stream_is_translated_wherever_it_is_cut() {
    let (mut relayed, mut wrong) = (0, Vec::new());
    for (number, recording) in recordings().into_iter().enumerate() {
        let Some(bytes) = recording.stream.map(Bytes::from) else {
            continue;
        };
        let format = recording.format;
        let message = {
            let expected = streamed(format, "m");
            let response = StreamResult::start(format, format, &expected, "text/event-stream");
            StreamResult::of(response, std::slice::from_ref(&bytes))
                .observer
                .usage
        };
        for (turn, to) in others(format).enumerate() {
            let name = format!("{} in {}", recording.name, to.name());
            let expected = streamed(to, "m");
            let start = || StreamResult::start(to, format, &expected, "text/event-stream");
            // Cuts concern what comes before the encoder: each stream has one that gets them all.
            let cuts = if number % 3 == turn {
                Cuts::Many
            } else {
                Cuts::Few
            };
            let whole = cut_anywhere(&name, &bytes, cuts, &start);
            relayed += 1;
            wrong.extend(
                ended(format, to, &bytes, &whole, message).map(|why| format!("{name}: {why}")),
            );
        }
    }
    eprintln!("{relayed} streams relayed");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with the end of a relayed stream.
fn ended(
    from: Format,
    to: Format,
    bytes: &[u8],
    whole: &StreamResult,
    told: Option<Usage>,
) -> Option<String> {
    let recorded = String::from_utf8_lossy(bytes);
    match (&whole.api_error, ending(to, &whole.out)) {
        (None, End::Proper) if whole.observer.usage == told => None,
        (None, End::Proper) => Some(format!("usage {:?} for {told:?}", whole.observer.usage)),
        (Some(api_error), End::Error)
            if is_right(BROKEN, from, api_error) || recorded.contains(&api_error.message) =>
        {
            None
        }
        (api_error, end) => Some(format!("{end:?} {api_error:?}")),
    }
}

#[derive(Debug, PartialEq)]
pub enum End {
    Proper,
    Error,
    None,
}

/// How a stream of a format ends.
pub fn ending(format: Format, bytes: &[u8]) -> End {
    let events = events(bytes);
    let last = events.last().map_or("", |(_, data)| data);
    let value: Value = serde_json::from_str(last).unwrap_or_default();
    let kind = value["type"].as_str().unwrap_or_default();
    if value["error"].is_object() || matches!(kind, "error" | "response.failed") {
        return End::Error;
    }
    let proper = match format {
        Format::Chat => last == "[DONE]",
        Format::Messages => kind == "message_stop",
        Format::Responses => matches!(kind, "response.completed" | "response.incomplete"),
        Format::Images => kind.ends_with(".completed"),
        Format::Native => {
            let finished = |(_, data): &(String, String)| {
                data.contains("\"finishReason\"") || data.contains("\"blockReason\"")
            };
            events.iter().any(finished)
        }
    };
    if proper { End::Proper } else { End::None }
}
