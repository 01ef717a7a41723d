//! The JSON Schema of the config, for editors: completion, descriptions, and keys that do not exist.
//!
//! It is made from the tables of docs/configuration.md, which a test compares with what the parser reads. What a value may be
//! is left to `omniglot check`: most values have several forms, and any may be a variable.

use std::collections::BTreeMap;

use serde_json::{Value, json};

const PAGE: &str = include_str!("../../docs/configuration.md");

/// A key of the config, with those below it.
#[derive(Default)]
struct SchemaNode {
    description: String,
    default: String,
    is_list: bool,
    children: BTreeMap<String, SchemaNode>,
}

/// The JSON Schema of the config.
pub fn schema() -> Value {
    let mut root = SchemaNode::default();
    for line in PAGE.lines() {
        if let Some((path, default, meaning)) = row(line) {
            let node = root.at(path);
            node.default = default.trim_matches('`').to_owned();
            node.description = plain(meaning);
        }
    }
    let mut schema = root.table();
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("The config of Omniglot");
    // Anchors are often kept in a key of their own.
    schema["patternProperties"] = json!({"^x-": {}});
    schema
}

/// The path, default and meaning of a row of a table of keys.
fn row(line: &str) -> Option<(&str, &str, &str)> {
    let mut cells = line
        .strip_prefix("| `")?
        .strip_suffix(" |")?
        .splitn(3, " | ");
    let path = cells.next()?.strip_suffix('`')?;
    Some((path, cells.next()?, cells.next().unwrap_or_default()))
}

/// The text of Markdown without its marks, and of links their words.
fn plain(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some(at) = rest.find("](") {
        text.push_str(&rest[..at]);
        let end = rest[at..].find(')').map_or(rest.len(), |end| at + end + 1);
        rest = &rest[end..];
    }
    text.push_str(rest);
    text.replace(['[', '`'], "")
        .replace("**", "")
        .replace("\\|", "|")
}

impl SchemaNode {
    /// The node of a path such as `models[].upstreams[].name`.
    fn at(&mut self, path: &str) -> &mut SchemaNode {
        let mut node = self;
        for part in path.split('.') {
            let name = part.trim_end_matches("[]");
            node = node.children.entry(name.to_owned()).or_default();
            node.is_list |= part.ends_with("[]");
        }
        node
    }

    fn schema(&self) -> Value {
        let mut schema = match (self.children.is_empty(), self.is_list) {
            (true, _) => json!({}),
            (false, true) => json!({"type": "array", "items": self.table_or_word()}),
            (false, false) => self.table_or_word(),
        };
        // What the page describes beside its entries may also be a single one, without a list.
        if self.is_list && !self.description.is_empty() {
            schema = json!({"anyOf": [schema, self.table_or_word()]});
        }
        for (name, text) in [
            ("description", &self.description),
            ("default", &self.default),
        ] {
            if !text.is_empty() && !["required", "none"].contains(&text.as_str()) {
                schema[name] = json!(text);
            }
        }
        schema
    }

    /// Some tables have a short form, such as `off` or the name of a preset.
    fn table_or_word(&self) -> Value {
        let words = json!({"type": ["string", "boolean", "number", "null"]});
        json!({"anyOf": [self.table(), words]})
    }

    fn table(&self) -> Value {
        let properties = self.children.iter();
        let properties: serde_json::Map<String, Value> = properties
            .map(|(name, child)| (name.clone(), child.schema()))
            .collect();
        // YAML's key for merging the tables of anchors.
        let mut table =
            json!({"type": "object", "additionalProperties": false, "properties": properties});
        table["properties"]["<<"] = json!({});
        table
    }
}
