//! Clients of AWS Bedrock: their paths, bodies, event streams and errors, on upstreams of every format.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use omniglot::event_stream::EventStreamMessages;
use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, echoed_request, every_format_config,
    fixed_response_upstream, response_head, send,
};
use serde_json::{Value, json};

fn path(model: &str, operation: &str) -> String {
    format!("/model/{model}/{operation}")
}

fn body(text: &str) -> Value {
    json!({
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 64,
        "messages": [{"role": "user", "content": text}],
    })
}

async fn post(gateway: &Gateway, path: &str, body: &Value) -> Response {
    send(client().post(gateway.url(path)).bearer_auth(KEY).json(body)).await
}

/// The messages of an event stream: what they are called, and the events or errors in them.
fn messages(response: &Response) -> Vec<(String, Value)> {
    assert_eq!(
        response.header("content-type"),
        "application/vnd.amazon.eventstream"
    );
    let (mut found, mut stream) = (Vec::new(), EventStreamMessages::default());
    let pushed = stream.push(&response.body, usize::MAX, |message| {
        let payload: Value = serde_json::from_slice(message.payload).expect("JSON");
        found.push(match message.header(":exception-type") {
            Some(name) => (name.to_owned(), payload),
            None => {
                let bytes = payload["bytes"].as_str().expect("bytes");
                let bytes = STANDARD.decode(bytes).expect("base64");
                let event: Value = serde_json::from_slice(&bytes).expect("an event");
                (event["type"].as_str().expect("a type").to_owned(), event)
            }
        });
    });
    pushed.and_then(|()| stream.finish()).expect("messages");
    found
}

#[tokio::test]
async fn a_model_in_the_path_is_invoked() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (upstream, _) in FORMATS {
        let model = format!("other-{upstream}");
        let response = post(&gateway, &path(&model, "invoke"), &body("mock:echo")).await;
        let echo = echoed_request("messages", &response).to_string();
        assert!(echo.contains(&format!("theirs-{upstream}")), "{echo}");
        assert!(!echo.contains("bedrock-2023"), "{echo}");
        assert!(!echo.contains(KEY), "{echo}");
        assert_eq!(response.json()["model"], *model);
        // The path counts, whatever the body says.
        let mut odd = body("hello");
        (odd["model"], odd["stream"]) = (json!("same-chat"), json!(true));
        let response = post(&gateway, &path(&model, "invoke"), &odd).await;
        assert_eq!(response.json()["model"], *model, "{}", response.text());
        let stream = path(&model, "invoke-with-response-stream");
        let response = post(&gateway, &stream, &body("mock:text=one two")).await;
        let events = messages(&response);
        let names: Vec<&str> = events.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names.first(), Some(&"message_start"), "{names:?}");
        assert_eq!(names.last(), Some(&"message_stop"), "{names:?}");
        assert!(!names.contains(&"ping"), "{names:?}");
        let deltas = events
            .iter()
            .filter_map(|(_, event)| event["delta"]["text"].as_str());
        assert_eq!(deltas.collect::<String>(), "one two");
        assert_eq!(events[0].1["message"]["model"], *model);
    }
}

#[tokio::test]
async fn errors_are_those_of_aws() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (upstream, _) in FORMATS {
        let model = format!("same-{upstream}");
        for (text, status, name) in [
            ("mock:error=429", 429, "ThrottlingException"),
            ("mock:error=400", 400, "ValidationException"),
            ("mock:error=503", 503, "ServiceUnavailableException"),
        ] {
            for operation in ["invoke", "invoke-with-response-stream"] {
                let response = post(&gateway, &path(&model, operation), &body(text)).await;
                assert_eq!(response.status, status, "{text}: {}", response.text());
                assert_eq!(response.header("x-amzn-errortype"), name);
                assert!(
                    response.json()["message"].is_string(),
                    "{}",
                    response.text()
                );
                assert_eq!(response.json().as_object().map(|it| it.len()), Some(1));
            }
        }
        let broken = body("mock:long=100 mock:cut=8");
        let response = post(
            &gateway,
            &path(&model, "invoke-with-response-stream"),
            &broken,
        )
        .await;
        let events = messages(&response);
        let (name, last) = events.last().expect("an event");
        assert_eq!(name, "internalServerException", "{events:?}");
        assert!(last["message"].is_string(), "{last}");
    }
    let unknown = post(&gateway, &path("nobody", "invoke"), &body("a")).await;
    assert_eq!(
        (unknown.status, unknown.header("x-amzn-errortype")),
        (404, "ResourceNotFoundException")
    );
    for odd in [
        "/model/same-chat",
        "/model/same-chat/converse",
        "/model//invoke",
        "/model/a/b/invoke",
    ] {
        let response = post(&gateway, odd, &body("a")).await;
        assert!(
            matches!(response.status, 400 | 404),
            "{odd}: {}",
            response.status
        );
    }
}

#[tokio::test]
async fn tokens_are_counted_under_the_name_of_aws() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let ask = async |model: &str, inner: &Value| {
        let encoded = STANDARD.encode(inner.to_string());
        let question = json!({"input": {"invokeModel": {"body": encoded}}});
        post(&gateway, &path(model, "count-tokens"), &question).await
    };
    let mut inner = body("one two three");
    inner["temperature"] = json!(0.5);
    for (upstream, is_exact) in [
        ("messages", true),
        ("native", true),
        ("responses", true),
        ("chat", false),
    ] {
        let response = ask(&format!("other-{upstream}"), &inner).await;
        assert_eq!(response.status, 200, "{upstream}: {}", response.text());
        let counted = response.json();
        assert_eq!(counted.as_object().map(|it| it.len()), Some(1), "{counted}");
        let tokens = counted["inputTokens"].as_u64();
        assert!(tokens > Some(0), "{upstream}: {counted}");
        let is_estimated = response.header("x-omniglot-estimated") == "true";
        assert_eq!(is_estimated, !is_exact, "{upstream}");
        if is_exact {
            assert_eq!(tokens, Some(3), "{upstream}: the mock counts words");
        }
    }
    let converse = json!({"input": {"converse": {"messages": []}}});
    for wrong in [json!({}), converse] {
        let refused = post(&gateway, &path("other-messages", "count-tokens"), &wrong).await;
        assert_eq!(
            (refused.status, refused.header("x-amzn-errortype")),
            (400, "ValidationException")
        );
        assert!(
            refused.json()["message"]
                .to_string()
                .contains("invokeModel")
                || wrong == json!({})
        );
    }
}

#[tokio::test]
async fn a_signature_of_aws_is_no_key() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let signature = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/bedrock/aws4_request, \
                     SignedHeaders=host;x-amz-date, Signature=5fa00fa3";
    let request = client().post(gateway.url(&path("same-chat", "invoke")));
    let response = send(request.header("authorization", signature).json(&body("a"))).await;
    assert_eq!(response.status, 401);
    assert_eq!(
        response.header("x-amzn-errortype"),
        "UnrecognizedClientException"
    );
    let message = response.json()["message"].to_string();
    assert!(
        message.contains("Bearer") && message.contains("AWS_BEARER_TOKEN_BEDROCK"),
        "{message}"
    );
    let request = client().post(gateway.url(&path("other-chat", "invoke")));
    let response = send(request.bearer_auth("key-of-some").json(&body("a"))).await;
    assert_eq!(
        (response.status, response.header("x-amzn-errortype")),
        (403, "AccessDeniedException")
    );
}

#[tokio::test]
async fn version_and_betas_of_the_body_become_headers() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let mut asked = body("mock:echo");
    asked["anthropic_version"] = json!("2026-10-21");
    asked["anthropic_beta"] = json!(["one-2025-01-01", "two-2025-01-01"]);
    let response = post(&gateway, &path("other-messages", "invoke"), &asked).await;
    let echo = echoed_request("messages", &response);
    assert_eq!(echo["headers"]["anthropic-version"], "2026-10-21", "{echo}");
    assert_eq!(
        echo["headers"]["anthropic-beta"], "one-2025-01-01,two-2025-01-01",
        "{echo}"
    );
    let sent = echo["body"].to_string();
    assert!(!sent.contains("anthropic_"), "{sent}");
}

/// Checksums guard the frames of an event stream: what is redacted is framed afterwards.
#[tokio::test]
async fn an_error_in_a_stream_is_redacted_and_its_frame_is_whole() {
    let secret = "secret-of-the-upstream";
    let start = json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m",
        "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}});
    let message = format!("no room for {secret}");
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": message}});
    let events: String = [start, block, delta, error]
        .iter()
        .map(|event| {
            format!(
                "event: {}\ndata: {event}\n\n",
                event["type"].as_str().expect("a type")
            )
        })
        .collect();
    let head = response_head("200 OK", "text/event-stream");
    let address = fixed_response_upstream(vec![head, events.into_bytes()]);
    let gateway = Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams: [{{name: up, format: messages, base_url: \"http://{address}\", auth: {{bearer: {secret}}}}}]\n\
         models: [{{id: m, upstreams: [{{name: up}}]}}]\n"
    ));
    let asked = path("m", "invoke-with-response-stream");
    let response = post(&gateway, &asked, &body("hello")).await;
    let events = messages(&response);
    let all = format!("{events:?}");
    assert!(all.contains("no room for ***"), "{all}");
    assert!(!all.contains(secret), "{all}");
}
