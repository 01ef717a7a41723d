//! Takes values out of the YAML tree: keys by name, with problems for wrong values and unknown keys.

use super::expand::{Env, expand};
use super::problem::{Position, Problems};
use super::shown::{HiddenValues, is_open_url};
use super::tree::{YamlKey, YamlKind, YamlNode};
use super::values::Parsed;

/// A value with its position and its source text.
///
/// Messages quote `written`, never `value`: what comes from the environment is not shown.
#[derive(Clone)]
pub struct Located<T> {
    pub value: T,
    pub written: String,
    pub position: Position,
}

/// A node and its key.
#[derive(Clone, Copy)]
pub struct ConfigField<'n> {
    pub name: &'n str,
    pub node: &'n YamlNode,
}

/// A mapping whose keys are taken one by one.
pub struct ConfigTable<'n> {
    /// What messages call it, such as "an upstream".
    what: &'static str,
    pub position: Position,
    rest: Vec<(&'n YamlKey, &'n YamlNode)>,
    known: Vec<&'static str>,
}

impl<'n> ConfigTable<'n> {
    /// A table without keys.
    pub const fn empty(what: &'static str, position: Position) -> ConfigTable<'n> {
        ConfigTable {
            what,
            position,
            rest: Vec::new(),
            known: Vec::new(),
        }
    }

    /// A table of these entries.
    pub fn of(
        what: &'static str,
        position: Position,
        entries: &'n [(YamlKey, YamlNode)],
    ) -> ConfigTable<'n> {
        ConfigTable {
            what,
            position,
            rest: entries.iter().map(|(key, node)| (key, node)).collect(),
            known: Vec::new(),
        }
    }

    /// Takes the value of a key; null counts as absent.
    pub fn take(&mut self, name: &'static str) -> Option<ConfigField<'n>> {
        self.known.push(name);
        let at = self.rest.iter().position(|(key, _)| key.name == name)?;
        let (_, node) = self.rest.remove(at);
        match node.kind {
            YamlKind::Null => None,
            _ => Some(ConfigField { name, node }),
        }
    }

    /// Takes all other entries, for mappings whose keys are chosen by the user.
    pub fn take_rest(&mut self) -> Vec<(&'n YamlKey, &'n YamlNode)> {
        std::mem::take(&mut self.rest)
    }
}

pub struct ConfigReader<'a> {
    pub env: &'a Env<'a>,
    pub problems: Problems,
    pub warnings: Problems,
    /// What must not be shown.
    pub hidden: HiddenValues,
}

impl ConfigReader<'_> {
    pub fn table<'n>(
        &mut self,
        what: &'static str,
        field: ConfigField<'n>,
    ) -> Option<ConfigTable<'n>> {
        let YamlKind::Map(entries) = &field.node.kind else {
            self.wrong_kind(what, field.node, "a mapping (KEY: VALUE)");
            return None;
        };
        Some(ConfigTable::of(what, field.node.position, entries))
    }

    /// Reports unknown keys; called once all known ones are taken.
    pub fn finish(&mut self, table: ConfigTable) {
        for (key, _) in table.rest {
            let known = table.known.iter().copied();
            let advice = match nearest(&key.name, known) {
                Some(near) => format!(", did you mean {near:?}?"),
                None => format!("; {} has {}", table.what, table.known.join(", ")),
            };
            let message = format!("unknown key {:?}{advice}", key.name);
            self.problems.add(key.position, message);
        }
    }

    pub fn list<'n>(&mut self, field: ConfigField<'n>) -> Vec<ConfigField<'n>> {
        let YamlKind::List(items) = &field.node.kind else {
            let expected = "a list ([A, B], or lines that begin with -)";
            self.wrong_kind(field.name, field.node, expected);
            return Vec::new();
        };
        let name = field.name;
        items
            .iter()
            .map(|node| ConfigField { name, node })
            .collect()
    }

    /// A list that must not be empty.
    pub fn filled_list<'n>(&mut self, field: ConfigField<'n>) -> Vec<ConfigField<'n>> {
        let items = self.list(field);
        if matches!(&field.node.kind, YamlKind::List(items) if items.is_empty()) {
            let message = format!("{} is empty; list at least one", field.name);
            self.problems.add(field.node.position, message);
        }
        items
    }

    /// Parses a scalar, with its environment variables expanded.
    pub fn value<T>(
        &mut self,
        field: ConfigField,
        parse: impl Fn(&str) -> Parsed<T>,
    ) -> Option<Located<T>> {
        self.parsed(field, parse, true)
    }

    /// Parses a scalar that may be secret: messages do not quote it, and it is not shown.
    pub fn hidden<T>(
        &mut self,
        field: ConfigField,
        parse: impl Fn(&str) -> Parsed<T>,
    ) -> Option<Located<T>> {
        if let YamlKind::Scalar(text) = &field.node.kind {
            self.hidden.insert((field.node.position, text.clone()));
        }
        self.parsed(field, parse, false)
    }

    /// Parses a URL, which is shown where it has no place for a secret.
    pub fn hidden_url<T>(
        &mut self,
        field: ConfigField,
        parse: impl Fn(&str) -> Parsed<T>,
    ) -> Option<Located<T>> {
        match &field.node.kind {
            YamlKind::Scalar(text) if is_open_url(text) => self.parsed(field, parse, false),
            _ => self.hidden(field, parse),
        }
    }

    pub fn optional<T>(
        &mut self,
        table: &mut ConfigTable,
        name: &'static str,
        parse: impl Fn(&str) -> Parsed<T>,
    ) -> Option<T> {
        let field = table.take(name)?;
        self.value(field, parse).map(|located| located.value)
    }

    /// Parses a required value.
    pub fn required<T>(
        &mut self,
        table: &mut ConfigTable,
        name: &'static str,
        parse: impl Fn(&str) -> Parsed<T>,
    ) -> Option<Located<T>> {
        let field = self.required_field(table, name)?;
        self.value(field, parse)
    }

    pub fn required_field<'n>(
        &mut self,
        table: &mut ConfigTable<'n>,
        name: &'static str,
    ) -> Option<ConfigField<'n>> {
        let field = table.take(name);
        if field.is_none() {
            let message = format!("{} needs {name:?}", table.what);
            self.problems.add(table.position, message);
        }
        field
    }

    /// Parses the values of a list; none when it is absent.
    pub fn items<T>(
        &mut self,
        table: &mut ConfigTable,
        name: &'static str,
        parse: fn(&str) -> Parsed<T>,
    ) -> Vec<Located<T>> {
        let Some(field) = table.take(name) else {
            return Vec::new();
        };
        let items = self.list(field).into_iter();
        items.filter_map(|item| self.value(item, parse)).collect()
    }

    fn parsed<T>(
        &mut self,
        field: ConfigField,
        parse: impl Fn(&str) -> Parsed<T>,
        quote: bool,
    ) -> Option<Located<T>> {
        let ConfigField { name, node } = field;
        let YamlKind::Scalar(written) = &node.kind else {
            self.wrong_kind(name, node, "a single value");
            return None;
        };
        let position = node.position;
        let expanded = match expand(written, self.env) {
            Ok(expanded) => expanded,
            Err(messages) => {
                for message in messages {
                    self.problems.add(position, message);
                }
                return None;
            }
        };
        let shown = quote.then_some(written);
        match parse(&expanded) {
            Ok(value) => Some(Located {
                value,
                written: shown.cloned().unwrap_or_default(),
                position,
            }),
            Err(expected) => {
                let actual = shown.map(|written| format!(", not {written:?}"));
                let actual = actual.unwrap_or_default();
                let message = format!("{name} must be {expected}{actual}");
                self.problems.add(position, message);
                None
            }
        }
    }

    fn wrong_kind(&mut self, what: &str, node: &YamlNode, expected: &str) {
        let message = format!("{what} must be {expected}, not {}", node.kind.name());
        self.problems.add(node.position, message);
    }
}

/// The candidate that is most similar to a misspelt word, if any is near.
pub fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let allowed = (word.chars().count() + 1) / 3;
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
