//! Asynchronous image tasks: created, polled, cancelled, and visible to their own key only.

use omniglot_test_support::{Gateway, KEY, Mock, new_client, wait_for};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::inputs::{Form, pixel};
use super::{ImageGateway, PIXEL, header, refusal};

pub const OTHER: &str = "key-of-other";

pub async fn send(gateway: &Gateway, method: Method, path: &str, key: &str) -> Response {
    let request = new_client()
        .request(method, gateway.url(path))
        .bearer_auth(key);
    request.send().await.expect("an answer")
}

pub async fn get(gateway: &Gateway, path: &str) -> Value {
    let response = send(gateway, Method::GET, path, KEY).await;
    response.json().await.expect("JSON")
}

/// Hands a request in; the path of its task.
pub async fn hand_in(setup: &ImageGateway, prompt: &str) -> String {
    let body = json!({"model": "art", "prompt": prompt, "async": true});
    let response = setup.generate(&body).await;
    assert_eq!(response.status(), 202);
    header(&response, "location").to_owned()
}

pub async fn until(gateway: &Gateway, path: &str, status: &str) -> Value {
    wait_for(&format!("{path} {status}"), async || {
        let task = get(gateway, path).await;
        (task["status"] == status).then_some(task)
    })
    .await
}

#[tokio::test]
async fn a_task_is_accepted_runs_and_returns_its_result() {
    let setup = ImageGateway::start();
    let body = json!({"model": "art", "prompt": "a cat mock:wait=go mock:name=one mock:echo", "async": true});
    let response = setup.generate(&body).await;
    assert_eq!(response.status(), 202);
    assert_eq!(header(&response, "preference-applied"), "respond-async");
    let path = header(&response, "location").to_owned();
    let accepted: Value = response.json().await.expect("JSON");
    let id = accepted["id"].as_str().expect("an id");
    assert_eq!(path, format!("/v1/images/tasks/{id}"));
    assert_eq!(
        (&accepted["object"], &accepted["status"]),
        (&json!("image.task"), &json!("queued"))
    );
    assert_eq!(accepted["model"], "art");
    assert!(
        accepted["created"].as_i64() > Some(1_700_000_000),
        "{accepted}"
    );
    setup.mock.until_seen("one", "waiting", 1).await;
    let running = get(&setup.gateway, &path).await;
    assert_eq!(
        (&running["status"], &running["result"]),
        (&json!("running"), &Value::Null)
    );
    setup.mock.signal("go", 1).await;
    let done = until(&setup.gateway, &path, "succeeded").await;
    assert_eq!(
        (&done["progress"], &done["error"]),
        (&json!(100), &Value::Null)
    );
    let result = &done["result"];
    assert_eq!(result["data"][0]["b64_json"], PIXEL);
    // What is said to the gateway alone is not said to others.
    let echo = super::echoed(result);
    let sent: Value = serde_json::from_str(echo["body"].as_str().expect("text")).expect("JSON");
    assert_eq!(
        (&sent["async"], &sent["model"]),
        (&Value::Null, &json!("theirs-art"))
    );
    setup.gateway.until_idle().await;
}

#[tokio::test]
async fn tasks_are_created_from_forms_and_by_the_prefer_header() {
    let setup = ImageGateway::start();
    let form = Form::new(&[
        ("model", "native-art"),
        ("prompt", "a hat"),
        ("async", "true"),
    ]);
    let response = form.file("image", &pixel()).send(&setup).await;
    assert_eq!(response.status(), 202);
    let path = header(&response, "location").to_owned();
    let done = until(&setup.gateway, &path, "succeeded").await;
    assert_eq!(done["result"]["data"][0]["b64_json"], PIXEL);

    let request = new_client().post(setup.gateway.url("/v1/images/generations"));
    let request = request
        .bearer_auth(KEY)
        .header("prefer", "wait=1, respond-async");
    let response = request
        .json(&json!({"model": "art", "prompt": "a cat"}))
        .send()
        .await;
    assert_eq!(response.expect("an answer").status(), 202);
    // It may be said that one does not want it.
    let body = json!({"model": "art", "prompt": "mock:echo", "async": false});
    let message: Value = setup.generate(&body).await.json().await.expect("JSON");
    let echo = super::echoed(&message);
    assert!(
        !echo["body"].as_str().expect("text").contains("async"),
        "{echo}"
    );
}

#[tokio::test]
async fn a_failed_task_has_an_error() {
    let setup = ImageGateway::start();
    let path = hand_in(&setup, "mock:filtered").await;
    let task = until(&setup.gateway, &path, "failed").await;
    assert_eq!(task["error"]["code"], "moderation_blocked");
    assert_eq!(task["result"], Value::Null);
    // And what can be known at once is said at once.
    for (body, status) in [
        (json!({"model": "words", "prompt": "a", "async": true}), 400),
        (json!({"model": "art", "async": true}), 400),
        (
            json!({"model": "art", "prompt": "a", "async": true, "stream": true}),
            400,
        ),
        (json!({"model": "art", "prompt": "a", "async": 1}), 400),
    ] {
        let response = setup.generate(&body).await;
        assert_eq!(refusal(response).await.0, status, "{body}");
    }
}

#[tokio::test]
async fn a_task_can_be_cancelled_while_running_and_while_queued() {
    let setup = ImageGateway::start();
    let path = hand_in(&setup, "mock:wait=never mock:name=run").await;
    setup.mock.until_seen("run", "waiting", 1).await;
    let response = send(&setup.gateway, Method::DELETE, &path, KEY).await;
    assert_eq!(response.status(), 200);
    let task: Value = response.json().await.expect("JSON");
    assert_eq!(task["status"], "cancelled");
    setup.mock.until_seen("run", "cancelled", 1).await;
    setup.gateway.until_idle().await;
    assert_eq!(get(&setup.gateway, &path).await["status"], "cancelled");
    let again = send(&setup.gateway, Method::DELETE, &path, KEY).await;
    assert_eq!(refusal(again).await.0, 409);

    // Four run at once, so the fifth waits.
    for _ in 0..4 {
        hand_in(&setup, "mock:wait=never mock:name=four").await;
    }
    setup.mock.until_seen("four", "waiting", 4).await;
    let fifth = hand_in(&setup, "mock:name=fifth").await;
    assert_eq!(get(&setup.gateway, &fifth).await["status"], "queued");
    let response = send(&setup.gateway, Method::DELETE, &fifth, KEY).await;
    assert_eq!(response.status(), 200);
    setup.mock.signal("never", 4).await;
    setup.mock.until_seen("four", "finished", 4).await;
    assert_eq!(setup.mock.seen("fifth", "started").await, 0);
}

#[tokio::test]
async fn a_key_sees_only_its_own_tasks() {
    let setup = ImageGateway::start();
    let first = hand_in(&setup, "a cat").await;
    let second = hand_in(&setup, "a dog").await;
    until(&setup.gateway, &first, "succeeded").await;
    until(&setup.gateway, &second, "succeeded").await;
    let list = get(&setup.gateway, "/v1/images/tasks").await;
    let ids: Vec<_> = list["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|task| task["id"].clone())
        .collect();
    let id = |path: &str| json!(path.rsplit('/').next());
    assert_eq!(ids, [id(&second), id(&first)]);
    assert!(list["data"][0]["result"].is_null());
    let list = get(&setup.gateway, "/v1/images/tasks?limit=1").await;
    assert_eq!(list["data"].as_array().map(Vec::len), Some(1));
    let response = send(&setup.gateway, Method::GET, "/v1/images/tasks?limit=0", KEY).await;
    assert_eq!(refusal(response).await.0, 400);
    for method in [Method::GET, Method::DELETE] {
        let response = send(&setup.gateway, method, &first, OTHER).await;
        let (status, code, _) = refusal(response).await;
        assert_eq!((status, &*code), (404, "task_not_found"));
    }
    let list = send(&setup.gateway, Method::GET, "/v1/images/tasks", OTHER).await;
    let list: Value = list.json().await.expect("JSON");
    assert_eq!(list, json!({"object": "list", "data": []}));
    let response = send(&setup.gateway, Method::POST, &first, KEY).await;
    assert_eq!(response.status(), 405);
    let response = send(&setup.gateway, Method::GET, &first, "no-key").await;
    assert_eq!(response.status(), 401);
}

#[tokio::test]
async fn a_task_is_billed_once() {
    let mock = Mock::start();
    let config = super::config(&mock).replace("server: {", "server: {access_log: json, ");
    let setup = ImageGateway {
        gateway: Gateway::start(&config),
        mock,
    };
    let body = json!({"model": "priced", "prompt": "mock:usage=3,0,100,0", "async": true});
    let response = setup.generate(&body).await;
    let path = header(&response, "location").to_owned();
    until(&setup.gateway, &path, "succeeded").await;
    let spent = setup.gateway.metric("omniglot_cost_total").await;
    assert_eq!(spent.len(), 1, "{spent:?}");
    assert!(spent[0].ends_with(" 208.0"), "{spent:?}");
    let line = setup.gateway.process.line_with("\"cost\":208");
    let id = path.rsplit('_').next().expect("an id");
    assert!(line.contains(&format!("req_{id}")), "{line}");
}

#[tokio::test]
async fn queued_tasks_are_limited_and_old_ones_expire() {
    let mock = Mock::start();
    let config = super::config(&mock) + "images: {tasks: {at_once: 1, waiting: 1, ttl: 2s}}\n";
    let setup = ImageGateway {
        gateway: Gateway::start(&config),
        mock,
    };
    let first = hand_in(&setup, "mock:wait=go mock:name=first").await;
    setup.mock.until_seen("first", "waiting", 1).await;
    let second = hand_in(&setup, "a dog").await;
    let body = json!({"model": "art", "prompt": "a cat", "async": true});
    let response = setup.generate(&body).await;
    assert_eq!(
        (response.status().as_u16(), header(&response, "retry-after")),
        (503, "5")
    );
    // Both run out of time, the one while it runs, the other while it waits.
    let expired = |path: String| {
        let gateway = &setup.gateway;
        async move {
            wait_for("it expires", async || {
                let response = send(gateway, Method::GET, &path, KEY).await;
                (response.status() == 410).then_some(())
            })
            .await;
            let response = send(gateway, Method::GET, &path, KEY).await;
            let body: Value = response.json().await.expect("JSON");
            assert_eq!(
                (&body["status"], &body["error"]["code"]),
                (&json!("expired"), &json!("expired"))
            );
        }
    };
    expired(first).await;
    expired(second.clone()).await;
    setup.mock.until_seen("first", "cancelled", 1).await;
    wait_for("it is forgotten", async || {
        let response = send(&setup.gateway, Method::GET, &second, KEY).await;
        (response.status() == 404).then_some(())
    })
    .await;
}
