//! No file or folder imports, over others, from itself.

use std::collections::{BTreeMap, BTreeSet};

use super::imports::Crate;

/// What stands beside each other in a folder: files, and folders as a whole. `usage.rs` and what is
/// in `usage/` are one thing.
fn name_in(folder: &str, file: &str) -> Option<String> {
    let rest = file.strip_prefix(folder)?;
    let name = rest.split('/').next().unwrap_or(rest);
    Some(name.trim_end_matches(".rs").to_owned())
}

/// Takes away all that no circle goes through.
fn in_circles(mut imports: BTreeSet<(String, String)>) -> BTreeSet<(String, String)> {
    loop {
        let importing: BTreeSet<String> = imports.iter().map(|(from, _)| from.clone()).collect();
        let imported: BTreeSet<String> = imports.iter().map(|(_, to)| to.clone()).collect();
        let before = imports.len();
        imports.retain(|(from, to)| imported.contains(from) && importing.contains(to));
        if imports.len() == before {
            return imports;
        }
    }
}

#[test]
fn nothing_imports_from_itself_over_others() {
    let source = Crate::read();
    let imports = source.imports();
    assert!(imports.len() > 500, "imports were found: {}", imports.len());
    let mut folders: BTreeSet<String> = BTreeSet::from([String::new()]);
    for module in source.0.values() {
        let parts = module.file.match_indices('/');
        folders.extend(parts.map(|(at, _)| module.file[..=at].to_owned()));
    }
    let mut circles = BTreeMap::new();
    for folder in &folders {
        let between = imports.iter().filter_map(|(from, to)| {
            let pair = (name_in(folder, from)?, name_in(folder, to)?);
            (pair.0 != pair.1).then_some(pair)
        });
        let left = in_circles(between.collect());
        if !left.is_empty() {
            circles.insert(folder, left);
        }
    }
    assert!(circles.is_empty(), "circles by folder: {circles:#?}");
}

#[test]
fn a_circle_is_found() {
    let pairs = [("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")];
    let pairs = pairs.map(|(from, to)| (from.to_owned(), to.to_owned()));
    let left = in_circles(pairs.into());
    let names: Vec<&str> = left.iter().map(|(from, _)| from.as_str()).collect();
    assert_eq!(names, ["b", "c"]);
}
