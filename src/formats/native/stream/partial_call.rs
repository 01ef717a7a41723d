//! A call whose arguments come one by one in a stream: `$.city` = `"Par"`, then `"is"` → `{"city":"Paris"}`.

use std::collections::HashMap;

use serde::{Serialize, Serializer};

use crate::formats::native::response_calls::{PartialArg, UpstreamFunctionCall};
use crate::model::{Signature, Text};

/// A call with the arguments that have come so far.
pub(super) struct PartialCall {
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) signature: Option<Signature<'static>>,
    arguments: ArgumentTree,
    /// About how many bytes all of this takes.
    pub(super) held: usize,
}

/// What a step of a path takes beside its key, about.
const PER_STEP: usize = 2 * size_of::<(String, ArgumentTree)>();

/// How deep arguments may be nested whose path is a text: each level of a path takes far more memory than its text.
const MAX_DEPTH: usize = 16;

/// An argument is nested too deep.
#[derive(Debug, PartialEq)]
pub(super) struct TooDeep;

/// Arguments that are being received.
enum ArgumentTree {
    Object(ArgumentObject),
    Array(Vec<ArgumentTree>),
    Text(String),
    Leaf(serde_json::Value),
}

/// An object whose keys keep the order in which they came.
#[derive(Default)]
struct ArgumentObject {
    entries: Vec<(String, ArgumentTree)>,
    /// Where the keys stand, once there are too many to look through.
    positions: HashMap<String, usize>,
}

/// As many keys are looked through one by one.
const FEW_KEYS: usize = 8;

#[derive(Debug, PartialEq)]
enum PathSegment<'p> {
    Key(&'p str),
    Index(usize),
}

impl PartialCall {
    pub(super) fn begin(
        call: &UpstreamFunctionCall<'_>,
        signature: Option<Signature<'_>>,
    ) -> PartialCall {
        let own = |text: &Text<'_>| text.clone().into_owned();
        let texts = [&call.id, &call.name].into_iter().flatten();
        let texts: usize = texts.map(|text| text.len()).sum();
        PartialCall {
            held: texts + signature.as_ref().map_or(0, |it| it.data.len()),
            id: call.id.as_ref().map(own).filter(|id| !id.is_empty()),
            name: call.name.as_ref().map(own).unwrap_or_default(),
            signature: signature.map(Signature::into_owned),
            arguments: ArgumentTree::Object(ArgumentObject::default()),
        }
    }

    /// Adds an argument, or a fragment of a string argument.
    pub(super) fn add(&mut self, argument: PartialArg<'_>) -> Result<(), TooDeep> {
        let path = argument.json_path.unwrap_or_default();
        let mut node = &mut self.arguments;
        for (depth, segment) in path_segments(&path).enumerate() {
            if depth == MAX_DEPTH {
                return Err(TooDeep);
            }
            node = node.child(segment);
            self.held += PER_STEP;
        }
        self.held += 2 * path.len() + argument.string_value.as_ref().map_or(0, |it| it.len());
        if let Some(more) = argument.string_value {
            match node {
                ArgumentTree::Text(text) => text.push_str(&more),
                other => *other = ArgumentTree::Text(more.into_owned()),
            }
        } else if let Some(number) = argument.number_value {
            *node = ArgumentTree::Leaf(serde_json::from_str(number.get()).unwrap_or_default());
        } else if let Some(value) = argument.bool_value {
            *node = ArgumentTree::Leaf(value.into());
        }
        Ok(())
    }

    /// Encodes the arguments as JSON.
    pub(super) fn arguments(&self) -> String {
        serde_json::to_string(&self.arguments).expect("a tree with string keys always serialises")
    }
}

impl ArgumentTree {
    /// The value below a segment, created as null if it is not there.
    fn child(&mut self, segment: PathSegment<'_>) -> &mut ArgumentTree {
        match segment {
            PathSegment::Key(key) => {
                if !matches!(self, ArgumentTree::Object(_)) {
                    *self = ArgumentTree::Object(ArgumentObject::default());
                }
                let ArgumentTree::Object(object) = self else {
                    return self;
                };
                object.value_of(key)
            }
            PathSegment::Index(index) => {
                if !matches!(self, ArgumentTree::Array(_)) {
                    *self = ArgumentTree::Array(Vec::new());
                }
                let ArgumentTree::Array(items) = self else {
                    return self;
                };
                // Items come in order; an index that leaves a gap is not trusted.
                let at = index.min(items.len());
                if at == items.len() {
                    items.push(ArgumentTree::Leaf(serde_json::Value::Null));
                }
                &mut items[at]
            }
        }
    }
}

impl ArgumentObject {
    /// The value of a key, created as null if it is not there.
    fn value_of(&mut self, key: &str) -> &mut ArgumentTree {
        let known = match self.positions.is_empty() {
            false => self.positions.get(key).copied(),
            true => self.entries.iter().position(|(known, _)| known == key),
        };
        let at = known.unwrap_or_else(|| self.add(key));
        &mut self.entries[at].1
    }

    /// Adds a key, and returns its position.
    fn add(&mut self, key: &str) -> usize {
        let at = self.entries.len();
        if at == 0 {
            // Most objects on the way to an argument have no other key.
            self.entries.reserve_exact(1);
        }
        let null = ArgumentTree::Leaf(serde_json::Value::Null);
        self.entries.push((key.to_owned(), null));
        if !self.positions.is_empty() {
            self.positions.insert(key.to_owned(), at);
        } else if self.entries.len() > FEW_KEYS {
            let keys = self.entries.iter().map(|(key, _)| key.clone());
            self.positions = keys.zip(0..).collect();
        }
        at
    }
}

impl Serialize for ArgumentTree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ArgumentTree::Object(object) => {
                let entries = object.entries.iter();
                serializer.collect_map(entries.map(|(name, value)| (name, value)))
            }
            ArgumentTree::Array(items) => serializer.collect_seq(items),
            ArgumentTree::Text(text) => serializer.serialize_str(text),
            ArgumentTree::Leaf(value) => value.serialize(serializer),
        }
    }
}

/// Splits a JSONPath into segments: `$.a['b c'][0]` → `a`, `b c`, 0.
fn path_segments(path: &str) -> impl Iterator<Item = PathSegment<'_>> {
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    std::iter::from_fn(move || {
        if let Some(inner) = rest.strip_prefix('[') {
            let (segment, after) = bracketed_segment(inner);
            rest = after;
            return Some(segment);
        }
        let inner = rest.strip_prefix('.').unwrap_or(rest);
        let end = inner.find(['.', '[']).unwrap_or(inner.len());
        let (key, after) = inner.split_at(end);
        let ended = rest.is_empty();
        rest = after;
        (!ended).then_some(PathSegment::Key(key))
    })
}

fn bracketed_segment(inner: &str) -> (PathSegment<'_>, &str) {
    for quote in ['\'', '"'] {
        let quoted = inner.strip_prefix(quote);
        if let Some((key, after)) = quoted.and_then(|quoted| quoted.split_once(quote)) {
            return (
                PathSegment::Key(key),
                after.strip_prefix(']').unwrap_or(after),
            );
        }
    }
    let (number, after) = inner.split_once(']').unwrap_or((inner, ""));
    let segment = number
        .parse()
        .map_or(PathSegment::Key(number), PathSegment::Index);
    (segment, after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::decode_json;

    #[test]
    fn paths_are_decoded_in_either_notation() {
        let decode = |path| path_segments(path).collect::<Vec<_>>();
        assert_eq!(
            decode("$.a['b c'][0].d"),
            [
                PathSegment::Key("a"),
                PathSegment::Key("b c"),
                PathSegment::Index(0),
                PathSegment::Key("d")
            ]
        );
        assert_eq!(decode("$"), []);
        assert_eq!(decode("city"), [PathSegment::Key("city")]);
    }

    #[test]
    fn arguments_become_one_object_in_their_order() {
        let begun: UpstreamFunctionCall<'_> =
            decode_json(r#"{"name":"f","willContinue":true}"#).unwrap();
        let mut call = PartialCall::begin(&begun, None);
        for argument in [
            r#"{"jsonPath":"$.z","stringValue":"Par","willContinue":true}"#,
            r#"{"jsonPath":"$.z","stringValue":"is"}"#,
            r#"{"jsonPath":"$.list[0].n","numberValue":2}"#,
            r#"{"jsonPath":"$.list[1]","boolValue":false}"#,
            r#"{"jsonPath":"$.a","nullValue":"NULL_VALUE"}"#,
        ] {
            call.add(decode_json(argument).unwrap()).unwrap();
        }
        assert_eq!(
            call.arguments(),
            r#"{"z":"Paris","list":[{"n":2},false],"a":null}"#
        );
    }

    /// To encode and to drop a deeper tree would take more than a thread's stack.
    #[test]
    fn arguments_that_are_nested_too_deep_are_refused() {
        let begun: UpstreamFunctionCall<'_> = decode_json(r#"{"name":"f"}"#).unwrap();
        let mut call = PartialCall::begin(&begun, None);
        let mut add = |depth: usize| {
            let path = ".a".repeat(depth);
            let argument = format!(r#"{{"jsonPath":"${path}","stringValue":"x"}}"#);
            call.add(decode_json(&argument).unwrap())
        };
        assert_eq!(add(MAX_DEPTH), Ok(()));
        assert_eq!(add(MAX_DEPTH + 1), Err(TooDeep));
        assert_eq!(add(1_000_000), Err(TooDeep));
        assert!(call.arguments().starts_with(r#"{"a":{"a":{"a":"#));
    }
}
