//! The databases that a store can be in.

use std::path::Path;

use crate::postgres::Postgres;

/// A database that a test runs with.
#[derive(Clone, Copy, Debug)]
pub enum Database {
    /// A file of SQLite.
    Sqlite,
    /// A database of the PostgreSQL server that all tests of a binary share.
    Postgres,
}

impl Database {
    /// Returns the URL of a new, empty store, as a config names it; `file` is where SQLite puts it.
    pub fn new_store(self, file: &Path) -> String {
        match self {
            Database::Sqlite => format!("sqlite:{}", file.display()),
            Database::Postgres => {
                let postgres = Postgres::shared();
                postgres.url(&postgres.database())
            }
        }
    }
}
