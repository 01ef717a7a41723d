//! The endpoints that only pass through: completions, moderations and rankings.

use std::net::SocketAddr;

use omniglot_test_support::{Gateway, KEY, Mock, Response, client, post, send, sse_events};
use serde_json::{Value, json};

const MODELS: [(&str, &str); 3] = [
    ("completion", "/v1/completions"),
    ("moderation", "/v1/moderations"),
    ("rerank", "/v1/rerank"),
];

/// A model of each type, which its upstream calls otherwise, and more models as given.
fn config(mock: SocketAddr, keys: &str, models: &str) -> String {
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN, access_log: json}}\n\
         keys: [{{name: all, secret: {KEY}}}{keys}]\nupstreams:\n  \
         - {{name: messages, format: messages, base_url: \"http://{mock}\"}}\n  \
         - {{name: chat, format: chat, base_url: \"http://{mock}/v1\"}}\n  \
         - {{name: responses, format: responses, base_url: \"http://{mock}/v1\"}}\nmodels:\n  \
         - {{id: talker, upstreams: [{{name: chat}}]}}\n"
    );
    for (model_type, _) in MODELS {
        for upstream in ["chat", "responses"] {
            text += &format!(
                "  - {{id: {model_type}-{upstream}, model_type: {model_type}, \
                 pricing: {{input: 1000, output: 2000, per_request: 1}}, \
                 upstreams: [{{name: {upstream}, model: theirs}}]}}\n"
            );
        }
    }
    text + models
}

fn body(model_type: &str, model: &str, text: &str) -> Value {
    match model_type {
        "completion" => json!({"model": model, "prompt": text, "max_tokens": 9}),
        "moderation" => json!({"model": model, "input": text}),
        _ => json!({"model": model, "query": text, "documents": ["a cat", "a dog"], "top_n": 1}),
    }
}

async fn ask(gateway: &Gateway, path: &str, body: &Value) -> Response {
    post(gateway.url(path), body.to_string()).await
}

#[tokio::test]
async fn each_endpoint_passes_through_with_the_clients_name_of_the_model() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", ""));
    for (model_type, path) in MODELS {
        for upstream in ["chat", "responses"] {
            let model = format!("{model_type}-{upstream}");
            let response = ask(&gateway, path, &body(model_type, &model, "dog violence")).await;
            assert_eq!(response.status, 200, "{path}: {}", response.text());
            let found = response.json();
            assert_eq!(found["model"], *model);
            assert_eq!(response.header("x-omniglot-upstream"), upstream);
            match model_type {
                "completion" => assert_eq!(found["choices"][0]["text"], "You said: dog violence"),
                "moderation" => assert_eq!(found["results"][0]["flagged"], true),
                _ => assert_eq!(
                    found["results"],
                    json!([{"index": 1, "relevance_score": 0.5}])
                ),
            }
            let response = ask(&gateway, path, &body(model_type, &model, "mock:error=429")).await;
            assert_eq!(response.status, 429);
            response.error("chat");
            for bad in [
                "mock:garbage",
                "mock:empty",
                "mock:html",
                "mock:cut",
                "mock:status_200_error",
            ] {
                let response = ask(&gateway, path, &body(model_type, &model, bad)).await;
                assert_eq!(
                    response.status / 100,
                    5,
                    "{path} {bad}: {}",
                    response.text()
                );
                response.error("chat");
            }
        }
    }
    let echoed = body("completion", "completion-chat", "mock:echo");
    let response = ask(&gateway, "/v1/completions", &echoed).await.json();
    let echo: Value =
        serde_json::from_str(response["choices"][0]["text"].as_str().expect("text")).expect("JSON");
    assert_eq!(echo["path"], "/v1/completions");
    let sent = echoed.to_string().replace("completion-chat", "theirs");
    assert_eq!(echo["body"], sent);
}

#[tokio::test]
async fn a_completion_streams_and_its_usage_is_metered_whether_it_is_asked_for_or_not() {
    let mock = Mock::start();
    let mut gateway = Gateway::start(&config(mock.address, "", ""));
    let mut ids = Vec::new();
    for include_usage in [false, true] {
        let mut body = body("completion", "completion-chat", "mock:text=one two three");
        body["stream"] = true.into();
        if include_usage {
            body["stream_options"] = json!({"include_usage": true});
        }
        let response = ask(&gateway, "/v1/completions", &body).await;
        assert_eq!(response.header("content-type"), "text/event-stream");
        let events = sse_events(response.text());
        let (done, chunks) = events.split_last().expect("events");
        assert_eq!(done.1, "[DONE]");
        let chunks: Vec<Value> = chunks
            .iter()
            .map(|event| serde_json::from_str(&event.1).expect("JSON"))
            .collect();
        let text = chunks
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["text"].as_str());
        assert_eq!(text.collect::<String>(), "one two three");
        assert!(
            chunks
                .iter()
                .all(|chunk| chunk["model"] == "completion-chat")
        );
        assert_eq!(
            chunks.iter().any(|chunk| !chunk["usage"].is_null()),
            include_usage
        );
        ids.push(response.header("x-request-id").to_owned());
    }
    let mut broken = body(
        "completion",
        "completion-chat",
        "mock:text=one two mock:cut=2",
    );
    broken["stream"] = true.into();
    let response = ask(&gateway, "/v1/completions", &broken).await;
    let events = sse_events(response.text());
    let last = &events.last().expect("an event").1;
    assert!(last.contains("\"error\""), "{last}");
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
    let lines = gateway.process.lines_to_the_end();
    for id in ids {
        let line = lines
            .iter()
            .find(|line| line.contains(&id))
            .expect("a line");
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["format"], "completions");
        assert_eq!(
            (&line["input_tokens"], &line["output_tokens"]),
            (&json!(3), &json!(3))
        );
        assert_eq!(line["estimated"], false);
    }
}

#[tokio::test]
async fn models_of_other_types_and_upstreams_without_the_endpoint_are_refused() {
    let mock = Mock::start();
    let models = "  - {id: everything, features: [completion, moderation, rerank], upstreams: [{name: chat}]}\n  \
                  - {id: never, features: [completion, moderation, rerank], upstreams: [{name: messages}]}\n";
    let gateway = Gateway::start(&config(mock.address, "", models));
    for (model_type, path) in MODELS {
        let response = ask(&gateway, path, &body(model_type, "talker", "a")).await;
        assert_eq!(response.status, 400, "{}", response.text());
        let wanted = format!("models of the type {model_type}");
        assert!(response.error("chat").contains(&wanted));
        let response = ask(&gateway, path, &body(model_type, "everything", "a")).await;
        assert_eq!(response.status, 200, "{}", response.text());
        let response = ask(&gateway, path, &body(model_type, "never", "a")).await;
        assert_eq!(response.status, 400, "{}", response.text());
        assert!(response.error("chat").contains(path), "{}", response.text());
        let model = format!("{model_type}-chat");
        let chat = json!({"model": model, "messages": [{"role": "user", "content": "a"}]});
        let response = ask(&gateway, "/v1/chat/completions", &chat).await;
        assert_eq!(response.status, 400, "{}", response.text());
        let response = ask(&gateway, path, &json!({"input": "a"})).await;
        assert_eq!(response.status, 400);
        let twice = r#"{"model":"talker","model":"completion-chat"}"#;
        assert_eq!(post(gateway.url(path), twice).await.status, 400);
        let response = send(client().get(gateway.url(path)).bearer_auth(KEY)).await;
        assert_eq!((response.status, response.header("allow")), (405, "POST"));
    }
}

#[tokio::test]
async fn costs_are_those_of_the_usage_or_of_an_estimate_and_caps_hold() {
    let mock = Mock::start();
    let keys = ", {name: capped, secret: key-capped, spending_cap: 2}";
    let gateway = Gateway::start(&config(mock.address, keys, ""));
    // A thousandth for each token of the input, two for each of the output, and one for the request.
    let completion = body(
        "completion",
        "completion-chat",
        "mock:usage=5,0,4,0 mock:text=hi",
    );
    let response = ask(&gateway, "/v1/completions", &completion).await;
    assert_eq!(response.header("x-omniglot-cost"), "1.013");
    let ranking = body("rerank", "rerank-chat", "mock:usage=50,0,0,0");
    let response = ask(&gateway, "/v1/rerank", &ranking).await;
    assert_eq!(
        response.header("x-omniglot-cost"),
        "1.05",
        "{}",
        response.text()
    );
    assert_eq!(response.header("x-omniglot-estimated"), "");
    let moderation = json!({"model": "moderation-chat", "input": "a"});
    let response = ask(&gateway, "/v1/moderations", &moderation).await;
    let tokens = moderation.to_string().len().div_ceil(4);
    let cost = format!("1.{tokens:03}");
    let cost = cost.trim_end_matches('0');
    assert_eq!(response.header("x-omniglot-cost"), cost);
    assert_eq!(response.header("x-omniglot-estimated"), "true");
    let ask = async |path: &str, body: &Value| {
        let request = client().post(gateway.url(path)).bearer_auth("key-capped");
        send(request.json(body)).await
    };
    // Of each of two prompts three are made, each of which may have as many tokens as are left of the cap.
    let mut many =
        json!({"model": "completion-chat", "prompt": ["a", "b"], "max_tokens": 50, "best_of": 3});
    let response = ask("/v1/completions", &many).await;
    assert_eq!(response.status, 200, "{}", response.text());
    many["max_tokens"] = 200.into();
    assert_eq!(ask("/v1/completions", &many).await.status, 429);
    let tokens = json!({"model": "completion-chat", "prompt": vec![7; 1100], "max_tokens": 1});
    assert_eq!(ask("/v1/completions", &tokens).await.status, 429);
    let (moderation, ranking) = (
        body("moderation", "moderation-chat", "a"),
        body("rerank", "rerank-chat", "a"),
    );
    assert_eq!(ask("/v1/moderations", &moderation).await.status, 429);
    assert_eq!(ask("/v1/rerank", &ranking).await.status, 429);
}

#[tokio::test]
async fn a_capped_completion_without_a_limit_gets_the_one_that_is_reserved() {
    let mock = Mock::start();
    let keys = ", {name: capped, secret: key-capped, spending_cap: 100}";
    let gateway = Gateway::start(&config(mock.address, keys, ""));
    let body = json!({"model": "completion-chat", "prompt": "mock:echo"});
    let request = client()
        .post(gateway.url("/v1/completions"))
        .bearer_auth("key-capped");
    let response = send(request.json(&body)).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let echo = response.json()["choices"][0]["text"].clone();
    let echo: Value = serde_json::from_str(echo.as_str().expect("text")).expect("JSON");
    let sent: Value = serde_json::from_str(echo["body"].as_str().expect("a body")).expect("JSON");
    assert_eq!(
        sent,
        json!({"model": "theirs", "prompt": "mock:echo", "max_tokens": 4096})
    );
    assert_eq!(response.header("x-omniglot-adjusted"), "max_tokens");
}

/// The model takes 300 tokens of each input, of which no more is known.
#[tokio::test]
async fn every_input_that_is_no_text_reserves_the_most_that_the_model_takes() {
    let mock = Mock::start();
    let keys = ", {name: capped, secret: key-capped, spending_cap: 1}";
    let models = "  - {id: seer, features: [rerank, moderation, embedding], max_input_tokens: 300, pricing: {input: 1000}, \
                  upstreams: [{name: chat}]}\n";
    let config = config(mock.address, keys, models);
    let image = json!({"image": "https://a.example/x.png"});
    let part = json!({"type": "image_url", "image_url": {"url": "https://a.example/x.png"}});
    let text = "x".repeat(400);
    for (path, mut body, field, input) in [
        ("rerank", json!({"query": "q"}), "documents", &image),
        ("moderations", json!({}), "input", &part),
        ("embeddings", json!({}), "input", &part),
        ("embeddings", json!({}), "input", &json!(text)),
    ] {
        body["model"] = "seer".into();
        let gateway = Gateway::start(&config);
        for (inputs, is_refused) in [(4, true), (3, false)] {
            body[field] = vec![input.clone(); inputs].into();
            let request = client().post(gateway.url(&format!("/v1/{path}")));
            let response = send(request.bearer_auth("key-capped").json(&body)).await;
            let message = response.text();
            assert_eq!(response.status == 429, is_refused, "{path}: {message}");
            if is_refused {
                assert!(message.contains("may cost 1.2"), "{path}: {message}");
            }
        }
    }
}
