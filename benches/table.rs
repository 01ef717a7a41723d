//! Prints tables: words to the left, figures to the right.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

/// A figure that there is none of.
pub const NOTHING: &str = "–";

/// So many first columns hold words.
pub fn table(words: usize, header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(header);
    for column in table.column_iter_mut().skip(words) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

pub fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |value| format!("{value:.digits$}"))
}
