//! One entry of `keys`.

use std::cell::Cell;

use crate::config::check::DeclaredNames;
use crate::config::settings::{KeyConfig, Limits, Reset};
use crate::config::table::{ConfigField, ConfigReader, ConfigTable, Located};
use crate::config::values;

/// A shorter secret draws a warning.
const SHORTEST_SECRET: usize = 16;

pub fn parse_entry(
    reader: &mut ConfigReader,
    field: ConfigField,
    names: &mut DeclaredNames,
) -> Option<KeyConfig> {
    let mut table = reader.table("a key", field)?;
    let name = reader.required(&mut table, "name", values::key_name);
    names.keys.extend(name.clone());
    let has_short_secret = Cell::new(false);
    let secret = parse_secret_hash(reader, &mut table, &has_short_secret);
    names.secrets.extend(secret.clone());
    let spending_cap = table.take("spending_cap");
    let has_cap = spending_cap.is_some();
    let spending_cap = spending_cap.and_then(|field| reader.value(field, values::amount));
    let reset = table.take("reset");
    let reset = reset.and_then(|field| reader.value(field, values::one_of(&Reset::WORDS)));
    if let Some(reset) = reset.as_ref().filter(|_| !has_cap) {
        let message = "reset goes with a spending_cap; add one or remove this";
        reader.problems.add(reset.position, message);
    }
    let models = table.take("models").map(|field| {
        let globs = reader.filled_list(field).into_iter();
        let globs = globs.filter_map(|glob| reader.value(glob, values::glob));
        let globs: Vec<_> = globs.collect();
        names.globs.extend(globs.iter().cloned());
        globs.into_iter().map(|glob| glob.value).collect()
    });
    let limits = table.take("limits");
    let limits = limits.and_then(|field| parse_limits(reader, field));
    reader.finish(table);
    Some(KeyConfig {
        name: name?.value,
        sha256: secret?.value,
        has_short_secret: has_short_secret.get(),
        spending_cap: spending_cap.map(|cap| cap.value),
        reset: reset.map(|reset| reset.value).unwrap_or_default(),
        models,
        limits: limits.unwrap_or_default(),
        line: Some(field.node.position.line),
    })
}

fn parse_secret_hash(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
    is_short: &Cell<bool>,
) -> Option<Located<[u8; 32]>> {
    match (table.take("secret"), table.take("sha256")) {
        (Some(secret), None) => reader.hidden(secret, |text| {
            is_short.set(text.chars().count() < SHORTEST_SECRET);
            values::secret(text)
        }),
        (None, Some(sha256)) => reader.hidden(sha256, values::sha256),
        (Some(_), Some(sha256)) => {
            let message = "a key takes \"secret\" or \"sha256\", not both; remove one";
            reader.problems.add(sha256.node.position, message);
            None
        }
        (None, None) => {
            let message = "a key needs \"secret\", or \"sha256\" with the hash of it";
            reader.problems.add(table.position, message);
            None
        }
    }
}

fn parse_limits(reader: &mut ConfigReader, field: ConfigField) -> Option<Limits> {
    let mut table = reader.table("limits", field)?;
    let mut limit = |name| reader.optional(&mut table, name, values::count);
    let limits = Limits {
        requests_per_minute: limit("requests_per_minute"),
        tokens_per_minute: limit("tokens_per_minute"),
        concurrency: limit("concurrency"),
    };
    reader.finish(table);
    Some(limits)
}
