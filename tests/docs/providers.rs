//! The page about providers lists the presets, all of them and no others.

use omniglot::config::providers;
use regex::Regex;

use crate::read;

const PAGE: &str = "docs/providers.md";

pub fn check() {
    let page = read(PAGE);
    let (_, table) = page.split_once("## The presets").expect("the section");
    let (table, configs) = table
        .split_once("## A config for each preset")
        .expect("the next section");
    let rows = Regex::new(r"(?m)^\| `([a-z-]+)` \| (.+) \| (.+) \| (.+) \|$").expect("a pattern");
    let described: Vec<[String; 4]> = rows
        .captures_iter(table)
        .map(|row| [1, 2, 3, 4].map(|column| row[column].to_owned()))
        .collect();
    let expected: Vec<[String; 4]> = providers()
        .iter()
        .map(|provider| {
            let quoted = |words: Vec<&str>, between: &str| {
                let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                quoted.join(between)
            };
            let keys = provider.keys.iter().map(String::as_str).collect();
            let keys = match (quoted(keys, " or "), provider.needs_key) {
                _ if provider.uses_google => "Google credentials".to_owned(),
                (keys, _) if keys.is_empty() => "none".to_owned(),
                (keys, true) => keys,
                (keys, false) => format!("{keys} (optional)"),
            };
            let formats = provider.formats.iter().map(|(format, _)| format.name());
            let formats = quoted(formats.collect(), ", ");
            [provider.name.clone(), provider.title.clone(), keys, formats]
        })
        .collect();
    assert_eq!(described, expected);
    // A config for each, which tests/gateway runs.
    let named = Regex::new(r"(?m)^upstreams: \[(?:\{provider: )?([a-z-]+)").expect("a pattern");
    let mut named: Vec<&str> = named
        .captures_iter(configs)
        .filter_map(|found| Some(found.get(1)?.as_str()))
        .collect();
    named.sort_unstable();
    let mut presets: Vec<&str> = providers().iter().map(|it| it.name.as_str()).collect();
    presets.sort_unstable();
    assert_eq!(named, presets);
}
