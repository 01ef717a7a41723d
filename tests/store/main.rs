//! The store, each test with SQLite and with PostgreSQL.

mod accounts;
mod alerts;
mod gateway;
mod keys;
mod leases;
mod migrations;
mod people;
mod responses;
mod tasks;
mod teams;
mod usage;

use std::path::PathBuf;

use omniglot::config;
use omniglot::model::Money;
use omniglot::store::Store;
use omniglot_test_support::Database;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use sqlx::{AnyConnection, Connection as _};

/// A store of one test, with a folder for the journal in front of it.
pub struct TestStore {
    pub settings: config::StoreConfig,
    /// As a config names it.
    pub address: String,
    directory: tempfile::TempDir,
}

impl TestStore {
    /// Describes the store at an address, with a journal in the directory.
    pub fn at(address: &str, directory: tempfile::TempDir) -> TestStore {
        let config = config::parse("test.yaml", &format!("store: \"{address}\""), &|_| None);
        TestStore {
            settings: config.expect("a good config").store.expect("a store"),
            address: address.to_owned(),
            directory,
        }
    }

    /// Creates an empty store that no other test uses.
    pub fn new(database: Database) -> TestStore {
        let directory = tempfile::tempdir().expect("a directory");
        let url = database.new_store(&directory.path().join("odd name?#%.db"));
        TestStore::at(&url, directory)
    }

    /// Where receipts wait for it.
    pub fn journal(&self) -> PathBuf {
        self.directory.path().join("journal")
    }

    pub async fn open(&self) -> Store {
        Store::open(&self.settings).await.expect("it opens")
    }

    /// Connects beside the store, once it is open.
    pub async fn connect(&self) -> AnyConnection {
        let address = match self.address.strip_prefix("sqlite:") {
            Some(path) => {
                let path = utf8_percent_encode(path, NON_ALPHANUMERIC);
                format!("sqlite:{path}")
            }
            None => self.address.clone(),
        };
        let connection = AnyConnection::connect(&address).await;
        connection.expect("a connection")
    }
}

pub fn money(text: &str) -> Money {
    Money::parse(text).expect("an amount")
}
