//! Lays out JSON in lines, or on one, and marks what is at some paths. Names, numbers and their order stay as they were written.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::known_values::{KnownValues, MemberName};
use super::marked_paths::MarkedPaths;
use crate::console::views::{Mark, MarkedText, clipped};

/// Deeper levels are not indented further: a document of brackets alone would be all space.
const MAX_INDENT: usize = 24;

/// How a document is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonLayout {
    Lines,
    OneLine,
}

/// Writes a document, if it is one. `false`: nothing is written.
pub fn write_marked(
    text: &str,
    layout: JsonLayout,
    paths: &mut MarkedPaths,
    known: Option<&KnownValues>,
    out: &mut MarkedText,
) -> bool {
    if serde_json::from_str::<&RawValue>(text).is_err() {
        return false;
    }
    let writer = MarkedWriter {
        text: text.trim(),
        at: 0,
        layout,
        paths,
        known,
        out,
        levels: Vec::new(),
        next: None,
    };
    writer.write();
    true
}

/// An object or a list that is not at its end.
struct JsonLevel {
    is_object: bool,
    /// Where its path leads to.
    node: Option<usize>,
    mark: Option<Mark>,
    /// Of itself: its items are known by it.
    name: MemberName,
    /// Of the next item of a list.
    index: usize,
}

/// The member whose name has been written, and whose value follows.
struct NextMember {
    name: MemberName,
    node: Option<usize>,
    mark: Option<Mark>,
}

struct MarkedWriter<'t, 'o> {
    /// Valid JSON without space around it.
    text: &'t str,
    at: usize,
    layout: JsonLayout,
    paths: &'o mut MarkedPaths,
    known: Option<&'o KnownValues>,
    out: &'o mut MarkedText,
    levels: Vec<JsonLevel>,
    next: Option<NextMember>,
}

impl<'t> MarkedWriter<'t, '_> {
    fn write(mut self) {
        while let Some(byte) = self.text.as_bytes().get(self.at).copied() {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b':' => self.at += 1,
                b',' => {
                    self.at += 1;
                    let mark = self.levels.last().and_then(|level| level.mark);
                    let space = if self.layout == JsonLayout::OneLine {
                        " "
                    } else {
                        ""
                    };
                    self.out.write(format!(",{space}"), mark, false);
                    self.begin_line();
                }
                b'{' | b'[' => self.open(byte),
                b'}' | b']' => self.close(byte),
                b'"' if self.is_at_name() => self.write_name(),
                _ => self.write_scalar(),
            }
        }
    }

    fn begin_line(&mut self) {
        if self.layout == JsonLayout::Lines {
            self.out.end_line();
            let indent = self.levels.len().min(MAX_INDENT);
            if indent > 0 {
                self.out.write("  ".repeat(indent), None, false);
            }
        }
    }

    /// A text stands for a name where an object has not begun a member.
    fn is_at_name(&self) -> bool {
        self.next.is_none() && self.levels.last().is_some_and(|level| level.is_object)
    }

    fn write_name(&mut self) {
        let raw = self.take_string();
        let name = decoded(raw);
        let level = self.levels.last();
        let (of, inherited) = level.map_or((None, None), |level| (level.node, level.mark));
        let node = self.paths.member(of, &name);
        let mark = inherited.max(self.paths.visit(node));
        self.out.write(clipped(raw), mark, true);
        self.out.write(": ".to_owned(), mark, false);
        let known = self.known.map(|known| known.read_name(&name));
        let name = known.unwrap_or_default();
        self.next = Some(NextMember { name, node, mark });
    }

    /// What is known of the value that begins here.
    fn begin_value(&mut self) -> NextMember {
        if let Some(member) = self.next.take() {
            return member;
        }
        let Some(level) = self.levels.last_mut() else {
            let node = MarkedPaths::root();
            return NextMember {
                name: MemberName::default(),
                node,
                mark: None,
            };
        };
        let node = self.paths.item(level.node, level.index);
        // A node that stands for all items is visited at its members.
        let visited = match node == level.node {
            true => None,
            false => self.paths.visit(node),
        };
        level.index += 1;
        NextMember {
            name: level.name,
            node,
            mark: level.mark.max(visited),
        }
    }

    fn open(&mut self, bracket: u8) {
        let value = self.begin_value();
        self.at += 1;
        let rest = self.text[self.at..].trim_ascii_start();
        self.out
            .write(char::from(bracket).to_string(), value.mark, false);
        let is_empty = rest.starts_with(['}', ']']);
        self.levels.push(JsonLevel {
            is_object: bracket == b'{',
            node: value.node,
            mark: value.mark,
            name: value.name,
            index: 0,
        });
        if is_empty {
            let level = self.levels.pop();
            self.at = self.text.len() - rest.len() + 1;
            let end = if bracket == b'{' { "}" } else { "]" };
            let mark = level.and_then(|level| level.mark);
            self.out.write(end.to_owned(), mark, false);
        } else {
            self.begin_line();
        }
    }

    fn close(&mut self, bracket: u8) {
        self.at += 1;
        let level = self.levels.pop();
        self.begin_line();
        let mark = level.and_then(|level| level.mark);
        self.out.write(char::from(bracket).to_string(), mark, false);
    }

    fn write_scalar(&mut self) {
        let value = self.begin_value();
        let raw = match self.text.as_bytes().get(self.at) {
            Some(b'"') => self.take_string(),
            _ => self.take_word(),
        };
        let mark = value.mark.or_else(|| {
            let known = self.known?;
            known.lacks(value.name, raw).then_some(Mark::Written)
        });
        self.out.write(clipped(raw), mark, false);
    }

    /// A text with its quotes.
    fn take_string(&mut self) -> &'t str {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start + 1;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 2,
                b'"' => break,
                _ => at += 1,
            }
        }
        self.at = (at + 1).min(bytes.len());
        &self.text[start..self.at]
    }

    /// A number, `true`, `false` or `null`.
    fn take_word(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let end = rest.find([',', '}', ']', ' ', '\t', '\r', '\n']);
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        word
    }
}

/// The text of a JSON string.
fn decoded(raw: &str) -> Cow<'_, str> {
    let inner = raw.get(1..raw.len() - 1).unwrap_or_default();
    match inner.contains('\\') {
        true => serde_json::from_str(raw).map_or(Cow::Borrowed(inner), Cow::Owned),
        false => Cow::Borrowed(inner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str, layout: JsonLayout, paths: &[(&str, Mark)]) -> String {
        let mut tree = MarkedPaths::default();
        for (path, mark) in paths {
            tree.add(path, *mark);
        }
        let mut out = MarkedText::default();
        assert!(write_marked(text, layout, &mut tree, None, &mut out));
        for (number, path) in paths.iter().enumerate() {
            assert!(tree.is_found(number), "{path:?}");
        }
        out.text()
    }

    #[test]
    fn whole_values_are_marked() {
        let text = r#"{"a":1.50,"list":[ {"b":"x\"}"}, [] ,{}],"a":null}"#;
        assert_eq!(
            marked(text, JsonLayout::OneLine, &[("list[0]", Mark::Dropped)]),
            r#"{"a": 1.50, "list": [<dropped {><dropped "b"><dropped : "x\"}"}>, [], {}], "a": null}"#
        );
        let lines = marked(text, JsonLayout::Lines, &[("list[1]", Mark::Dropped)]);
        assert_eq!(
            lines,
            "{\n  \"a\": 1.50,\n  \"list\": [\n    {\n      \"b\": \"x\\\"}\"\n    },\n    <dropped []>,\n    {}\n  ],\n  \"a\": null\n}"
        );
    }

    #[test]
    fn a_member_of_any_item_is_marked() {
        let text = r#"{"tools":[{"name":"a"},{"search":{}}]}"#;
        assert_eq!(
            marked(
                text,
                JsonLayout::OneLine,
                &[("tools.search", Mark::Adjusted)]
            ),
            r#"{"tools": [{"name": "a"}, {<adjusted "search"><adjusted : {}>}]}"#
        );
    }

    #[test]
    fn what_is_no_json_is_not_written() {
        for text in ["", "hello", "{", "{\"a\"}", "[1,]", "1 2"] {
            let mut out = MarkedText::default();
            let mut paths = MarkedPaths::default();
            let is_written = write_marked(text, JsonLayout::Lines, &mut paths, None, &mut out);
            assert!(!is_written && out.lines.is_empty(), "{text}");
        }
    }

    #[test]
    fn deep_and_long_documents_are_cut_and_take_linear_time() {
        let deep = "[".repeat(50_000) + &"]".repeat(50_000);
        let mut out = MarkedText::default();
        let mut paths = MarkedPaths::default();
        assert!(write_marked(
            &deep,
            JsonLayout::Lines,
            &mut paths,
            None,
            &mut out
        ));
        assert!(out.is_cut && out.lines.len() <= 4_000);
        // Each level and each item is known by the name, which is read once.
        let name = format!("\\u0061{}", "a".repeat(200_000));
        let items = "[".repeat(50_000) + "null" + &",null".repeat(50_000) + &"]".repeat(50_000);
        let named = format!("{{\"{name}\":{items}}}");
        let (mut out, mut known) = (MarkedText::default(), KnownValues::default());
        known.add(r#"{"b":null}"#);
        let layout = JsonLayout::Lines;
        assert!(write_marked(
            &named,
            layout,
            &mut paths,
            Some(&known),
            &mut out
        ));
        assert!(out.is_cut);
        let long = format!("{{\"a\":\"{}\",\"last\":1}}", "é".repeat(100_000));
        let mut out = MarkedText::default();
        let last = paths.add("last", Mark::Dropped);
        assert!(write_marked(
            &long,
            JsonLayout::Lines,
            &mut paths,
            None,
            &mut out
        ));
        assert!(out.text().len() < 1000 && paths.is_found(last));
    }
}
