//! Tests of decoding JSON responses of an upstream.

use serde_json::json;

use super::upstream::{decode_body, decode_stream, parts, response};
use super::{Losses, part, rich, signature, text};
use crate::formats::ResponseCodec as _;
use crate::formats::native::Native;
use crate::model::{Action, ApiErrorKind, Arguments, Citation, Finish, Issuer, PartKind};

#[test]
fn an_encoded_response_is_decoded_again() {
    let body = super::encode(&rich());
    let (decoded, _) = decode_body(&body).unwrap();
    let mut same = rich();
    // Signatures of other formats come back wrapped, and a refusal as text.
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
    assert_eq!(decoded, same);
}

#[test]
fn finish_reasons_are_decoded() {
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
                let body = response(parts.clone(), reason);
                let (whole, losses) = decode_body(&body).unwrap();
                assert_eq!(whole.choices[0].finish, *finish, "{reason}");
                assert_eq!(decode_stream(&[body]).unwrap().choices[0].finish, *finish);
                let exact = matches!(*reason, "STOP" | "MAX_TOKENS" | "SAFETY");
                assert_eq!(losses.len(), usize::from(!exact), "{reason}");
            }
        }
    }
}

#[test]
fn a_blocked_prompt_is_decoded_as_filtered() {
    let body = json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}});
    let blocked = Finish::Filtered(Some("Prompt blocked: SAFETY".into()));
    let (whole, losses) = decode_body(&body).unwrap();
    assert_eq!((&whole.choices[0].finish, losses), (&blocked, vec![]));
    assert_eq!(decode_stream(&[body]).unwrap(), whole);
}

#[test]
fn the_finish_message_of_a_filter_is_kept() {
    let mut body = response(json!([]), "SAFETY");
    body["candidates"][0]["finishMessage"] = "Policy.".into();
    let (whole, losses) = decode_body(&body).unwrap();
    let filtered = Finish::Filtered(Some("Policy.".into()));
    assert_eq!((&whole.choices[0].finish, losses), (&filtered, vec![]));
    body["candidates"][0]["finishReason"] = "STOP".into();
    let (_, losses) = decode_body(&body).unwrap();
    assert_eq!(losses, [(Action::Dropped, "finishMessage".to_owned())]);
}

#[test]
fn errors_of_an_upstream_are_decoded() {
    let body = json!({"error": {"code": 429, "message": "Slow down."}});
    assert_eq!(
        decode_body(&body).unwrap_err().kind,
        ApiErrorKind::RateLimited
    );
    assert_eq!(
        decode_body(&json!([body])).unwrap_err().message,
        "Slow down."
    );
    assert_eq!(
        decode_stream(&[body]).unwrap_err().kind,
        ApiErrorKind::RateLimited
    );
    for nothing in [json!({}), json!({"candidates": []}), json!([])] {
        assert_eq!(
            decode_body(&nothing).unwrap_err().kind,
            ApiErrorKind::BadGateway
        );
    }
    let begun = json!({"candidates": [{"content": {"parts": [{"text": "Hel"}]}}]});
    for broken in [&[][..], &[begun][..]] {
        assert_eq!(
            decode_stream(broken).unwrap_err().kind,
            ApiErrorKind::BadGateway
        );
    }
}

#[test]
fn citations_count_in_characters() {
    let mut body = response(
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
    let (whole, losses) = decode_body(&body).unwrap();
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
        losses,
        [(
            Action::Dropped,
            "citationMetadata.citationSources".to_owned()
        )]
    );
    assert_eq!(decode_stream(&[body]).unwrap(), whole);
}

#[test]
fn usage_is_decoded() {
    let mut body = response(json!([{"text": "ok"}]), "STOP");
    body["createTime"] = "2025-10-09T08:53:21Z".into();
    body["usageMetadata"] = json!({"promptTokenCount": 40, "toolUsePromptTokenCount": 20,
        "cachedContentTokenCount": 5, "candidatesTokenCount": 20, "thoughtsTokenCount": 10});
    let (whole, _) = decode_body(&body).unwrap();
    let usage = whole.usage.unwrap();
    assert_eq!(whole.created, 1_760_000_001);
    assert_eq!(
        (usage.input, usage.cached, usage.output, usage.thinking),
        (60, 5, 30, 10)
    );
    body.as_object_mut().unwrap().remove("usageMetadata");
    assert_eq!(decode_body(&body).unwrap().0.usage, None);
}

#[test]
fn a_large_image_is_not_copied() {
    let data = "A".repeat(1 << 16);
    let body = response(
        json!([{"inlineData": {"mimeType": "image/png", "data": data}}]),
        "STOP",
    );
    let bytes = serde_json::to_vec(&body).unwrap();
    let response = Native
        .decode_response(&bytes, &mut Losses::default())
        .unwrap();
    let PartKind::Media(media) = &response.choices[0].parts[0].kind else {
        panic!("an image");
    };
    let crate::model::Source::Base64(crate::model::Text::Borrowed(_)) = &media.source else {
        panic!("borrowed");
    };
}

#[test]
fn arguments_are_decoded_as_a_tree() {
    let body = response(
        json!([{"functionCall": {"name": "f", "args": {"b": 1}}}]),
        "STOP",
    );
    let bytes = serde_json::to_vec(&body).unwrap();
    let response = Native
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
    let (whole, losses) = decode_body(&body).unwrap();
    assert_eq!(parts(&whole), [PartKind::Text("Hi".into())]);
    assert_eq!((whole.usage.unwrap().input, losses), (3, vec![]));
}
