//! The catalog for people: who may see it, what it shows, and what clients lose.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::console::TestConsole;

async fn get(console: &TestConsole, path: &str) -> Response {
    let request = console.client.get(console.url(path));
    request.send().await.expect("an answer")
}

#[tokio::test]
async fn the_catalog_shows_prices_and_what_clients_lose() {
    let console = TestConsole::start("");
    let view: Value = get(&console, "/api/v1/models")
        .await
        .json()
        .await
        .expect("JSON");
    assert_eq!((&view["total"], &view["pages"]), (&json!(2), &json!(1)));
    let model = &view["models"][1];
    assert_eq!(model["id"], "second");
    assert_eq!(model["formats"], json!(["chat", "messages"]));
    assert_eq!(
        model["prices"][0],
        json!({"item": "input", "unit": "million_tokens", "price": 1.25})
    );
    assert_eq!(
        model["prices"][2],
        json!({"item": "per_request", "unit": "request", "price": 0.001})
    );
    let clients = model["clients"].as_array().expect("clients");
    let of = |client: &str, upstream: &str| {
        let found = clients
            .iter()
            .find(|losses| losses["client"] == client && losses["upstream"] == upstream);
        found.expect("the formats").clone()
    };
    assert_eq!(of("chat", "chat")["passes_through"], true);
    let dropped = of("chat", "messages")["dropped"].to_string();
    assert!(dropped.contains("\"seed\""), "{dropped}");
    assert_eq!(
        clients.len(),
        8,
        "four formats of clients, two of upstreams"
    );

    let response = get(&console, "/models").await;
    assert_eq!(response.status(), 200);
    let page = response.text().await.expect("text");
    for part in [
        "<h2>second</h2>",
        "<strong>1.25</strong>",
        "per million tokens",
        "<code>seed</code>",
        "href=\"/translate?from=chat&#38;to=messages\"",
        "href=\"/models\" aria-current",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // Names of upstreams are nobody's business.
    assert!(!page.contains("gone"), "{page}");
    let page = get(&console, "/models?q=SEC")
        .await
        .text()
        .await
        .expect("text");
    assert!(page.contains("<h2>second</h2>") && !page.contains("<h2>m</h2>"));
    let page = get(&console, "/models?q=zzz&page=7")
        .await
        .text()
        .await
        .expect("text");
    assert!(page.contains("No model"));
    assert!(
        get(&console, "/sign-in")
            .await
            .text()
            .await
            .expect("text")
            .contains("href=\"/models\"")
    );
}

#[tokio::test]
async fn a_closed_catalog_is_for_who_is_signed_in() {
    let console = TestConsole::start_with_server(", public_catalog: off");
    assert_eq!(get(&console, "/api/v1/models").await.status(), 401);
    let page = get(&console, "/models").await;
    assert_eq!(page.status(), 303);
    let page = get(&console, "/translate")
        .await
        .text()
        .await
        .expect("text");
    assert!(!page.contains("href=\"/models\""));
    let viewer = console.account("vic", "viewer").await;
    let view = viewer.json(Method::GET, "/api/v1/models", None, 200).await;
    assert_eq!(view["total"], 2);
    assert!(viewer.page("/models").await.contains("<h2>second</h2>"));
}
