//! The page about the configuration lists the keys that the parser accepts, all of them and no others.

use std::collections::BTreeSet;

use omniglot::config::parse;
use regex::Regex;

use crate::read;

const PAGE: &str = "docs/configuration.md";

/// A name that is near to none: the problem that it causes lists the keys there are.
const UNKNOWN: &str = "qqqqqqqqqqqqqqqqqqqq";

pub fn check() {
    let mut accepted = BTreeSet::new();
    collect("", &|inner| inner.to_owned(), &mut accepted);
    let pattern = Regex::new(r"(?m)^\| `([a-z_\[\].0-9]+)` \|").expect("a pattern");
    let page = read(PAGE);
    let described: BTreeSet<String> = pattern
        .captures_iter(&page)
        .map(|found| found[1].to_owned())
        .collect();
    let missing: Vec<_> = accepted.difference(&described).collect();
    let extra: Vec<_> = described.difference(&accepted).collect();
    assert!(missing.is_empty(), "{PAGE} does not describe {missing:?}");
    assert!(
        extra.is_empty(),
        "{PAGE} describes {extra:?}, which are not accepted"
    );
    assert!(accepted.len() > 100, "the keys were found");
}

/// Adds the keys of the table at `path`, and of all tables below it. `wrap` puts a value in its place.
fn collect(path: &str, wrap: &dyn Fn(&str) -> String, accepted: &mut BTreeSet<String>) {
    for key in keys(&wrap(&format!("{{{UNKNOWN}: 1}}"))).unwrap_or_default() {
        let of_table = format!("{path}{key}");
        let in_table = |value: &str| wrap(&format!("{{{key}: {value}}}"));
        let in_list = |value: &str| in_table(&format!("[{value}]"));
        let is_list = keys(&in_list(&format!("{{{UNKNOWN}: 1}}"))).is_some();
        let is_table = keys(&in_table(&format!("{{{UNKNOWN}: 1}}"))).is_some();
        // The entries of `keys`, `upstreams` and `models` are described, not the lists.
        if !(path.is_empty() && (is_list || is_table)) || matches!(&*key, "journal") {
            accepted.insert(of_table.clone());
        }
        if is_list {
            collect(&format!("{of_table}[]."), &in_list, accepted);
        } else if is_table && !is_described_elsewhere(&of_table) {
            collect(&format!("{of_table}."), &in_table, accepted);
        }
    }
}

/// The capabilities of an upstream are those of a model.
fn is_described_elsewhere(table: &str) -> bool {
    table == "upstreams[].capabilities"
}

/// The keys of the table that a config has an unknown key in, where the parser looks at that table.
fn keys(config: &str) -> Option<Vec<String>> {
    let problems = parse("test.yaml", config, &|_| None).err()?;
    let lines = problems.iter().map(ToString::to_string);
    let unknown = format!("unknown key \"{UNKNOWN}\"; ");
    let mut lists = lines.filter_map(|line| {
        let (_, list) = line.split_once(&unknown)?;
        let (_, keys) = list.split_once(" has ")?;
        Some(keys.split(", ").map(str::to_owned).collect())
    });
    lists.next()
}
