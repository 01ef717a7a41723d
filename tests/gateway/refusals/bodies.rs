//! Bodies that are refused, and models that do not exist.

use omniglot_test_support::{FORMATS, KEY, client, post, request, send};

use serde_json::{Value, json};

use super::GatewayWithLog;

fn path_of(format: &str) -> String {
    request(format, "same-native", "", false).0
}

#[tokio::test]
async fn a_body_that_is_not_a_json_object_is_refused() {
    let watched = GatewayWithLog::start();
    let broken: [&[u8]; 17] = [
        b"",
        b" ",
        b"{",
        b"}",
        b"null",
        b"true",
        b"7",
        b"\"text\"",
        b"[]",
        br#"[{"model":"same-chat"}]"#,
        br#"{"model":"same-chat""#,
        br#"{"model":"same-chat",}"#,
        br#"{"model":"same-chat"} trailing"#,
        br#"{"model":"same-chat"}{"model":"same-chat"}"#,
        br#"{'model':'same-chat'}"#,
        b"\xef\xbb\xbf{\"model\":\"same-chat\"}",
        b"\x00{\"model\":\"same-chat\"}",
    ];
    for (format, _) in FORMATS {
        for body in broken {
            let response = post(watched.gateway.url(&path_of(format)), body.to_vec()).await;
            let what = String::from_utf8_lossy(body);
            assert_eq!(response.status, 400, "{format} {what}: {}", response.text());
            response.error(format);
            assert_eq!(
                response.header("x-omniglot-upstream"),
                "",
                "{format} {what}"
            );
        }
    }
    watched.assert_well().await;
}

#[tokio::test]
async fn a_message_names_the_field_and_what_was_seen() {
    let watched = GatewayWithLog::start();
    let refused = async |format: &str, field: &str, value: Value| {
        let (path, mut body) = request(format, "same-native", "hello", false);
        body[field] = value;
        let response = post(watched.gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 400, "{format}: {}", response.text());
        response.error(format)
    };
    for (format, _) in FORMATS
        .into_iter()
        .filter(|(format, _)| *format != "native")
    {
        let message = refused(format, "stream", json!("yes")).await;
        assert_eq!(
            message, "`stream` must be a boolean, got a string",
            "{format}"
        );
        let message = refused(format, "temperature", json!("hot")).await;
        assert_eq!(
            message, "temperature: expected a number, got a string",
            "{format}"
        );
        let message = refused(format, "tools", json!({})).await;
        assert_eq!(
            message, "tools: expected an array, got an object",
            "{format}"
        );
    }
    for (format, field, value, expected) in [
        (
            "chat",
            "reasoning_effort",
            json!("huge"),
            "reasoning_effort: expected ",
        ),
        (
            "messages",
            "thinking",
            json!({"type": "huge"}),
            "thinking.type: expected ",
        ),
        (
            "native",
            "generationConfig",
            json!({"thinkingConfig": {"thinkingLevel": "huge"}}),
            "generationConfig.thinkingConfig.thinkingLevel: expected ",
        ),
        (
            "responses",
            "reasoning",
            json!({"effort": "huge"}),
            "reasoning.effort: expected ",
        ),
    ] {
        let message = refused(format, field, value).await;
        assert!(
            message.starts_with(expected) && message.ends_with(", got \"huge\""),
            "{format}: {message}"
        );
    }
    for (field, value, advice) in [
        ("conversation", json!("conv_1"), "`previous_response_id`"),
        ("prompt", json!({"id": "pmpt_1"}), "`instructions`"),
        ("background", json!(true), "leave `background` out"),
    ] {
        let message = refused("responses", field, value).await;
        assert!(
            message.starts_with(field) && message.contains(advice),
            "{message}"
        );
    }
    watched.assert_well().await;
}

#[tokio::test]
async fn a_model_must_be_named_once_and_by_a_string() {
    let watched = GatewayWithLog::start();
    for format in ["chat", "messages", "responses"] {
        for body in [
            "{}",
            r#"{"model":null}"#,
            r#"{"model":""}"#,
            r#"{"model":7}"#,
            r#"{"model":["same-chat"]}"#,
            r#"{"model":{"id":"same-chat"}}"#,
            r#"{"Model":"same-chat"}"#,
            r#"{"metadata":{"model":"same-chat"}}"#,
            r#"{"model":"same-chat","model":"other-chat"}"#,
            r#"{"model":"same-chat","mod\u0065l":"same-chat"}"#,
            r#"{"model":"same-\ud800"}"#,
        ] {
            let response = post(watched.gateway.url(&path_of(format)), body).await;
            assert_eq!(response.status, 400, "{format} {body}: {}", response.text());
            let message = response.error(format);
            let named = message.contains("model");
            assert!(
                named || body.contains("ud800"),
                "{format} {body}: {message}"
            );
        }
    }
    watched.assert_well().await;
}

#[tokio::test]
async fn a_model_that_does_not_exist_is_not_found() {
    let watched = GatewayWithLog::start();
    for (format, _) in FORMATS {
        for model in [
            "unknown",
            "Same-chat",
            "same-chat2",
            "theirs-chat",
            "mock-chat",
            "a/b:c",
        ] {
            let (path, body) = request(format, model, "hello", false);
            let response = post(watched.gateway.url(&path), body.to_string()).await;
            assert_eq!(response.status, 404, "{format} {model}");
            assert!(response.error(format).contains(model), "{format} {model}");
        }
        if format == "native" {
            continue;
        }
        for model in [
            "a\u{0}b",
            " same-chat",
            "same-chat\n",
            "\u{202e}",
            "\u{1F600}",
        ] {
            let (path, body) = request(format, model, "hello", false);
            let response = post(watched.gateway.url(&path), body.to_string()).await;
            assert_eq!(response.status, 404, "{format} {model:?}");
            response.error(format);
        }
        let long = "m".repeat(1 << 20);
        let (path, body) = request(format, &long, "hello", false);
        let response = post(watched.gateway.url(&path), body.to_string()).await;
        assert_eq!(response.status, 404, "{format}");
        assert!(
            response.body.len() < 4096,
            "a name is not repeated at any length"
        );
        let body = format!(r#"{{"model":"same-{format}","stream":"{long}"}}"#);
        let response = post(watched.gateway.url(&path), body).await;
        assert_eq!(response.status, 400, "{format}");
        assert!(response.body.len() < 4096, "nor is a value");
    }
    watched.assert_well().await;
}

#[tokio::test]
async fn a_body_of_another_type_is_refused() {
    let watched = GatewayWithLog::start();
    for (format, _) in FORMATS {
        let (path, body) = request(format, &format!("same-{format}"), "hello", false);
        for (kind, wanted) in [
            (Some("application/json"), 200),
            (Some("application/json; charset=utf-8"), 200),
            (Some("APPLICATION/JSON"), 200),
            (Some("application/vnd.api+json"), 200),
            (None, 200),
            (Some("text/plain"), 415),
            (Some("application/x-www-form-urlencoded"), 415),
            (Some("multipart/form-data; boundary=x"), 415),
            (Some("application/jsonx"), 415),
            (Some(""), 415),
        ] {
            let asked = client().post(watched.gateway.url(&path)).bearer_auth(KEY);
            let asked = kind
                .into_iter()
                .fold(asked, |asked, kind| asked.header("content-type", kind));
            let response = send(asked.body(body.to_string())).await;
            assert_eq!(
                response.status,
                wanted,
                "{format} {kind:?}: {}",
                response.text()
            );
            if wanted != 200 {
                assert!(response.error(format).contains("application/json"));
            }
        }
    }
    watched.assert_well().await;
}

#[tokio::test]
async fn malformed_json_is_refused() {
    let watched = GatewayWithLog::start();
    for (format, _) in FORMATS {
        let model = format!("same-{format}");
        let (path, _) = request(format, &model, "", false);
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            for depth in [200, 200_000] {
                let (open, close) = (open.repeat(depth), close.repeat(depth));
                let middle = if open.starts_with('{') { "1" } else { "" };
                let body = format!(r#"{{"model":"{model}","x":{open}{middle}{close}}}"#);
                let response = post(watched.gateway.url(&path), body).await;
                assert_eq!(
                    response.status,
                    400,
                    "{format} {depth}: {}",
                    response.text()
                );
                response.error(format);
            }
            let body = format!(r#"{{"model":"{model}","x":{}"#, open.repeat(200_000));
            let response = post(watched.gateway.url(&path), body).await;
            assert_eq!(response.status, 400, "{format}");
        }
        // The deepest that is read, and one level more.
        for (depth, refused) in [(119, false), (120, true)] {
            let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
            let body = format!(r#"{{"model":"{model}","x":{open}{close}}}"#);
            let response = post(watched.gateway.url(&path), body).await;
            let text = response.text();
            let message = text.contains("recursion") || text.contains("less nesting");
            assert_eq!(message, refused, "{format} {depth}: {}", response.text());
        }
        let mut invalid = format!(r#"{{"model":"{model}","x":""#).into_bytes();
        invalid.extend_from_slice(b"\xff\xfe\"}");
        let response = post(watched.gateway.url(&path), invalid).await;
        assert_eq!(response.status, 400, "{format}: {}", response.text());
        response.error(format);
        let body = format!(
            r#"{{"model":"{model}","x":1e999999,"y":-0,"z":{}}}"#,
            "9".repeat(5000)
        );
        let response = post(watched.gateway.url(&path), body).await;
        assert_eq!(response.status, 400, "{format}: {}", response.text());
    }
    watched.assert_well().await;
}
