//! API keys: where a request may carry one, what it permits, and how a request without one is refused.

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, client_builder, echoed_request,
    every_format_config, new_client, request, send,
};
use serde_json::json;

/// `printf hashed-key | sha256sum`
const HASHED: &str = "hashed-key";
const HASH: &str = "a4ae87b73fa5645e6aee415a6f72be4dcbd99d057a7b40cb1b867c181d179260";

fn config(mock: &Mock) -> String {
    every_format_config(mock.address).replace(
        "keys:\n",
        &format!("keys:\n  - {{name: name-of-hashed, sha256: {HASH}}}\n  - {{name: name-of-none, secret: key-of-none, models: [nothing-*]}}\n"),
    )
}

async fn send_request(
    gateway: &Gateway,
    format: &str,
    query: &str,
    headers: &[(&str, &str)],
) -> Response {
    ask_for(gateway, format, &format!("same-{format}"), query, headers).await
}

async fn ask_for(
    gateway: &Gateway,
    format: &str,
    model: &str,
    query: &str,
    headers: &[(&str, &str)],
) -> Response {
    let (path, body) = request(format, model, "mock:echo", false);
    let url = gateway.url(&format!("{path}{query}"));
    let asked = headers
        .iter()
        .fold(client().post(url), |asked, (name, value)| {
            asked.header(*name, *value)
        });
    send(asked.json(&body)).await
}

const CARRIERS: [(&str, &str); 9] = [
    ("authorization", "Bearer KEY"),
    ("authorization", "bearer KEY"),
    ("authorization", "BEARER KEY"),
    ("authorization", "Bearer   KEY"),
    ("Authorization", "bEaReR KEY"),
    ("x-api-key", "KEY"),
    ("x-vendor-api-key", "KEY"),
    ("x-goog-api-key", "KEY"),
    ("api-key", "KEY"),
];

#[tokio::test]
async fn every_header_for_keys_works_on_every_path() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (format, _) in FORMATS {
        for (name, value) in CARRIERS {
            for key in [KEY, HASHED] {
                let value = value.replace("KEY", key);
                let response = send_request(&gateway, format, "", &[(name, &value)]).await;
                assert_eq!(response.status, 200, "{format} {name}: {value}");
            }
        }
    }
}

#[tokio::test]
async fn the_query_carries_the_key_on_native_paths_only() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let query = format!("?key={KEY}");
    for (format, _) in FORMATS {
        let response = send_request(&gateway, format, &query, &[]).await;
        let expected = if format == "native" { 200 } else { 401 };
        assert_eq!(response.status, expected, "{format}: {}", response.text());
        if format == "native" {
            let echo = echoed_request(format, &response);
            assert!(!echo.to_string().contains(KEY), "{echo}");
        } else {
            assert!(!response.error(format).contains(KEY));
        }
    }
    for (path, expected) in [
        (format!("/v1beta/models{query}"), 200),
        (format!("/v1beta/models?pageSize=2&key={KEY}"), 200),
        (
            format!("/v1beta/models/same-native?key={}", KEY.replace('-', "%2D")),
            200,
        ),
        (format!("/v1/models{query}"), 401),
        (format!("/v1/models/same-chat{query}"), 401),
        ("/v1beta/models?key=".to_owned(), 401),
        (format!("/v1beta/models?Key={KEY}"), 401),
    ] {
        let response = send(client().get(gateway.url(&path))).await;
        assert_eq!(response.status, expected, "{path}");
    }
}

#[tokio::test]
async fn a_missing_or_wrong_key_is_refused_in_the_shape_of_the_path() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let wrong: [&[(&str, &str)]; 10] = [
        &[],
        &[("authorization", "Bearer wrong-secret")],
        &[("authorization", "Bearer ")],
        &[("authorization", "Bearer")],
        &[("authorization", "test-key-of-everything")],
        &[("authorization", "Basic dGVzdC1rZXktb2YtZXZlcnl0aGluZw==")],
        &[("x-api-key", "wrong-secret")],
        &[("x-goog-api-key", "")],
        &[("x-vendor-api-key", "Bearer test-key-of-everything")],
        // A hash opens nothing, or whoever reads the config could ask.
        &[("x-api-key", HASH)],
    ];
    for (format, _) in FORMATS {
        for headers in wrong {
            let response = send_request(&gateway, format, "", headers).await;
            assert_eq!(response.status, 401, "{format} {headers:?}");
            let message = response.error(format);
            assert!(!message.contains("secret"), "{message}");
            let error = &response.json()["error"];
            match format {
                "messages" => assert_eq!(error["type"], "authentication_error"),
                "native" => assert_eq!(error["status"], "UNAUTHENTICATED"),
                _ => assert_eq!(error["code"], "invalid_api_key"),
            }
            assert_eq!(
                response.header("x-omniglot-upstream"),
                "",
                "nobody was asked"
            );
        }
    }
    let stats = send(client().get(mock.url("/mock/stats"))).await;
    assert_eq!(stats.json()["requests"], 0, "nothing went upstream");
}

#[tokio::test]
async fn a_request_carries_one_key_however_often() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let bearer = format!("Bearer {KEY}");
    let same = [
        ("authorization", &*bearer),
        ("x-api-key", KEY),
        ("x-api-key", KEY),
        ("x-goog-api-key", KEY),
        // A variable that is not set.
        ("x-vendor-api-key", ""),
    ];
    for (format, _) in FORMATS {
        let response = send_request(&gateway, format, "", &same).await;
        assert_eq!(response.status, 200, "{format} {}", response.text());
        for headers in [
            [("authorization", "Bearer wrong"), ("x-api-key", KEY)],
            [("authorization", &*bearer), ("x-api-key", "wrong")],
            [("authorization", &*bearer), ("x-api-key", HASHED)],
            [("x-vendor-api-key", KEY), ("x-goog-api-key", "wrong")],
            [("x-api-key", "wrong"), ("x-api-key", KEY)],
        ] {
            let response = send_request(&gateway, format, "", &headers).await;
            assert_eq!(response.status, 401, "{format} {headers:?}");
            let message = response.error(format);
            assert!(
                message.contains("several API keys that differ"),
                "{message}"
            );
            assert!(!message.contains(KEY), "{message}");
        }
    }
    let repeated = format!("?key={KEY}&key={KEY}");
    let response = send_request(&gateway, "native", &repeated, &same[..1]).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let guesses = format!("?key=1&key=2&key={KEY}");
    let response = send_request(&gateway, "native", &guesses, &[]).await;
    assert_eq!(response.status, 401, "{}", response.text());
}

#[tokio::test]
async fn wrong_keys_of_an_address_are_throttled_and_valid_ones_are_served() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let models = gateway.url("/v1/models");
    let get = async |key: &str| send(new_client().get(&models).bearer_auth(key)).await;
    let mut refused = None;
    for number in 0..1000 {
        let response = get(&format!("guess-{number}")).await;
        if response.status != 401 {
            refused = Some((number, response));
            break;
        }
    }
    let (number, refused) = refused.expect("guesses are throttled");
    assert!(number >= 100, "{number}");
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(refused.header("retry-after"), "1");
    let message = refused.error("chat");
    assert!(message.contains("too many wrong API keys"), "{message}");
    assert_eq!(get(KEY).await.status, 200);
    assert_eq!(get(HASHED).await.status, 200);
    // Others are told that their key is wrong; now and then two addresses are counted together.
    let mut told = false;
    for last in 2..5 {
        let address = std::net::Ipv4Addr::new(127, 0, 0, last);
        let elsewhere = client_builder().local_address(std::net::IpAddr::from(address));
        let elsewhere = elsewhere.build().expect("a client");
        told |= send(elsewhere.get(&models).bearer_auth("wrong"))
            .await
            .status
            == 401;
    }
    assert!(told);
}

#[tokio::test]
async fn a_model_outside_the_keys_globs_is_forbidden_known_or_not() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (format, _) in FORMATS {
        let inside = format!("same-{format}");
        for (key, model, wanted) in [
            ("key-of-some", inside.as_str(), 200),
            ("key-of-some", &format!("other-{format}"), 403),
            ("key-of-some", "unknown", 403),
            ("key-of-some", "same-unknown", 404),
            ("key-of-some", "SAME-chat", 403),
            ("key-of-none", &inside, 403),
            ("key-of-none", "unknown", 403),
            (KEY, "unknown", 404),
        ] {
            let response = ask_for(&gateway, format, model, "", &[("x-api-key", key)]).await;
            assert_eq!(response.status, wanted, "{format} {key} {model}");
            if wanted != 403 {
                continue;
            }
            let message = response.error(format);
            assert!(message.contains(model), "{message}");
            let error = &response.json()["error"];
            match format {
                "messages" => assert_eq!(error["type"], "permission_error"),
                "native" => assert_eq!(error["status"], "PERMISSION_DENIED"),
                _ => assert_eq!(error["code"], "permission_denied"),
            }
        }
    }
}

#[tokio::test]
async fn no_response_contains_the_name_of_a_key() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (key, model) in [
        (HASHED, "same-chat"),
        (HASHED, "unknown"),
        ("key-of-none", "same-chat"),
        ("wrong", "same-chat"),
    ] {
        let response = ask_for(&gateway, "chat", model, "", &[("x-api-key", key)]).await;
        let all = format!("{:?} {}", response.headers, response.text());
        assert!(!all.contains("name-of-"), "{all}");
    }
    for path in ["/api/models", "/v1/models"] {
        let response = send(client().get(gateway.url(path)).bearer_auth("key-of-none")).await;
        assert_eq!(response.status, 200);
        assert!(!response.text().contains("name-of-"), "{}", response.text());
    }
}

#[tokio::test]
async fn the_header_of_the_key_does_not_choose_the_format() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (format, _) in FORMATS {
        for carrier in ["x-api-key", "x-goog-api-key", "x-vendor-api-key", "api-key"] {
            let headers = [(carrier, "wrong"), ("anthropic-version", "2023-06-01")];
            let response = send_request(&gateway, format, "", &headers).await;
            assert_eq!(response.status, 401);
            response.error(format);
        }
    }
    let body = json!({"model": "same-chat", "messages": []});
    let request = client()
        .post(gateway.url("/v1/chat/completions"))
        .json(&body);
    let response = send(request.header("x-goog-api-key", "wrong")).await;
    response.error("chat");
}

/// An upstream may take a model from elsewhere in the body than the gateway does.
#[tokio::test]
async fn a_key_for_some_models_names_no_other_in_the_body() {
    let mock = Mock::start();
    let keys = "keys:\n  - {name: few, secret: key-few, models: [\"same-*\"]}\n  \
                - {name: any, secret: key-any, models: [\"*\"]}\n  \
                - {name: capped, secret: key-capped, spending_cap: 10}\n";
    let models = "  - {id: same-priced, pricing: {input: 1}, upstreams: [{name: mock-chat}]}\n";
    let config = every_format_config(mock.address).replace("keys:\n", keys) + models;
    let gateway = Gateway::start(&config);
    let ask =
        async |key: &str, format: &str, model: &str, field: &str, value: serde_json::Value| {
            let (path, mut body) = request(format, model, "mock:echo", false);
            body[field] = value;
            let asked = client().post(gateway.url(&path)).bearer_auth(key);
            send(asked.json(&body)).await
        };
    for (format, field, value, path) in [
        ("chat", "models", json!(["other"]), "models"),
        (
            "chat",
            "extra_body",
            json!({"model": "other"}),
            "extra_body",
        ),
        ("chat", "extra_body", json!("{}"), "extra_body"),
        ("chat", "engine", json!("other"), "engine"),
        ("chat", "deploymentId", json!("other"), "deploymentId"),
        ("responses", "deployment", json!("other"), "deployment"),
        ("messages", "lora_adapter", json!("other"), "lora_adapter"),
        ("native", "router", json!("other"), "router"),
        ("chat", "agent_id", json!("other"), "agent_id"),
        (
            "responses",
            "tools",
            json!([{"type": "image_generation", "model": "other"}]),
            "tools[0].model",
        ),
        (
            "messages",
            "tools",
            json!([{"name": "a", "input_schema": {"type": "object"}, "model": "other"}]),
            "tools[0].model",
        ),
        (
            "chat",
            "tools",
            json!([{"parameters": {"model": "other"}, "type": "openrouter:advisor"}]),
            "tools[0].parameters.model",
        ),
        (
            "responses",
            "tools",
            json!([{"type": "openrouter:fusion", "parameters": {"analysis_models": ["other"]}}]),
            "tools[0].parameters.analysis_models",
        ),
        (
            "chat",
            "plugins",
            json!([{"id": "fusion", "parameters": {"model": "other"}}]),
            "plugins[0].parameters.model",
        ),
        (
            "responses",
            "agents",
            json!([{"schema": {"model": "other"}}]),
            "agents[0].schema.model",
        ),
        (
            "chat",
            "functions",
            json!([{"name": "f", "model": "other"}]),
            "functions[0].model",
        ),
        (
            "messages",
            "fallbacks",
            json!([{"model": "other"}]),
            "fallbacks",
        ),
        ("responses", "route", json!("fallback"), "route"),
        ("messages", "preset", json!("mine"), "preset"),
        ("native", "preset", json!("mine"), "preset"),
        (
            "native",
            "generationConfig",
            json!({"modelConfig": {}}),
            "generationConfig.modelConfig",
        ),
    ] {
        let model = format!("same-{format}");
        let refused = ask("key-few", format, &model, field, value.clone()).await;
        assert_eq!(refused.status, 400, "{field}: {}", refused.text());
        let message = refused.error(format);
        assert!(
            message.starts_with(&format!(
                "{path}: the API key `few` may use some models only"
            )),
            "{message}"
        );
        for key in [KEY, "key-any", "key-capped"] {
            let served = ask(key, format, &model, field, value.clone()).await;
            // The mock knows none of the tools that routers have, and says so.
            let is_unknown_tool = served.text().contains(r#""message":"tools[0]"#);
            let is_judged_by_mock = served.status == 200 || is_unknown_tool;
            assert!(is_judged_by_mock, "{key}, {field}: {}", served.text());
        }
    }
    let refused = ask(
        "key-capped",
        "chat",
        "same-priced",
        "models",
        json!(["other"]),
    )
    .await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(
        refused
            .error("chat")
            .contains("`capped` has a spending cap")
    );
    // What is translated leaves the field behind, and says so.
    let served = ask(
        "key-few",
        "chat",
        "same-messages",
        "models",
        json!(["other"]),
    )
    .await;
    assert_eq!(served.status, 200, "{}", served.text());
    assert!(served.header("x-omniglot-dropped").contains("models"));
    let served = ask("key-few", "chat", "same-chat", "models", json!(null)).await;
    assert_eq!(served.status, 200, "{}", served.text());
    // A schema is the client's own, whatever its fields are called.
    let schema = json!({"type": "object", "properties": {"model": {"type": "string"}}});
    let function = json!({"name": "f", "parameters": schema});
    for (format, tool) in [
        ("chat", json!({"type": "function", "function": function})),
        (
            "responses",
            json!({"type": "function", "name": "f", "parameters": schema}),
        ),
        ("messages", json!({"name": "f", "input_schema": schema})),
        ("native", json!({"functionDeclarations": [function]})),
    ] {
        let model = format!("same-{format}");
        let served = ask("key-few", format, &model, "tools", json!([tool])).await;
        assert_eq!(served.status, 200, "{format}: {}", served.text());
    }
}

/// A client can bring a fallback about by what it asks for.
#[tokio::test]
async fn a_fallback_is_tried_if_the_key_may_use_it() {
    let mock = Mock::start();
    let keys = "keys:\n  - {name: few, secret: key-few, models: [away]}\n  \
                - {name: more, secret: key-more, models: [away, \"same-ch*\"]}\n";
    let models =
        "  - {id: away, upstreams: [{name: away}], fallbacks: [same-messages, same-chat]}\n";
    let away = "upstreams:\n  - {name: away, format: chat, base_url: \"http://127.0.0.1:9\"}\n";
    let config = every_format_config(mock.address).replace("keys:\n", keys) + models;
    let gateway = Gateway::start(&config.replace("upstreams:\n", away));
    for (key, status, upstream) in [
        (KEY, 200, "mock-messages"),
        ("key-more", 200, "mock-chat"),
        ("key-few", 502, "away"),
    ] {
        let (path, body) = request("chat", "away", "hello", false);
        let asked = client().post(gateway.url(&path)).bearer_auth(key);
        let response = send(asked.json(&body)).await;
        assert_eq!(response.status, status, "{key}: {}", response.text());
        assert_eq!(response.header("x-omniglot-upstream"), upstream, "{key}");
    }
}
