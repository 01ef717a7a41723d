//! Parses the YAML tree into settings: a file per entry of the config, a function per table.

mod auth;
mod aws_auth;
mod azure_auth;
mod console;
mod endpoints;
mod google_auth;
mod headers;
mod identity;
mod images;
mod journal;
mod key;
mod mail;
mod model;
mod request_shape;
mod server;
mod telemetry;
mod template_values;
mod tls;
mod upstream;

use super::check::DeclaredNames;
use super::problem::Problems;
use super::settings::{Config, StoreConfig, StorePart};
use super::shown::HiddenValues;
use super::table::{ConfigField, ConfigReader, ConfigTable};
use super::tree::YamlNode;
use super::values;

/// The settings as far as they could be read, and the names in them for the checks that follow.
///
/// Entries with a problem are left out of the former but not out of the latter, so that one
/// mistake does not make every mention of the entry another.
pub fn config(reader: &mut ConfigReader, root: &YamlNode) -> (Config, DeclaredNames) {
    let mut names = DeclaredNames::default();
    let mut config = Config {
        server: server::default(),
        store: None,
        limits_store: None,
        journal: journal::default(),
        console: None,
        telemetry: None,
        images: images::default(),
        keys: Vec::new(),
        upstreams: Vec::new(),
        models: Vec::new(),
        warnings: Vec::new(),
        shown: [].into(),
    };
    let field = ConfigField {
        name: "the file",
        node: root,
    };
    let Some(mut table) = reader.table("the file", field) else {
        return (config, names);
    };
    if let Some(field) = table.take("server")
        && let Some(table) = reader.table("server", field)
    {
        config.server = server::parse(reader, table, &mut names);
    }
    config.store = parse_store(reader, &mut table);
    config.limits_store = table
        .take("limits_store")
        .and_then(|field| reader.hidden(field, values::limits_store))
        .map(|store| store.value);
    if let Some(field) = table.take("journal")
        && let Some(table) = reader.table("journal", field)
    {
        if config.store.is_none() {
            let message = "journal: does nothing without a store; add a store or remove this";
            reader.warnings.add(field.node.position, message);
        }
        config.journal = journal::parse(reader, table, config.store.as_ref());
    }
    if let Some(field) = table.take("console") {
        config.console = console::parse(reader, field, config.store.is_some(), &mut names);
    }
    config.telemetry = table
        .take("telemetry")
        .and_then(|field| telemetry::parse(reader, field));
    if let Some(field) = table.take("images")
        && let Some(table) = reader.table("images", field)
    {
        config.images = images::parse(reader, table);
    }
    config.keys = parse_entries(reader, &mut table, "keys", &mut names, key::parse_entry);
    config.upstreams = parse_entries(
        reader,
        &mut table,
        "upstreams",
        &mut names,
        upstream::parse_entry,
    );
    config.models = parse_entries(reader, &mut table, "models", &mut names, model::parse_entry);
    reader.finish(table);
    (config, names)
}

/// The store, and the keys as far as they can be read. Their secrets are not used, so that a variable which is not set
/// is no problem.
pub fn store_part(reader: &mut ConfigReader, root: &YamlNode) -> StorePart {
    let mut part = StorePart {
        store: None,
        console: None,
        keys: Vec::new(),
    };
    let field = ConfigField {
        name: "the file",
        node: root,
    };
    let Some(mut table) = reader.table("the file", field) else {
        return part;
    };
    part.store = parse_store(reader, &mut table);
    let env = reader.env;
    let with_unset = |name: &str| env(name).or_else(|| Some(format!("unset-{name}")));
    let mut lenient = ConfigReader {
        env: &with_unset,
        problems: Problems::default(),
        warnings: Problems::default(),
        hidden: HiddenValues::default(),
    };
    let mut names = DeclaredNames::default();
    part.keys = parse_entries(
        &mut lenient,
        &mut table,
        "keys",
        &mut names,
        key::parse_entry,
    );
    if let Some(field) = table.take("console") {
        let has_store = part.store.is_some();
        part.console = console::parse(&mut lenient, field, has_store, &mut names);
    }
    part
}

fn parse_store(reader: &mut ConfigReader, table: &mut ConfigTable) -> Option<StoreConfig> {
    let field = table.take("store")?;
    let store = reader.hidden(field, values::store)?;
    Some(store.value)
}

/// Every entry of a list.
fn parse_entries<T>(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
    name: &'static str,
    names: &mut DeclaredNames,
    parse: fn(&mut ConfigReader, ConfigField, &mut DeclaredNames) -> Option<T>,
) -> Vec<T> {
    let Some(field) = table.take(name) else {
        return Vec::new();
    };
    names.lists.push((name, field.node.position));
    let entries = reader.list(field).into_iter();
    entries
        .filter_map(|field| parse(reader, field, names))
        .collect()
}
