//! JSON as people read it: every byte but the space between its parts stays as it was.

/// A body with an indentation if it is JSON; everything else as it is.
pub fn indented(body: &str) -> String {
    match body.trim_start().starts_with(['{', '[']) {
        true => indent(body),
        false => body.to_owned(),
    }
}

/// How deep the indentation goes; what is deeper stands below each other.
const MAX_DEPTH: usize = 24;

fn indent(text: &str) -> String {
    let mut shown = String::with_capacity(text.len() * 2);
    let (mut depth, mut is_string, mut is_escaped) = (0_usize, false, false);
    let mut letters = text.chars().peekable();
    let break_line = |shown: &mut String, depth: usize| {
        shown.push('\n');
        shown.extend(std::iter::repeat_n("  ", depth.min(MAX_DEPTH)));
    };
    while let Some(letter) = letters.next() {
        // Signs alone would become fifty times as long.
        if shown.len() > 4 * text.len() + 4096 {
            return text.to_owned();
        }
        if is_string {
            shown.push(letter);
            is_string = is_escaped || letter != '"';
            is_escaped = !is_escaped && letter == '\\';
            continue;
        }
        match letter {
            ' ' | '\t' | '\n' | '\r' => {}
            '"' => {
                is_string = true;
                shown.push(letter);
            }
            '{' | '[' => {
                shown.push(letter);
                while letters.next_if(|next| next.is_ascii_whitespace()).is_some() {}
                if let Some(end) = letters.next_if(|next| matches!(next, '}' | ']')) {
                    shown.push(end);
                } else {
                    depth += 1;
                    break_line(&mut shown, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                break_line(&mut shown, depth);
                shown.push(letter);
            }
            ',' => {
                shown.push(letter);
                break_line(&mut shown, depth);
            }
            ':' => shown.push_str(": "),
            other => shown.push(other),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_space_changes() {
        assert_eq!(
            indented(r#"{"a":[1, {}],"b c":"x, \"{y\\"}"#),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b c\": \"x, \\\"{y\\\\\"\n}"
        );
        assert_eq!(indented("data: {\"a\":1}"), "data: {\"a\":1}");
        // What was cut, and what is no JSON after all.
        assert_eq!(indented("[\"a"), "[\n  \"a");
        assert_eq!(indented("]]"), "]]");
        let deep = "[".repeat(100_000);
        assert_eq!(indented(&deep), deep);
    }
}
