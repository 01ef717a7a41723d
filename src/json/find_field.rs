//! Finds a field by its name wherever it stands in a body.

use super::field_trail::FieldTrail;
use super::reader::{DecodeResult, JsonReader};

/// Whether a field is the one that is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldMatch {
    Found,
    /// Its value is looked into.
    Enter,
    /// Its value is passed over.
    Skip,
}

/// Returns the path of the first field that is found; `is_top`: it is a field of the body itself. A field that is
/// `null` is as good as none.
pub fn find_field(text: &str, matches: &dyn Fn(&str, bool) -> FieldMatch) -> Option<String> {
    let mut search = FieldSearch {
        matches,
        trail: FieldTrail::default(),
        is_found: false,
    };
    let read = search.read(&mut JsonReader::new(text), true);
    (read.is_err() && search.is_found).then(|| search.trail.into_path())
}

struct FieldSearch<'m> {
    matches: &'m dyn Fn(&str, bool) -> FieldMatch,
    trail: FieldTrail,
    is_found: bool,
}

impl FieldSearch<'_> {
    fn read(&mut self, reader: &mut JsonReader<'_>, is_top: bool) -> DecodeResult {
        match reader.peek() {
            Some(b'{') => reader.object(|reader, key| {
                let read = match (self.matches)(key, is_top) {
                    FieldMatch::Found if reader.peek() != Some(b'n') => {
                        self.is_found = true;
                        Err(reader.stop("another field"))
                    }
                    FieldMatch::Found | FieldMatch::Skip => reader.skip(),
                    FieldMatch::Enter => self.read(reader, false),
                };
                self.trail.in_field(key, read)
            }),
            Some(b'[') => {
                let mut index = 0;
                reader.array(|reader| {
                    let read = self.read(reader, false);
                    index += 1;
                    self.trail.in_item(index - 1, read)
                })
            }
            _ => reader.skip(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FieldMatch, find_field};

    #[test]
    fn a_field_is_found_wherever_it_is_looked_for() {
        let matches = |key: &str, is_top: bool| match key {
            "model" if !is_top => FieldMatch::Found,
            "models" => FieldMatch::Found,
            "schema" => FieldMatch::Skip,
            _ => FieldMatch::Enter,
        };
        for (text, path) in [
            (r#"{"model":"m","models":["a"]}"#, Some("models")),
            (r#"{"model":{"model":1}}"#, Some("model.model")),
            (
                r#"{"tools":[{},{"a":[{"\u006dodel":"x"}]}]}"#,
                Some("tools[1].a[0].model"),
            ),
            (r#"{"a":{"models":null},"b":{"schema":{"model":1}}}"#, None),
            (r#"{"a":"\"models\":1"}"#, None),
            (r#"{"a"#, None),
            ("3", None),
        ] {
            assert_eq!(find_field(text, &matches).as_deref(), path, "{text}");
        }
    }
}
