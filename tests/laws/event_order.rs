//! Streams keep the order of events that their clients rely on, wherever they end.

use omniglot::model::{ApiError, ApiErrorKind, Event, Format};
use omniglot::sse::{SseFrames, SseWriter};
use proptest::prelude::*;
use serde_json::Value;

use crate::many;
use crate::random_events::legal;
use crate::round_trips::response_options;

/// How a stream was ended.
#[derive(Debug, PartialEq)]
enum End {
    Proper,
    ApiError,
}

/// The events of a stream that meets an error before its event number `cut`, with a sign of life
/// before each event whose bit is set.
fn written(
    format: Format,
    events: &[Event<'static>],
    cut: usize,
    silent: u64,
) -> (Vec<Value>, End) {
    let mut encoder = format.codec().stream_encoder(&response_options(true));
    let mut out = SseWriter::default();
    let api_error = ApiError::new(ApiErrorKind::Overloaded, "Overloaded.");
    for (number, event) in events.iter().enumerate() {
        if number == cut {
            encoder.encode_error(&api_error, &mut out);
        }
        if number < cut && silent >> (number % 64) & 1 == 1 {
            format.codec().encode_keep_alive(number > 0, &mut out);
        }
        encoder.encode_event(event.clone(), &mut out);
    }
    // After its end a stream has nothing to say, not even this.
    encoder.encode_error(&api_error, &mut out);
    let mut seen = Vec::new();
    SseFrames::default().push(&out.take(), |frame| {
        let Some(data) = frame.data else {
            assert_eq!(frame.raw, b": ping\n\n");
            return;
        };
        let value: Value = serde_json::from_str(&data).expect("JSON");
        assert_eq!(value["type"], *frame.name, "events carry their name");
        seen.push(value);
    });
    let end = if cut < events.len() {
        End::ApiError
    } else {
        End::Proper
    };
    (seen, end)
}

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap_or_default()
}

fn check_messages(events: &[Value], end: &End) -> Result<(), TestCaseError> {
    let (mut index, mut open, mut started, mut over) = (0, false, false, false);
    let mut last = "";
    for event in events {
        prop_assert!(!over, "{event} after the end");
        match kind(event) {
            "message_start" => prop_assert!(!std::mem::replace(&mut started, true)),
            "ping" => prop_assert!(started),
            "content_block_start" => {
                prop_assert!(started && !std::mem::replace(&mut open, true), "{event}");
                prop_assert_eq!(&event["index"], index);
            }
            "content_block_delta" => {
                prop_assert!(open, "{event}");
                prop_assert_eq!(&event["index"], index);
            }
            "content_block_stop" => {
                prop_assert!(std::mem::replace(&mut open, false), "{event}");
                prop_assert_eq!(&event["index"], index);
                index += 1;
            }
            "message_delta" => prop_assert!(started && !open && last != "message_delta"),
            "message_stop" => {
                prop_assert_eq!(last, "message_delta");
                over = true;
            }
            "error" => over = true,
            other => prop_assert!(false, "an unknown event {other}"),
        }
        last = kind(event);
    }
    let expected = if *end == End::ApiError {
        "error"
    } else {
        "message_stop"
    };
    prop_assert_eq!(last, expected);
    Ok(())
}

/// One item is open at a time, and one part in it; all that is said belongs to them.
fn check_responses(events: &[Value], end: &End) -> Result<(), TestCaseError> {
    let (mut index, mut item, mut part): (_, Option<&Value>, _) = (0, None, false);
    let mut over = false;
    for (number, event) in events.iter().enumerate() {
        prop_assert!(!over, "{event} after the end");
        prop_assert_eq!(&event["sequence_number"], number);
        let name = kind(event).strip_prefix("response.").unwrap_or(kind(event));
        match name {
            "created" => prop_assert_eq!(number, 0),
            "in_progress" => prop_assert_eq!(number, 1),
            "output_item.added" => {
                prop_assert!(number > 1 && item.is_none(), "{event}");
                prop_assert_eq!(&event["output_index"], index);
                item = Some(&event["item"]["id"]);
            }
            "output_item.done" => {
                prop_assert!(!part, "{event}");
                prop_assert_eq!(item.take(), Some(&event["item"]["id"]));
                prop_assert_eq!(&event["output_index"], index);
                index += 1;
            }
            "completed" | "incomplete" | "failed" => {
                prop_assert!(item.is_none() || name == "failed", "{event}");
                let output = event["response"]["output"].as_array().map_or(0, Vec::len);
                prop_assert_eq!(output, index, "{}", event);
                over = true;
            }
            "error" => {}
            _ => {
                prop_assert_eq!(item, Some(&event["item_id"]), "{}", event);
                prop_assert_eq!(&event["output_index"], index);
                match name {
                    "content_part.added" | "reasoning_summary_part.added" => {
                        prop_assert!(!std::mem::replace(&mut part, true), "{event}");
                    }
                    "content_part.done" | "reasoning_summary_part.done" => {
                        prop_assert!(std::mem::replace(&mut part, false), "{event}");
                    }
                    _ => {}
                }
            }
        }
    }
    prop_assert!(over);
    let failed = events
        .last()
        .is_some_and(|event| kind(event) == "response.failed");
    prop_assert_eq!(failed, *end == End::ApiError);
    Ok(())
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn messages_streams_are_in_order(events in legal(), cut in 0usize..40, silent in any::<u64>()) {
        let (seen, end) = written(Format::Messages, &events, cut, silent);
        check_messages(&seen, &end)?;
    }

    #[test]
    fn responses_streams_are_in_order(events in legal(), cut in 0usize..40, silent in any::<u64>()) {
        let (seen, end) = written(Format::Responses, &events, cut, silent);
        check_responses(&seen, &end)?;
    }
}
