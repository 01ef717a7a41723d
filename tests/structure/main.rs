//! The structure of the source: floors, import circles, names, sizes, places of formats.

mod circles;
mod floors;
mod format_places;
mod imports;
mod sizes;
mod type_names;
