//! Web pages that call the gateway (CORS), and the public catalog.

use omniglot_test_support::{Gateway, KEY, Mock, client, every_format_config, request};
use reqwest::{Method, Response};

const ORIGIN: &str = "https://app.example";

fn gateway(mock: &Mock, setting: &str) -> Gateway {
    let setting = format!("admin: ADMIN, {setting}");
    Gateway::start(&every_format_config(mock.address).replace("admin: ADMIN", &setting))
}

async fn preflight(gateway: &Gateway, origin: &str) -> Response {
    client()
        .request(Method::OPTIONS, gateway.url("/v1/chat/completions"))
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type",
        )
        .send()
        .await
        .expect("an answer")
}

async fn ask(gateway: &Gateway, origin: &str, key: &str, stream: bool) -> Response {
    let (path, body) = request("chat", "same-chat", "hello", stream);
    let request = client().post(gateway.url(&path)).bearer_auth(key);
    let request = request.header("origin", origin).json(&body);
    request.send().await.expect("an answer")
}

fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    let value = response.headers().get(name)?;
    Some(value.to_str().expect("text"))
}

fn allowed(response: &Response) -> Option<&str> {
    header(response, "access-control-allow-origin")
}

#[tokio::test]
async fn without_the_setting_pages_may_not_call() {
    let mock = Mock::start();
    let gateway = gateway(&mock, "drain_timeout: 1s");
    let response = preflight(&gateway, ORIGIN).await;
    assert_eq!(
        (response.status().as_u16(), allowed(&response)),
        (405, None)
    );
    let response = ask(&gateway, ORIGIN, KEY, false).await;
    assert_eq!(
        (response.status().as_u16(), allowed(&response)),
        (200, None)
    );
    assert_eq!(header(&response, "vary"), None);
}

#[tokio::test]
async fn pages_of_a_listed_origin_may_call() {
    let mock = Mock::start();
    let gateway = gateway(&mock, "cors: [\"https://app.example\"]");
    let response = preflight(&gateway, ORIGIN).await;
    assert_eq!(response.status(), 200);
    assert_eq!(allowed(&response), Some(ORIGIN));
    let methods = header(&response, "access-control-allow-methods");
    assert!(methods.is_some_and(|methods| methods.contains("POST")));
    assert_eq!(
        header(&response, "access-control-allow-headers"),
        Some("authorization,content-type")
    );
    assert_eq!(header(&response, "vary"), Some("origin"));
    // Responses, streams and errors alike.
    for (key, stream, status) in [(KEY, false, 200), (KEY, true, 200), ("wrong", false, 401)] {
        let response = ask(&gateway, ORIGIN, key, stream).await;
        assert_eq!(response.status(), status);
        assert_eq!(allowed(&response), Some(ORIGIN), "{status}");
        assert_eq!(
            header(&response, "access-control-expose-headers"),
            Some("*")
        );
    }
    let other = "https://other.example";
    let response = preflight(&gateway, other).await;
    assert_eq!(
        (response.status().as_u16(), allowed(&response)),
        (405, None)
    );
    let response = ask(&gateway, other, KEY, false).await;
    assert_eq!(
        (response.status().as_u16(), allowed(&response)),
        (200, None)
    );
    assert_eq!(header(&response, "vary"), Some("origin"));
}

#[tokio::test]
async fn pages_of_any_origin_may_call() {
    let mock = Mock::start();
    let gateway = gateway(&mock, "cors: \"*\"");
    assert_eq!(allowed(&preflight(&gateway, ORIGIN).await), Some("*"));
    let response = ask(&gateway, "null", KEY, true).await;
    assert_eq!(
        (response.status().as_u16(), allowed(&response)),
        (200, Some("*"))
    );
    // An OPTIONS that is no preflight request stays what it was.
    let options = client().request(Method::OPTIONS, gateway.url("/v1/chat/completions"));
    let options = options.header("origin", ORIGIN).send().await;
    assert_eq!(options.expect("an answer").status(), 405);
}

#[tokio::test]
async fn the_catalog_can_be_closed() {
    let mock = Mock::start();
    let gateway = gateway(&mock, "public_catalog: off");
    for key in ["", KEY] {
        let request = client().get(gateway.url("/api/models")).bearer_auth(key);
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 404);
        let body: serde_json::Value = response.json().await.expect("JSON");
        assert_eq!(body["error"]["code"], "unknown_path", "{body}");
    }
    let listed = client().get(gateway.url("/v1/models")).bearer_auth(KEY);
    assert_eq!(listed.send().await.expect("an answer").status(), 200);
}

#[tokio::test]
async fn lists_of_models_do_not_name_upstreams() {
    let mock = Mock::start();
    let gateway = gateway(&mock, "drain_timeout: 1s");
    for path in ["/api/models", "/v1/models", "/v1beta/models"] {
        let request = client().get(gateway.url(path)).bearer_auth(KEY);
        let listed = request.send().await.expect("an answer");
        let text = listed.text().await.expect("a body");
        assert!(text.contains("same-chat"), "{text}");
        assert!(!text.contains("mock-"), "{text}");
    }
}
