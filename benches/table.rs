//! Formats tables in Markdown: text to the left, numbers to the right.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, Table};

/// The cell of a number that was not measured.
pub const NO_VALUE: &str = "–";

/// Returns an empty table whose first `text_columns` columns hold text, and whose others hold numbers.
pub fn new_table(text_columns: usize, header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(ASCII_MARKDOWN).set_header(header);
    for column in table.column_iter_mut().skip(text_columns) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

pub fn format_number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NO_VALUE.to_owned(), |value| format!("{value:.digits$}"))
}
