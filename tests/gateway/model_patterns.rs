//! Models whose id has a `*`: every format, what upstreams are sent, keys, prices, fallbacks, metrics and lists.

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, echoed_request, post, request, send,
};
use serde_json::{Value, json};

use crate::admin::samples_when;
use crate::images::echoed;

/// An upstream for each format; `FORMAT/*` is served there under the rest of the name. Some names are special.
fn config(mock: &Mock) -> String {
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN, access_log: json}}\nkeys:\n  - {{name: all, secret: {KEY}}}\n  \
         - {{name: some, secret: key-of-some, models: [\"chat/small-*\"]}}\n  \
         - {{name: capped, secret: key-of-capped, spending_cap: 5}}\nupstreams:\n  \
         - {{name: nobody, format: chat, base_url: \"http://127.0.0.1:9\"}}\n  \
         - {{name: painter, format: images, base_url: \"http://{}/v1\"}}\n",
        mock.address
    );
    for (format, prefix) in FORMATS {
        let base_url = format!("http://{}{prefix}", mock.address);
        text += &format!("  - {{name: {format}, format: {format}, base_url: \"{base_url}\"}}\n");
    }
    text += "models:\n";
    for (format, _) in FORMATS {
        text +=
            &format!("  - {{id: \"{format}/*\", upstreams: [{{name: {format}, model: \"*\"}}]}}\n");
    }
    text + "  - {id: chat/exact, upstreams: [{name: chat, model: exactly}]}\n  \
            - {id: \"chat/small-*\", upstreams: [{name: chat, model: \"their-*-small\"}]}\n  \
            - {id: \"*:free\", upstreams: [{name: messages}]}\n  \
            - {id: \"fixed-*\", upstreams: [{name: chat, model: always-this}]}\n  \
            - {id: \"art-*\", model_type: image, upstreams: [{name: painter, model: \"their-*\"}]}\n  \
            - {id: \"priced-*\", pricing: {per_request: 2}, upstreams: [{name: chat}]}\n  \
            - {id: \"failing/*\", upstreams: [{name: nobody}], fallbacks: [\"messages/*\"]}\n  \
            - {id: failing, upstreams: [{name: nobody}], fallbacks: [native/spare]}\n"
}

async fn ask(gateway: &Gateway, key: &str, format: &str, model: &str) -> Response {
    let (path, body) = request(format, model, "mock:echo", false);
    let call = client().post(gateway.url(&path)).bearer_auth(key);
    send(call.json(&body)).await
}

/// The body that an upstream was sent.
pub fn sent_body(echo: &Value) -> Value {
    let body = echo["body"].as_str().expect("a body of text");
    serde_json::from_str(body).expect("JSON")
}

/// The name of the model that an upstream was sent, in the body or in the path.
fn sent_name(echo: &Value) -> String {
    if let Some(name) = sent_body(echo)["model"].as_str() {
        return name.to_owned();
    }
    let path = echo["path"].as_str().expect("a path");
    let call = path.strip_prefix("/v1beta/models/").expect("a native path");
    let (name, _) = call.rsplit_once(':').expect("an operator");
    name.to_owned()
}

#[tokio::test]
async fn every_format_reaches_every_format_with_the_rest_of_the_name() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (client_format, _) in FORMATS {
        for (upstream, _) in FORMATS {
            let name = format!("{upstream}/vendor/large:latest");
            let response = ask(&gateway, KEY, client_format, &name).await;
            let echo = echoed_request(client_format, &response);
            let sent = sent_name(&echo).replace("%2F", "/").replace("%3A", ":");
            assert_eq!(sent, "vendor/large:latest", "{client_format} to {upstream}");
            assert_eq!(response.header("x-omniglot-upstream"), upstream);
            let shown = match client_format {
                "native" => continue,
                _ => response.json()["model"].clone(),
            };
            assert_eq!(shown, name, "the client's own name");
        }
    }
}

#[tokio::test]
async fn the_id_that_fits_best_decides_what_is_sent() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (name, upstream, sent) in [
        ("chat/large", "chat", "large"),
        ("chat/exact", "chat", "exactly"),
        ("chat/exactly", "chat", "exactly"),
        ("chat/small-1", "chat", "their-1-small"),
        ("chat/small-", "chat", "small-"),
        ("any/thing:free", "messages", "any/thing:free"),
        ("fixed-1", "chat", "always-this"),
        ("failing/one", "messages", "one"),
        ("failing", "native", "spare"),
        (r#"chat/"quoted""#, "chat", r#""quoted""#),
    ] {
        let response = ask(&gateway, KEY, "chat", name).await;
        assert_eq!(
            sent_name(&echoed_request("chat", &response)),
            sent,
            "{name}"
        );
        assert_eq!(response.header("x-omniglot-upstream"), upstream, "{name}");
        assert_eq!(response.json()["model"], name);
    }
    for name in [
        "chat/",
        "unknown",
        "chat",
        "Chat/large",
        "chat/two words",
        "chat/../large",
        "chat/small,large",
        "chat/a\nb",
        // Other spellings of an id that has an entry of its own.
        "chat/Exact",
        "chat//exact",
        "chat/exact/",
        // And of names that an id with more literal text matches.
        "chat/Small-1",
        "chat//small-1",
    ] {
        let response = ask(&gateway, KEY, "chat", name).await;
        assert_eq!(response.status, 404, "{name:?}: {}", response.text());
        assert_eq!(response.json()["error"]["param"], "model");
    }
}

#[tokio::test]
async fn native_paths_take_names_with_slashes_as_they_are_or_encoded() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let body = json!({"contents": [{"parts": [{"text": "mock:echo"}]}]}).to_string();
    for spelled in [
        "native/a/b",
        "native%2Fa%2Fb",
        "models/native/a%2fb",
        "native/a%2Fb",
    ] {
        for version in ["v1beta", "v1"] {
            let path = format!("/{version}/models/{spelled}:generateContent");
            let response = post(gateway.url(&path), body.clone()).await;
            let echo = echoed_request("native", &response);
            assert_eq!(
                echo["path"], "/v1beta/models/a%2Fb:generateContent",
                "{path}"
            );
        }
    }
    // A name is a name, whatever a server would make of it in a path.
    for (name, sent) in [
        ("a:countTokens", "a%3AcountTokens"),
        ("a%3AcountTokens", "a%3AcountTokens"),
        ("a:generateContent?", "a%3AgenerateContent%3F"),
        ("a#b%3Fc", "a%23b%3Fc"),
    ] {
        let spelled = name.replace('#', "%23").replace('?', "%3F");
        let path = format!("/v1beta/models/native/{spelled}:generateContent");
        let response = post(gateway.url(&path), body.clone()).await;
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        let echo = echoed_request("native", &response);
        let expected = format!("/v1beta/models/{sent}:generateContent");
        assert_eq!(echo["path"], expected, "{path}");
    }
    // A client must not reach other paths of the upstream.
    for spelled in [
        "native/..%2F..%2Fsecret",
        "native/%2e%2e/%2e%2e/secret",
        "native/a%2F.%2Fb",
        "native/a%252f..%252fb",
        "native/a%5C..%5Cb",
    ] {
        let path = format!("/v1beta/models/{spelled}:generateContent");
        let response = post(gateway.url(&path), body.clone()).await;
        assert_eq!(response.status, 404, "{path}: {}", response.text());
    }
}

#[tokio::test]
async fn tokens_are_counted_and_images_generated() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let prompt = json!([{"role": "user", "content": "one two"}]);
    let body = json!({"model": "messages/large", "messages": prompt}).to_string();
    let counted = post(gateway.url("/v1/messages/count_tokens"), body).await;
    assert_eq!(
        counted.json(),
        json!({"input_tokens": 2}),
        "{}",
        counted.text()
    );
    let body = json!({"contents": [{"parts": [{"text": "one two"}]}]}).to_string();
    let path = "/v1beta/models/native%2Flarge:countTokens";
    assert_eq!(post(gateway.url(path), body).await.json()["totalTokens"], 2);
    let body = json!({"model": "art-large", "prompt": "mock:echo"}).to_string();
    let response = post(gateway.url("/v1/images/generations"), body).await;
    assert_eq!(sent_body(&echoed(&response.json()))["model"], "their-large");
    let body = json!({"model": "chat/large", "prompt": "a hat"}).to_string();
    let response = post(gateway.url("/v1/images/generations"), body).await;
    assert_eq!(response.status, 400);
    assert!(
        response.text().contains("`chat/large` has no image output"),
        "{}",
        response.text()
    );
}

#[tokio::test]
async fn globs_of_keys_and_prices_hold_for_the_name_that_is_asked_for() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (name, status) in [
        ("chat/small-1", 200),
        ("chat/large", 403),
        ("chat/exact", 403),
    ] {
        let response = ask(&gateway, "key-of-some", "chat", name).await;
        assert_eq!(response.status, status, "{name}");
    }
    // Each request costs 2, and the cap is 5.
    for (name, status) in [("priced-1", 200), ("priced-2", 200), ("priced-3", 429)] {
        let response = ask(&gateway, "key-of-capped", "chat", name).await;
        assert_eq!(response.status, status, "{name}: {}", response.text());
    }
}

#[tokio::test]
async fn metrics_name_the_id_and_the_access_log_the_name() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for number in 0..5 {
        let response = ask(&gateway, KEY, "chat", &format!("chat/free-text-{number}")).await;
        assert_eq!(response.status, 200);
    }
    let counter = "omniglot_requests_total{format=\"chat\",model=\"chat/*\",upstream=\"chat\",status=\"200\"}";
    let samples = samples_when(&gateway, counter, 5.0).await;
    assert!(
        samples.keys().all(|name| !name.contains("free-text")),
        "{samples:?}"
    );
    assert!(samples.contains_key("omniglot_upstream_breaker_open{upstream=\"chat\",model=\"*\"}"));
    let line = gateway.process.line_with("free-text-4");
    assert!(line.contains("\"model\":\"chat/free-text-4\""), "{line}");
}

#[tokio::test]
async fn lists_leave_ids_with_a_star_out_but_single_models_are_found() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let get =
        async |path: &str, key: &str| send(client().get(gateway.url(path)).bearer_auth(key)).await;
    let listed = get("/v1/models", KEY).await.json();
    let ids: Vec<&str> = listed["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|model| model["id"].as_str().expect("an id"))
        .collect();
    assert_eq!(ids, ["chat/exact", "failing"]);
    let catalog = get("/api/models", KEY).await.json();
    assert_eq!(catalog["total"], 2);
    assert!(!catalog.to_string().contains('*'), "{catalog}");
    let single = get("/v1/models/chat/large", KEY).await.json();
    assert_eq!(
        single,
        json!({"id": "chat/large", "object": "model", "created": 0, "owned_by": "omniglot"})
    );
    let single = get("/v1beta/models/native%2Flarge", KEY).await.json();
    assert_eq!(single["name"], "models/native/large");
    for (path, key) in [
        ("/v1/models/unknown", KEY),
        ("/v1/models/chat/large", "key-of-some"),
    ] {
        assert_eq!(get(path, key).await.status, 404, "{path}");
    }
}
