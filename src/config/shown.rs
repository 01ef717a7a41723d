//! The config as it was loaded, for people: every setting at its line, without comments and secrets.

use std::collections::HashSet;

use super::problem::Position;
use super::tree::{YamlKind, YamlNode};

/// What stands for a secret.
const REDACTED: &str = "[redacted]";

/// Values that are secret, by their place; with their text, since presets have places of their own.
pub type HiddenValues = HashSet<(Position, String)>;

/// One line of the config, and where the file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownLine {
    pub line: u64,
    pub text: String,
}

/// Writes a config again, in block style.
pub fn show(root: &YamlNode, hidden: &HiddenValues) -> Vec<ShownLine> {
    let mut writer = Writer {
        hidden,
        lines: Vec::new(),
    };
    writer.block(root, 0, String::new());
    writer.lines
}

struct Writer<'h> {
    hidden: &'h HiddenValues,
    lines: Vec<ShownLine>,
}

impl Writer<'_> {
    fn push(&mut self, position: Position, text: String) {
        let line = position.line;
        self.lines.push(ShownLine { line, text });
    }

    /// Writes the entries of a mapping or a list. The first line begins with `first`, such as the dash of a list.
    fn block(&mut self, node: &YamlNode, indent: usize, first: String) {
        let mut first = Some(first);
        let margin = |first: &mut Option<String>| {
            first
                .take()
                .filter(|first| !first.is_empty())
                .unwrap_or_else(|| " ".repeat(indent))
        };
        match &node.kind {
            YamlKind::Map(entries) => {
                for (key, value) in entries {
                    let start = format!("{}{}:", margin(&mut first), plain(&key.name));
                    match self.inline(value) {
                        Some(text) => self.push(key.position, format!("{start} {text}")),
                        None => {
                            self.push(key.position, start);
                            self.block(value, indent + 2, String::new());
                        }
                    }
                }
            }
            YamlKind::List(items) => {
                for item in items {
                    let start = format!("{}- ", margin(&mut first));
                    match self.inline(item) {
                        Some(text) => self.push(item.position, format!("{start}{text}")),
                        None => self.block(item, indent + 2, start),
                    }
                }
            }
            YamlKind::Null | YamlKind::Scalar(_) => {
                let text = self.inline(node).unwrap_or_default();
                self.push(node.position, text);
            }
        }
    }

    /// What fits on the line of its key.
    fn inline(&self, node: &YamlNode) -> Option<String> {
        match &node.kind {
            YamlKind::Null => Some("null".to_owned()),
            YamlKind::Scalar(text) => {
                let place = (node.position, text.clone());
                let is_secret = self.hidden.contains(&place) && !is_variable(text);
                Some(match is_secret {
                    true => REDACTED.to_owned(),
                    false => plain(text),
                })
            }
            YamlKind::List(items) => items.is_empty().then(|| "[]".to_owned()),
            YamlKind::Map(entries) => entries.is_empty().then(|| "{}".to_owned()),
        }
    }
}

/// A value that is nothing but a variable tells nothing of its content.
fn is_variable(text: &str) -> bool {
    let name = text
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !name.is_empty() && name.bytes().all(is_letter)
    })
}

/// A URL without a place for a secret.
pub fn is_open_url(text: &str) -> bool {
    text.contains("://") && !text.contains(['@', '?', '#'])
}

/// A text without quotes where it needs none.
fn plain(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/*${}+% ".contains(&byte);
    let inner = text.bytes().all(|byte| is_plain(byte) || byte == b':');
    let is_simple = inner
        && !text.is_empty()
        && !text.contains(": ")
        && !text.ends_with(':')
        && !text.starts_with([' ', '-', '*', '{', '%', ':', '}'])
        && !text.ends_with(' ');
    match is_simple {
        true => text.to_owned(),
        false => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn secrets_are_redacted_and_lines_stay() {
        let text = r#"# The comment has a SECRET-0.
keys:
  - {name: dev, secret: SECRET-1-is-long-enough, models: [a, "b c"]}
  - name: ops
    sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    spending_cap: 25.00
store: "postgres://user:SECRET-2@db/omniglot"
limits_store: redis://:SECRET-3@redis:6379
console:
  listen: 127.0.0.1:8082
  mail: {from: a@example.org, smtp: "smtp://user:SECRET-4@127.0.0.1:25"}
  identity: [{name: corp, issuer: "https://id.example.org", client_id: c, client_secret: SECRET-5}]
telemetry: {endpoint: "http://127.0.0.1:4318", headers: {x-key: SECRET-6}}
upstreams:
  - name: one
    format: chat
    base_url: http://127.0.0.1:1/v1
    auth: {bearer: "${ONE_KEY}"}
    headers: {x-tenant: SECRET-7}
    query: {sig: SECRET-8}
    proxy: http://user:SECRET-9@127.0.0.1:3128
  - name: two
    format: chat
    base_url: http://127.0.0.1:2/v1
    auth: {header: {name: x-key, value: "SECRET-10"}}
  - name: three
    format: chat
    base_url: http://127.0.0.1:2/v1
    auth: {query: {name: key, value: "Bearer ${ONE_KEY} SECRET-11"}}
  - name: four
    format: chat
    base_url: http://127.0.0.1:2/v1
    auth: {command: [fetch, --password, SECRET-12]}
models: [{id: m, upstreams: [{name: one}, {name: two}, {name: three}, {name: four}]}]
"#;
        let env = |name: &str| (name == "ONE_KEY").then(|| "SECRET-13-of-environment".to_owned());
        let config = parse("test.yaml", text, &env).expect("a good config");
        let shown = config.shown.clone();
        let all: Vec<String> = shown
            .iter()
            .map(|line| format!("{}|{}", line.line, line.text))
            .collect();
        let whole = all.join("\n");
        assert!(
            !whole.contains("SECRET") && !whole.contains("9f86"),
            "{whole}"
        );
        for expected in [
            "3|  - name: dev",
            "3|    secret: [redacted]",
            "3|      - b c",
            "6|    spending_cap: 25.00",
            "7|store: [redacted]",
            "17|    base_url: http://127.0.0.1:1/v1",
            "18|      bearer: ${ONE_KEY}",
            "20|      sig: [redacted]",
        ] {
            assert!(all.contains(&expected.to_owned()), "{expected}:\n{whole}");
        }
        // It is YAML of the same meaning.
        let again = whole
            .lines()
            .map(|line| line.split_once('|').expect("a line").1);
        let again: Vec<&str> = again.collect();
        let again = super::super::parse_foreign_yaml(&again.join("\n")).expect("YAML");
        assert_eq!(again["upstreams"][0]["auth"]["bearer"], "${ONE_KEY}");
        assert_eq!(again["upstreams"].as_array().map(Vec::len), Some(4));
    }
}
