//! The `journal` table.

use crate::config::settings::{JournalConfig, StoreConfig};
use crate::config::table::{ConfigReader, ConfigTable};
use crate::config::values;

const DEFAULT_PATH: &str = "omniglot-journal";
const DEFAULT_LIMIT: u64 = 1 << 30;
const DEFAULT_MIN_FREE: u64 = 256 << 20;

pub fn default() -> JournalConfig {
    JournalConfig {
        path: DEFAULT_PATH.into(),
        limit: DEFAULT_LIMIT,
        min_free: DEFAULT_MIN_FREE,
    }
}

pub fn parse(
    reader: &mut ConfigReader,
    mut table: ConfigTable,
    store: Option<&StoreConfig>,
) -> JournalConfig {
    let path = reader.optional(&mut table, "path", values::label);
    let limit = reader.optional(&mut table, "limit", values::journal_limit);
    let min_free = table.take("min_free");
    if let (Some(field), Some(StoreConfig::Postgres(_))) = (min_free, store) {
        let message =
            "journal.min_free: does nothing with PostgreSQL, whose disk is elsewhere; remove it";
        reader.warnings.add(field.node.position, message);
    }
    let min_free = min_free.and_then(|field| reader.value(field, values::size));
    reader.finish(table);
    JournalConfig {
        path: path.unwrap_or_else(|| DEFAULT_PATH.to_owned()).into(),
        limit: limit.unwrap_or(DEFAULT_LIMIT),
        min_free: min_free.map_or(DEFAULT_MIN_FREE, |min_free| min_free.value as u64),
    }
}
