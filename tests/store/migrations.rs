//! Opening a store: new, existing, by many processes at once, and of a newer version.

use std::os::unix::fs::PermissionsExt as _;

use jiff::Timestamp;
use omniglot::config;
use omniglot::model::{CapKind, LeaseRequest, Money};
use omniglot::store::{CapLeaseRequest, KeyChange, LeaseHolder, Store, StoreError};
use omniglot_test_support::Database;
use rstest::rstest;
use secrecy::ExposeSecret as _;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

use crate::{TestStore, money};

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_store_is_created_once_and_opened_again(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let change = KeyChange::default();
    let made = test_store.open().await.create_key("dev", &change).await;
    made.expect("a key");
    let again = test_store.open().await.keys().await.expect("keys");
    assert_eq!(again.len(), 1);
    if let config::StoreConfig::Sqlite(path) = &test_store.settings {
        let mode = path.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn many_processes_can_open_a_store_at_once(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let all: Vec<_> = (0..12)
        .map(|_| {
            let settings = test_store.settings.clone();
            tokio::spawn(async move { Store::open(&settings).await.map(|_| ()) })
        })
        .collect();
    for one in all {
        one.await.expect("no panic").expect("it opens");
    }
}

/// Past the store itself.
async fn connect(test_store: &TestStore) -> AnyConnection {
    sqlx::any::install_default_drivers();
    let address = match &test_store.settings {
        config::StoreConfig::Sqlite(path) => {
            let path = path.to_str().expect("text");
            let path = path.replace('%', "%25").replace('?', "%3F");
            format!("sqlite:{}?mode=rwc", path.replace('#', "%23"))
        }
        config::StoreConfig::Postgres(address) => address.url.expose_secret().to_owned(),
    };
    AnyConnection::connect(&address).await.expect("connected")
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_store_of_the_first_version_is_migrated(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let mut tables = include_str!("../../src/store/migrations/0001.sql").to_owned();
    if let config::StoreConfig::Sqlite(_) = &test_store.settings {
        tables = tables.replace("BYTEA", "BLOB");
    }
    tables += "CREATE TABLE schema_version (version BIGINT NOT NULL);
             INSERT INTO schema_version (version) VALUES (1);
             INSERT INTO spending (key_name, period, amount) VALUES ('dev', '', '7.5');";
    let mut connection = connect(&test_store).await;
    sqlx::raw_sql(AssertSqlSafe(tables))
        .execute(&mut connection)
        .await
        .expect("made");
    let now = Timestamp::now();
    let store = test_store.open().await;
    // It was written under the name; the config's key of that name gets it, once.
    store.adopt(&[("dev", "id-of-dev")]).await.expect("adopted");
    store.adopt(&[("dev", "another")]).await.expect("nothing");
    let store = store.with_holder(LeaseHolder {
        id: "1".to_owned(),
        journal: "a".to_owned(),
        began: now,
    });
    let need = LeaseRequest {
        cap: money("10"),
        floor: Money::ZERO,
        minimum: Money::ZERO,
        desired: money("5"),
    };
    let ask = CapLeaseRequest {
        kind: CapKind::Key,
        id: "id-of-dev".to_owned(),
        reset: config::Reset::Never,
        lease: need,
    };
    let given = store.lease(&[ask], now).await.expect("leased");
    assert_eq!(given[0].amount, money("2.5"));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_store_of_a_newer_version_is_refused(#[case] database: Database) {
    let test_store = TestStore::new(database);
    drop(test_store.open().await);
    let mut connection = connect(&test_store).await;
    sqlx::raw_sql("UPDATE schema_version SET version = 1000")
        .execute(&mut connection)
        .await
        .expect("written");
    let refused = Store::open(&test_store.settings)
        .await
        .err()
        .expect("an error");
    assert!(matches!(
        refused,
        StoreError::NewerSchema { found: 1000, .. }
    ));
    let message = refused.to_string();
    assert!(message.contains("newer version of omniglot"), "{message}");
}

#[tokio::test]
async fn a_damaged_file_is_called_that() {
    for damage in ["no database", "its pages"] {
        let test_store = TestStore::new(Database::Sqlite);
        let config::StoreConfig::Sqlite(path) = &test_store.settings else {
            panic!("a file");
        };
        match damage {
            "no database" => std::fs::write(path, "words ".repeat(1000)).expect("written"),
            _ => {
                drop(test_store.open().await);
                // All of it into the file itself.
                let mut connection = connect(&test_store).await;
                sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)")
                    .execute(&mut connection)
                    .await
                    .expect("written");
                let mut bytes = std::fs::read(path).expect("a file");
                // The header stays, and all tables behind it are gone.
                bytes[100..].fill(0x5a);
                std::fs::write(path, bytes).expect("written");
            }
        }
        let refused = Store::open(&test_store.settings).await.err();
        let message = refused.expect(damage).to_string();
        assert!(
            message.contains("damaged or no SQLite database"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_file_that_others_can_read_is_closed_to_them() {
    let test_store = TestStore::new(Database::Sqlite);
    drop(test_store.open().await);
    let config::StoreConfig::Sqlite(path) = &test_store.settings else {
        panic!("a file");
    };
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(path, open).expect("opened");
    drop(test_store.open().await);
    let mode = path.metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
