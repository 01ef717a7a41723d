//! The endpoints of audio: speech and the texts of recordings. They use no codec: the mock is there to test them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

use super::body_hash::BodyHash;
use super::images::form_field;
use super::plan::{DeliveryPlan, PlannedContent, ResponsePlan};
use super::request::MockRequest;
use super::response::{EVENTS, MockBody, MockResponse, json_failure};
use crate::model::{ApiError, Format};

/// What is asked for.
struct AudioRequest {
    model: String,
    /// Where directives are looked for: the text to read, or the prompt.
    text: String,
    response_format: String,
    stream: bool,
}

/// Makes speech, which is the text itself behind a byte that no text has.
pub(super) fn speak(received: &MockRequest) -> (MockResponse, DeliveryPlan) {
    respond(received, decode_speech(&received.body), |request, plan| {
        let text = content(plan, received);
        let pieces: Vec<&str> = text.split_inclusive(' ').collect();
        if request.stream {
            let mut events: Vec<Value> = pieces
                .iter()
                .map(|piece| json!({"type": "speech.audio.delta", "audio": STANDARD.encode(piece)}))
                .collect();
            if !plan.no_end {
                events.push(json!({"type": "speech.audio.done", "usage": tokens(plan, 1, 2)}));
            }
            return stream(&events);
        }
        let chunks = pieces
            .iter()
            .map(|piece| Bytes::from([b"\xff", piece.as_bytes()].concat()));
        let content_type = match &*request.response_format {
            "wav" => "audio/wav",
            "pcm" => "application/octet-stream",
            _ => "audio/mpeg",
        };
        response(content_type, MockBody::Chunks(chunks.collect()))
    })
}

/// Makes the text of a recording, which is that of the prompt.
pub(super) fn transcribe(received: &MockRequest) -> (MockResponse, DeliveryPlan) {
    respond(received, decode_form(received), |request, plan| {
        let text = content(plan, received);
        if request.stream {
            let pieces = text.split_inclusive(' ');
            let mut events: Vec<Value> = pieces
                .map(|piece| json!({"type": "transcript.text.delta", "delta": piece}))
                .collect();
            if !plan.no_end {
                events.push(json!({"type": "transcript.text.done", "text": text, "usage": tokens(plan, 1, 2)}));
            }
            return stream(&events);
        }
        let whole =
            |content_type, text: String| response(content_type, MockBody::Whole(text.into()));
        match &*request.response_format {
            "text" => whole("text/plain; charset=utf-8", format!("{text}\n")),
            "srt" => {
                let lines = format!("1\n00:00:00,000 --> 00:00:01,000\n{text}\n");
                whole("application/x-subrip", lines)
            }
            "vtt" => whole("text/vtt", format!("WEBVTT\n\n{text}\n")),
            "verbose_json" if plan.usage.is_none() => {
                let verbose = json!({"task": "transcribe", "language": "english", "duration": 8.47, "text": text});
                MockResponse::json(verbose.to_string())
            }
            _ => {
                let usage = match plan.usage {
                    Some(_) => tokens(plan, 0, 0),
                    None => json!({"type": "duration", "seconds": 9}),
                };
                MockResponse::json(json!({"text": text, "usage": usage}).to_string())
            }
        }
    })
}

fn respond(
    received: &MockRequest,
    decoded: Result<AudioRequest, ApiError>,
    make: impl Fn(&AudioRequest, &ResponsePlan) -> MockResponse,
) -> (MockResponse, DeliveryPlan) {
    let id = BodyHash::of(&received.body).id(Format::Chat);
    let planned = decoded.and_then(|request| {
        let plan = ResponsePlan::for_prompt(&request.text, &request.model)?;
        Ok((plan, request))
    });
    match planned {
        Ok((plan, request)) => {
            let response = match &plan.failure {
                Some(failure) => json_failure(failure, Format::Chat, &id),
                None => make(&request, &plan),
            };
            (response, plan.delivery)
        }
        Err(api_error) => {
            let response = MockResponse::api_error(Format::Chat, &api_error, &id);
            (response, DeliveryPlan::default())
        }
    }
}

fn decode_speech(body: &[u8]) -> Result<AudioRequest, ApiError> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid(format!("the body is not valid JSON: {error}")))?;
    let field = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    Ok(AudioRequest {
        model: field("model"),
        text: field("input"),
        response_format: field("response_format"),
        stream: body["stream_format"] == "sse",
    })
}

fn decode_form(received: &MockRequest) -> Result<AudioRequest, ApiError> {
    let kind = received.content_type();
    let boundary = kind.strip_prefix("multipart/form-data; boundary=");
    let boundary = boundary.map(|boundary| boundary.trim_matches('"'));
    let start = boundary.map(|boundary| format!("--{boundary}\r\n"));
    if !start.is_some_and(|start| received.body.starts_with(start.as_bytes())) {
        return Err(ApiError::invalid(format!(
            "`{kind}` is not the type of the form"
        )));
    }
    let field = |name| form_field(&received.body, name).unwrap_or_default();
    Ok(AudioRequest {
        model: field("model"),
        text: field("prompt"),
        response_format: field("response_format"),
        stream: field("stream") == "true",
    })
}

fn content(plan: &ResponsePlan, received: &MockRequest) -> String {
    match &plan.content {
        PlannedContent::Echo => received.echo(),
        PlannedContent::Text(text) => text.clone(),
        _ => "mock".to_owned(),
    }
}

fn tokens(plan: &ResponsePlan, input: u64, output: u64) -> Value {
    let (input, output) = match plan.usage {
        Some(usage) => (usage.input, usage.output),
        None => (input, output),
    };
    json!({"type": "tokens", "input_tokens": input, "output_tokens": output, "total_tokens": input + output})
}

fn stream(events: &[Value]) -> MockResponse {
    let events = events.iter();
    let events = events.map(|event| Bytes::from(format!("data: {event}\n\n")));
    response(EVENTS, MockBody::Chunks(events.collect()))
}

fn response(content_type: &'static str, body: MockBody) -> MockResponse {
    MockResponse {
        status: StatusCode::OK,
        content_type,
        header: None,
        body,
    }
}
