//! Responses of other formats become complete native ones; those of a native upstream pass through.

use omniglot_test_support::{Gateway, Mock, every_format_config, post, request, sse_events};
use serde_json::{Value, json};

use super::{config, send_request, upstream_with_body};

/// What every native reply holds.
fn check(response: &Value, upstream: &str) {
    assert_eq!(
        response["modelVersion"],
        format!("theirs-{upstream}"),
        "{response}"
    );
    let id = response["responseId"].as_str().expect("an id");
    assert!(!id.is_empty(), "{response}");
    let created = response["createTime"].as_str().expect("a time");
    assert!(created.parse::<jiff::Timestamp>().is_ok(), "{response}");
    let candidate = &response["candidates"][0];
    assert_eq!(candidate["content"]["role"], "model", "{response}");
    assert!(candidate["content"]["parts"].is_array(), "{response}");
    assert_eq!(candidate["index"], 0, "{response}");
}

fn check_counts(response: &Value) {
    assert_eq!(
        response["usageMetadata"],
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
            let response = post(gateway.url(&path), body.to_string()).await.json();
            check(&response, upstream);
            check_counts(&response);
            assert_eq!(
                response["candidates"][0]["finishReason"], reason,
                "{upstream}"
            );

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
    let upstream = upstream_with_body(&blocked);
    let gateway = Gateway::start(&config("", upstream, upstream));
    let response = send_request(&gateway, "native", "generateContent", "{}").await;
    assert_eq!((response.status, response.json()), (200, blocked));
}
