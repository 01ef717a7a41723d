//! Embeddings: both shapes on upstreams of every format that has them, with their losses, costs and errors.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use omniglot_test_support::{
    Gateway, KEY, Mock, Response, client, fixed_response_upstream, post, response_head, send,
};
use serde_json::{Value, json};

/// The formats whose upstreams have embeddings, with the path that their base URL ends in.
const UPSTREAMS: [(&str, &str); 3] = [("chat", "/v1"), ("native", ""), ("responses", "/v1")];

/// A model `vector-FORMAT` for each, which its upstream calls otherwise, and more models as given.
fn config(mock: SocketAddr, server: &str, keys: &str, models: &str) -> String {
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN, access_log: json{server}}}\n\
         keys: [{{name: all, secret: {KEY}}}{keys}]\nupstreams:\n  \
         - {{name: messages, format: messages, base_url: \"http://{mock}\"}}\n"
    );
    for (format, prefix) in UPSTREAMS {
        text += &format!(
            "  - {{name: {format}, format: {format}, base_url: \"http://{mock}{prefix}\"}}\n"
        );
    }
    text += "models:\n  - {id: talker, upstreams: [{name: chat}]}\n";
    for (format, _) in UPSTREAMS {
        text += &format!(
            "  - {{id: vector-{format}, model_type: embedding, pricing: {{input: 1000}}, \
             upstreams: [{{name: {format}, model: theirs}}]}}\n"
        );
    }
    text + models
}

fn native_path(model: &str, method: &str) -> String {
    format!("/v1beta/models/{model}:{method}")
}

fn content(text: &str) -> Value {
    json!({"parts": [{"text": text}]})
}

async fn ask(gateway: &Gateway, path: &str, body: &Value) -> Response {
    post(gateway.url(path), body.to_string()).await
}

/// The vectors of a response to a client of `/v1/embeddings`, whichever encoding they have.
fn vectors(response: &Response) -> Vec<Vec<f32>> {
    assert_eq!(response.status, 200, "{}", response.text());
    let body = response.json();
    assert_eq!(body["object"], "list");
    let data = body["data"].as_array().expect("a list").iter().enumerate();
    data.map(|(index, item)| {
        assert_eq!(item["index"], index);
        match &item["embedding"] {
            Value::String(text) => {
                let bytes = STANDARD.decode(text).expect("base64");
                let floats = bytes.chunks_exact(4);
                floats
                    .map(|four| f32::from_le_bytes(four.try_into().expect("four bytes")))
                    .collect()
            }
            numbers => serde_json::from_value(numbers.clone()).expect("numbers"),
        }
    })
    .collect()
}

fn native_vectors(response: &Response) -> Vec<Vec<f32>> {
    assert_eq!(response.status, 200, "{}", response.text());
    let body = response.json();
    let list = body["embeddings"].as_array().cloned();
    let list = list.unwrap_or_else(|| vec![body["embedding"].clone()]);
    let values = list.into_iter().map(|item| item["values"].clone());
    values
        .map(|values| serde_json::from_value(values).expect("numbers"))
        .collect()
}

#[tokio::test]
async fn every_client_gets_the_same_vectors_from_every_upstream() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", "", ""));
    let texts = ["cat", "dog says \"wow\"\n", "日本"];
    let mut expected: Option<Vec<Vec<f32>>> = None;
    for (upstream, _) in UPSTREAMS {
        let model = format!("vector-{upstream}");
        for encoding in [json!(null), json!("float"), json!("base64")] {
            let body = json!({"model": model, "input": texts, "encoding_format": encoding, "dimensions": 5});
            let response = ask(&gateway, "/v1/embeddings", &body).await;
            let found = vectors(&response);
            assert_eq!(
                response.json()["data"][0]["embedding"].is_string(),
                encoding == "base64"
            );
            assert_eq!(response.json()["model"], *model);
            assert_eq!(response.header("x-omniglot-upstream"), upstream);
            assert_eq!(response.header("x-omniglot-dropped"), "");
            assert_eq!(found.len(), 3);
            assert!(found.iter().all(|vector| vector.len() == 5));
            assert_eq!(
                *expected.get_or_insert_with(|| found.clone()),
                found,
                "{upstream}"
            );
        }
        let request = |text: &&str| json!({"model": format!("models/{model}"), "content": content(text), "outputDimensionality": 5});
        let batch = json!({"requests": texts.iter().map(request).collect::<Vec<_>>()});
        let response = ask(&gateway, &native_path(&model, "batchEmbedContents"), &batch).await;
        assert_eq!(Some(native_vectors(&response)), expected, "{upstream}");
        for prefix in ["/v1beta", "/v1"] {
            let path = native_path(&model, "embedContent").replace("/v1beta", prefix);
            let single = json!({"content": content("cat"), "outputDimensionality": 5});
            let response = ask(&gateway, &path, &single).await;
            let first = expected.as_ref().map(|vectors| vectors[..1].to_vec());
            assert_eq!(Some(native_vectors(&response)), first, "{upstream}");
        }
        let azure = format!("/openai/deployments/{model}/embeddings?api-version=2024-10-21");
        let body = json!({"input": "cat", "dimensions": 5});
        let response = ask(&gateway, &azure, &body).await;
        assert_eq!(
            vectors(&response)[0],
            expected.as_ref().expect("vectors")[0]
        );
    }
}

#[tokio::test]
async fn the_upstream_gets_the_clients_bytes_with_its_own_name_of_the_model() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", "", ""));
    let sent = async |path: &str, body: &Value| {
        let response = ask(&gateway, path, body).await;
        let echo = response.json()["mock_request"].clone();
        let echo: Value = serde_json::from_str(echo.as_str().expect("an echo")).expect("JSON");
        let (path, body) = (echo["path"].clone(), echo["body"].clone());
        assert!(!echo.to_string().contains(KEY));
        (path, body.as_str().expect("a body").to_owned())
    };
    for upstream in ["chat", "responses"] {
        let model = format!("vector-{upstream}");
        let tokens = json!({"input": [[1, 2], [3]], "model": model, "user": "mock:echo"});
        let (path, _) = {
            let mut body = tokens.clone();
            body["input"] = json!("mock:echo");
            sent("/v1/embeddings", &body).await
        };
        assert_eq!(path, "/v1/embeddings");
        let response = ask(&gateway, "/v1/embeddings", &tokens).await;
        assert_eq!(vectors(&response).len(), 2);
        assert_eq!(response.json()["usage"]["prompt_tokens"], 3);
        let body = json!({"input": "mock:echo", "model": model, "user": "u"});
        let (_, sent) = sent("/v1/embeddings", &body).await;
        assert_eq!(sent, body.to_string().replace(&model, "theirs"));
    }
    let body = json!({
        "requests": [{"model": "models/vector-native", "content": content("mock:echo"), "taskType": "CLUSTERING", "title": "t"}]
    });
    let path = native_path("vector-native", "batchEmbedContents");
    let (path, sent) = sent(&path, &body).await;
    assert_eq!(path, "/v1beta/models/theirs:batchEmbedContents");
    assert_eq!(sent, body.to_string().replace("vector-native", "theirs"));
}

#[tokio::test]
async fn losses_are_reported_and_what_cannot_be_translated_is_refused() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", "", ""));
    let body = json!({"model": "vector-native", "input": "a", "user": "u"});
    let response = ask(&gateway, "/v1/embeddings", &body).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("x-omniglot-dropped"), "user");
    let path = native_path("vector-chat", "embedContent");
    let body = json!({"content": content("a"), "taskType": "CLUSTERING", "title": "t"});
    let response = ask(&gateway, &path, &body).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("x-omniglot-dropped"), "taskType, title");
    let body = json!({"model": "vector-native", "input": [1, 2]});
    let response = ask(&gateway, "/v1/embeddings", &body).await;
    assert_eq!(response.status, 400);
    assert!(
        response.error("chat").contains("input[0]"),
        "{}",
        response.text()
    );
    let image = json!({"parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}]});
    let response = ask(&gateway, &path, &json!({"content": image})).await;
    assert_eq!(response.status, 400);
    assert!(response.error("native").contains("content.parts[0]"));
    let strict = Gateway::start(&config(mock.address, ", on_unsupported: reject", "", ""));
    let body = json!({"model": "vector-native", "input": "a", "user": "u"});
    let response = ask(&strict, "/v1/embeddings", &body).await;
    assert_eq!(response.status, 400);
    assert!(response.error("chat").contains("user"));
}

#[tokio::test]
async fn a_model_of_another_type_is_refused_in_both_directions() {
    let mock = Mock::start();
    let models = "  - {id: both, features: [embedding], upstreams: [{name: chat}]}\n  \
                  - {id: never, model_type: embedding, upstreams: [{name: messages}]}\n";
    let gateway = Gateway::start(&config(mock.address, "", "", models));
    let chat =
        |model: &str| json!({"model": model, "messages": [{"role": "user", "content": "a"}]});
    let embed = |model: &str| json!({"model": model, "input": "a"});
    let native = native_path("vector-native", "generateContent");
    for (path, body, format, said) in [
        (
            "/v1/embeddings",
            embed("talker"),
            "chat",
            "of the type chat",
        ),
        (
            "/v1/chat/completions",
            chat("vector-chat"),
            "chat",
            "of the type embedding",
        ),
        (
            &native,
            json!({"contents": [content("a")]}),
            "native",
            "of the type embedding",
        ),
        (
            "/v1/embeddings",
            embed("never"),
            "chat",
            "messages, which has no embeddings",
        ),
        (
            "/v1/embeddings",
            json!({"model": "vector-chat", "input": vec!["a"; 2049]}),
            "chat",
            "2048",
        ),
        ("/v1/embeddings", json!({"input": "a"}), "chat", "model"),
    ] {
        let response = ask(&gateway, path, &body).await;
        assert_eq!(response.status, 400, "{}", response.text());
        let message = response.error(format);
        assert!(message.contains(said), "{message}");
    }
    for (path, body) in [
        ("/v1/embeddings", embed("both")),
        ("/v1/chat/completions", chat("both")),
    ] {
        let response = ask(&gateway, path, &body).await;
        assert_eq!(response.status, 200, "{}", response.text());
    }
    let response = ask(&gateway, "/v1/embeddings", &embed("nobody")).await;
    assert_eq!(response.status, 404);
    let response = send(client().get(gateway.url("/v1/embeddings")).bearer_auth(KEY)).await;
    assert_eq!((response.status, response.header("allow")), (405, "POST"));
    // What a gateway without a list serves may be of any type.
    let open = Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams: [{{name: chat, format: chat, base_url: \"http://{}/v1\"}}]\n",
        mock.address
    ));
    for model in ["chat/x", "x"] {
        let response = ask(&open, "/v1/embeddings", &embed(model)).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.json()["model"], model);
    }
    let listed = client()
        .get(gateway.url("/v1beta/models/vector-chat"))
        .bearer_auth(KEY);
    let methods = send(listed).await.json()["supportedGenerationMethods"].clone();
    assert_eq!(
        methods,
        json!(["embedContent", "batchEmbedContents", "countTokens"])
    );
}

#[tokio::test]
async fn tokens_are_metered_logged_and_counted() {
    let mock = Mock::start();
    let mut gateway = Gateway::start(&config(mock.address, "", "", ""));
    // A thousandth for each token of the input.
    for (model, text, cost, tokens, estimated) in [
        ("vector-chat", "one two three", "0.003", 3, ""),
        ("vector-native", "mock:usage=7,0,0,0 a", "0.007", 7, ""),
        // Without a count, a token for four bytes of the body.
        ("vector-native", "one two three", "0.013", 13, "true"),
    ] {
        let body = json!({"input": text, "model": model});
        let response = ask(&gateway, "/v1/embeddings", &body).await;
        assert_eq!(response.header("x-omniglot-cost"), cost, "{text}");
        assert_eq!(response.header("x-omniglot-estimated"), estimated, "{text}");
        assert_eq!(response.json()["usage"]["prompt_tokens"], tokens, "{text}");
        assert_eq!(response.json()["usage"]["total_tokens"], tokens, "{text}");
    }
    let refused = ask(&gateway, "/v1/embeddings", &json!({})).await;
    assert_eq!(refused.status, 400);
    let path = native_path("vector-chat", "embedContent");
    assert_eq!(
        ask(&gateway, &path, &json!({"content": content("a")}))
            .await
            .status,
        200
    );
    gateway.until_idle().await;
    let requests = gateway.metric("omniglot_requests_total").await;
    let of = |model: &str, status: u16| {
        let labels = format!("format=\"embeddings\",model=\"{model}\"");
        let status = format!("status=\"{status}\"");
        let line = requests
            .iter()
            .find(|line| line.contains(&labels) && line.contains(&status));
        line.unwrap_or_else(|| panic!("{labels}: {requests:?}"))
            .clone()
    };
    assert!(of("vector-chat", 200).ends_with(" 2"), "{requests:?}");
    assert!(of("vector-native", 200).ends_with(" 2"), "{requests:?}");
    assert!(of("", 400).ends_with(" 1"), "{requests:?}");
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
    let lines = gateway.process.lines_to_the_end();
    let lines: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 5);
    assert!(lines.iter().all(|line| line["format"] == "embeddings"));
    assert_eq!(lines[0]["input_tokens"], 3);
    assert_eq!(lines[0]["output_tokens"], 0);
    assert_eq!(lines[1]["upstream_format"], "native");
}

#[tokio::test]
async fn a_cap_reserves_the_input_and_nothing_else() {
    let mock = Mock::start();
    let keys = ", {name: capped, secret: key-capped, spending_cap: 0.1}, \
                {name: native, secret: key-native, spending_cap: 0.1}";
    let gateway = Gateway::start(&config(mock.address, "", keys, ""));
    let ask = async |body: &Value| {
        let request = client().post(gateway.url("/v1/embeddings"));
        send(request.bearer_auth("key-capped").json(body)).await
    };
    // 60 bytes are at most 20 tokens, which may cost 0.02; an output would cost more than all of the cap.
    let response = ask(&json!({"model": "vector-chat", "input": "a"})).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("x-omniglot-cost"), "0.001");
    // Each number is a token, however short.
    let tokens = |count: usize| json!({"model": "vector-chat", "input": vec![7; count]});
    let response = ask(&tokens(60)).await;
    assert_eq!(
        response.header("x-omniglot-cost"),
        "0.06",
        "{}",
        response.text()
    );
    let response = ask(&tokens(60)).await;
    assert_eq!(response.status, 429);
    let error = response.json();
    assert_eq!(error["error"]["code"], "insufficient_quota");
    // What only the upstream can count may be as much as the model takes.
    let further = json!({"model": "vector-chat", "input": "a", "messages": [{"role": "user", "content": "b"}]});
    assert_eq!(ask(&further).await.status, 429);
    let unknown = json!({"model": "vector-chat", "input": [{"type": "text", "text": "a"}]});
    assert_eq!(ask(&unknown).await.status, 429);
    // Also in Gemini's own methods.
    for (further, status) in [("title", 200), ("inputs", 429)] {
        let body = json!({"content": content("a"), further: "b"});
        let path = native_path("vector-native", "embedContent");
        let asked = client().post(gateway.url(&path));
        let response = send(asked.bearer_auth("key-native").json(&body)).await;
        assert_eq!(response.status, status, "{further}: {}", response.text());
    }
}

/// A gateway with one model `m` of embeddings at a chat and then a native upstream with fixed bodies, after which the
/// mock is asked.
fn gateway_before_mock(mock: SocketAddr, format: &str, body: &str) -> Gateway {
    let head = response_head("200 OK", "application/json");
    let address = fixed_response_upstream(vec![head, body.as_bytes().to_vec()]);
    let prefix = if format == "chat" { "/v1" } else { "" };
    Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams:\n  - {{name: bad, format: {format}, base_url: \"http://{address}{prefix}\"}}\n  \
         - {{name: good, format: chat, base_url: \"http://{mock}/v1\"}}\nmodels:\n  \
         - {{id: only, model_type: embedding, upstreams: [{{name: bad}}]}}\n  \
         - {{id: both, model_type: embedding, upstreams: [{{name: bad}}, {{name: good, priority: 1}}]}}\n"
    ))
}

#[tokio::test]
async fn an_incomplete_response_is_an_error_and_the_next_upstream_is_asked() {
    let mock = Mock::start();
    for (format, body) in [
        ("chat", r#"{"data":[{"index":0,"embedding":[1]}]}"#),
        (
            "chat",
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}"#,
        ),
        (
            "chat",
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":"AADAfw=="}]}"#,
        ),
        (
            "chat",
            r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"emb"#,
        ),
        ("chat", r#"{"error":{"message":"no luck"}}"#),
        ("chat", "<html>"),
        ("native", r#"{"embeddings":[{"values":[1]}]}"#),
        ("native", r#"{"embeddings":[{"values":[1]},{"values":[]}]}"#),
        (
            "native",
            r#"{"embeddings":[{"values":[1]},{"values":[NaN]}]}"#,
        ),
        ("native", "{}"),
    ] {
        let gateway = gateway_before_mock(mock.address, format, body);
        let input = json!(["a", "b"]);
        let response = ask(
            &gateway,
            "/v1/embeddings",
            &json!({"model": "only", "input": input}),
        )
        .await;
        assert_eq!(response.status / 100, 5, "{body}: {}", response.text());
        response.error("chat");
        let response = ask(
            &gateway,
            "/v1/embeddings",
            &json!({"model": "both", "input": input}),
        )
        .await;
        assert_eq!(vectors(&response).len(), 2, "{body}");
        assert_eq!(response.header("x-omniglot-attempts"), "2");
        let path = native_path("only", "batchEmbedContents");
        let request = json!({"content": content("a")});
        let response = ask(&gateway, &path, &json!({"requests": [request, request]})).await;
        assert_eq!(response.status / 100, 5, "{body}: {}", response.text());
        response.error("native");
    }
}

#[tokio::test]
async fn errors_of_upstreams_come_in_the_clients_shape() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", "", ""));
    for (upstream, _) in UPSTREAMS {
        let model = format!("vector-{upstream}");
        let body = json!({"model": model, "input": "mock:error=429"});
        let response = ask(&gateway, "/v1/embeddings", &body).await;
        assert_eq!(response.status, 429, "{}", response.text());
        response.error("chat");
        assert_eq!(response.header("retry-after"), "7");
        let path = native_path(&model, "embedContent");
        let response = ask(
            &gateway,
            &path,
            &json!({"content": content("mock:error=400")}),
        )
        .await;
        assert_eq!(response.status, 400);
        response.error("native");
        for bad in ["mock:garbage", "mock:empty", "mock:html", "mock:cut"] {
            let body = json!({"model": model, "input": bad});
            let response = ask(&gateway, "/v1/embeddings", &body).await;
            assert_eq!(response.status, 502, "{bad}: {}", response.text());
        }
    }
}

/// The official client names the model in every request of a batch, which is the one of the path.
#[tokio::test]
async fn keys_with_limits_may_name_the_model_of_the_path_and_no_other() {
    let mock = Mock::start();
    let keys = ", {name: capped, secret: key-capped, spending_cap: 100}, \
                {name: some, secret: key-some, models: [\"vector-*\"]}";
    let gateway = Gateway::start(&config(mock.address, "", keys, ""));
    for key in ["key-capped", "key-some"] {
        for (model, in_body, further, status) in [
            ("vector-native", "models/vector-native", "title", 200),
            ("vector-native", "models/vector-chat", "title", 400),
            (
                "vector-native",
                "models/vector-native",
                "fallback_model",
                400,
            ),
            ("talker", "models/talker", "title", 400),
        ] {
            let request = json!({"model": in_body, "content": content("a"), further: "x"});
            let path = native_path(model, "batchEmbedContents");
            let asked = client().post(gateway.url(&path)).bearer_auth(key);
            let response = send(asked.json(&json!({"requests": [request]}))).await;
            // One key may not use the model at all.
            let expected = if (key, model) == ("key-some", "talker") {
                403
            } else {
                status
            };
            assert_eq!(
                response.status,
                expected,
                "{key} {in_body} {further}: {}",
                response.text()
            );
        }
        let config = json!({"content": content("a"), "embedContentConfig": {"model": "talker"}});
        let path = native_path("vector-native", "embedContent");
        let asked = client().post(gateway.url(&path)).bearer_auth(key);
        let refused = send(asked.json(&config)).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.text().contains("embedContentConfig.model"));
        let body = json!({"model": "vector-chat", "input": "a", "models": ["talker"]});
        let asked = client()
            .post(gateway.url("/v1/embeddings"))
            .bearer_auth(key);
        assert_eq!(send(asked.json(&body)).await.status, 400);
    }
}
