//! A gateway with a store: keys are created and revoked while it runs, and spending persists.

mod conversations;
mod spending;
mod store_down;

use std::process::Output;
use std::time::Instant;

use omniglot_test_support::{
    Database, FORMATS, Gateway, KEY, Mock, Postgres, Response, TcpProxy, client, omniglot, request,
    send, wait_until,
};
use rstest::rstest;
use serde_json::json;

use crate::TestStore;

/// A key of the right shape that nobody has made.
const GUESSED: &str = "sk-omniglot-0123456789abcdefghijABCDEFGHIJ0123456789";

/// A thousandth for every token of an answer.
fn config(mock: &Mock, test_store: &TestStore) -> String {
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nstore: \"{}\"\njournal: {{path: {:?}}}\n\
         keys: [{{name: all, secret: {KEY}, spending_cap: 1}}, {{name: taken, secret: key-taken}}]\nupstreams:\n",
        test_store.address,
        test_store.journal()
    );
    for (format, prefix) in FORMATS {
        let base = format!("http://{}{prefix}", mock.address);
        text += &format!("  - {{name: {format}, format: {format}, base_url: \"{base}\"}}\n");
    }
    text += "models:\n";
    for (format, _) in FORMATS {
        text += &format!(
            "  - {{id: {format}, pricing: {{output: 1000}}, upstreams: [{{name: {format}}}]}}\n"
        );
    }
    text
}

/// What a command on the store prints.
fn command(gateway: &Gateway, arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = omniglot()
        .args(arguments)
        .arg("-c")
        .arg(gateway.file())
        .output()
        .expect("it runs");
    let stderr = String::from_utf8(stderr).expect("text");
    assert!(status.success(), "{arguments:?}: {stderr}");
    let stdout = String::from_utf8(stdout).expect("text");
    assert!(!format!("{stdout}{stderr}").contains("not-to-be-seen"));
    stdout
}

/// The secret of a key that the command line makes.
fn create(gateway: &Gateway, arguments: &[&str]) -> String {
    let message = command(gateway, &[&["key", "create"], arguments].concat());
    let secret = message
        .lines()
        .find(|line| line.starts_with("sk-omniglot-"));
    secret.expect("a secret").to_owned()
}

/// An answer of so many tokens.
async fn send_request(gateway: &Gateway, format: &str, secret: &str, tokens: u64) -> Response {
    let words = format!("mock:usage=5,0,{tokens},0 mock:text=hi");
    let (path, mut body) = request(format, format, &words, false);
    match format {
        "chat" => body["max_completion_tokens"] = tokens.into(),
        "messages" => body["max_tokens"] = tokens.into(),
        // Its smallest limit.
        "responses" => body["max_output_tokens"] = tokens.max(16).into(),
        _ => body["generationConfig"] = json!({"maxOutputTokens": tokens}),
    }
    let asked = client().post(gateway.url(&path)).bearer_auth(secret);
    send(asked.json(&body)).await
}

/// A store in PostgreSQL, and the way there.
async fn store_behind_proxy(postgres: &Postgres) -> (TcpProxy, TestStore) {
    let proxy = TcpProxy::to(postgres.port()).await;
    let url = omniglot_test_support::postgres_url(proxy.address.port(), &postgres.database());
    let directory = tempfile::tempdir().expect("a directory");
    (proxy, TestStore::at(&url, directory))
}

async fn is_up(gateway: &Gateway, up: u8) -> bool {
    let lines = gateway.metric("omniglot_store_up").await;
    lines == [format!("omniglot_store_up{{}} {up}")]
}

async fn lookups(gateway: &Gateway, outcome: &str) -> u64 {
    let name = format!("omniglot_key_lookups_total{{outcome=\"{outcome}\"}} ");
    let lines = gateway.metric(&name).await;
    let number = lines.first().and_then(|line| line.strip_prefix(&name));
    number.map_or(0, |number| number.parse().expect("a number"))
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_key_created_while_the_gateway_runs_works_at_once_and_a_revoked_one_does_not(
    #[case] database: Database,
) {
    let mock = Mock::start();
    let test_store = TestStore::new(database);
    let gateway = Gateway::start(&config(&mock, &test_store));
    let secret = create(&gateway, &["dev"]);
    for (format, _) in FORMATS {
        assert_eq!(send_request(&gateway, format, &secret, 1).await.status, 200);
    }
    assert_eq!(send_request(&gateway, "chat", KEY, 1).await.status, 200);
    let listed = command(&gateway, &["key", "list"]);
    assert!(
        listed.contains("dev") && !listed.contains(&secret),
        "{listed}"
    );

    command(&gateway, &["key", "set", "dev", "--models", "messages"]);
    wait_until("the other models are closed", async || {
        send_request(&gateway, "chat", &secret, 1).await.status == 403
    })
    .await;
    assert_eq!(
        send_request(&gateway, "messages", &secret, 1).await.status,
        200
    );
    command(
        &gateway,
        &["key", "set", "dev", "--concurrency", "1", "--rpm", "1"],
    );
    wait_until("its limit holds", async || {
        send_request(&gateway, "messages", &secret, 1).await.status == 429
    })
    .await;
    command(&gateway, &["key", "revoke", "dev"]);
    wait_until("the key is closed", async || {
        send_request(&gateway, "messages", &secret, 1).await.status == 401
    })
    .await;
    let response = send_request(&gateway, "chat", &secret, 1).await;
    assert_eq!(response.error("chat"), "the API key is not valid");
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn many_requests_with_one_unknown_key_cost_one_query(#[case] database: Database) {
    let mock = Mock::start();
    let test_store = TestStore::new(database);
    let gateway = Gateway::start(&config(&mock, &test_store));
    let since = Instant::now();
    let storm = (0..60).map(|_| send_request(&gateway, "chat", GUESSED, 1));
    for response in futures_util::future::join_all(storm).await {
        assert_eq!(response.status, 401, "{}", response.text());
    }
    let request = lookups(&gateway, "unknown").await;
    // Once more for every time that the answer was forgotten, after three seconds.
    let most = 2 + since.elapsed().as_secs() / 3;
    assert!((1..=most).contains(&request), "{request}");
    // What cannot be one of the store's is never looked up.
    for other in ["wrong", "sk-omniglot-short", ""] {
        assert_eq!(send_request(&gateway, "chat", other, 1).await.status, 401);
    }
    let secret = create(&gateway, &["dev"]);
    let storm = (0..60).map(|_| send_request(&gateway, "chat", &secret, 1));
    for response in futures_util::future::join_all(storm).await {
        assert_eq!(response.status, 200, "{}", response.text());
    }
    assert!(lookups(&gateway, "found").await <= 1);
    assert_eq!(lookups(&gateway, "unknown").await, request);
}

#[tokio::test]
async fn lookups_of_guessed_keys_are_rate_limited_and_known_keys_are_served() {
    let mock = Mock::start();
    let test_store = TestStore::new(Database::Sqlite);
    let gateway = Gateway::start(&config(&mock, &test_store));
    let secret = create(&gateway, &["dev"]);
    assert_eq!(send_request(&gateway, "chat", &secret, 1).await.status, 200);
    let (mut refused, mut later) = (0, 0);
    for round in 0..100 {
        if later > 0 {
            break;
        }
        let guesses = (0..100).map(async |number| {
            let guess = format!("sk-omniglot-{:040}", round * 100 + number);
            send_request(&gateway, "messages", &guess, 1).await
        });
        for response in futures_util::future::join_all(guesses).await {
            match response.status {
                401 => refused += 1,
                status => {
                    // Also where as many are being looked up as may be at once.
                    assert_eq!(status, 429, "{}", response.text());
                    assert_ne!(response.header("retry-after"), "");
                    response.error("messages");
                    later += 1;
                }
            }
        }
    }
    let request = lookups(&gateway, "unknown").await;
    assert!(
        later > 0 && request == refused,
        "{request} {refused} {later}"
    );
    assert_eq!(send_request(&gateway, "chat", &secret, 1).await.status, 200);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn an_expired_key_gets_its_own_error(#[case] database: Database) {
    let mock = Mock::start();
    let test_store = TestStore::new(database);
    let gateway = Gateway::start(&config(&mock, &test_store));
    let secret = create(&gateway, &["dev", "--expires", "1h"]);
    assert_eq!(send_request(&gateway, "chat", &secret, 1).await.status, 200);
    command(&gateway, &["key", "set", "dev", "--expires", "1ms"]);
    wait_until("it has expired", async || {
        let response = send_request(&gateway, "native", &secret, 1).await;
        response.status == 401 && response.error("native") == "the API key has expired"
    })
    .await;
    // One that is good, beside it, does not help.
    let other = create(&gateway, &["other"]);
    let (path, body) = request("chat", "chat", "hello", false);
    let both = client().post(gateway.url(&path)).bearer_auth(&secret);
    let both = send(both.header("x-api-key", &other).json(&body)).await;
    assert_eq!(both.status, 401, "{}", both.text());
    command(&gateway, &["key", "set", "dev", "--expires", "never"]);
    wait_until("it opens again", async || {
        send_request(&gateway, "chat", &secret, 1).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn a_key_of_the_config_wins_over_one_of_the_same_name() {
    let mock = Mock::start();
    let test_store = TestStore::new(Database::Sqlite);
    // As if the config had come later than the key.
    let store = test_store.open().await;
    let (_, secret) = store
        .create_key("taken", &omniglot::store::KeyChange::default())
        .await
        .expect("a key");
    let stderr = omniglot_test_support::Stderr::new();
    let gateway = Gateway::start_with(&config(&mock, &test_store), |command| {
        stderr.attach(command)
    });
    assert_eq!(
        send_request(&gateway, "chat", "key-taken", 1).await.status,
        200
    );
    assert_eq!(send_request(&gateway, "chat", &secret, 1).await.status, 401);
    let message = stderr.text();
    assert!(
        message.contains("the config has a key named \"taken\""),
        "{message}"
    );
    assert!(command(&gateway, &["key", "list"]).contains("taken (config wins)"));
    // Without it in the config, the other is let in.
    let without = config(&mock, &test_store).replace(", {name: taken, secret: key-taken}", "");
    gateway.rewrite(&without);
    gateway.process.signal("HUP");
    wait_until("the one of the store is let in", async || {
        send_request(&gateway, "chat", &secret, 1).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn another_store_needs_a_restart() {
    let mock = Mock::start();
    let test_store = TestStore::new(Database::Sqlite);
    let stderr = omniglot_test_support::Stderr::new();
    let gateway = Gateway::start_with(&config(&mock, &test_store), |command| {
        stderr.attach(command)
    });
    gateway.rewrite(&config(&mock, &test_store).replace(".db\"", ".other\""));
    gateway.process.signal("HUP");
    wait_until("it says so", async || {
        let message = "store has changed: that takes effect after a restart";
        stderr.text().contains(message)
    })
    .await;
    assert!(!test_store.address.ends_with(".other"));
}
