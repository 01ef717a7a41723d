//! From the tree to the settings: a file per entry of the config, a function per table.

mod images;
mod journal;
mod key;
mod model;
mod server;
mod upstream;

use super::check::Names;
use super::settings::Config;
use super::table::{Field, Reader, Table};
use super::tree::Node;
use super::values;

/// The settings as far as they could be read, and the names in them for the checks that follow.
///
/// Entries with a problem are left out of the former but not out of the latter, so that one
/// mistake does not make every mention of the entry another.
pub fn config(reader: &mut Reader, root: &Node) -> (Config, Names) {
    let mut names = Names::default();
    let mut config = Config {
        server: server::default(),
        store: None,
        limits_store: None,
        journal: journal::default(),
        images: images::default(),
        keys: Vec::new(),
        upstreams: Vec::new(),
        models: Vec::new(),
    };
    let field = Field {
        name: "the file",
        node: root,
    };
    let Some(mut table) = reader.table("the file", field) else {
        return (config, names);
    };
    if let Some(field) = table.take("server")
        && let Some(table) = reader.table("server", field)
    {
        config.server = server::read(reader, table, &mut names);
    }
    config.store = table
        .take("store")
        .and_then(|field| reader.hidden(field, values::store))
        .map(|store| store.value);
    config.limits_store = table
        .take("limits_store")
        .and_then(|field| reader.hidden(field, values::limits_store))
        .map(|store| store.value);
    if let Some(field) = table.take("journal")
        && let Some(table) = reader.table("journal", field)
    {
        config.journal = journal::read(reader, table);
    }
    if let Some(field) = table.take("images")
        && let Some(table) = reader.table("images", field)
    {
        config.images = images::read(reader, table);
    }
    config.keys = entries(reader, &mut table, ("keys", "a key"), &mut names, key::read);
    config.upstreams = entries(
        reader,
        &mut table,
        ("upstreams", "an upstream"),
        &mut names,
        upstream::read,
    );
    config.models = entries(
        reader,
        &mut table,
        ("models", "a model"),
        &mut names,
        model::read,
    );
    reader.finish(table);
    (config, names)
}

/// Every entry of a list of tables.
fn entries<T>(
    reader: &mut Reader,
    table: &mut Table,
    (name, what): (&'static str, &'static str),
    names: &mut Names,
    read: fn(&mut Reader, Table, &mut Names) -> Option<T>,
) -> Vec<T> {
    let Some(field) = table.take(name) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for field in reader.list(field) {
        if let Some(table) = reader.table(what, field) {
            all.extend(read(reader, table, names));
        }
    }
    all
}
