//! The `journal` table.

use crate::config::settings::JournalConfig;
use crate::config::table::{ConfigReader, ConfigTable};
use crate::config::values;

const DEFAULT_PATH: &str = "omniglot-journal";
const DEFAULT_LIMIT: u64 = 1 << 30;

pub fn default() -> JournalConfig {
    JournalConfig {
        path: DEFAULT_PATH.into(),
        limit: DEFAULT_LIMIT,
    }
}

pub fn parse(reader: &mut ConfigReader, mut table: ConfigTable) -> JournalConfig {
    let path = reader.optional(&mut table, "path", values::label);
    let limit = reader.optional(&mut table, "limit", values::journal_limit);
    reader.finish(table);
    JournalConfig {
        path: path.unwrap_or_else(|| DEFAULT_PATH.to_owned()).into(),
        limit: limit.unwrap_or(DEFAULT_LIMIT),
    }
}
