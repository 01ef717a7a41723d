//! Laws of every stream: it holds what the JSON response holds, and an error may end it anywhere.

use serde_json::{Value, json};

use super::stream_grammar::content;
use super::{call, encode, options, response, text};
use crate::formats::StreamCodec as _;
use crate::formats::messages::Messages;
use crate::model::{
    ApiError, ApiErrorKind, Block, Call, Delta, Event, Finish, Fold, Issuer, Media, PartKind,
    Response, Signature, Source, ToolKind,
};
use crate::sse::{SseFrame, SseFrames, SseWriter};

/// Payloads in order; every event must be named as its type says.
fn payloads(out: &mut SseWriter) -> Vec<Value> {
    let mut payloads = Vec::new();
    let mut note = |frame: SseFrame<'_>| {
        let payload: Value = serde_json::from_str(&frame.data.expect("data")).expect("JSON");
        assert_eq!(payload["type"], frame.name.as_ref());
        payloads.push(payload);
    };
    let mut frames = SseFrames::default();
    frames.push(&out.take(), &mut note);
    frames.finish(&mut note);
    payloads
}

pub(super) fn stream(events: &[Event<'_>]) -> Vec<Value> {
    let mut encoder = Messages.stream_encoder(&options());
    let mut out = SseWriter::default();
    for event in events {
        encoder.encode_event(event.clone(), &mut out);
    }
    payloads(&mut out)
}

pub(super) fn start() -> Event<'static> {
    Event::Start {
        id: "chatcmpl-1".into(),
        model: "upstream-model".into(),
        created: 0,
    }
}

fn open(block: Block<'static>) -> Event<'static> {
    Event::Open { choice: 0, block }
}

fn open_call(id: Option<&'static str>, kind: ToolKind) -> Event<'static> {
    open(Block::Call {
        id: id.map(Into::into),
        name: "get_weather".into(),
        kind,
    })
}

fn delta(delta: Delta<'static>) -> Event<'static> {
    Event::Delta { choice: 0, delta }
}

fn text_delta(text: &'static str) -> Event<'static> {
    delta(Delta::Text(text.into()))
}

fn signature_delta(issuer: Issuer) -> Event<'static> {
    delta(Delta::Signature(signature(issuer)))
}

pub(super) fn signature(issuer: Issuer) -> Signature<'static> {
    Signature {
        issuer,
        data: "Q2lRQmU5L2U=".into(),
    }
}

const CLOSE: Event<'static> = Event::Close { choice: 0 };

pub(super) fn finish(reason: Finish<'static>) -> Event<'static> {
    Event::Finish { choice: 0, reason }
}

/// The events between the start of the message and its end.
fn blocks(events: Vec<Event<'static>>) -> Vec<Value> {
    let mut all = vec![start()];
    all.extend(events);
    all.push(Event::End);
    let payloads = stream(&all);
    payloads[1..payloads.len() - 2].to_vec()
}

#[test]
fn the_signature_comes_last_in_its_block() {
    assert_eq!(
        blocks(vec![
            open(Block::Reasoning),
            signature_delta(Issuer::Native),
            text_delta("Think"),
            CLOSE,
        ]),
        [
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Think"}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ=="}}),
            json!({"type": "content_block_stop", "index": 0}),
        ]
    );
}

#[test]
fn the_stop_reason_reflects_calls_and_refusals() {
    let reason = |block: Event<'static>, finish: Event<'static>| {
        let payloads = stream(&[start(), finish, block, text_delta("x"), CLOSE, Event::End]);
        payloads[payloads.len() - 2]["delta"]["stop_reason"].clone()
    };
    let function = || open_call(None, ToolKind::Function);
    assert_eq!(reason(function(), finish(Finish::Stop)), "tool_use");
    assert_eq!(reason(function(), finish(Finish::Length)), "max_tokens");
    assert_eq!(
        reason(open(Block::Refusal), finish(Finish::Stop)),
        "refusal"
    );
    assert_eq!(
        reason(open(Block::Text), finish(Finish::Paused)),
        "pause_turn"
    );
}

/// A response with a part of every kind.
fn full_response() -> Response<'static> {
    let reasoning = |text: &'static str, issuer| PartKind::Reasoning {
        text: text.into(),
        signature: Some(signature(issuer)),
    };
    let signed = Call {
        signature: Some(signature(Issuer::Native)),
        ..call(None, r#"{"city":"Paris"}"#)
    };
    let free = Call {
        kind: ToolKind::Custom,
        ..call(Some("call_2"), "a \"b\"\n")
    };
    let image = Media {
        mime: "image/png".into(),
        source: Source::Base64("iVBO".into()),
        name: None,
        detail: None,
    };
    let parts = vec![
        reasoning("So.", Issuer::Responses),
        reasoning("", Issuer::Thinking),
        reasoning("", Issuer::Native),
        text("Let me check."),
        text(""),
        PartKind::Call(signed),
        PartKind::Call(free),
        PartKind::Call(call(None, "")),
        PartKind::Media(image),
        PartKind::Refusal("No more.".into()),
    ];
    response(parts, Finish::Tools)
}

fn unfolded(response: &Response<'_>, mut each: impl FnMut(Event<'_>)) {
    response.unfold(&mut each);
}

#[test]
fn the_stream_has_the_content_of_the_json_response() {
    let json = encode(&full_response());
    let mut encoder = Messages.stream_encoder(&options());
    let mut out = SseWriter::default();
    unfolded(&full_response(), |event| {
        encoder.encode_event(event, &mut out)
    });
    let payloads = payloads(&mut out);
    assert_eq!(Value::from(content(&payloads)), json["content"]);
    let delta = &payloads[payloads.len() - 2];
    for field in ["stop_reason", "stop_sequence"] {
        assert_eq!(delta["delta"][field], json[field]);
    }
    assert_eq!(delta["usage"], json["usage"]);
    for field in ["id", "type", "role", "model"] {
        assert_eq!(payloads[0]["message"][field], json[field]);
    }
}

#[test]
fn an_error_ends_the_stream_anywhere() {
    let api_error = ApiError::new(ApiErrorKind::Overloaded, "Overloaded.");
    let error =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded."}});
    let mut events = 0;
    unfolded(&full_response(), |_| events += 1);
    for at in 0..events {
        let mut encoder = Messages.stream_encoder(&options());
        let (mut out, mut before) = (SseWriter::default(), Vec::new());
        let mut number = 0;
        unfolded(&full_response(), |event| {
            if number == at {
                before = payloads(&mut out);
                encoder.encode_error(&api_error, &mut out);
            }
            encoder.encode_event(event, &mut out);
            number += 1;
        });
        encoder.encode_error(&api_error, &mut out);
        assert_eq!(payloads(&mut out), std::slice::from_ref(&error), "at {at}");
        assert!(
            before
                .iter()
                .all(|payload| payload["type"] != "message_delta")
        );
        assert_eq!(before.is_empty(), at == 0);
    }
    let mut encoder = Messages.stream_encoder(&options());
    let mut out = SseWriter::default();
    unfolded(&full_response(), |event| {
        encoder.encode_event(event, &mut out)
    });
    out.take();
    encoder.encode_error(&api_error, &mut out);
    assert!(out.is_empty(), "nothing follows a proper end");
}

/// Decodes events and folds them into a response.
fn fold(events: &[Value]) -> Result<Response<'static>, ApiError> {
    let mut decoder = Messages.stream_decoder();
    let mut fold = Fold::default();
    let mut open = false;
    let mut out = |event: Event<'_>| {
        match &event {
            Event::Open { .. } => assert!(!std::mem::replace(&mut open, true), "one at a time"),
            Event::Close { .. } => assert!(std::mem::replace(&mut open, false), "was open"),
            Event::Finish { .. } | Event::End => assert!(!open, "all closed"),
            _ => {}
        }
        fold.push(event);
    };
    for event in events {
        decoder.decode_event(&event.to_string(), &mut out)?;
    }
    decoder.finish(&mut out)?;
    Ok(fold.finish())
}

#[test]
fn an_encoded_stream_is_decoded_to_the_same_response() {
    let city = PartKind::Call(call(Some("a"), "{\"city\":\"Bern\"}"));
    let reasoning = PartKind::Reasoning {
        text: "Hm.".into(),
        signature: Some(Signature {
            issuer: Issuer::Thinking,
            data: "sig".into(),
        }),
    };
    let mut response = response(vec![reasoning, text("Hi."), city], Finish::Tools);
    let mut encoder = Messages.stream_encoder(&options());
    let mut out = SseWriter::default();
    response.unfold(&mut |event| encoder.encode_event(event, &mut out));
    let events = payloads(&mut out);
    response.id = "msg_1".into();
    response.model = "asked-for".into();
    response.created = 0;
    assert_eq!(fold(&events).expect("a good stream"), response);
}
