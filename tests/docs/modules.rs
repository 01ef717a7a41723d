//! The page about the architecture has the modules that tests/structure holds the code to, and names files that exist.

use std::collections::BTreeSet;

use regex::Regex;

use crate::{read, root};

const PAGE: &str = "docs/architecture.md";

pub fn check() {
    let floors = read("tests/structure/floors.rs");
    let (_, floors) = floors.split_once("const FLOORS").expect("the table");
    let (floors, _) = floors.split_once("];").expect("its end");
    let mut held = table(floors, r"\((\d), &\[([^\]]*)\]\)", r#""([a-z_]+)""#);
    // The binary only starts the command line.
    held.retain(|(_, module)| module != "main");
    let described = table(&read(PAGE), r"(?m)^\| (\d) \| ([^|]*)\|", r"`([a-z_]+)`");
    assert_eq!(
        described, held,
        "{PAGE} has other modules than tests/structure/floors.rs"
    );
    assert!(held.len() > 10, "the table was found");
    check_files(&read(PAGE));
}

/// Every file that the page names is there.
fn check_files(page: &str) {
    let pattern = Regex::new(r"`((?:src|tests)/[a-z_./]+)`").expect("a pattern");
    for found in pattern.captures_iter(page) {
        let file = root().join(&found[1]);
        assert!(
            file.exists(),
            "{PAGE} names {}, which is not there",
            &found[1]
        );
    }
}

/// Pairs of a floor and a module, from rows with a number and names.
fn table(text: &str, row: &str, name: &str) -> BTreeSet<(String, String)> {
    let row = Regex::new(row).expect("a pattern");
    let name = Regex::new(name).expect("a pattern");
    let mut pairs = BTreeSet::new();
    for found in row.captures_iter(text) {
        for module in name.captures_iter(&found[2]) {
            pairs.insert((found[1].to_owned(), module[1].to_owned()));
        }
    }
    pairs
}
