//! JSON read politely: errors carry the path, leftovers are reported, edits touch only their range; and JSON written.

mod check;
mod elements;
mod fields;
mod plain;
mod readable;
mod reader;
mod shape;
mod splice;
mod tree;
mod walk;
mod writer;

pub use check::check;
pub use elements::Elements;
pub use fields::{Fields, Node, Path};
pub(crate) use readable::readable;
pub use readable::{Present, Raw, Readable, read_text};
pub use reader::{Outcome, Reader, Unreadable};
pub use shape::{Clash, Field, Noted, Rule, Seen, Shape, UNSPECIFIED};
pub use splice::{Edit, Pieces, replace, splice};
pub use writer::{escape, write};
