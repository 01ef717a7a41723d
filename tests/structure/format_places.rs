//! How many places know all formats: a new format has to be added to each of them.

use crate::floors::sources;

/// The files that name every format, beside the mock backend of the tests.
const PLACES: [&str; 4] = [
    "formats/mod.rs",
    "formats/settings.rs",
    "model/mod.rs",
    "proxy/endpoint.rs",
];
const FORMATS: [&str; 5] = ["Chat", "Images", "Messages", "Native", "Responses"];

#[test]
fn four_places_know_every_format() {
    let imported = format!("use Format::{{{}}}", FORMATS.join(", "));
    let sources = sources();
    let mut found: Vec<&str> = sources
        .iter()
        .filter(|source| !source.path.starts_with("mock/"))
        .filter(|source| {
            let code: String = source.shipped_code().map(|(_, line)| line).collect();
            let names = |name: &&str| code.contains(&format!("Format::{name}"));
            code.contains(&imported) || FORMATS.iter().all(names)
        })
        .map(|source| &*source.path)
        .collect();
    found.sort_unstable();
    assert_eq!(
        found, PLACES,
        "see docs/architecture.md, how to add a format"
    );
}
