//! Reading the tree politely: keys are taken by name, mistakes are noted, leftovers are reported.

use super::expand::{Env, expand};
use super::problem::{Place, Problems};
use super::tree::{Key, Kind, Node};
use super::values::Parsed;

/// A value together with where it stands and how it is written there.
///
/// Messages quote `written`, never `value`: what came from the environment stays unseen.
#[derive(Clone)]
pub struct Placed<T> {
    pub value: T,
    pub written: String,
    pub place: Place,
}

/// A node and the key that leads to it.
#[derive(Clone, Copy)]
pub struct Field<'n> {
    pub name: &'n str,
    pub node: &'n Node,
}

/// One mapping being read.
pub struct Table<'n> {
    /// "an upstream", for messages.
    what: &'static str,
    pub place: Place,
    rest: Vec<(&'n Key, &'n Node)>,
    known: Vec<&'static str>,
}

impl<'n> Table<'n> {
    /// The value of a key; null counts as absent.
    pub fn take(&mut self, name: &'static str) -> Option<Field<'n>> {
        self.known.push(name);
        let at = self.rest.iter().position(|(key, _)| key.name == name)?;
        let (_, node) = self.rest.remove(at);
        match node.kind {
            Kind::Null => None,
            _ => Some(Field { name, node }),
        }
    }

    /// Everything not taken, for mappings whose keys are the user's own words.
    pub fn take_rest(&mut self) -> Vec<(&'n Key, &'n Node)> {
        std::mem::take(&mut self.rest)
    }
}

pub struct Reader<'a> {
    pub env: &'a Env<'a>,
    pub problems: Problems,
}

impl Reader<'_> {
    pub fn table<'n>(&mut self, what: &'static str, field: Field<'n>) -> Option<Table<'n>> {
        let Kind::Map(entries) = &field.node.kind else {
            self.wrong_kind(what, field.node, "a mapping (KEY: VALUE)");
            return None;
        };
        Some(Table {
            what,
            place: field.node.place,
            rest: entries.iter().map(|(key, node)| (key, node)).collect(),
            known: Vec::new(),
        })
    }

    /// Reports the keys that nothing asked for; to be called once all known ones are taken.
    pub fn finish(&mut self, table: Table) {
        for (key, _) in table.rest {
            let known = table.known.iter().copied();
            let advice = match nearest(&key.name, known) {
                Some(near) => format!(", did you mean {near:?}?"),
                None => format!("; {} has {}", table.what, table.known.join(", ")),
            };
            let message = format!("unknown key {:?}{advice}", key.name);
            self.problems.add(key.place, message);
        }
    }

    pub fn list<'n>(&mut self, field: Field<'n>) -> Vec<Field<'n>> {
        let Kind::List(items) = &field.node.kind else {
            let expected = "a list ([A, B], or lines that begin with -)";
            self.wrong_kind(field.name, field.node, expected);
            return Vec::new();
        };
        let name = field.name;
        items.iter().map(|node| Field { name, node }).collect()
    }

    /// A list that says nothing is more likely a slip than a wish.
    pub fn filled_list<'n>(&mut self, field: Field<'n>) -> Vec<Field<'n>> {
        let items = self.list(field);
        if matches!(&field.node.kind, Kind::List(items) if items.is_empty()) {
            let message = format!("{} is empty; list at least one", field.name);
            self.problems.add(field.node.place, message);
        }
        items
    }

    /// A single value, its variables filled in.
    pub fn value<T>(
        &mut self,
        field: Field,
        parse: impl Fn(&str) -> Parsed<T>,
    ) -> Option<Placed<T>> {
        self.parsed(field, parse, true)
    }

    /// The same for what may be secret: the message does not quote it.
    pub fn hidden<T>(
        &mut self,
        field: Field,
        parse: impl Fn(&str) -> Parsed<T>,
    ) -> Option<Placed<T>> {
        self.parsed(field, parse, false)
    }

    pub fn optional<T>(
        &mut self,
        table: &mut Table,
        name: &'static str,
        parse: impl Fn(&str) -> Parsed<T>,
    ) -> Option<T> {
        let field = table.take(name)?;
        self.value(field, parse).map(|placed| placed.value)
    }

    /// A value that its table cannot do without.
    pub fn required<T>(
        &mut self,
        table: &mut Table,
        name: &'static str,
        parse: impl Fn(&str) -> Parsed<T>,
    ) -> Option<Placed<T>> {
        let field = self.required_field(table, name)?;
        self.value(field, parse)
    }

    pub fn required_field<'n>(
        &mut self,
        table: &mut Table<'n>,
        name: &'static str,
    ) -> Option<Field<'n>> {
        let field = table.take(name);
        if field.is_none() {
            let message = format!("{} needs {name:?}", table.what);
            self.problems.add(table.place, message);
        }
        field
    }

    /// The values of a list; none when it is absent.
    pub fn items<T>(
        &mut self,
        table: &mut Table,
        name: &'static str,
        parse: fn(&str) -> Parsed<T>,
    ) -> Vec<Placed<T>> {
        let Some(field) = table.take(name) else {
            return Vec::new();
        };
        let items = self.list(field).into_iter();
        items.filter_map(|item| self.value(item, parse)).collect()
    }

    fn parsed<T>(
        &mut self,
        field: Field,
        parse: impl Fn(&str) -> Parsed<T>,
        quote: bool,
    ) -> Option<Placed<T>> {
        let Field { name, node } = field;
        let Kind::Scalar(written) = &node.kind else {
            self.wrong_kind(name, node, "a single value");
            return None;
        };
        let place = node.place;
        let expanded = match expand(written, self.env) {
            Ok(expanded) => expanded,
            Err(messages) => {
                for message in messages {
                    self.problems.add(place, message);
                }
                return None;
            }
        };
        let shown = quote.then_some(written);
        match parse(&expanded) {
            Ok(value) => Some(Placed {
                value,
                written: shown.cloned().unwrap_or_default(),
                place,
            }),
            Err(expected) => {
                let actual = shown.map(|written| format!(", not {written:?}"));
                let actual = actual.unwrap_or_default();
                let message = format!("{name} must be {expected}{actual}");
                self.problems.add(place, message);
                None
            }
        }
    }

    fn wrong_kind(&mut self, what: &str, node: &Node, expected: &str) {
        let message = format!("{what} must be {expected}, not {}", node.kind.name());
        self.problems.add(node.place, message);
    }
}

/// The candidate that a misspelt word most likely meant, if any is near.
pub fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let allowed = (word.chars().count() + 1) / 3;
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
