//! YAML as a small tree in which every node and every key knows its line and column.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Location, Options, Spanned};

use super::problem::{Place, Problems};

/// More than any config needs (ten thousand keys, upstreams and models with all their settings are half of it), far
/// less than a file made to exhaust memory wants.
const MAX_DEPTH: usize = 32;
const MAX_NODES: usize = 1_000_000;
/// The beginning and the end of each.
const MAX_EVENTS: usize = 2 * MAX_NODES;
const MAX_REPLAYED_EVENTS: usize = 100_000;

pub struct Node {
    pub place: Place,
    pub kind: Kind,
}

pub enum Kind {
    Null,
    /// Text as written, quotes and escapes resolved: `25.00` stays `25.00`, `off` stays `off`.
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

pub struct Key {
    pub place: Place,
    pub name: String,
}

impl Kind {
    /// The word for it in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Kind::Null => "nothing",
            Kind::Scalar(_) => "a single value",
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
        }
    }
}

/// The tree of one file; what is wrong with its keys goes to `problems`.
pub fn parse(text: &str, problems: &mut Problems) -> Option<Node> {
    match serde_saphyr::from_str_with_options::<Parsed>(text, options()) {
        Ok(parsed) => Some(Builder { text, problems }.node(parsed)),
        Err(error) => {
            let place = error.location().map_or(Place::START, place_of);
            problems.add(place, syntax_message(&error, text, place));
            None
        }
    }
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: MAX_DEPTH, max_nodes: MAX_NODES, max_events: MAX_EVENTS },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_REPLAYED_EVENTS },
        // Duplicates are let through so that each is reported together with all other problems.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        strict_booleans: true,
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        with_snippet: false,
    }
}

fn place_of(location: Location) -> Place {
    Place {
        line: location.line(),
        column: location.column(),
    }
}

fn syntax_message(error: &Error, text: &str, place: Place) -> String {
    match error {
        Error::AliasError { error, .. } => return syntax_message(error, text, place),
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
    let line = usize::try_from(place.line).unwrap_or_default();
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    // A bare `{` inside `{ }` opens another mapping, so `${NAME}` is the likely culprit there.
    let hint = if line.contains("${") {
        "; put ${NAME} in double quotes inside { } and [ ]"
    } else {
        ""
    };
    format!("not valid YAML: {reason}{hint}")
}

/// A node as the YAML crate hands it over.
type Parsed = Spanned<Content>;

enum Content {
    Null,
    Text(String),
    /// A number or a boolean: only the source still knows how it was written.
    AsWritten,
    List(Vec<Parsed>),
    Map(Vec<(Parsed, Parsed)>),
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("YAML")
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content, E> {
        Ok(Content::AsWritten)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content, E> {
        Ok(Content::AsWritten)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content, E> {
        Ok(Content::AsWritten)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content, E> {
        Ok(Content::AsWritten)
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Content::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Content, A::Error> {
        let mut map = Vec::new();
        while let Some(entry) = entries.next_entry()? {
            map.push(entry);
        }
        Ok(Content::Map(map))
    }
}

struct Builder<'a> {
    text: &'a str,
    problems: &'a mut Problems,
}

impl Builder<'_> {
    fn node(&mut self, parsed: Parsed) -> Node {
        let place = place_of(parsed.referenced);
        let kind = match parsed.value {
            Content::Null => Kind::Null,
            Content::Text(text) => Kind::Scalar(text),
            Content::AsWritten => Kind::Scalar(self.source_of(parsed.defined)),
            Content::List(items) => {
                Kind::List(items.into_iter().map(|item| self.node(item)).collect())
            }
            Content::Map(entries) => Kind::Map(self.entries(entries)),
        };
        Node { place, kind }
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

    fn entries(&mut self, parsed: Vec<(Parsed, Parsed)>) -> Vec<(Key, Node)> {
        let mut seen = HashSet::new();
        let mut entries = Vec::with_capacity(parsed.len());
        for (key, value) in parsed {
            let key = self.node(key);
            let value = self.node(value);
            let Kind::Scalar(name) = key.kind else {
                let message = "a key must be a word; write it as NAME: VALUE";
                self.problems.add(key.place, message);
                continue;
            };
            if !seen.insert(name.clone()) {
                let message = format!("duplicate key {name:?}; keep one of them");
                self.problems.add(key.place, message);
                continue;
            }
            let place = key.place;
            entries.push((Key { place, name }, value));
        }
        entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `LINE:COL value` for every node and key, on one line.
    fn show(node: &Node) -> String {
        let shown = match &node.kind {
            Kind::Null => "null".to_owned(),
            Kind::Scalar(text) => format!("{text:?}"),
            Kind::List(items) => {
                let items: Vec<_> = items.iter().map(show).collect();
                format!("[{}]", items.join(", "))
            }
            Kind::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| {
                    let Place { line, column } = key.place;
                    format!("{line}:{column} {} = {}", key.name, show(value))
                });
                format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
        };
        format!("{}:{} {shown}", node.place.line, node.place.column)
    }

    fn parsed(text: &str) -> String {
        let mut problems = Problems::default();
        let node = parse(text, &mut problems).map(|node| show(&node));
        let problems = problems.finish("f");
        assert!(problems.is_empty(), "{problems:?}");
        node.expect("no problem, so a tree")
    }

    fn complaints(text: &str) -> Vec<String> {
        let mut problems = Problems::default();
        parse(text, &mut problems);
        let problems = problems.finish("f");
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
