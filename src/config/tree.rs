//! The YAML tree, in which every node and key has its line and column.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, Options, Spanned};

use super::problem::{Position, Problems};

/// Limits of a file: twice what ten thousand keys, upstreams and models need, and far below what would exhaust memory.
const MAX_DEPTH: usize = 32;
const MAX_NODES: usize = 1_000_000;
/// Every node has a start and an end event.
const MAX_EVENTS: usize = 2 * MAX_NODES;
const MAX_REPLAYED_EVENTS: usize = 100_000;

#[derive(Debug, Clone)]
pub struct YamlNode {
    pub position: Position,
    pub kind: YamlKind,
}

#[derive(Debug, Clone)]
pub enum YamlKind {
    Null,
    /// The source text with quotes and escapes resolved: `25.00` stays `25.00`, `off` stays `off`.
    Scalar(String),
    List(Vec<YamlNode>),
    Map(Vec<(YamlKey, YamlNode)>),
}

#[derive(Debug, Clone)]
pub struct YamlKey {
    pub position: Position,
    pub name: String,
}

impl YamlKind {
    /// The word for it in messages.
    pub fn name(&self) -> &'static str {
        match self {
            YamlKind::Null => "nothing",
            YamlKind::Scalar(_) => "a single value",
            YamlKind::List(_) => "a list",
            YamlKind::Map(_) => "a mapping",
        }
    }
}

/// Parses a file; problems with its keys are added to `problems`.
pub fn parse(text: &str, problems: &mut Problems) -> Option<YamlNode> {
    match serde_saphyr::from_str_with_options::<SpannedContent>(text, options()) {
        Ok(parsed) => Some(TreeBuilder { text, problems }.node(parsed)),
        Err(error) => {
            let position = error.location().map_or(Position::START, position_of);
            problems.add(position, syntax_message(&error, text, position));
            None
        }
    }
}

/// Parses a file that is not a config of this gateway. `Err`: what is wrong with it.
pub fn parse_foreign(text: &str) -> Result<serde_json::Value, String> {
    serde_saphyr::from_str_with_options(text, options()).map_err(|error| error.to_string())
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: MAX_DEPTH, max_nodes: MAX_NODES, max_events: MAX_EVENTS },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED_EVENTS },
        // Duplicate keys are reported here, together with all other problems.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

fn position_of(location: Location) -> Position {
    Position {
        line: location.line(),
        column: location.column(),
    }
}

fn syntax_message(error: &Error, text: &str, position: Position) -> String {
    match error {
        Error::AliasError { error, .. } => return syntax_message(error, text, position),
        Error::MultipleDocuments { .. } => {
            return "only one document is read; remove this one and the --- above it".to_owned();
        }
        Error::Budget { .. } | Error::AliasReplayLimitExceeded { .. } => {
            return "the file is nested too deeply or grows too large; make it smaller".to_owned();
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            return "an alias cannot stand inside its own anchor; remove it".to_owned();
        }
        _ => {}
    }
    let reason = error.to_string();
    // The crate repeats the place at the end of its sentence.
    let reason = reason.split(" at line ").next().unwrap_or_default();
    let line = usize::try_from(position.line).unwrap_or_default();
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    // Inside of `{ }`, the brace of `${NAME}` opens another mapping.
    let hint = if line.contains("${") {
        "; put ${NAME} in double quotes inside { } and [ ]"
    } else {
        ""
    };
    format!("not valid YAML: {reason}{hint}")
}

/// A node as the YAML crate returns it.
type SpannedContent = Spanned<YamlContent>;

enum YamlContent {
    Null,
    Text(String),
    /// A number or a boolean: only the source still knows how it was written.
    AsWritten,
    List(Vec<SpannedContent>),
    Map(Vec<(SpannedContent, SpannedContent)>),
}

impl<'de> Deserialize<'de> for YamlContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = YamlContent;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("YAML")
    }

    fn visit_unit<E>(self) -> Result<YamlContent, E> {
        Ok(YamlContent::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<YamlContent, E> {
        Ok(YamlContent::AsWritten)
    }

    fn visit_i64<E>(self, _: i64) -> Result<YamlContent, E> {
        Ok(YamlContent::AsWritten)
    }

    fn visit_u64<E>(self, _: u64) -> Result<YamlContent, E> {
        Ok(YamlContent::AsWritten)
    }

    fn visit_f64<E>(self, _: f64) -> Result<YamlContent, E> {
        Ok(YamlContent::AsWritten)
    }

    fn visit_str<E>(self, text: &str) -> Result<YamlContent, E> {
        Ok(YamlContent::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<YamlContent, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(YamlContent::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<YamlContent, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(YamlContent::Map(map))
    }
}

struct TreeBuilder<'a> {
    text: &'a str,
    problems: &'a mut Problems,
}

impl TreeBuilder<'_> {
    fn node(&mut self, parsed: SpannedContent) -> YamlNode {
        let position = position_of(parsed.referenced);
        let kind = match parsed.value {
            YamlContent::Null => YamlKind::Null,
            YamlContent::Text(text) => YamlKind::Scalar(text),
            YamlContent::AsWritten => YamlKind::Scalar(self.source_of(parsed.defined)),
            YamlContent::List(items) => {
                YamlKind::List(items.into_iter().map(|item| self.node(item)).collect())
            }
            YamlContent::Map(entries) => YamlKind::Map(self.entries(entries)),
        };
        YamlNode { position, kind }
    }

    fn source_of(&self, location: Location) -> String {
        let span = location.span();
        let bytes = span.byte_offset().zip(span.byte_len());
        let text = bytes.and_then(|(start, len)| {
            let start = usize::try_from(start).ok()?;
            let len = usize::try_from(len).ok()?;
            self.text.get(start..start + len)
        });
        text.unwrap_or_default().trim().to_owned()
    }

    fn entries(
        &mut self,
        parsed: Vec<(SpannedContent, SpannedContent)>,
    ) -> Vec<(YamlKey, YamlNode)> {
        let mut seen = HashSet::new();
        let mut entries = Vec::with_capacity(parsed.len());
        for (key, value) in parsed {
            let key = self.node(key);
            let value = self.node(value);
            let YamlKind::Scalar(name) = key.kind else {
                let message = "a key must be a word; write it as NAME: VALUE";
                self.problems.add(key.position, message);
                continue;
            };
            if !seen.insert(name.clone()) {
                let message = format!("duplicate key {name:?}; keep one of them");
                self.problems.add(key.position, message);
                continue;
            }
            let position = key.position;
            entries.push((YamlKey { position, name }, value));
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::problem::Severity;

    /// `LINE:COL value` for every node and key, on one line.
    fn show(node: &YamlNode) -> String {
        let shown = match &node.kind {
            YamlKind::Null => "null".to_owned(),
            YamlKind::Scalar(text) => format!("{text:?}"),
            YamlKind::List(items) => {
                let items: Vec<_> = items.iter().map(show).collect();
                format!("[{}]", items.join(", "))
            }
            YamlKind::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| {
                    let Position { line, column } = key.position;
                    format!("{line}:{column} {} = {}", key.name, show(value))
                });
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
        };
        format!("{}:{} {shown}", node.position.line, node.position.column)
    }

    fn parsed(text: &str) -> String {
        let mut problems = Problems::default();
        let node = parse(text, &mut problems).map(|node| show(&node));
        let problems = problems.finish("f", Severity::Problem);
        assert!(problems.is_empty(), "{problems:?}");
        node.expect("no problem, so a tree")
    }

    fn complaints(text: &str) -> Vec<String> {
        let mut problems = Problems::default();
        parse(text, &mut problems);
        let problems = problems.finish("f", Severity::Problem);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn scalars_stay_as_written() {
        assert_eq!(
            parsed("a: 25.00\nb: [0x10, true, off, ~, 'x', 1e400, 99999999999999999999]\n"),
            "1:1 {1:1 a = 1:4 \"25.00\", 2:1 b = 2:4 [2:5 \"0x10\", 2:11 \"true\", 2:17 \"off\", \
             2:22 null, 2:25 \"x\", 2:30 \"1e400\", 2:37 \"99999999999999999999\"]}"
        );
    }

    #[test]
    fn columns_count_characters() {
        assert_eq!(
            parsed("é: { ü: 1.20 }"),
            "1:1 {1:1 é = 1:4 {1:6 ü = 1:9 \"1.20\"}}"
        );
    }

    #[test]
    fn an_alias_stands_where_it_is_used() {
        assert_eq!(
            parsed("x: &p {a: 1.50}\ny: *p\nz:\n  <<: *p\n  b: 2\n"),
            "1:1 {1:1 x = 1:7 {1:8 a = 1:11 \"1.50\"}, 2:1 y = 2:4 {2:4 a = 2:4 \"1.50\"}, \
             3:1 z = 4:3 {5:3 b = 5:6 \"2\", 4:7 a = 4:7 \"1.50\"}}"
        );
    }

    #[test]
    fn nesting_and_aliases_are_bounded() {
        let too_much = "the file is nested too deeply or grows too large; make it smaller";
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(complaints(&deep), [format!("f:1:33: {too_much}")]);

        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..10 {
            let below = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        let complaints = complaints(&bomb);
        assert_eq!(complaints.len(), 1);
        assert!(complaints[0].ends_with(too_much), "{complaints:?}");
    }

    #[test]
    fn thousands_of_models_fit() {
        let entry = |number| {
            format!(
                "  - {{id: model-{number}, provider: acme, features: [tools, vision], max_output_tokens: 8192, \
                 pricing: {{input: 1.25, output: 10, cached_input: 0.125}}, capabilities: {{search: alone}}, \
                 upstreams: [{{name: one, weight: 3}}, {{name: two, priority: 1}}]}}\n"
            )
        };
        let entries: String = (0..6_000).map(entry).collect();
        let mut problems = Problems::default();
        assert!(parse(&format!("models:\n{entries}"), &mut problems).is_some());
    }
}
