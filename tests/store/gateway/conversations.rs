//! Conversations continue after a restart, and deleted responses stay deleted.

use omniglot_test_support::{Database, Gateway, KEY, Mock, Response, client, echoed_request, send};
use reqwest::Method;
use rstest::rstest;
use serde_json::{Value, json};

use super::{command, config, create, wait_until};
use crate::TestStore;

async fn send_request(
    gateway: &Gateway,
    method: Method,
    path: &str,
    secret: &str,
    body: Value,
) -> Response {
    let request = client().request(method, gateway.url(path));
    let request = request.bearer_auth(secret);
    send(match body {
        Value::Null => request,
        body => request.json(&body),
    })
    .await
}

async fn respond(gateway: &Gateway, body: Value) -> Response {
    send_request(gateway, Method::POST, "/v1/responses", KEY, body).await
}

async fn respond_with_id(gateway: &Gateway, words: &str, previous: &Value) -> Value {
    let body = json!({"model": "chat", "input": words, "previous_response_id": previous, "max_output_tokens": 16});
    let response = respond(gateway, body).await;
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()["id"].clone()
}

/// Ends it as an operator would.
fn stop(mut gateway: Gateway) {
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_conversation_survives_a_restart(#[case] database: Database) {
    let mock = Mock::start();
    let test_store = TestStore::new(database);
    let gateway = Gateway::start(&config(&mock, &test_store));
    let first = respond_with_id(&gateway, "My name is Ada.", &Value::Null).await;
    let second = respond_with_id(&gateway, "And Bob.", &first).await;
    let deleted = respond_with_id(&gateway, "And nobody.", &second).await;
    let path = |id: &Value| format!("/v1/responses/{}", id.as_str().expect("an id"));
    let gone = send_request(&gateway, Method::DELETE, &path(&deleted), KEY, Value::Null).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    let stranger = create(&gateway, &["stranger"]);
    stop(gateway);

    let gateway = Gateway::start(&config(&mock, &test_store));
    let echo = json!({"model": "chat", "input": "mock:echo Who is here?",
            "previous_response_id": second, "max_output_tokens": 16});
    let response = respond(&gateway, echo).await;
    let sent = echoed_request("responses", &response)["body"].to_string();
    let words = [
        "My name is Ada.",
        "You said: My name is Ada.",
        "And Bob.",
        "Who is here?",
    ];
    let places: Vec<_> = words.iter().map(|words| sent.find(words)).collect();
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{sent}"
    );
    stop(gateway);

    // By its id too, for its own key, and never what was deleted.
    let gateway = Gateway::start(&config(&mock, &test_store));
    let get = async |id: &Value, secret: &str| {
        send_request(&gateway, Method::GET, &path(id), secret, Value::Null).await
    };
    assert_eq!(get(&second, &stranger).await.status, 404);
    let fetched = get(&second, KEY).await;
    assert_eq!(fetched.status, 200, "{}", fetched.text());
    assert_eq!(fetched.json()["previous_response_id"], first);
    let items = format!("{}/input_items", path(&second));
    let items = send_request(&gateway, Method::GET, &items, KEY, Value::Null).await;
    assert!(items.text().contains("My name is Ada."), "{}", items.text());
    assert_eq!(get(&deleted, KEY).await.status, 404);
    // Deleted without ever having been in this process's memory.
    let gone = send_request(&gateway, Method::DELETE, &path(&first), KEY, Value::Null).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert_eq!(get(&first, KEY).await.status, 404);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn an_item_can_be_referred_to_after_a_restart(#[case] database: Database) {
    let mock = Mock::start();
    let test_store = TestStore::new(database);
    let gateway = Gateway::start(&config(&mock, &test_store));
    let body = json!({"model": "chat", "input": "My name is Ada.", "max_output_tokens": 16});
    let first = respond(&gateway, body).await.json();
    stop(gateway);

    let gateway = Gateway::start(&config(&mock, &test_store));
    let input = json!([{"type": "item_reference", "id": first["output"][0]["id"]},
        {"role": "user", "content": "mock:echo Who is here?"}]);
    let body = json!({"model": "chat", "input": input, "max_output_tokens": 16,
        "previous_response_id": first["id"]});
    let response = respond(&gateway, body).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.json()["previous_response_id"], first["id"]);
    let sent = echoed_request("responses", &response)["body"].to_string();
    assert_eq!(
        sent.matches("You said: My name is Ada.").count(),
        2,
        "{sent}"
    );
    assert!(!sent.contains("item_reference"), "{sent}");
}

/// The ids that a key was given are stored with those of its responses.
#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn an_item_that_its_upstream_keeps_can_be_referred_to_after_a_restart(
    #[case] database: Database,
) {
    let mock = Mock::start();
    let test_store = TestStore::new(database);
    let gateway = Gateway::start(&config(&mock, &test_store));
    let ask = |input: Value| json!({"model": "responses", "input": input, "max_output_tokens": 16});
    let first = respond(&gateway, ask("Hi.".into())).await;
    assert_eq!(first.status, 200, "{}", first.text());
    let id = first.json()["output"][0]["id"].clone();
    stop(gateway);

    let gateway = Gateway::start(&config(&mock, &test_store));
    for (id, upstream) in [(id, "responses"), ("msg_theirs".into(), "")] {
        let input = json!([{"type": "item_reference", "id": id},
            {"role": "user", "content": "Who is here?"}]);
        let response = respond(&gateway, ask(input)).await;
        // The mock keeps nothing, and says so in its own words: it was asked.
        let asked = response.header("x-omniglot-upstream");
        assert_eq!(asked, upstream, "{id}: {}", response.text());
    }
}

/// A name can be used again; what its first key owned is not the second one's.
#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_key_made_again_under_a_revoked_name_owns_nothing_of_the_first(
    #[case] database: Database,
) {
    let mock = Mock::start();
    let test_store = TestStore::new(database);
    let gateway = Gateway::start(&config(&mock, &test_store));
    let first = create(&gateway, &["dev", "--cap", "0.1"]);
    let body =
        json!({"model": "chat", "input": "mock:usage=5,0,90,0 secret", "max_output_tokens": 90});
    let kept = send_request(
        &gateway,
        Method::POST,
        "/v1/responses",
        &first,
        body.clone(),
    )
    .await;
    assert_eq!(kept.status, 200, "{}", kept.text());
    let path = format!(
        "/v1/responses/{}",
        kept.json()["id"].as_str().expect("an id")
    );
    let own = send_request(&gateway, Method::GET, &path, &first, Value::Null).await;
    assert_eq!(own.status, 200, "{}", own.text());
    let again = async |gateway: &Gateway, secret: &str| {
        let theirs = send_request(gateway, Method::GET, &path, secret, Value::Null).await;
        assert_eq!(theirs.status, 404, "{}", theirs.text());
        let listed = command(gateway, &["key", "list"]);
        let line = listed.lines().find(|line| line.contains("| dev "));
        assert!(line.is_some_and(|line| !line.contains("0.09")), "{listed}");
    };
    command(&gateway, &["key", "revoke", "dev"]);
    let second = create(&gateway, &["dev", "--cap", "0.1"]);
    again(&gateway, &second).await;
    stop(gateway);
    // Nor after a restart, when all of it comes from the store.
    let gateway = Gateway::start(&config(&mock, &test_store));
    again(&gateway, &second).await;
    let spent = send_request(&gateway, Method::POST, "/v1/responses", &second, body).await;
    assert_eq!(spent.status, 200, "{}", spent.text());
}

#[tokio::test]
async fn a_key_has_a_quota_of_the_store_and_other_keys_have_theirs() {
    let mock = Mock::start();
    let test_store = TestStore::new(Database::Sqlite);
    let quota = "admin: ADMIN, conversations: {max_bytes_per_key: 200KiB}";
    let config = config(&mock, &test_store).replace("admin: ADMIN", quota);
    let config = config.replace(", spending_cap: 1", "");
    let gateway = Gateway::start(&config);
    let store = async |words: &str, secret: &str| {
        let body = json!({"model": "chat", "input": words});
        let response = send_request(&gateway, Method::POST, "/v1/responses", secret, body).await;
        assert_eq!(response.status, 200, "{}", response.text());
        let id = response.json()["id"].as_str().expect("an id").to_owned();
        format!("/v1/responses/{id}")
    };
    let other = store("hello", "key-taken").await;
    let large = format!("mock:text=hi {}", "x".repeat(30_000));
    let mut own = Vec::new();
    for _ in 0..20 {
        own.push(store(&large, KEY).await);
    }
    let too_large = format!("mock:text=hi {}", "x".repeat(300_000));
    let too_large = store(&too_large, KEY).await;
    stop(gateway);

    let gateway = Gateway::start(&config);
    let status = async |path: &str, secret: &str| {
        let response = send_request(&gateway, Method::GET, path, secret, Value::Null).await;
        response.status
    };
    assert_eq!(status(&other, "key-taken").await, 200);
    assert_eq!(status(&own[19], KEY).await, 200);
    assert_eq!(status(&own[0], KEY).await, 404);
    assert_eq!(status(&too_large, KEY).await, 404);
}

#[tokio::test]
async fn a_disk_that_is_nearly_full_takes_usage_records_only() {
    let mock = Mock::start();
    let test_store = TestStore::new(Database::Sqlite);
    let config = config(&mock, &test_store).replace("journal: {", "journal: {min_free: 1000PiB, ");
    let gateway = Gateway::start(&config);
    let id = respond_with_id(&gateway, "My name is Ada.", &Value::Null).await;
    let path = format!("/v1/responses/{}", id.as_str().expect("an id"));
    let get =
        async |gateway: &Gateway| send_request(gateway, Method::GET, &path, KEY, Value::Null).await;
    // It is in memory.
    assert_eq!(get(&gateway).await.status, 200);
    wait_until("the metric tells", async || {
        let lines = gateway.metric("omniglot_store_disk_low").await;
        lines == ["omniglot_store_disk_low{} 1"]
    })
    .await;
    wait_until("its usage is recorded", async || {
        command(&gateway, &["usage", "--by", "key", "--csv"]).contains("all,1,")
    })
    .await;
    stop(gateway);
    let gateway = Gateway::start(&config);
    assert_eq!(get(&gateway).await.status, 404);
}
