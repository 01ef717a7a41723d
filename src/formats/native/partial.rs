//! A call whose arguments come one by one: `$.city` = `"Par"`, then `"is"` → `{"city":"Paris"}`.

use serde::{Serialize, Serializer};

use super::response_parts::{CallIn, PartialArg};
use crate::model::{Signature, Text};

pub(super) struct PartialCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) signature: Option<Signature<'static>>,
    arguments: Tree,
}

/// JSON in the making; the keys keep the order in which they came.
enum Tree {
    Object(Vec<(String, Tree)>),
    Array(Vec<Tree>),
    Text(String),
    Leaf(serde_json::Value),
}

#[derive(Debug, PartialEq)]
enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

impl PartialCall {
    pub(super) fn begin(call: &CallIn<'_>, signature: Option<Signature<'_>>) -> PartialCall {
        let own = |text: &Text<'_>| text.clone().into_owned();
        PartialCall {
            id: call.id.as_ref().map(own).filter(|id| !id.is_empty()),
            name: call.name.as_ref().map(own).unwrap_or_default(),
            signature: signature.map(Signature::into_owned),
            arguments: Tree::Object(Vec::new()),
        }
    }

    pub(super) fn add(&mut self, argument: PartialArg<'_>) {
        let path = argument.json_path.unwrap_or_default();
        let mut place = &mut self.arguments;
        for step in steps(&path) {
            place = place.child(step);
        }
        if let Some(more) = argument.string_value {
            match place {
                Tree::Text(text) => text.push_str(&more),
                other => *other = Tree::Text(more.into_owned()),
            }
        } else if let Some(number) = argument.number_value {
            *place = Tree::Leaf(serde_json::from_str(number.get()).unwrap_or_default());
        } else if let Some(truth) = argument.bool_value {
            *place = Tree::Leaf(truth.into());
        }
    }

    pub(super) fn arguments(&self) -> String {
        serde_json::to_string(&self.arguments).expect("a tree with string keys always serialises")
    }
}

impl Tree {
    fn child(&mut self, step: Step<'_>) -> &mut Tree {
        match step {
            Step::Key(key) => {
                if !matches!(self, Tree::Object(_)) {
                    *self = Tree::Object(Vec::new());
                }
                let Tree::Object(entries) = self else {
                    return self;
                };
                let known = entries.iter().position(|(name, _)| name == key);
                let at = known.unwrap_or_else(|| {
                    entries.push((key.to_owned(), Tree::Leaf(serde_json::Value::Null)));
                    entries.len() - 1
                });
                &mut entries[at].1
            }
            Step::Index(index) => {
                if !matches!(self, Tree::Array(_)) {
                    *self = Tree::Array(Vec::new());
                }
                let Tree::Array(items) = self else {
                    return self;
                };
                // Items come in order; a gap would be a number nobody should trust.
                let at = index.min(items.len());
                if at == items.len() {
                    items.push(Tree::Leaf(serde_json::Value::Null));
                }
                &mut items[at]
            }
        }
    }
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Tree::Object(entries) => {
                serializer.collect_map(entries.iter().map(|(name, value)| (name, value)))
            }
            Tree::Array(items) => serializer.collect_seq(items),
            Tree::Text(text) => serializer.serialize_str(text),
            Tree::Leaf(value) => value.serialize(serializer),
        }
    }
}

/// `$.a['b c'][0]` → `a`, `b c`, 0.
fn steps(path: &str) -> impl Iterator<Item = Step<'_>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    std::iter::from_fn(move || {
        if let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = bracketed(inner);
            rest = after;
            return Some(step);
        }
        let inner = rest.strip_prefix('.').unwrap_or(rest);
        let end = inner.find(['.', '[']).unwrap_or(inner.len());
        let (key, after) = inner.split_at(end);
        let over = rest.is_empty();
        rest = after;
        (!over).then_some(Step::Key(key))
    })
}

fn bracketed(inner: &str) -> (Step<'_>, &str) {
    for quote in ['\'', '"'] {
        let quoted = inner.strip_prefix(quote);
        if let Some((key, after)) = quoted.and_then(|quoted| quoted.split_once(quote)) {
            return (Step::Key(key), after.strip_prefix(']').unwrap_or(after));
        }
    }
    let (number, after) = inner.split_once(']').unwrap_or((inner, ""));
    let step = number.parse().map_or(Step::Key(number), Step::Index);
    (step, after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::decode_json;

    #[test]
    fn paths_are_read_in_either_spelling() {
        let read = |path| steps(path).collect::<Vec<_>>();
        assert_eq!(
            read("$.a['b c'][0].d"),
            [
                Step::Key("a"),
                Step::Key("b c"),
                Step::Index(0),
                Step::Key("d")
            ]
        );
        assert_eq!(read("$"), []);
        assert_eq!(read("city"), [Step::Key("city")]);
    }

    #[test]
    fn pieces_make_one_object_in_their_order() {
        let begun: CallIn<'_> = decode_json(r#"{"name":"f","willContinue":true}"#).unwrap();
        let mut call = PartialCall::begin(&begun, None);
        for piece in [
            r#"{"jsonPath":"$.z","stringValue":"Par","willContinue":true}"#,
            r#"{"jsonPath":"$.z","stringValue":"is"}"#,
            r#"{"jsonPath":"$.list[0].n","numberValue":2}"#,
            r#"{"jsonPath":"$.list[1]","boolValue":false}"#,
            r#"{"jsonPath":"$.a","nullValue":"NULL_VALUE"}"#,
        ] {
            call.add(decode_json(piece).unwrap());
        }
        assert_eq!(
            call.arguments(),
            r#"{"z":"Paris","list":[{"n":2},false],"a":null}"#
        );
    }
}
