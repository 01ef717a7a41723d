//! JSON read politely: errors carry the path, leftovers are reported, edits touch only their range; and JSON written.

mod check;
mod elements;
mod fields;
mod from_json;
mod plain;
mod reader;
mod shape;
mod splice;
mod tree;
mod walk;
mod writer;

pub use check::validate;
pub use elements::ArrayElements;
pub use fields::{Fields, Node, Path};
pub(crate) use from_json::from_json;
pub use from_json::{FromJson, Present, RawJson, decode_json};
pub use reader::{DecodeResult, JsonError, JsonReader};
pub use shape::{Field, FieldConflict, NotedField, ObjectRules, PresentFields, Rule, UNSPECIFIED};
pub use splice::{ChunkedBytes, Edit, replace, splice};
pub use writer::{escape, write_json};
