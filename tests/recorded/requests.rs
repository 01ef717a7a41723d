//! Every recorded request is decoded or refused with a reason, and encoded in the other formats.

use bytes::Bytes;
use omniglot::formats::{Capabilities, Operation, RequestHead, UpstreamTarget};
use omniglot::model::{Format, Losses, Request};
use omniglot::translate::{self, RequestSummary};
use serde_json::Value;

use crate::corpus::{Recording, others, recordings};
use crate::refusals::{BEYOND_THE_RULES, DECODED, ENCODED, is_right};

fn head(recording: &Recording) -> RequestHead<'_> {
    RequestHead {
        path_model: (recording.format == Format::Native).then_some(&recording.model),
        stream: recording.path_streams,
        text_only: false,
        ..RequestHead::default()
    }
}

#[test]
fn every_request_is_decoded_or_refused_with_a_reason() {
    let (mut read, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    for recording in recordings() {
        let Some(body) = &recording.request else {
            continue;
        };
        let codec = recording.format.codec();
        match codec.decode_request(&head(&recording), body, &mut Losses::default()) {
            Ok(request) => {
                read += 1;
                wrong.extend(encoded_in_others(&recording, body, &request));
            }
            Err(api_error) => {
                let line = format!(
                    "{}: {:?} {}",
                    recording.name, api_error.param, api_error.message
                );
                let right = is_right(DECODED, recording.format, &api_error);
                if !right || api_error.status != 400 || api_error.message.is_empty() {
                    wrong.push(line.clone());
                }
                refused.push(line);
            }
        }
    }
    eprintln!(
        "{read} requests read, {} refused:\n{}",
        refused.len(),
        refused.join("\n")
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with the request in the words of every other format.
fn encoded_in_others(recording: &Recording, body: &[u8], request: &Request<'_>) -> Vec<String> {
    let capabilities = Capabilities::default();
    let mut wrong = Vec::new();
    for to in others(recording.format) {
        let target = UpstreamTarget {
            model: &recording.model,
            stream: recording.path_streams,
            max_output_tokens: None,
            capabilities: &capabilities,
            brand: "vendor",
            images_only: false,
        };
        let mut losses = Losses::default();
        let (from, head) = (recording.format, head(recording));
        let name = format!("{} in {}", recording.name, to.name());
        match translate::request(from, to, &head, body, &target, &mut losses) {
            Ok(encoded) => {
                let again = RequestHead {
                    path_model: (to == Format::Native).then_some(&recording.model),
                    stream: target.stream,
                    text_only: false,
                    ..RequestHead::default()
                };
                wrong.extend(
                    decoded_again(to, &again, &encoded.body, request)
                        .map(|why| format!("{name}: {why}")),
                );
            }
            Err(api_error) => {
                let right = is_right(ENCODED, recording.format, &api_error);
                if api_error.status != 400 || api_error.param.is_none() || !right {
                    wrong.push(format!(
                        "{name}: {:?} {}",
                        api_error.param, api_error.message
                    ));
                }
            }
        }
        for lost in &losses.0 {
            assert_ne!(from.codec().path_of(&lost.location), "", "{name}: {lost:?}");
        }
    }
    wrong
}

/// An upstream must understand what we send: our own decoder of its format stands in for it.
fn decoded_again(
    to: Format,
    head: &RequestHead<'_>,
    body: &[u8],
    request: &Request<'_>,
) -> Option<String> {
    if let Err(error) = serde_json::from_slice::<Value>(body) {
        return Some(error.to_string());
    }
    match to
        .codec()
        .decode_request(head, body, &mut Losses::default())
    {
        Ok(again) if again.turns.is_empty() != request.turns.is_empty() => {
            Some("turns are gone".to_owned())
        }
        Ok(_) => None,
        Err(api_error) => Some(format!(
            "not read again: {:?} {}",
            api_error.param, api_error.message
        )),
    }
}

/// What passes unchanged is held against the rules too: they must not refuse what upstreams take.
#[test]
fn requests_that_an_upstream_accepted_keep_the_rules() {
    let mut wrong = Vec::new();
    for recording in recordings() {
        let Some(body) = recording
            .request
            .as_ref()
            .filter(|_| recording.status == 200)
        else {
            continue;
        };
        let inspected = recording
            .format
            .codec()
            .check_passthrough(&head(&recording), body, true);
        if let Err(api_error) = inspected
            && !is_right(BEYOND_THE_RULES, recording.format, &api_error)
        {
            wrong.push(format!("{}: {}", recording.name, api_error.message));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_request_can_be_counted_in_every_format_that_can_encode_it() {
    let capabilities = Capabilities::default();
    for recording in recordings() {
        let (from, name) = (recording.format, &recording.name);
        let (Some(body), Some(_)) = (&recording.request, from.codec().token_counter()) else {
            continue;
        };
        let target = UpstreamTarget {
            model: &recording.model,
            stream: false,
            max_output_tokens: None,
            capabilities: &capabilities,
            brand: "vendor",
            images_only: false,
        };
        for to in others(from) {
            // A count is refused as where responses are stored.
            let head = RequestHead {
                keeps: true,
                ..head(&recording)
            };
            let losses = &mut Losses::default();
            let text = translate::request(from, to, &head, body, &target, losses).map(drop);
            let asked = translate::count_tokens_request(from, to, body, &target, losses);
            assert_eq!(asked.as_ref().err(), text.as_ref().err(), "{name} {to:?}");
            if let (Ok(Some(asked)), Some(counter)) = (asked, to.codec().token_counter()) {
                let again = counter.decode_count_request(&asked, losses);
                assert!(again.is_ok(), "{name} {to:?}: {again:?}");
            }
        }
        let read = from
            .codec()
            .decode_request(&head(&recording), body, &mut Losses::default());
        let estimated = translate::estimate_token_count(from, body, &mut Losses::default());
        assert_eq!(estimated.is_ok(), read.is_ok(), "{name}");
    }
}

#[test]
fn passthrough_changes_no_byte_without_need() {
    for recording in recordings() {
        let Some(body) = recording.request.map(Bytes::from) else {
            continue;
        };
        let (codec, name) = (recording.format.codec(), &recording.name);
        let path_model = (recording.format == Format::Native).then_some("m");
        let expected = RequestSummary::new(codec, Operation::Generate, path_model, &body)
            .unwrap_or_else(|api_error| panic!("{name}: {api_error:?}"));
        let same = expected
            .passthrough_body(codec, &body, &expected.model, "vendor")
            .into_bytes();
        assert_eq!(same == body, !expected.hides_usage(), "{name}");
        let original: Value = serde_json::from_slice(&body).expect("JSON");
        let renamed = expected
            .passthrough_body(codec, &body, "an \"other\"", "vendor")
            .into_bytes();
        let mut renamed: Value = serde_json::from_slice(&renamed).expect("JSON");
        if expected.hides_usage() {
            assert_eq!(renamed["stream_options"]["include_usage"], true, "{name}");
            renamed["stream_options"] = original["stream_options"].clone();
        }
        if expected.model_range.is_some() {
            assert_eq!(renamed["model"], "an \"other\"", "{name}");
            renamed["model"] = original["model"].clone();
        }
        if original.get("stream_options").is_none() {
            renamed
                .as_object_mut()
                .expect("an object")
                .remove("stream_options");
        }
        assert_eq!(renamed, original, "{name}");
    }
}
