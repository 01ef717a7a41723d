//! Replies of upstreams, whole and in pieces.

use serde_json::{Value, json};

use super::{Losses, call, part, rich, signature, text};
use crate::formats::Codec as _;
use crate::model::{
    Action, ApiError, ApiErrorKind, Arguments, Block, Citation, Delta, Event, FieldLocation,
    Finish, Fold, Issuer, PartKind, Response,
};

fn read(body: &Value) -> Result<(Response<'static>, Vec<(Action, String)>), ApiError> {
    let body = serde_json::to_vec(body).unwrap();
    let mut losses = Losses::default();
    let response = super::super::Native.decode_response(&body, &mut losses)?;
    let mut fold = Fold::default();
    response.unfold(&mut |event| fold.push(event));
    let lost = losses.0.into_iter().map(|lost| match lost.location {
        FieldLocation::Path(path) => (lost.action, path.into_owned()),
        other => panic!("a reply has no {other:?}"),
    });
    Ok((fold.finish(), lost.collect()))
}

fn stream(pieces: &[Value]) -> Result<Response<'static>, ApiError> {
    let mut decoder = super::super::Native.stream_decoder();
    let mut fold = Fold::default();
    let mut grammar = Grammar::default();
    let mut out = |event: Event<'_>| {
        grammar.check(&event);
        fold.push(event);
    };
    for piece in pieces {
        decoder.event(&piece.to_string(), &mut out)?;
    }
    decoder.close(&mut out)?;
    assert!(grammar.ended);
    Ok(fold.finish())
}

/// `Start ( Open Delta* Close | Finish | Usage )* End` for one choice.
#[derive(Default)]
struct Grammar {
    begun: bool,
    open: bool,
    ended: bool,
}

impl Grammar {
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

fn reply(parts: Value, reason: &str) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason}],
        "responseId": "r", "modelVersion": "m"})
}

fn parts(response: &Response<'static>) -> Vec<PartKind<'static>> {
    let parts = response.choices[0].parts.iter();
    parts.map(|part| part.kind.clone()).collect()
}

#[test]
fn what_we_write_we_read() {
    let body = super::encode(&rich());
    let (read, _) = read(&body).unwrap();
    let mut same = rich();
    // Seals of other formats come back wrapped, and a refusal as plain words.
    let wrapped = signature(Issuer::Thinking, "RXJVQkNrWUlB").wrap();
    same.choices[0].parts[0] = part(PartKind::Reasoning {
        text: "Let me think.".into(),
        signature: Some(crate::model::Signature {
            issuer: Issuer::Native,
            data: wrapped.into(),
        }),
    });
    same.choices[1].parts[0] = text("I cannot.");
    same.usage = same.usage.map(|usage| crate::model::Usage {
        cache_written: 0,
        ..usage
    });
    assert_eq!(read, same);
}

#[test]
fn a_stream_says_what_the_whole_reply_says() {
    let signed = json!({"text": "", "thoughtSignature": "c2ln"});
    for list in [
        json!([{"text": "Hm.", "thought": true}, {"text": "42", "thoughtSignature": "c2ln"}]),
        json!([{"text": "Hm.", "thought": true, "thoughtSignature": "c2ln"}, {"text": "42"}]),
        json!([{"text": "H", "thought": true}, {"text": "m", "thought": true}, {"text": "42"}, signed]),
        json!([{"functionCall": {"name": "f"}, "thoughtSignature": "c2ln"}, {"functionCall": {"name": "f", "args": {"b": 1, "a": 2}}}]),
        json!([{"text": "A"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}, "thoughtSignature": "c2ln"}]),
        json!([{"text": "A", "thoughtSignature": "c2ln"}, {"text": "B", "thoughtSignature": "c2ln"}]),
        json!([{"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1\n"}}]),
    ] {
        let whole = reply(list.clone(), "STOP");
        let mut pieces: Vec<Value> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|part| {
                let content = json!({"role": "model", "parts": [part]});
                json!({"candidates": [{"content": content}], "responseId": "r", "modelVersion": "m"})
            })
            .collect();
        pieces.push(json!({"candidates": [{"finishReason": "STOP"}]}));
        let (read, _) = read(&whole).unwrap();
        assert_eq!(stream(&pieces).unwrap(), read, "{list}");
        assert_eq!(stream(&[whole]).unwrap(), read, "{list}");
    }
}

#[test]
fn a_late_proof_does_not_part_the_words() {
    let piece = |part: Value| json!({"candidates": [{"content": {"parts": [part]}}]});
    let proof = || PartKind::Reasoning {
        text: "".into(),
        signature: Some(signature(Issuer::Native, "c2ln")),
    };
    let words = piece(json!({"text": "Hello"}));
    let signed = piece(json!({"text": " you", "thoughtSignature": "c2ln"}));
    let bare = piece(json!({"thoughtSignature": "c2ln"}));
    let end = reply(json!([{"text": "!"}]), "STOP");
    for (pieces, text) in [
        ([&words, &signed, &end], "Hello you!"),
        ([&words, &bare, &end], "Hello!"),
    ] {
        let response = stream(&pieces.map(Value::clone)).unwrap();
        assert_eq!(
            parts(&response),
            [PartKind::Text(text.to_owned().into()), proof()]
        );
    }
    let call = reply(json!([{"functionCall": {"name": "f"}}]), "STOP");
    let response = stream(&[words, signed, call]).unwrap();
    assert_eq!(
        parts(&response)[..2],
        [PartKind::Text("Hello you".into()), proof()]
    );
}

#[test]
fn every_reason_to_stop() {
    let plain = json!([{"text": "Hi"}]);
    let calls = json!([{"functionCall": {"name": "f", "args": {}}}]);
    for (reasons, without, with) in [
        (&["STOP"][..], Finish::Stop, Finish::Tools),
        (
            &["MAX_TOKENS", "CONTINUATION"],
            Finish::Length,
            Finish::Length,
        ),
        (
            &[
                "SAFETY",
                "RECITATION",
                "BLOCKLIST",
                "PROHIBITED_CONTENT",
                "SPII",
                "IMAGE_SAFETY",
                "IMAGE_PROHIBITED_CONTENT",
                "IMAGE_RECITATION",
                "MODEL_ARMOR",
            ],
            Finish::Filtered(None),
            Finish::Filtered(None),
        ),
        (
            &[
                "MALFORMED_FUNCTION_CALL",
                "UNEXPECTED_TOOL_CALL",
                "TOO_MANY_TOOL_CALLS",
                "MALFORMED_RESPONSE",
            ],
            Finish::MalformedCall,
            Finish::Tools,
        ),
        (
            &[
                "LANGUAGE",
                "OTHER",
                "NO_IMAGE",
                "IMAGE_OTHER",
                "FINISH_REASON_UNSPECIFIED",
                "BRAND_NEW",
            ],
            Finish::Other,
            Finish::Tools,
        ),
    ] {
        for reason in reasons {
            for (parts, finish) in [(&plain, &without), (&calls, &with)] {
                let body = reply(parts.clone(), reason);
                let (whole, lost) = read(&body).unwrap();
                assert_eq!(whole.choices[0].finish, *finish, "{reason}");
                assert_eq!(stream(&[body]).unwrap().choices[0].finish, *finish);
                let exact = matches!(*reason, "STOP" | "MAX_TOKENS" | "SAFETY");
                assert_eq!(lost.len(), usize::from(!exact), "{reason}");
            }
        }
    }
}

#[test]
fn a_stream_reports_why_it_ended_as_well() {
    for (reason, reported) in [("MALFORMED_FUNCTION_CALL", 1), ("STOP", 0)] {
        let mut decoder = super::super::Native.stream_decoder();
        let body = reply(json!([{"text": "Hi"}]), reason);
        decoder.event(&body.to_string(), &mut |_| {}).unwrap();
        decoder.close(&mut |_| {}).unwrap();
        assert_eq!(decoder.take_losses().0.len(), reported, "{reason}");
        assert_eq!(decoder.take_losses(), Losses::default());
    }
}

#[test]
fn a_blocked_prompt_is_an_answer() {
    let body = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}});
    let blocked = Finish::Filtered(Some("Prompt blocked: SAFETY".into()));
    let (whole, lost) = read(&body).unwrap();
    assert_eq!((&whole.choices[0].finish, lost), (&blocked, vec![]));
    assert_eq!(stream(&[body]).unwrap(), whole);
}

#[test]
fn the_words_of_a_filter_are_kept() {
    let mut body = reply(json!([]), "SAFETY");
    body["candidates"][0]["finishMessage"] = "Policy.".into();
    let (whole, lost) = read(&body).unwrap();
    let filtered = Finish::Filtered(Some("Policy.".into()));
    assert_eq!((&whole.choices[0].finish, lost), (&filtered, vec![]));
    body["candidates"][0]["finishReason"] = "STOP".into();
    let (_, lost) = read(&body).unwrap();
    assert_eq!(lost, [(Action::Dropped, "finishMessage".to_owned())]);
}

#[test]
fn faults_of_an_upstream() {
    let body = json!({"error": {"code": 429, "message": "Slow down."}});
    assert_eq!(read(&body).unwrap_err().kind, ApiErrorKind::RateLimited);
    assert_eq!(read(&json!([body])).unwrap_err().message, "Slow down.");
    assert_eq!(stream(&[body]).unwrap_err().kind, ApiErrorKind::RateLimited);
    for nothing in [json!({}), json!({"candidates": []}), json!([])] {
        assert_eq!(read(&nothing).unwrap_err().kind, ApiErrorKind::BadGateway);
    }
    let begun = json!({"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]});
    for broken in [&[][..], &[begun][..]] {
        assert_eq!(stream(broken).unwrap_err().kind, ApiErrorKind::BadGateway);
    }
}

#[test]
fn a_reason_to_stop_may_come_early_and_often() {
    let pieces = ["Hel", "lo."].map(|text| reply(json!([{"text": text}]), "STOP"));
    assert_eq!(
        parts(&stream(&pieces).unwrap()),
        [PartKind::Text("Hello.".into())]
    );
}

#[test]
fn choices_are_told_apart() {
    let piece = |index: u32, text: &str| {
        json!({"candidates": [{"index": index, "finishReason": "STOP",
            "content": {"parts": [{"text": text}]}}]})
    };
    let mut decoder = super::super::Native.stream_decoder();
    let mut fold = Fold::default();
    let mut out = |event: Event<'_>| fold.push(event);
    for piece in [piece(1, "b"), piece(0, "a"), piece(1, "c")] {
        decoder.event(&piece.to_string(), &mut out).unwrap();
    }
    // Some proxy in between has added how its own streams end.
    decoder.event("[DONE]", &mut out).unwrap();
    decoder.close(&mut |event| fold.push(event)).unwrap();
    let response = fold.finish();
    assert_eq!(response.choices[0].parts, [text("a")]);
    assert_eq!(response.choices[1].parts, [text("bc")]);
}

#[test]
fn a_call_may_come_in_pieces() {
    let piece =
        |call: Value| json!({"candidates": [{"content": {"parts": [{"functionCall": call}]}}]});
    let end = |reason| json!({"candidates": [{"finishReason": reason}]});
    let begin = piece(json!({"id": "call_1", "name": "get_weather", "willContinue": true}));
    let argument = piece(json!({"willContinue": true, "partialArgs": [
        {"jsonPath": "$.city", "stringValue": "Par", "willContinue": true}]}));
    let rest = piece(json!({"willContinue": true, "partialArgs": [
        {"jsonPath": "$.city", "stringValue": "is"}]}));
    let done = piece(json!({}));
    let whole = call("get_weather", "{\"city\":\"Paris\"}").kind;
    let all = [begin, argument, rest, done, end("STOP")];
    let response = stream(&all).unwrap();
    let whole = vec![whole];
    assert_eq!(parts(&response), whole);
    assert_eq!(response.choices[0].finish, Finish::Tools);
    let unfinished = [all[0].clone(), all[1].clone(), all[2].clone(), end("STOP")];
    assert_eq!(parts(&stream(&unfinished).unwrap()), whole);
    let cut = [all[0].clone(), all[1].clone(), end("MAX_TOKENS")];
    let silent = reply(json!([{"text": ""}]), "MAX_TOKENS");
    let cut_later = [all[0].clone(), all[1].clone(), silent];
    for cut in [cut, cut_later] {
        let response = stream(&cut).unwrap();
        assert_eq!(
            (parts(&response), &response.choices[0].finish),
            (vec![], &Finish::Length)
        );
    }
}

#[test]
fn sources_are_told_once_and_before_what_ends_their_words() {
    let mut first = reply(json!([{"text": "Sunny."}]), "STOP");
    first["candidates"][0]["groundingMetadata"] = json!({
        "groundingChunks": [{"web": {"uri": "https://a"}}],
        "groundingSupports": [{"segment": {"endIndex": 6}, "groundingChunkIndices": [0]}]
    });
    let mut last = first.clone();
    last["candidates"][0]["content"]["parts"] = json!([
        {"text": " Warm."}, {"functionCall": {"name": "f"}}
    ]);
    let supports = &mut last["candidates"][0]["groundingMetadata"]["groundingSupports"];
    supports
        .as_array_mut()
        .unwrap()
        .push(json!({"segment": {"startIndex": 7, "endIndex": 12}, "groundingChunkIndices": [0]}));
    let mut told = Vec::new();
    let mut decoder = super::super::Native.stream_decoder();
    let mut out = |event: Event<'_>| match event {
        Event::Delta {
            delta: Delta::Citation(citation),
            ..
        } => told.push((citation.start, citation.end)),
        Event::Open {
            block: Block::Call { .. },
            ..
        } => assert_eq!(told, [(0, 6), (7, 12)]),
        _ => {}
    };
    for piece in [first, last] {
        decoder.event(&piece.to_string(), &mut out).unwrap();
    }
    decoder.close(&mut out).unwrap();
    assert_eq!(told.len(), 2);
}

#[test]
fn sources_are_found_in_characters() {
    let mut body = reply(
        json!([{"text": "Hm.", "thought": true}, {"text": "Café. "}, {"functionCall": {"name": "f"}}, {"text": "Über"}]),
        "STOP",
    );
    body["candidates"][0]["groundingMetadata"] = json!({
        "groundingChunks": [{"web": {"uri": "https://a", "title": "A"}}, {"retrievedContext": {"uri": "https://b"}}, {"image": {}}],
        "groundingSupports": [
            {"segment": {"partIndex": 1, "endIndex": 6}, "groundingChunkIndices": [0, 1, 2, 9]},
            {"segment": {"partIndex": 3, "startIndex": 2, "endIndex": 5}, "groundingChunkIndices": [0]},
            {"groundingChunkIndices": [0]}
        ]
    });
    body["candidates"][0]["citationMetadata"] = json!({"citationSources": [{"startIndex": 7, "endIndex": 12, "uri": "https://c", "license": "MIT"}]});
    let cited = |url: &'static str, title: Option<&'static str>, start, end| Citation {
        url: url.into(),
        title: title.map(Into::into),
        start,
        end,
    };
    let (whole, lost) = read(&body).unwrap();
    assert_eq!(
        whole.choices[0].citations,
        [
            cited("https://a", Some("A"), 0, 5),
            cited("https://b", None, 0, 5),
            cited("https://a", Some("A"), 7, 10),
            cited("https://c", None, 6, 10),
        ]
    );
    assert_eq!(
        lost,
        [(
            Action::Dropped,
            "citationMetadata.citationSources".to_owned()
        )]
    );
    assert_eq!(stream(&[body]).unwrap(), whole);
}

#[test]
fn numbers_of_tokens() {
    let mut body = reply(json!([{"text": "ok"}]), "STOP");
    body["createTime"] = "2025-10-09T08:53:21Z".into();
    body["usageMetadata"] = json!({"promptTokenCount": 40, "toolUsePromptTokenCount": 20,
        "cachedContentTokenCount": 5, "candidatesTokenCount": 20, "thoughtsTokenCount": 10});
    let (whole, _) = read(&body).unwrap();
    let usage = whole.usage.unwrap();
    assert_eq!(whole.created, 1_760_000_001);
    assert_eq!(
        (usage.input, usage.cached, usage.output, usage.thinking),
        (60, 5, 30, 10)
    );
    body.as_object_mut().unwrap().remove("usageMetadata");
    assert_eq!(read(&body).unwrap().0.usage, None);
}

#[test]
fn a_large_picture_is_not_copied() {
    let data = "A".repeat(1 << 16);
    let body = reply(
        json!([{"inlineData": {"mimeType": "image/png", "data": data}}]),
        "STOP",
    );
    let bytes = serde_json::to_vec(&body).unwrap();
    let response = super::super::Native
        .decode_response(&bytes, &mut Losses::default())
        .unwrap();
    let PartKind::Media(media) = &response.choices[0].parts[0].kind else {
        panic!("a picture");
    };
    let crate::model::Source::Base64(crate::model::Text::Borrowed(_)) = &media.source else {
        panic!("borrowed");
    };
}

#[test]
fn arguments_stay_objects() {
    let body = reply(
        json!([{"functionCall": {"name": "f", "args": {"b": 1}}}]),
        "STOP",
    );
    let bytes = serde_json::to_vec(&body).unwrap();
    let response = super::super::Native
        .decode_response(&bytes, &mut Losses::default())
        .unwrap();
    let PartKind::Call(call) = &response.choices[0].parts[0].kind else {
        panic!("a call");
    };
    assert!(matches!(call.arguments, Arguments::Tree(_)));
    assert_eq!(call.arguments.to_text(), r#"{"b":1}"#);
}

#[test]
fn null_is_the_same_as_absent() {
    let body = json!({"candidates": [{"index": null, "finishReason": "STOP", "finishMessage": null,
        "groundingMetadata": null, "safetyRatings": null, "content": {"role": null, "parts": [
            {"text": "Hi", "thought": null, "thoughtSignature": null, "functionCall": null}]}}],
        "promptFeedback": null, "error": null, "createTime": null,
        "usageMetadata": {"promptTokenCount": 3, "thoughtsTokenCount": null}});
    let (whole, lost) = read(&body).unwrap();
    assert_eq!(parts(&whole), [PartKind::Text("Hi".into())]);
    assert_eq!((whole.usage.unwrap().input, lost), (3, vec![]));
}
