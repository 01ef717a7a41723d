//! Opening a store: for the first time, again, by many at once, and when it is too new.

use std::os::unix::fs::PermissionsExt as _;

use omniglot::config;
use omniglot::store::{KeyChange, Store, StoreError};
use secrecy::ExposeSecret as _;
use sqlx::{AnyConnection, Connection as _};

use crate::Place;

#[tokio::test]
async fn a_store_is_made_once_and_opened_again() {
    for place in Place::all() {
        let change = KeyChange::default();
        let made = place.open().await.create_key("dev", &change).await;
        made.expect("a key");
        let again = place.open().await.keys().await.expect("keys");
        assert_eq!(again.len(), 1);
        if let config::Store::Sqlite(path) = &place.settings {
            let mode = path.metadata().expect("a file").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_many_that_start_at_once_succeed() {
    for place in Place::all() {
        let all: Vec<_> = (0..12)
            .map(|_| {
                let settings = place.settings.clone();
                tokio::spawn(async move { Store::open(&settings).await.map(|_| ()) })
            })
            .collect();
        for one in all {
            one.await.expect("no panic").expect("it opens");
        }
    }
}

#[tokio::test]
async fn a_store_of_a_newer_program_is_refused() {
    for place in Place::all() {
        drop(place.open().await);
        let address = match &place.settings {
            config::Store::Sqlite(path) => {
                let path = path.to_str().expect("text");
                let path = path.replace('%', "%25").replace('?', "%3F");
                format!("sqlite:{}", path.replace('#', "%23"))
            }
            config::Store::Postgres(address) => address.url.expose_secret().to_owned(),
        };
        let mut connection = AnyConnection::connect(&address).await.expect("connected");
        sqlx::raw_sql("UPDATE schema_version SET version = 1000")
            .execute(&mut connection)
            .await
            .expect("written");
        let refused = Store::open(&place.settings).await.err().expect("an error");
        assert!(matches!(refused, StoreError::Newer { found: 1000, .. }));
        let told = refused.to_string();
        assert!(told.contains("newer version of omniglot"), "{told}");
    }
}
