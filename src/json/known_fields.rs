//! The fields of a body that are known, looked up by their names.

use std::collections::HashMap;

use ahash::RandomState;

use super::path::Path;
use super::reader::JsonReader;

/// The fields that a body may have, and what is looked for in it.
#[derive(Clone, Copy)]
pub struct KnownFields {
    /// The fields of the body itself.
    pub top: &'static [&'static str],
    /// The fields of the objects in it, wherever these stand.
    pub nested: &'static [&'static str],
    /// Of both, those whose values are the client's own data: names in them mean nothing to an upstream.
    pub opaque: &'static [&'static str],
    /// Of the opaque ones of the body itself, those in which models are looked for all the same.
    pub searched: &'static [&'static str],
    /// The values that the field `type` may have.
    pub types: &'static [&'static str],
    /// Fields of the objects in it that are known in some places only.
    pub placed: &'static [PlacedFields],
    /// The fields of the body itself whose values are wanted, each with all of its names.
    pub wanted: &'static [&'static [&'static str]],
    /// The fields of the body itself for which an upstream adds to the prompt by itself.
    pub prompting: &'static [&'static str],
    /// The same of the objects in it.
    pub nested_prompting: &'static [&'static str],
    /// The paths of the fields each of which is a medium of the input, or a list of such.
    pub media: &'static [&'static [&'static str]],
    /// The field of the body itself that has the turns of the conversation, in which no model is looked for.
    pub turns: Option<&'static str>,
    /// What in the conversation may have an upstream run tools of its own; `None`: nothing is looked for.
    pub conversation: Option<&'static ConversationRules>,
    /// The type of items that an upstream may keep under their `id`, and the field that has all of one.
    pub stored: Option<(&'static str, &'static str)>,
    /// Fields of the body itself that are not known, since they refer to input which is not there, and do nothing else.
    pub referring: &'static [&'static str],
    /// Whose fields are known as well, and are all text.
    pub base: Option<&'static KnownFields>,
    /// The fields of the first three lists are known as `camelCase` and as `snake_case`, and named by the first.
    pub has_snake_case: bool,
}

impl KnownFields {
    /// Every name of the fields in a list.
    fn spellings(&self, names: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
        let has_other = self.has_snake_case;
        names.iter().flat_map(move |name| {
            let other = (has_other && name.contains(char::is_uppercase)).then(|| snake_case(name));
            [Some(*name), other].into_iter().flatten()
        })
    }
}

/// The other name of a field. An index is made once, so that its names live as long as the process.
fn snake_case(name: &str) -> &'static str {
    let letters = name.chars().flat_map(|letter| {
        let joint = letter.is_ascii_uppercase().then_some('_');
        joint.into_iter().chain([letter.to_ascii_lowercase()])
    });
    letters.collect::<String>().leak()
}

/// Fields that are known at these places only, and one of which an object may have.
pub struct PlacedFields {
    pub names: &'static [&'static str],
    /// The `type` that the object must have; `None`: none at all.
    pub kind: Option<&'static str>,
    /// The paths of the object, without the numbers of items.
    pub at: &'static [&'static str],
}

/// What in a conversation may have an upstream run tools of its own.
pub struct ConversationRules {
    /// The fields of the body itself that have it.
    pub fields: &'static [&'static str],
    /// Tells whether objects of a type that is not known only tell what has been done.
    pub is_past: fn(&str) -> bool,
    /// Fields that only tell what has been done, whatever stands in them.
    pub past_fields: &'static [&'static str],
    /// The types of objects whose tools are not for this request.
    pub listings: &'static [&'static str],
    /// Tells whether such a tool, or list of tools, has one that the upstream runs.
    pub has_hosted: fn(&str) -> bool,
    /// Tells whether a field that is not known may have tools.
    pub may_name_tools: fn(&str) -> bool,
}

impl ConversationRules {
    /// Tells whether a field has a tool or a list of them.
    pub(super) fn holds_tools(&self, key: &str) -> bool {
        ["tools", "tool"]
            .iter()
            .any(|name| key.eq_ignore_ascii_case(name))
    }
}

/// No fields at all.
pub const NO_FIELDS: KnownFields = KnownFields {
    top: &[],
    nested: &[],
    opaque: &[],
    searched: &[],
    types: &[],
    placed: &[],
    wanted: &[],
    prompting: &[],
    nested_prompting: &[],
    media: &[],
    turns: None,
    conversation: None,
    stored: None,
    referring: &[],
    base: None,
    has_snake_case: false,
};

/// Known fields, ready to be looked up.
pub struct FieldIndex {
    pub(super) known: KnownFields,
    fields: HashMap<&'static str, FieldEntry, RandomState>,
    types: HashMap<&'static str, bool, RandomState>,
    pub(super) rules: UnknownFieldRules,
}

/// What fields that are not known may do.
#[derive(Clone, Copy)]
pub struct UnknownFieldRules {
    /// Tells whether a field names a model; the second: whether it is one of the body itself.
    pub names_model: fn(&str, bool) -> bool,
    /// Returns the path of what chooses the host that serves the model, in a field of the body itself with this value.
    pub chosen_host: fn(&str, JsonReader<'_>) -> Option<String>,
}

/// What is known of a name.
#[derive(Clone, Copy)]
pub(super) struct FieldEntry {
    /// Differs for every name.
    pub(super) number: u8,
    pub(super) top: Knowledge,
    pub(super) nested: Knowledge,
    pub(super) is_opaque: bool,
    pub(super) is_placed: bool,
    /// It is a medium in some places.
    pub(super) is_media: bool,
    /// The place of its value among the wanted ones.
    pub(super) wanted: Option<usize>,
}

/// Whether a name is known at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Knowledge {
    Unknown,
    Known,
    /// It is known, and holds text or a setting.
    Text,
}

impl FieldIndex {
    pub fn new(known: &KnownFields, rules: UnknownFieldRules) -> FieldIndex {
        let mut index = FieldIndex {
            known: *known,
            // The names are ours, so that the seeds need not be secret.
            fields: HashMap::with_hasher(RandomState::with_seeds(1, 2, 3, 4)),
            types: HashMap::with_hasher(RandomState::with_seeds(1, 2, 3, 4)),
            rules,
        };
        index.add(known, Knowledge::Known);
        if let Some(text) = known.base {
            index.add(text, Knowledge::Text);
        }
        index
    }

    fn add(&mut self, known: &KnownFields, level: Knowledge) {
        for name in known.spellings(known.top) {
            let entry = self.entry(name);
            entry.top = entry.top.max(level);
        }
        for name in known.spellings(known.nested) {
            let entry = self.entry(name);
            entry.nested = entry.nested.max(level);
        }
        for name in known.spellings(known.opaque) {
            let entry = self.entry(name);
            entry.nested = entry.nested.max(level);
            entry.is_opaque = true;
        }
        for name in known.placed.iter().flat_map(|placed| placed.names) {
            self.entry(name).is_placed = true;
        }
        for path in known.media.iter().copied().flatten() {
            let name = path.rsplit('.').next().unwrap_or(path);
            self.entry(name).is_media = true;
        }
        for (at, name) in known.wanted.iter().enumerate().flat_map(|(at, names)| {
            let names = names.iter();
            names.map(move |name| (at, name))
        }) {
            self.entry(name).wanted = Some(at);
        }
        for kind in known.types {
            *self.types.entry(kind).or_default() |= level == Knowledge::Text;
        }
    }

    fn entry(&mut self, name: &'static str) -> &mut FieldEntry {
        let number = u8::try_from(self.fields.len()).unwrap_or(u8::MAX);
        self.fields.entry(name).or_insert(FieldEntry {
            number,
            top: Knowledge::Unknown,
            nested: Knowledge::Unknown,
            is_opaque: false,
            is_placed: false,
            is_media: false,
            wanted: None,
        })
    }

    pub(super) fn find(&self, name: &str) -> Option<(&'static str, FieldEntry)> {
        let found = self.fields.get_key_value(name);
        found.map(|(name, entry)| (*name, *entry))
    }

    pub(super) fn find_type(&self, kind: &str) -> Knowledge {
        match self.types.get(kind) {
            Some(true) => Knowledge::Text,
            Some(false) => Knowledge::Known,
            None => Knowledge::Unknown,
        }
    }

    /// Tells whether a field of the body itself is known.
    pub fn knows_top(&self, name: &str) -> bool {
        let entry = self.fields.get(name);
        entry.is_some_and(|entry| entry.top != Knowledge::Unknown)
    }

    /// Tells whether a field may stand in the object at a path.
    pub(super) fn is_in_place(&self, name: &str, object: &Path<'_>) -> bool {
        let mut placed = self.known.placed.iter();
        placed.any(|placed| placed.names.contains(&name) && placed.is_at(object))
    }

    /// Tells whether a field with this entry and path is a medium of the input, or a list of such.
    pub(super) fn is_media(&self, entry: &FieldEntry, path: &Path<'_>) -> bool {
        let mut paths = self.known.media.iter().copied().flatten();
        entry.is_media && paths.any(|at| path.is_at(at))
    }

    /// Finds the first of the fields known in some places only that an object with all of these may not have.
    pub(super) fn find_misplaced(
        &self,
        names: &[&'static str],
        kind: Option<&str>,
        object: &Path<'_>,
    ) -> Option<&'static str> {
        let is_allowed = |name: &&str| {
            self.known.placed.iter().any(|placed| {
                let of_these = names.iter().filter(|name| placed.names.contains(name));
                placed.names.contains(name)
                    && of_these.count() == 1
                    && placed.kind == kind
                    && placed.is_at(object)
            })
        };
        names.iter().copied().find(|name| !is_allowed(name))
    }
}

impl PlacedFields {
    fn is_at(&self, object: &Path<'_>) -> bool {
        self.at.iter().any(|at| object.is_at(at))
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldIndex, KnownFields, NO_FIELDS, UnknownFieldRules};

    #[test]
    fn fields_are_known_by_both_names_where_the_format_has_both() {
        for has_snake_case in [true, false] {
            let known = KnownFields {
                top: &["tools", "topP", "parametersJsonSchema"],
                has_snake_case,
                ..NO_FIELDS
            };
            let rules = UnknownFieldRules {
                names_model: |_, _| false,
                chosen_host: |_, _| None,
            };
            let index = FieldIndex::new(&known, rules);
            assert!(
                ["tools", "topP", "parametersJsonSchema"].map(|name| index.knows_top(name))
                    == [true; 3]
            );
            for name in ["top_p", "parameters_json_schema"] {
                assert_eq!(index.knows_top(name), has_snake_case, "{name}");
            }
            assert!(!index.knows_top("topp") && !index.knows_top("top_P"));
        }
    }
}
