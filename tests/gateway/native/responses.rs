//! Responses of other formats become complete native ones; those of a native upstream pass through.

use omniglot_test_support::{Gateway, Mock, every_format_config, post, request, sse_events};
use serde_json::{Value, json};

use super::{ask, config, saying};

/// What every native reply holds.
fn check(reply: &Value, upstream: &str) {
    assert_eq!(
        reply["modelVersion"],
        format!("theirs-{upstream}"),
        "{reply}"
    );
    let id = reply["responseId"].as_str().expect("an id");
    assert!(!id.is_empty(), "{reply}");
    let created = reply["createTime"].as_str().expect("a time");
    assert!(created.parse::<jiff::Timestamp>().is_ok(), "{reply}");
    let candidate = &reply["candidates"][0];
    assert_eq!(candidate["content"]["role"], "model", "{reply}");
    assert!(candidate["content"]["parts"].is_array(), "{reply}");
    assert_eq!(candidate["index"], 0, "{reply}");
}

fn check_counts(reply: &Value) {
    assert_eq!(
        reply["usageMetadata"],
        json!({
            "promptTokenCount": 11, "cachedContentTokenCount": 4, "candidatesTokenCount": 4,
            "thoughtsTokenCount": 3, "totalTokenCount": 18,
        })
    );
}

#[tokio::test]
async fn responses_of_other_formats_are_complete() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for upstream in ["chat", "messages", "responses"] {
        for (word, reason) in [
            ("name=x", "STOP"),
            ("length", "MAX_TOKENS"),
            ("filtered", "SAFETY"),
        ] {
            let prompt = format!("hello mock:{word} mock:usage=11,4,7,3");
            let model = format!("other-{upstream}");
            let (path, body) = request("native", &model, &prompt, false);
            let reply = post(gateway.url(&path), body.to_string()).await.json();
            check(&reply, upstream);
            check_counts(&reply);
            assert_eq!(reply["candidates"][0]["finishReason"], reason, "{upstream}");

            let (path, body) = request("native", &model, &prompt, true);
            let answer = post(gateway.url(&path), body.to_string()).await;
            let pieces: Vec<Value> = sse_events(answer.text())
                .iter()
                .map(|(_, data)| serde_json::from_str(data).expect("JSON"))
                .collect();
            for piece in &pieces {
                check(piece, upstream);
            }
            let last = pieces.last().expect("a piece");
            check_counts(last);
            assert_eq!(last["candidates"][0]["finishReason"], reason, "{upstream}");
        }
    }
}

#[tokio::test]
async fn a_blocked_prompt_is_not_an_error() {
    let blocked = json!({
        "promptFeedback": {"blockReason": "SAFETY", "safetyRatings": []},
        "usageMetadata": {"promptTokenCount": 9, "totalTokenCount": 9},
        "modelVersion": "m", "responseId": "r",
    });
    let upstream = saying(&blocked);
    let gateway = Gateway::start(&config("", upstream, upstream));
    let answer = ask(&gateway, "native", "generateContent", "{}").await;
    assert_eq!((answer.status, answer.json()), (200, blocked));
}
