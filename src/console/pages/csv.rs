//! Comma-separated values, which spreadsheets open: a cell is never a formula.

/// A line of cells.
pub fn line<'c>(cells: impl IntoIterator<Item = &'c str>) -> String {
    let cells: Vec<String> = cells.into_iter().map(cell).collect();
    format!("{}\r\n", cells.join(","))
}

fn cell(text: &str) -> String {
    // What begins like this would be computed; the apostrophe says that it is text.
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = match is_formula {
        true => format!("'{text}"),
        false => text.to_owned(),
    };
    match is_formula || text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula_and_none_breaks_its_line() {
        for (text, written) in [
            ("m", "m"),
            ("0.5", "0.5"),
            ("a,b", "\"a,b\""),
            ("say \"hi\"\n", "\"say \"\"hi\"\"\n\""),
            ("=1+2", "\"'=1+2\""),
            ("+1", "\"'+1\""),
            ("-1", "\"'-1\""),
            ("@x", "\"'@x\""),
        ] {
            assert_eq!(cell(text), written);
        }
        assert_eq!(line(["a", "b"]), "a,b\r\n");
    }
}
