//! The store, each test on both databases.

#[allow(dead_code, reason = "shared with the gateway's own tests")]
#[path = "../gateway/asking.rs"]
mod asking;
#[path = "../private/passage.rs"]
mod passage;
#[allow(dead_code, reason = "shared with the journal's tests")]
#[path = "../private/postgres.rs"]
mod postgres;
#[allow(dead_code, reason = "shared with the gateway's own tests")]
#[path = "../gateway/stage.rs"]
mod stage;

mod gateway;
mod keys;
mod leases;
mod migrations;
mod replies;
mod tasks;
mod usage;

use std::path::PathBuf;

use omniglot::config;
use omniglot::model::Money;
use omniglot::store::Store;
use postgres::Postgres;

/// A new and empty store that nobody else has.
pub struct Place {
    pub settings: config::StoreConfig,
    /// As a config names it.
    pub address: String,
    directory: tempfile::TempDir,
}

impl Place {
    pub fn new(address: &str, directory: tempfile::TempDir) -> Place {
        let config = config::parse("test.yaml", &format!("store: \"{address}\""), &|_| None);
        Place {
            settings: config.expect("a good config").store.expect("a store"),
            address: address.to_owned(),
            directory,
        }
    }

    pub fn all() -> Vec<Place> {
        let directory = || tempfile::tempdir().expect("a directory");
        let here = directory();
        let file = here.path().join("odd name?#%.db");
        let mut places = vec![Place::new(&format!("sqlite:{}", file.display()), here)];
        if let Some(postgres) = Postgres::shared() {
            let url = postgres.url(&postgres.database());
            places.push(Place::new(&url, directory()));
        }
        places
    }

    /// Where receipts wait for it.
    pub fn journal(&self) -> PathBuf {
        self.directory.path().join("journal")
    }

    pub async fn open(&self) -> Store {
        Store::open(&self.settings).await.expect("it opens")
    }
}

pub async fn on_each(test: impl AsyncFn(Store)) {
    for place in Place::all() {
        test(place.open().await).await;
    }
}

pub fn money(text: &str) -> Money {
    Money::parse(text).expect("an amount")
}
