//! A store that is down at the start or later: known keys are served, others are told to retry.

use omniglot::store::KeyChange;
use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Postgres, Stderr, free_address, omniglot, wait_until,
};

use super::{GUESSED, config, create, is_up, send_request, store_behind_proxy};
use crate::TestStore;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn a_gateway_starts_without_its_store_and_uses_it_when_it_is_up() {
    let postgres = Postgres::shared();
    let mock = Mock::start();
    let (proxy, test_store) = store_behind_proxy(postgres).await;
    let stderr = Stderr::new();
    let gateway = Gateway::start_with(&config(&mock, &test_store), |command| {
        stderr.attach(command)
    });
    assert_eq!(send_request(&gateway, "chat", KEY, 1).await.status, 200);
    for (format, _) in FORMATS {
        let response = send_request(&gateway, format, GUESSED, 1).await;
        // 529 is what the messages format has for it.
        let status = if format == "messages" { 529 } else { 503 };
        assert_eq!(response.status, status, "{}", response.text());
        assert_eq!(response.header("retry-after"), "1");
        let message = response.error(format);
        assert_eq!(message, "the API key cannot be looked up now; try again");
        // What was never made by the store is no question for it.
        assert_eq!(send_request(&gateway, format, "wrong", 1).await.status, 401);
    }
    proxy.open().await;
    wait_until("the store is taken up", async || is_up(&gateway, 1).await).await;
    wait_until("a guess is only a guess", async || {
        send_request(&gateway, "chat", GUESSED, 1).await.status == 401
    })
    .await;
    let secret = create(&gateway, &["dev"]);
    assert_eq!(send_request(&gateway, "chat", &secret, 1).await.status, 200);
    let told = stderr.text();
    assert!(told.contains("cannot be reached"), "{told}");
    assert!(!told.contains("not-to-be-seen"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn known_keys_are_served_while_the_store_is_down() {
    let postgres = Postgres::shared();
    let mock = Mock::start();
    let (proxy, test_store) = store_behind_proxy(postgres).await;
    proxy.open().await;
    // Known without ever having been used: keys are held ahead of their first request.
    let store = test_store.open().await;
    let unused = store.create_key("unused", &KeyChange::default()).await;
    let (_, unused) = unused.expect("a key");
    let stderr = Stderr::new();
    let gateway = Gateway::start_with(&config(&mock, &test_store), |command| {
        stderr.attach(command)
    });
    let secret = create(&gateway, &["dev"]);
    let used = send_request(&gateway, "chat", &secret, 1).await;
    assert_eq!(used.status, 200, "{}", used.text());

    proxy.close();
    wait_until("the store is away", async || is_up(&gateway, 0).await).await;
    for secret in [KEY, &secret, &unused] {
        assert_eq!(send_request(&gateway, "chat", secret, 1).await.status, 200);
    }
    assert_eq!(send_request(&gateway, "chat", GUESSED, 1).await.status, 503);

    // What changes meanwhile holds when it is back.
    let direct = TestStore::at(
        &test_store.address.replace(
            &proxy.address.port().to_string(),
            &postgres.port().to_string(),
        ),
        tempfile::tempdir().expect("a directory"),
    );
    direct
        .open()
        .await
        .revoke_key("dev")
        .await
        .expect("revoked");
    assert_eq!(send_request(&gateway, "chat", &secret, 1).await.status, 200);
    proxy.open().await;
    wait_until("the revocation holds", async || {
        send_request(&gateway, "chat", &secret, 1).await.status == 401
    })
    .await;
    assert_eq!(send_request(&gateway, "chat", &unused, 1).await.status, 200);
    let message = stderr.text();
    assert!(message.contains("keys that are known go on"), "{message}");
    assert!(!message.contains("not-to-be-seen"), "{message}");
}

#[tokio::test]
async fn an_invalid_sqlite_file_stops_the_start() {
    let mock = Mock::start();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("gate.db");
    std::fs::write(
        &file,
        "this is no database, and long enough to be seen as none",
    )
    .expect("written");
    for path in [file.display().to_string(), "/nowhere/at/all.db".to_owned()] {
        let test_store =
            TestStore::at(&format!("sqlite:{path}"), tempfile::tempdir().expect("one"));
        let config = config(&mock, &test_store)
            .replace("LISTEN", &free_address().to_string())
            .replace("ADMIN", &free_address().to_string());
        let written = directory.path().join("here.yaml");
        std::fs::write(&written, config).expect("written");
        let output = omniglot().args(["run", "-c"]).arg(&written).output();
        let output = output.expect("it runs");
        assert_eq!(output.status.code(), Some(1));
        let message = String::from_utf8(output.stderr).expect("text");
        let expected = format!("cannot use the store sqlite:{path}");
        assert!(message.contains(&expected), "{message}");
    }
}
