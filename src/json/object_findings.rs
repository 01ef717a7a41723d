//! What is found of an object in a body, and what is looked for in it.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::reader::JsonReader;

/// Whether an object has tools, as far as its fields tell.
#[derive(Default)]
pub(super) struct ToolSigns {
    /// The path of a field in one of those that the upstream runs, which names a model.
    pub(super) model: Option<String>,
    /// It has one that the upstream runs.
    pub(super) is_hosted: bool,
    /// It has a field that is not known and is named as if it had one.
    pub(super) is_named: bool,
}

/// What is looked for in a value.
#[derive(Clone, Copy)]
pub(super) struct SearchScope {
    /// Fields that are not known, since the value is of a known one.
    pub(super) unknown: bool,
    pub(super) models: bool,
    /// Tools in the conversation.
    pub(super) tools: bool,
}

/// Models are looked for in every field.
pub(super) const MODELS_ONLY: SearchScope = SearchScope {
    unknown: false,
    models: true,
    tools: false,
};

/// The numbers of the known fields that an object has.
#[derive(Default)]
pub(super) struct FieldNumbers([u64; 4]);

impl FieldNumbers {
    /// Tells whether a number is new.
    pub(super) const fn insert(&mut self, number: u8) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }
}

/// What of an object is judged at its end.
#[derive(Default)]
pub(super) struct ObjectFindings<'a> {
    pub(super) numbers: FieldNumbers,
    pub(super) kind: Option<Cow<'a, str>>,
    /// Those of its fields that are known in some places only.
    pub(super) placed: SmallVec<[&'static str; 2]>,
    pub(super) has_id: bool,
    pub(super) has_content: bool,
}

/// Counts what is one medium, or a list of such.
pub(super) fn count_media(mut value: JsonReader<'_>) -> u64 {
    let mut count = 0;
    match value.peek() {
        Some(b'n') => {}
        Some(b'[') => {
            // What is no JSON is found to be so in its turn.
            let _ = value.array(|reader| {
                count += 1;
                reader.skip()
            });
        }
        _ => count = 1,
    }
    count
}
