//! Every recorded JSON response is decoded, metered and encoded in every format.

use bytes::Bytes;
use omniglot::formats::{Framing, Operation, ResponseObserver, to_json_string};
use omniglot::json::{Edit, replace};
use omniglot::model::{Format, Losses, PartKind, Response};
use omniglot::translate;
use serde_json::Value;

use crate::corpus::{Recording, recordings, response_options};
use crate::streams::{Cuts, StreamResult, cut_anywhere, request_summary};
use crate::usage::{counted, pair};

fn replies() -> impl Iterator<Item = (Recording, Vec<u8>, Value)> {
    recordings().into_iter().filter_map(|mut recording| {
        let body = recording.response.take()?;
        let value = serde_json::from_slice(&body).expect("JSON");
        Some((recording, body, value))
    })
}

#[test]
fn every_response_is_decoded_and_encoded_again() {
    let (mut read, mut wrong) = (0, Vec::new());
    for (recording, body, value) in replies() {
        if recording.status != 200 || value.is_array() {
            continue;
        }
        let mut losses = Losses::default();
        match recording.format.codec().decode_response(&body, &mut losses) {
            Ok(response) => {
                read += 1;
                wrong.extend(encoded_again(&recording, &response));
            }
            Err(api_error) => wrong.push(format!("{}: {api_error:?}", recording.name)),
        }
    }
    eprintln!("{read} replies read");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn encoded_again(recording: &Recording, response: &Response<'_>) -> Vec<String> {
    let mut wrong = Vec::new();
    for to in Format::ALL {
        let name = format!("{} in {}", recording.name, to.name());
        let codec = to.codec();
        let mut losses = Losses::default();
        let encoded = codec.encode_response(response, &response_options("m", false), &mut losses);
        match codec.decode_response(&encoded, &mut Losses::default()) {
            Ok(again) => {
                let (before, after) = (summary(response), summary(&again));
                // Words may come to them: those of a filter, or that there was an image.
                if !after.0.contains(&before.0) || after.1 != before.1 || after.2 != before.2 {
                    wrong.push(format!("{name}: {before:?} became {after:?}"));
                }
            }
            Err(api_error) => wrong.push(format!("{name}: {api_error:?}")),
        }
    }
    wrong
}

/// What every format can say of a reply: the words of its first choice and the names of its calls.
fn summary(response: &Response<'_>) -> (String, Vec<String>, Option<(u64, u64)>) {
    let (mut words, mut calls) = (String::new(), Vec::new());
    for part in response
        .choices
        .iter()
        .take(1)
        .flat_map(|choice| &choice.parts)
    {
        match &part.kind {
            PartKind::Text(text) | PartKind::Refusal(text) => words.push_str(text),
            PartKind::Call(call) => calls.push(call.name.to_string()),
            PartKind::Media(_) | PartKind::Reasoning { .. } | PartKind::Result(_) => {}
        }
    }
    (words, calls, pair(response.usage))
}

#[test]
fn every_error_is_encoded_in_every_format() {
    let mut count = 0;
    for (recording, body, _) in replies() {
        if recording.status == 200 {
            continue;
        }
        count += 1;
        let name = &recording.name;
        let api_error = recording
            .format
            .codec()
            .decode_error(recording.status, &body);
        assert_eq!(api_error.status, recording.status, "{name}: {api_error:?}");
        assert!(
            !api_error.message.is_empty() && !api_error.message.starts_with('{'),
            "{name}: {api_error:?}"
        );
        for to in Format::ALL {
            let (status, told) =
                translate::error(recording.format, to, recording.status, &body, "req_1");
            assert_eq!(status, recording.status, "{name}");
            let told: Value = serde_json::from_slice(&told).expect("JSON");
            assert_eq!(told["error"]["message"], api_error.message, "{name}");
        }
    }
    eprintln!("{count} errors");
}

#[test]
fn passed_responses_are_metered_and_unchanged() {
    for (recording, body, value) in replies() {
        if recording.status != 200 || value.is_array() {
            continue;
        }
        let (codec, name) = (recording.format.codec(), &recording.name);
        let mut observer = ResponseObserver::default();
        let Ok(observation) = codec.observe_response(&body, &mut observer) else {
            panic!("{name} does not pass");
        };
        assert_eq!(
            pair(observer.usage),
            counted(recording.format, [&value]),
            "{name}"
        );
        if let Ok(response) = codec.decode_response(&body, &mut Losses::default()) {
            assert_eq!(observer.usage, response.usage, "{name}");
            // The native format says which version answered, not which model was asked.
            let named = recording.format != Format::Native && !response.model.is_empty();
            assert_eq!(observation.model.is_some(), named, "{name}");
        }
        let Some(range) = observation.model else {
            continue;
        };
        let same = body[range.clone()].to_vec();
        let other = to_json_string("another");
        let passed = replace(
            &body,
            &[Edit {
                range: range.clone(),
                with: other.clone(),
            }],
        );
        let back = range.start..range.start + other.len();
        assert_eq!(
            replace(
                &passed,
                &[Edit {
                    range: back,
                    with: same
                }]
            ),
            body,
            "{name}"
        );
        let renamed: Value = serde_json::from_slice(&passed).expect("JSON");
        assert_eq!(renamed["model"], "another", "{name}");
    }
}

#[test]
fn an_array_stream_passes_wherever_it_is_cut() {
    for (recording, body, value) in replies() {
        let Some(elements) = value.as_array() else {
            continue;
        };
        let name = &recording.name;
        let format = recording.format;
        let operation = Operation::Stream(Framing::Array);
        let expected = request_summary(format, operation, "m");
        let start = || StreamResult::start(format, format, &expected, "application/json");
        let body = Bytes::from(body);
        let whole = cut_anywhere(name, &body, Cuts::Many, &start);
        assert_eq!(whole.out, body, "{name}");
        assert_eq!(whole.api_error, None, "{name}");
        assert_eq!(
            pair(whole.observer.usage),
            counted(format, elements),
            "{name}"
        );
    }
}
