//! A key at its spending cap: the error in each format, what is still served, and what a reload keeps.

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, TIMEOUT, client, echoed_request, request, send,
    wait_until,
};
use serde_json::{Value, json};

use super::config;

/// A thousandth for every token of the answer, so that a limit of 100 may cost 0.1.
const MODELS: &str = "  - {id: m, pricing: {output: 1000}, upstreams: [{name: chat}]}\n  \
                      - {id: free, pricing: {output: 0}, upstreams: [{name: chat}]}\n";

fn capped(keys: &[(&str, &str)]) -> String {
    let keys = keys.iter();
    keys.map(|(name, cap)| format!(", {{name: {name}, secret: key-{name}, {cap}}}"))
        .collect()
}

/// A request whose answer is at most so many tokens, and says that it has been as many.
async fn send_request(
    gateway: &Gateway,
    format: &str,
    key: &str,
    model: &str,
    tokens: u64,
) -> Response {
    let words = format!("mock:usage=5,0,{tokens},0 mock:text=hi");
    let (path, mut body) = request(format, model, &words, false);
    match format {
        "chat" => body["max_completion_tokens"] = tokens.into(),
        "messages" => body["max_tokens"] = tokens.into(),
        "responses" => body["max_output_tokens"] = tokens.into(),
        _ => body["generationConfig"]["maxOutputTokens"] = tokens.into(),
    }
    let secret = format!("key-{key}");
    send(
        client()
            .post(gateway.url(&path))
            .bearer_auth(secret)
            .json(&body),
    )
    .await
}

/// Several processes may spend of one cap: each tells what all of them have spent, as far as it is recorded.
#[tokio::test]
async fn a_key_sees_what_another_process_has_spent() {
    let (mock, directory) = (Mock::start(), tempfile::tempdir().expect("a directory"));
    let path = directory.path().display();
    let keys = capped(&[("capped", "spending_cap: 1")]);
    let [spending, watching] = ["one", "two"].map(|name| {
        let config = config(mock.address, &keys, MODELS);
        Gateway::start(&format!(
            "{config}store: \"sqlite:{path}/store.db\"\njournal: {{path: \"{path}/{name}\"}}\n"
        ))
    });
    let own_key = async || {
        let asked = client()
            .get(watching.url("/api/key"))
            .bearer_auth("key-capped");
        let own = send(asked).await;
        assert_eq!(own.status, 200, "{}", own.text());
        own.json()
    };
    assert_eq!(own_key().await["spent"].to_string(), "0");
    let paid = send_request(&spending, "chat", "capped", "m", 900).await;
    assert_eq!(paid.status, 200, "{}", paid.text());
    wait_until("it is recorded", async || {
        own_key().await["spent"].as_f64() == Some(0.9)
    })
    .await;
    assert_eq!(own_key().await["left"].to_string(), "0.1");
}

/// An upstream that thinks within a budget is asked for as much as was reserved, not for the budget on top of it.
#[tokio::test]
async fn a_budget_for_reasoning_does_not_exceed_what_was_reserved() {
    let mock = Mock::start();
    let keys = capped(&[
        ("capped", "spending_cap: 10"),
        ("free", "models: [thinker]"),
    ]);
    let models = "  - {id: thinker, pricing: {output: 1000}, capabilities: {messages_thinking: budget}, \
                  upstreams: [{name: messages}]}\n";
    let gateway = Gateway::start(&config(mock.address, &keys, models));
    for (format, field, value) in [
        ("chat", "reasoning_effort", json!("high")),
        ("responses", "reasoning", json!({"effort": "high"})),
        (
            "native",
            "generationConfig",
            json!({"thinkingConfig": {"thinkingBudget": 2_000_000}}),
        ),
    ] {
        let (path, mut body) = request(format, "thinker", "mock:echo", false);
        body[field] = value;
        let sent = async |key: &str| {
            let asked = client().post(gateway.url(&path)).bearer_auth(key);
            let response = send(asked.json(&body)).await;
            let echoed = echoed_request(format, &response);
            let body = echoed["body"].as_str().expect("the body that was sent");
            let body: Value = serde_json::from_str(body).expect("JSON");
            let count = |value: &Value| value.as_u64().expect("a count");
            let budget = count(&body["thinking"]["budget_tokens"]);
            (count(&body["max_tokens"]), budget)
        };
        let (most, budget) = sent("key-capped").await;
        assert!(
            most == 4096 && budget < most,
            "{format}: {budget} of {most}"
        );
        let (most, budget) = sent("key-free").await;
        assert_eq!(most, budget + 4096, "{format}");
    }
}

/// What such a response costs is known when nobody asks for it any more.
#[tokio::test]
async fn a_key_with_a_cap_gets_no_response_in_the_background() {
    let mock = Mock::start();
    let keys = capped(&[("capped", "spending_cap: 10")]);
    let gateway = Gateway::start(&config(mock.address, &keys, ""));
    for (background, status) in [(true, 400), (false, 200)] {
        let (path, mut body) = request("responses", "priced-responses", "hello", false);
        body["background"] = background.into();
        let asked = client().post(gateway.url(&path)).bearer_auth("key-capped");
        let response = send(asked.json(&body)).await;
        assert_eq!(response.status, status, "{}", response.text());
        if status == 400 {
            let message = response.error("responses");
            assert!(message.starts_with("background: a key with a spending cap"));
        }
    }
}

#[tokio::test]
async fn a_key_with_a_cap_leaves_no_tools_in_a_kept_conversation() {
    let mock = Mock::start();
    let keys = capped(&[("capped", "spending_cap: 1000")]);
    let model = |name: &str, keeps: bool| {
        format!(
            "  - {{id: {name}, pricing: {{input: 1}}, max_input_tokens: 1000, capabilities: {{responses_keeps_state: {keeps}}}, \
             upstreams: [{{name: responses}}]}}\n"
        )
    };
    let models = [model("keeps", true), model("forgets", false)].concat();
    let gateway = Gateway::start(&config(mock.address, &keys, &models));
    for (key, name, store, is_refused) in [
        ("key-capped", "keeps", None, true),
        ("key-capped", "keeps", Some(false), false),
        ("key-capped", "forgets", None, false),
        (KEY, "keeps", None, false),
    ] {
        let (path, mut body) = request("responses", name, "hello", false);
        body["input"] = json!([
            {"type": "additional_tools", "tools": [{"type": "web_search"}]},
            {"role": "user", "content": "hello"},
        ]);
        if let Some(store) = store {
            body["store"] = store.into();
        }
        let asked = client().post(gateway.url(&path)).bearer_auth(key);
        let response = send(asked.json(&body)).await;
        // The mock has no such tools: what it gets it refuses, in other words.
        let refusal = "input: the upstream would keep the tools";
        let message = response.error("responses");
        assert_eq!(
            message.starts_with(refusal),
            is_refused,
            "{name}: {message}"
        );
    }
}

#[tokio::test]
async fn a_key_at_its_cap_gets_an_error_in_every_format() {
    let mock = Mock::start();
    let keys = capped(&[
        ("once", "spending_cap: 0.1"),
        ("daily", "spending_cap: 0.1, reset: daily"),
    ]);
    let gateway = Gateway::start(&config(mock.address, &keys, MODELS));
    for key in ["once", "daily"] {
        let response = send_request(&gateway, "chat", key, "m", 100).await;
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("x-omniglot-cost"), "0.1");
        for (format, _) in FORMATS {
            let response = send_request(&gateway, format, key, "m", 1).await;
            assert_eq!(response.status, 429, "{}", response.text());
            let message = response.error(format);
            let told = format!("the API key `{key}` has reached its spending cap of 0.1; it ");
            assert!(message.starts_with(&told), "{message}");
            let error = &response.json()["error"];
            let code = match format {
                "messages" => &error["type"],
                "native" => &error["status"],
                _ => &error["code"],
            };
            let expected = match format {
                "messages" => "rate_limit_error",
                "native" => "RESOURCE_EXHAUSTED",
                _ => "insufficient_quota",
            };
            assert_eq!(code, expected, "{format}");
            let wait = response.header("retry-after");
            match key {
                "once" => {
                    assert!(message.ends_with("it does not reset"), "{message}");
                    assert_eq!(wait, "", "{format}");
                }
                _ => {
                    assert!(message.ends_with("T00:00:00Z"), "{message}");
                    let wait: u64 = wait.parse().expect("seconds");
                    assert!(wait <= 24 * 60 * 60, "{wait}");
                }
            }
        }
        // What costs nothing goes on, and so do other keys.
        assert_eq!(
            send_request(&gateway, "chat", key, "free", 100)
                .await
                .status,
            200
        );
        let secret = format!("key-{key}");
        let (_, count) = request("responses", "m", "hello", false);
        let url = gateway.url("/v1/responses/input_tokens");
        let mut count = count;
        count.as_object_mut().expect("an object").remove("stream");
        let counted = send(client().post(url).bearer_auth(secret).json(&count)).await;
        assert_eq!(counted.status, 200, "{}", counted.text());
    }
}

#[tokio::test]
async fn the_rest_of_a_cap_can_be_spent_on_shorter_responses() {
    let mock = Mock::start();
    let keys = capped(&[("dev", "spending_cap: 0.1")]);
    let gateway = Gateway::start(&config(mock.address, &keys, MODELS));
    // 4096 tokens where nothing is said, and a hundred twice over with two choices.
    for (limit, choices) in [(Value::Null, 1), (100.into(), 2)] {
        let (path, mut body) = request("chat", "m", "hello", false);
        (body["max_tokens"], body["n"]) = (limit, choices.into());
        let asked = client().post(gateway.url(&path)).bearer_auth("key-dev");
        let response = send(asked.json(&body)).await;
        assert_eq!(response.status, 429, "{}", response.text());
        let message = response.error("chat");
        let most = if choices == 1 { "4.096" } else { "0.2" };
        let told =
            format!("has 0.1 left of its spending cap of 0.1, and this request may cost {most}");
        assert!(message.contains(&told), "{message}");
    }
    for (tokens, status) in [(60, 200), (60, 429), (40, 200), (1, 429)] {
        let response = send_request(&gateway, "messages", "dev", "m", tokens).await;
        assert_eq!(response.status, status, "{tokens}: {}", response.text());
    }
}

#[tokio::test]
async fn spending_survives_a_reload() {
    let mock = Mock::start();
    let with = |cap: &str| config(mock.address, &capped(&[("dev", cap)]), MODELS);
    let gateway = Gateway::start(&with("limits: {concurrency: 9}"));
    // Without a cap too: one may be set later.
    assert_eq!(
        send_request(&gateway, "chat", "dev", "m", 70).await.status,
        200
    );
    gateway.until_idle().await;
    let reloaded = async |config: &str, times: usize| {
        gateway.rewrite(config);
        gateway.process.signal("HUP");
        let taken = format!("omniglot_config_reloads_total{{outcome=\"taken\"}} {times}");
        wait_until("the reload is taken", async || {
            gateway
                .metric("omniglot_config_reloads_total")
                .await
                .contains(&taken)
        })
        .await;
    };
    reloaded(&with("spending_cap: 0.1"), 1).await;
    assert_eq!(
        send_request(&gateway, "chat", "dev", "m", 31).await.status,
        429
    );
    assert_eq!(
        send_request(&gateway, "chat", "dev", "m", 20).await.status,
        200
    );
    gateway.until_idle().await;
    // A key that is gone for a while has still spent what it has.
    reloaded(&config(mock.address, "", MODELS), 2).await;
    assert_eq!(
        send_request(&gateway, "chat", "dev", "m", 1).await.status,
        401
    );
    reloaded(&with("spending_cap: 0.1"), 3).await;
    let response = send_request(&gateway, "chat", "dev", "m", 11).await;
    assert!(
        response.error("chat").contains("has 0.01 left"),
        "{}",
        response.text()
    );
    reloaded(&with("spending_cap: 0.2, reset: monthly"), 4).await;
    assert_eq!(
        send_request(&gateway, "chat", "dev", "m", 110).await.status,
        200
    );
}

#[tokio::test]
async fn an_image_is_not_counted_as_text() {
    let mock = Mock::start();
    let models = "  - {id: m, pricing: {input: 1}, upstreams: [{name: chat}]}\n";
    let keys = capped(&[("dev", "spending_cap: 0.5")]);
    let gateway = Gateway::start(&config(mock.address, &keys, models));
    // As words, 20 MiB would be millions of tokens and cost more than the cap.
    let image = format!(
        "data:image/png;base64,{}",
        "iVBORw0K".repeat((20 << 20) / 8)
    );
    let parts = serde_json::json!([{"type": "text", "text": "mock:usage=9,0,1,0"},
        {"type": "image_url", "image_url": {"url": image}}]);
    let body = serde_json::json!({"model": "m", "messages": [{"role": "user", "content": parts}]});
    let request = client().post(gateway.url("/v1/chat/completions"));
    let response = send(request.bearer_auth("key-dev").timeout(TIMEOUT).json(&body)).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.header("x-omniglot-cost"), "0.000009");
    let words = serde_json::json!([{"role": "user", "content": "many words ".repeat(200_000)}]);
    let body = serde_json::json!({"model": "m", "messages": words});
    let request = client().post(gateway.url("/v1/chat/completions"));
    let response = send(request.bearer_auth("key-dev").json(&body)).await;
    assert_eq!(response.status, 429, "{}", response.text());
}

#[tokio::test]
async fn no_spelling_of_a_limit_goes_past_the_reservation() {
    let mock = Mock::start();
    let models = "  - {id: m, pricing: {output: 1000}, upstreams: [{name: chat}]}\n  \
                  - {id: n, pricing: {output: 1000}, upstreams: [{name: native}]}\n";
    let keys = capped(&[("dev", "spending_cap: 5")]);
    let gateway = Gateway::start(&config(mock.address, &keys, models));
    let contents = r#""contents":[{"role":"user","parts":[{"text":"mock:name=in"}]}]"#;
    let messages = r#""model":"m","messages":[{"role":"user","content":"mock:name=in"}]"#;
    let native = "/v1beta/models/n:generateContent";
    let chat = "/v1/chat/completions";
    let many = "64000";
    for (path, start, fields, names) in [
        (
            native,
            contents,
            format!(r#""generationConfig":{{}},"generation_config":{{"maxOutputTokens":{many}}}"#),
            &["`generationConfig`", "`generation_config`"][..],
        ),
        (
            native,
            contents,
            format!(r#""generationConfig":{{}},"generationConfig":{{"maxOutputTokens":{many}}}"#),
            &["`generationConfig`"],
        ),
        (
            native,
            contents,
            format!(r#""generationconfig":{{"maxOutputTokens":{many}}}"#),
            &["`generationconfig`", "`generationConfig`"],
        ),
        (
            native,
            contents,
            format!(r#""generationConfig":{{"maxOutputTokens":1,"max_output_tokens":{many}}}"#),
            &[
                "`generationConfig.maxOutputTokens`",
                "`generationConfig.max_output_tokens`",
            ],
        ),
        (
            native,
            contents,
            r#""model":"models/other""#.to_owned(),
            &["`other`", "`n`"],
        ),
        (
            chat,
            messages,
            format!(r#""max_tokens":1,"Max_Tokens":{many}"#),
            &["`Max_Tokens`", "`max_tokens`"],
        ),
        (
            chat,
            messages,
            r#""max_tokens":1,"N":64000"#.to_owned(),
            &["`N`", "`n`"],
        ),
        (
            chat,
            messages,
            r#""Model":"n""#.to_owned(),
            &["`Model`", "`model`"],
        ),
        (
            chat,
            messages,
            r#""max_tokens":-1"#.to_owned(),
            &["`max_tokens`", "got -1"],
        ),
        (
            chat,
            messages,
            r#""max_tokens":[64000]"#.to_owned(),
            &["`max_tokens`", "got an array"],
        ),
        (
            chat,
            messages,
            r#""stream":true,"stream_options":{"include_usage":true,"include_usage":false}"#
                .to_owned(),
            &["`stream_options.include_usage`"],
        ),
    ] {
        let body = format!("{{{start},{fields}}}");
        let request = client().post(gateway.url(path)).bearer_auth("key-dev");
        let response = send(request.body(body)).await;
        assert_eq!(response.status, 400, "{fields}: {}", response.text());
        for name in names {
            assert!(
                response.text().contains(name),
                "{fields}: {}",
                response.text()
            );
        }
    }
    // An upstream that heeds the 0 may take it for no limit, and in translation too one of both is lost.
    for (model, limits, field) in [
        (
            "m",
            r#""max_tokens":0,"max_completion_tokens":5"#,
            "max_tokens",
        ),
        (
            "m",
            r#""max_tokens":5,"max_completion_tokens":0"#,
            "max_completion_tokens",
        ),
        (
            "n",
            r#""max_tokens":0,"max_completion_tokens":5"#,
            "max_tokens",
        ),
    ] {
        let messages = messages.replace(r#""model":"m""#, &format!(r#""model":"{model}""#));
        let messages = messages.replace("mock:name=in", "hello");
        for (key, is_refused) in [("key-dev", true), (KEY, false)] {
            let body = format!(r#"{{{messages},{limits}}}"#);
            let request = client().post(gateway.url(chat)).bearer_auth(key);
            let response = send(request.body(body)).await;
            let start = format!("{field}: an upstream may take a limit of 0 for none");
            let text = response.text();
            assert_eq!(text.contains(&start), is_refused, "{limits}: {text}");
            assert!(response.status == 400 || !is_refused, "{limits}: {text}");
        }
    }
    // Of two limits the larger one is reserved.
    let body = format!(r#"{{{messages},"max_tokens":6000,"max_completion_tokens":1}}"#);
    let request = client().post(gateway.url(chat)).bearer_auth("key-dev");
    let response = send(request.body(body)).await;
    assert_eq!(response.status, 429, "{}", response.text());
    assert!(
        response.text().contains("may cost 6"),
        "{}",
        response.text()
    );
    assert_eq!(mock.seen("in", "started").await, 0);
}

/// The prices of a model are those of its usual service.
#[tokio::test]
async fn a_service_with_other_prices_is_refused_for_a_key_with_a_cap() {
    let mock = Mock::start();
    let capped = ", {name: capped, secret: key-capped, spending_cap: 10}";
    let models = "  - {id: free, upstreams: [{name: chat}]}\n";
    let gateway = Gateway::start(&config(mock.address, capped, models));
    let ask = async |key: &str, format: &str, model: &str, field: &str, value: &str| {
        let (path, mut body) = request(format, model, "hello", false);
        body[field] = value.into();
        let asked = client().post(gateway.url(&path)).bearer_auth(key);
        send(asked.json(&body)).await
    };
    for (format, field, dear, usual) in [
        ("chat", "service_tier", "priority", "default"),
        ("responses", "service_tier", "fast", "flex"),
        ("messages", "speed", "fast", "standard"),
        ("messages", "inference_geo", "us", "global"),
        ("chat", "speed", "fast", "standard"),
        ("native", "serviceTier", "priority", "standard"),
    ] {
        // A tier goes along in translation.
        for upstream in ["chat", format] {
            let model = format!("priced-{upstream}");
            let refused = ask("key-capped", format, &model, field, dear).await;
            assert_eq!(refused.status, 400, "{field}: {}", refused.text());
            let message = refused.error(format);
            assert!(
                message.starts_with(&format!("{field}: `{dear}` may cost more")),
                "{message}"
            );
            let served = ask("key-capped", format, &model, field, usual).await;
            assert_eq!(served.status, 200, "{field}: {}", served.text());
            let served = ask(KEY, format, &model, field, dear).await;
            assert_eq!(served.status, 200, "{field}: {}", served.text());
        }
    }
    let served = ask("key-capped", "chat", "free", "service_tier", "priority").await;
    assert_eq!(served.status, 200, "{}", served.text());
}

/// A router has several hosts for a model, each with its own prices.
#[tokio::test]
async fn a_host_that_the_client_chooses_is_refused_for_a_key_with_a_cap() {
    let mock = Mock::start();
    let capped = ", {name: capped, secret: key-capped, spending_cap: 100}";
    let models = "  - {id: free, upstreams: [{name: chat}]}\n";
    let gateway = Gateway::start(&config(mock.address, capped, models));
    let ask = async |key: &str, format: &str, model: &str, provider: &serde_json::Value| {
        let (path, mut body) = request(format, model, "hello", false);
        body["provider"] = provider.clone();
        let asked = client().post(gateway.url(&path)).bearer_auth(key);
        send(asked.json(&body)).await
    };
    for format in ["chat", "messages", "responses"] {
        let model = format!("priced-{format}");
        for (provider, field) in [
            (serde_json::json!({"sort": "throughput"}), "provider.sort"),
            (
                serde_json::json!({"zdr": true, "order": ["dear"]}),
                "provider.order",
            ),
            (serde_json::json!({"only": ["dear"]}), "provider.only"),
            (serde_json::json!("dear"), "provider"),
        ] {
            let refused = ask("key-capped", format, &model, &provider).await;
            assert_eq!(refused.status, 400, "{format}: {}", refused.text());
            let message = refused.error(format);
            let expected = format!("{field}: it may choose a host that costs more");
            assert!(message.starts_with(&expected), "{message}");
            let served = ask(KEY, format, &model, &provider).await;
            assert_eq!(served.status, 200, "{format}: {}", served.text());
        }
        let neutral = serde_json::json!({"data_collection": "deny", "require_parameters": true});
        let served = ask("key-capped", format, &model, &neutral).await;
        assert_eq!(served.status, 200, "{format}: {}", served.text());
    }
    let provider = serde_json::json!({"sort": "throughput"});
    let served = ask("key-capped", "chat", "free", &provider).await;
    assert_eq!(served.status, 200, "{}", served.text());
}

/// Images and recordings have the same services.
#[tokio::test]
async fn a_service_with_other_prices_is_refused_beside_conversations() {
    let mock = Mock::start();
    let capped = ", {name: capped, secret: key-capped, spending_cap: 100000}";
    let models = "  - {id: art, model_type: image, pricing: {image_output: 1000}, upstreams: [{name: art}]}\n  \
                  - {id: ear, model_type: audio, pricing: {input: 1000}, upstreams: [{name: chat}]}\n";
    let config = config(mock.address, capped, models);
    let art = format!(
        "upstreams:\n  - {{name: art, format: images, base_url: \"http://{}/v1\"}}\n",
        mock.address
    );
    let gateway = Gateway::start(&config.replace("upstreams:\n", &art));
    for (field, value, status) in [
        ("service_tier", "priority", 400),
        ("speed", "fast", 400),
        ("Service_tier", "priority", 400),
        ("service_tier", "default", 200),
    ] {
        let image = serde_json::json!({"model": "art", "prompt": "a cat", field: value});
        let image = client()
            .post(gateway.url("/v1/images/generations"))
            .json(&image);
        let image = send(image.bearer_auth("key-capped")).await;
        assert_eq!(image.status, status, "{field}={value}: {}", image.text());
        let form: String = [
            ("model", "ear"),
            ("file\"; filename=\"a.wav", "x"),
            (field, value),
        ]
        .map(|(name, value)| {
            format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        })
        .concat();
        let text = client().post(gateway.url("/v1/audio/transcriptions"));
        let text = text.header("content-type", "multipart/form-data; boundary=b");
        let text = send(text.bearer_auth("key-capped").body(form + "--b--\r\n")).await;
        assert_eq!(text.status, status, "{field}={value}: {}", text.text());
    }
}

/// Vendors add a prompt of their own, which they bill.
#[tokio::test]
async fn tools_reserve_the_prompt_that_an_upstream_adds_for_them() {
    let mock = Mock::start();
    let keys = capped(&[("dev", "spending_cap: 1")]);
    let models = "  - {id: m, pricing: {input: 1000}, upstreams: [{name: messages}]}\n";
    let gateway = Gateway::start(&config(mock.address, &keys, models));
    for (format, tool) in [
        (
            "chat",
            serde_json::json!({"type": "function", "function": {"name": "f"}}),
        ),
        (
            "responses",
            serde_json::json!({"type": "function", "name": "f", "parameters": {"type": "object"}}),
        ),
        (
            "messages",
            serde_json::json!({"name": "f", "input_schema": {"type": "object"}}),
        ),
        (
            "native",
            serde_json::json!({"functionDeclarations": [{"name": "f"}]}),
        ),
    ] {
        let (path, mut body) = request(format, "m", "hello", false);
        let ask = async |body: &serde_json::Value| {
            let asked = client().post(gateway.url(&path)).bearer_auth("key-dev");
            send(asked.json(body)).await
        };
        assert_eq!(ask(&body).await.status, 200, "{format}");
        body["tools"] = serde_json::json!([tool]);
        let refused = ask(&body).await;
        assert_eq!(refused.status, 429, "{format}: {}", refused.text());
        let reserved = 1024 + body.to_string().len();
        let message = refused.error(format);
        // A thousandth for each token.
        let amount = format!("may cost {}", reserved as f64 / 1000.0);
        assert!(message.contains(&amount), "{amount}: {message}");
    }
    // So does a schema of the output.
    let schema = serde_json::json!({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}});
    for (config, name) in [
        ("generationConfig", "responseSchema"),
        ("generationConfig", "responseJsonSchema"),
        ("generation_config", "response_schema"),
        ("generation_config", "response_json_schema"),
    ] {
        let (path, mut body) = request("native", "m", "hello", false);
        let field = body.as_object_mut().expect("an object");
        field.remove("generationConfig");
        body[config] = serde_json::json!({"responseMimeType": "application/json", name: schema});
        let asked = client().post(gateway.url(&path)).bearer_auth("key-dev");
        let refused = send(asked.json(&body)).await;
        assert_eq!(refused.status, 429, "{name}: {}", refused.text());
        let message = refused.error("native");
        let reserved = 1024 + body.to_string().len();
        let amount = format!("may cost {}", reserved as f64 / 1000.0);
        assert!(message.contains(&amount), "{amount}: {message}");
    }
}
