//! Keys of the store: created, changed, revoked, and found by their revision.

use omniglot::config::{Limits, Reset};
use omniglot::store::{KeyChange, StoreError, may_be_stored_key};
use omniglot_test_support::Database;
use rstest::rstest;
use sha2::{Digest as _, Sha256};

use crate::{TestStore, money};

fn full() -> KeyChange {
    KeyChange {
        account: Some("search".to_owned()),
        spending_cap: Some(Some(money("25.5"))),
        reset: Some(Reset::Monthly),
        models: Some(Some(vec!["acme-*".to_owned(), "a, \"b\"".to_owned()])),
        requests_per_minute: Some(Some(600)),
        tokens_per_minute: Some(Some(u64::MAX)),
        concurrency: Some(Some(3)),
        expires: Some(Some(4_000_000_000_000)),
    }
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn settings_of_a_key_are_stored_and_its_secret_is_not(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (made, secret) = store.create_key("dev", &full()).await.expect("a key");
    assert!(may_be_stored_key(secret.as_bytes()), "{secret}");
    assert!(secret.starts_with(&made.prefix) && made.prefix.len() < 20);
    let hash: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
    let found = store.key(&hash).await.expect("an answer").expect("the key");
    assert_eq!(found.settings.sha256, hash);
    assert_eq!(found.settings.name, "dev");
    assert_eq!(found.account, "search");
    let cap = found.settings.spending_cap.as_ref().expect("a cap");
    assert_eq!(cap.money, money("25.5"));
    assert_eq!(found.settings.reset, Reset::Monthly);
    assert_eq!(found.settings.models, full().models.flatten());
    let limits = Limits {
        requests_per_minute: Some(600),
        // As many as a database counts.
        tokens_per_minute: Some(i64::MAX as u64),
        concurrency: Some(3),
    };
    assert_eq!(found.settings.limits, limits);
    assert_eq!(found.expires, Some(4_000_000_000_000));
    let (_, other) = store
        .create_key("other", &KeyChange::default())
        .await
        .expect("a key");
    assert_ne!(secret, other);
    let all = store.keys().await.expect("keys");
    let names: Vec<_> = all.iter().map(|key| key.settings.name.as_str()).collect();
    assert_eq!(names, ["dev", "other"]);
    assert_eq!(all[1].account, "default");
    assert!(all[1].settings.spending_cap.is_none() && all[1].settings.models.is_none());
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_change_leaves_other_settings_unchanged(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    store.create_key("dev", &full()).await.expect("a key");
    let change = KeyChange {
        requests_per_minute: Some(None),
        models: Some(None),
        ..KeyChange::default()
    };
    let changed = store.change_key("dev", &change).await.expect("changed");
    assert_eq!(changed.settings.limits.requests_per_minute, None);
    assert_eq!(changed.settings.limits.concurrency, Some(3));
    assert_eq!(changed.settings.models, None);
    assert_eq!(changed.settings.reset, Reset::Monthly);
    let unlimited = KeyChange {
        spending_cap: Some(None),
        ..KeyChange::default()
    };
    let changed = store.change_key("dev", &unlimited).await.expect("changed");
    assert_eq!(changed.settings.reset, Reset::Never);
    let reset = KeyChange {
        reset: Some(Reset::Daily),
        ..KeyChange::default()
    };
    let refused = store.change_key("dev", &reset).await.err();
    assert!(matches!(refused, Some(StoreError::ResetWithoutCap)));
    let unknown = store.change_key("nobody", &unlimited).await.err();
    assert!(matches!(unknown, Some(StoreError::NoSuchKey(_))));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_name_is_free_again_when_its_key_is_revoked(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let blank = KeyChange::default();
    let (first, secret) = store.create_key("dev", &blank).await.expect("a key");
    let again = store.create_key("dev", &blank).await.err();
    assert!(matches!(again, Some(StoreError::NameTaken(_))));
    store.revoke_key("dev").await.expect("revoked");
    let hash: [u8; 32] = Sha256::digest(secret.as_bytes()).into();
    assert!(store.key(&hash).await.expect("an answer").is_none());
    assert!(store.keys().await.expect("keys").is_empty());
    let twice = store.revoke_key("dev").await.err();
    assert!(matches!(twice, Some(StoreError::NoSuchKey(_))));
    let (second, _) = store.create_key("dev", &blank).await.expect("a key");
    assert_ne!(first.id, second.id);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn every_change_after_a_revision_is_found(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let blank = KeyChange::default();
    store.create_key("one", &blank).await.expect("a key");
    let (two, _) = store.create_key("two", &blank).await.expect("a key");
    assert!(
        store
            .keys_since(two.revision)
            .await
            .expect("keys")
            .is_empty()
    );
    store.revoke_key("one").await.expect("revoked");
    store.change_key("two", &full()).await.expect("changed");
    let newer = store.keys_since(two.revision).await.expect("keys");
    let newer: Vec<_> = newer
        .iter()
        .map(|key| (key.settings.name.as_str(), key.revoked.is_some()))
        .collect();
    assert_eq!(newer, [("one", true), ("two", false)]);
}

#[test]
fn only_secrets_of_the_right_shape_are_looked_up() {
    let random = "a".repeat(40);
    assert!(may_be_stored_key(
        format!("sk-omniglot-{random}").as_bytes()
    ));
    for other in [
        format!("sk-omniglot-{random}a"),
        format!("sk-omniglot{random}a"),
        format!("sk-omniglot-{}-", &random[1..]),
        format!("SK-omniglot-{random}"),
        String::new(),
    ] {
        assert!(!may_be_stored_key(other.as_bytes()), "{other}");
    }
}
