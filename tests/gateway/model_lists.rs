//! The lists of models: the public catalog, and one shape per kind of client.

use omniglot_test_support::{Gateway, KEY, Mock, Response, client, every_format_config, send};
use serde_json::{Value, json};

fn config(mock: &Mock) -> String {
    every_format_config(mock.address)
        + "  - id: same/rich:latest\n    provider: acme\n    model_type: chat\n    \
           features: [tools, thinking]\n    \
           pricing: {currency: \"EUR per 1M tokens\", input: 1.25, output: 10.0}\n    \
           api_doc_url: https://docs.example/rich\n    max_output_tokens: 8192\n    \
           upstreams: [{name: mock-chat}]\n"
}

const ALL: [&str; 9] = [
    "same-chat",
    "other-chat",
    "same-messages",
    "other-messages",
    "same-native",
    "other-native",
    "same-responses",
    "other-responses",
    "same/rich:latest",
];

async fn get(gateway: &Gateway, path: &str, headers: &[(&str, &str)]) -> Response {
    let request = client().get(gateway.url(path));
    let request = headers.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    let response = send(request).await;
    assert_eq!(
        response.header("content-type"),
        "application/json",
        "{path}"
    );
    assert!(
        response.header("x-request-id").starts_with("req_"),
        "{path}"
    );
    response
}

fn ids(page: &Value, list: &str, id: &str) -> Vec<String> {
    let records = page[list].as_array().unwrap_or_else(|| panic!("{page}"));
    let id = |record: &Value| record[id].as_str().expect("an id").to_owned();
    records.iter().map(id).collect()
}

const ALL_KEY: (&str, &str) = ("x-api-key", KEY);
const SOME_KEY: (&str, &str) = ("x-api-key", "key-of-some");
const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

#[tokio::test]
async fn the_catalog_is_public_and_paginated() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let page = get(&gateway, "/api/models", &[]).await;
    assert_eq!(page.status, 200);
    let page = page.json();
    assert_eq!(ids(&page, "data", "id"), ALL, "in the order of the config");
    for (key, value) in [("page", 1), ("page_size", 50), ("total", 9)] {
        assert_eq!(page[key], value, "{key}");
    }
    assert_eq!(page["success"], true);
    let rich = &page["data"][8];
    assert_eq!(
        *rich,
        json!({
            "id": "same/rich:latest", "provider": "acme", "model_type": "chat",
            "features": ["tools", "thinking"], "api_doc_url": "https://docs.example/rich",
            "pricing": {"currency": "EUR per 1M tokens", "input": 1.25, "output": 10.0,
                        "per_request": null, "per_second": null},
        })
    );
    for (query, from, to) in [
        ("?page_size=4", 0, 4),
        ("?page_size=4&page=2", 4, 8),
        ("?page_size=4&page=3", 8, 9),
        ("?page_size=4&page=4", 9, 9),
        ("?page=2", 9, 9),
        ("?page_size=500&unknown=1", 0, 9),
        ("?page_size=1&page=9", 8, 9),
        ("?page=9007199254740991&page_size=500", 9, 9),
    ] {
        let response = get(&gateway, &format!("/api/models{query}"), &[]).await;
        assert_eq!(response.status, 200, "{query}");
        let page = response.json();
        assert_eq!(ids(&page, "data", "id"), ALL[from..to], "{query}");
        assert_eq!(page["total"], 9, "{query}");
    }
}

#[tokio::test]
async fn invalid_pages_are_refused() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (name, values) in [
        (
            "page",
            &[
                "0",
                "-1",
                "x",
                "",
                "1.0",
                "+1",
                "1e3",
                "%31x",
                "99999999999999999999",
            ][..],
        ),
        (
            "page_size",
            &["0", "501", "-5", "", "many", "18446744073709551617", " 5"][..],
        ),
    ] {
        for value in values {
            let path = format!("/api/models?{name}={value}");
            let response = get(&gateway, &path, &[]).await;
            assert_eq!(response.status, 400, "{path}");
            assert!(response.error("chat").contains(name), "{path}");
            assert_eq!(response.json()["error"]["param"], name, "{path}");
        }
    }
}

#[tokio::test]
async fn the_catalog_ignores_keys() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let plain = get(&gateway, "/api/models", &[]).await;
    for headers in [
        &[("x-api-key", "wrong")][..],
        &[SOME_KEY],
        &[ALL_KEY, VERSION],
    ] {
        let response = get(&gateway, "/api/models", headers).await;
        assert_eq!(
            (response.status, response.text()),
            (200, plain.text()),
            "{headers:?}"
        );
    }
    for secret in ["theirs-", "secret-of-the-upstream", "127.0.0.1"] {
        assert!(!plain.text().contains(secret), "{secret} is not public");
    }
}

#[tokio::test]
async fn one_path_lists_models_in_three_formats() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let chat = get(&gateway, "/v1/models", &[ALL_KEY]).await.json();
    assert_eq!(chat["object"], "list");
    assert_eq!(ids(&chat, "data", "id"), ALL);
    assert_eq!(
        chat["data"][8],
        json!({"id": "same/rich:latest", "object": "model", "created": 0, "owned_by": "acme"})
    );
    let messages = get(&gateway, "/v1/models", &[ALL_KEY, VERSION])
        .await
        .json();
    assert_eq!(ids(&messages, "data", "id"), ALL);
    assert_eq!(messages["has_more"], false);
    assert_eq!(messages["first_id"], ALL[0]);
    assert_eq!(messages["last_id"], ALL[8]);
    assert_eq!(messages["data"][8]["type"], "model");
    assert_eq!(messages["data"][8]["max_tokens"], 8192);
    let names = ALL.map(|id| format!("models/{id}"));
    for (path, headers) in [
        ("/v1/models", [("x-goog-api-key", KEY), ("accept", "*/*")]),
        (
            "/v1/models",
            [ALL_KEY, ("x-goog-api-client", "genai-sdk/1")],
        ),
        ("/v1beta/models", [ALL_KEY, ("accept", "*/*")]),
        ("/v1beta/models", [ALL_KEY, VERSION]),
    ] {
        let native = get(&gateway, path, &headers).await.json();
        assert_eq!(ids(&native, "models", "name"), names, "{path} {headers:?}");
        assert_eq!(native["nextPageToken"], Value::Null);
        assert_eq!(native["models"][8]["outputTokenLimit"], 8192);
    }
}

#[tokio::test]
async fn lists_of_other_formats_are_paginated() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let mut seen = Vec::new();
    let mut after = String::new();
    for _ in 0..5 {
        let path = format!("/v1/models?limit=2{after}");
        let page = get(&gateway, &path, &[ALL_KEY, VERSION]).await.json();
        seen.extend(ids(&page, "data", "id"));
        let last = page["last_id"].as_str().expect("an id");
        after = format!("&after_id={last}");
        assert_eq!(page["has_more"], seen.len() < 9, "{path}");
    }
    assert_eq!(seen, ALL);
    let mut seen = Vec::new();
    let mut token = String::new();
    for _ in 0..3 {
        let path = format!("/v1beta/models?pageSize=3&pageToken={token}&key={KEY}");
        let page = get(&gateway, &path, &[]).await.json();
        seen.extend(ids(&page, "models", "name"));
        token = page["nextPageToken"].as_str().unwrap_or("").to_owned();
    }
    assert_eq!((seen.len(), token.as_str()), (9, ""));
    for path in [
        "/v1beta/models?pageToken=nonsense",
        "/v1beta/models?pageSize=-1",
    ] {
        let response = get(&gateway, path, &[ALL_KEY]).await;
        assert_eq!(response.status, 400, "{path}");
        response.error("native");
    }
    let response = get(&gateway, "/v1/models?limit=0", &[ALL_KEY, VERSION]).await;
    assert_eq!(response.status, 400);
}

#[tokio::test]
async fn a_key_sees_the_models_of_its_globs() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let mine = [
        "same-chat",
        "same-messages",
        "same-native",
        "same-responses",
    ];
    let chat = get(&gateway, "/v1/models", &[SOME_KEY]).await.json();
    assert_eq!(ids(&chat, "data", "id"), mine);
    let messages = get(&gateway, "/v1/models", &[SOME_KEY, VERSION])
        .await
        .json();
    assert_eq!(ids(&messages, "data", "id"), mine);
    let native = get(&gateway, "/v1beta/models", &[SOME_KEY]).await.json();
    assert_eq!(
        ids(&native, "models", "name"),
        mine.map(|id| format!("models/{id}"))
    );
    for id in ["other-chat", "same/rich:latest", "unknown"] {
        for prefix in ["/v1/models", "/v1beta/models"] {
            let response = get(&gateway, &format!("{prefix}/{id}"), &[SOME_KEY]).await;
            assert_eq!(response.status, 404, "{prefix}/{id}");
        }
    }
}

#[tokio::test]
async fn a_single_model_is_returned_in_every_format() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    let goog = ("x-goog-api-client", "genai-sdk/1");
    for (number, id) in ALL.iter().enumerate() {
        let lists = [
            ("/v1/models", vec![ALL_KEY], "data"),
            ("/v1/models", vec![ALL_KEY, VERSION], "data"),
            ("/v1/models", vec![ALL_KEY, goog], "models"),
            ("/v1beta/models", vec![ALL_KEY], "models"),
        ];
        for (path, headers, list) in lists {
            let whole = get(&gateway, path, &headers).await.json();
            for spelled in [(*id).to_owned(), id.replace('/', "%2F").replace(':', "%3A")] {
                let single = get(&gateway, &format!("{path}/{spelled}"), &headers).await;
                assert_eq!(single.status, 200, "{path}/{spelled}: {}", single.text());
                assert_eq!(single.json(), whole[list][number], "{path}/{spelled}");
            }
        }
    }
}

#[tokio::test]
async fn an_unknown_model_is_not_found() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(&mock));
    for (path, format) in [
        ("/v1/models/unknown", "chat"),
        ("/v1/models/Same-Chat", "chat"),
        ("/v1/models/same-chat/", "chat"),
        ("/v1beta/models/unknown", "native"),
        ("/v1beta/models/unknown:latest", "native"),
        ("/v1beta/models/models/same-native/x", "native"),
    ] {
        let response = get(&gateway, path, &[ALL_KEY]).await;
        assert_eq!(response.status, 404, "{path}: {}", response.text());
        assert!(!response.error(format).is_empty());
    }
    for path in ["/v1/models", "/v1/models/same-chat", "/v1beta/models"] {
        assert_eq!(get(&gateway, path, &[]).await.status, 401, "{path}");
    }
}
