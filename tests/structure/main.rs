//! The structure of the source: floors, import circles, names.

mod circles;
mod floors;
mod imports;
mod type_names;
