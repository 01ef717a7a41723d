//! Decodes, validates, edits and encodes JSON: errors carry the path of the field, edits change nothing but their range.

mod array_elements;
mod body_scan;
mod fields;
mod from_json;
mod known_fields;
mod object_findings;
mod path;
mod plain_bytes;
mod reader;
mod rules;
mod splice;
mod tree;
mod unique_fields;
mod validate;
mod validate_tree;
mod writer;

pub use array_elements::ArrayElements;
pub use body_scan::{BodyScan, scan_body};
pub use fields::{Fields, Node};
pub(crate) use from_json::from_json;
pub use from_json::{FromJson, Present, RawJson, decode_json};
pub use known_fields::{
    ConversationRules, FieldIndex, KnownFields, NO_FIELDS, PlacedFields, UnknownFieldRules,
};
pub use path::Path;
pub use reader::{DecodeResult, JsonError, JsonReader};
pub use rules::{Field, FieldConflict, NotedField, ObjectRules, PresentFields, Rule, UNSPECIFIED};
pub use splice::{ChunkedBytes, Edit, remove_member, remove_members, replace, set_member, splice};
pub use tree::decode_value;
pub use unique_fields::{UniqueField, UniqueFieldsError, decode_unique, is_same_but_for_case};
pub use validate::validate;
pub use writer::{escape, write_json};
