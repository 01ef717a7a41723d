//! Recognises a body that has nothing but known fields, in one pass and without decoding their values.

use super::field_trail::FieldTrail;
use super::reader::{DecodeResult, JsonReader};

/// The fields that a body may have.
pub struct KnownFields {
    /// The fields of the body itself.
    pub top: &'static [&'static str],
    /// The fields of the objects in it, wherever these stand.
    pub nested: &'static [&'static str],
    /// Of both, those whose values are the client's own data: names in them mean nothing to an upstream.
    pub opaque: &'static [&'static str],
    /// The values that the field `type` may have.
    pub types: &'static [&'static str],
    /// Whose fields are known as well.
    pub base: Option<&'static KnownFields>,
}

impl KnownFields {
    /// Tells whether a text is JSON and has no field but these. A field in another case is another field.
    pub fn are_all_of(&self, text: &str) -> bool {
        self.find_unknown(text).is_none()
    }

    /// Returns the path of the first field that is none of these, or of where the text is no JSON.
    pub fn find_unknown(&self, text: &str) -> Option<String> {
        let mut reader = JsonReader::new(text);
        let mut trail = FieldTrail::default();
        let read = self.read_body(&mut reader, &mut trail);
        let read = read.and_then(|()| reader.end());
        read.is_err().then(|| trail.into_path())
    }

    /// Tells whether a field of the body itself is known.
    pub fn knows_top(&self, key: &str) -> bool {
        self.any(|known| known.top.contains(&key))
    }

    /// Tells whether the value of a field is the client's own data.
    pub fn is_opaque(&self, key: &str) -> bool {
        self.any(|known| known.opaque.contains(&key))
    }

    fn any(&self, holds: impl Fn(&KnownFields) -> bool) -> bool {
        let lists = std::iter::successors(Some(self), |known| known.base);
        lists.into_iter().any(holds)
    }

    fn read_body(&self, reader: &mut JsonReader<'_>, trail: &mut FieldTrail) -> DecodeResult {
        reader.object(|reader, key| {
            let read = match self.knows_top(key) {
                true => self.read_value_of(reader, key, trail),
                false => Err(reader.stop("a known field")),
            };
            trail.in_field(key, read)
        })
    }

    fn read(&self, reader: &mut JsonReader<'_>, trail: &mut FieldTrail) -> DecodeResult {
        match reader.peek() {
            Some(b'{') => reader.object(|reader, key| {
                let read = self.read_field(reader, key, trail);
                trail.in_field(key, read)
            }),
            Some(b'[') => {
                let mut index = 0;
                reader.array(|reader| {
                    let read = self.read(reader, trail);
                    index += 1;
                    trail.in_item(index - 1, read)
                })
            }
            _ => reader.skip(),
        }
    }

    fn read_field(
        &self,
        reader: &mut JsonReader<'_>,
        key: &str,
        trail: &mut FieldTrail,
    ) -> DecodeResult {
        if key == "type" {
            let kind = reader.text()?;
            return match self.any(|known| known.types.contains(&&*kind)) {
                true => Ok(()),
                false => Err(reader.stop("a known type")),
            };
        }
        if self.any(|known| known.nested.contains(&key)) || self.is_opaque(key) {
            return self.read_value_of(reader, key, trail);
        }
        Err(reader.stop("a known field"))
    }

    fn read_value_of(
        &self,
        reader: &mut JsonReader<'_>,
        key: &str,
        trail: &mut FieldTrail,
    ) -> DecodeResult {
        match self.is_opaque(key) {
            true => reader.skip(),
            false => self.read(reader, trail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KnownFields;

    const BASE: KnownFields = KnownFields {
        top: &["messages", "metadata"],
        nested: &["role", "content"],
        opaque: &["schema", "metadata"],
        types: &["text"],
        base: None,
    };

    const MORE: KnownFields = KnownFields {
        top: &["store"],
        nested: &["url"],
        opaque: &[],
        types: &["image"],
        base: Some(&BASE),
    };

    #[test]
    fn every_field_is_looked_at_but_those_of_opaque_data() {
        for text in [
            "{}",
            r#"{"messages":[{"role":"user","content":[{"type":"text","content":"image_url"}]}]}"#,
            r#"{"messages":{"schema":{"file":1,"type":"image"},"\u0072ole":1,"role":2},"metadata":{"a":1}}"#,
        ] {
            assert!(BASE.are_all_of(text), "{text}");
            assert!(MORE.are_all_of(text), "{text}");
        }
        for (text, path) in [
            ("", ""),
            ("[]", ""),
            ("{} {}", ""),
            (r#"{"role":1}"#, "role"),
            (r#"{"schema":1}"#, "schema"),
            (r#"{"messages":[{},{"type":"image"}]}"#, "messages[1].type"),
            (r#"{"messages":{"type":["text"]}}"#, "messages.type"),
            (
                r#"{"messages":{"content":[[0,{"file":1}]]}}"#,
                "messages.content[0][1].file",
            ),
            (r#"{"messages":{"Content":1}}"#, "messages.Content"),
            (r#"{"messages":{"messages":1}}"#, "messages.messages"),
            (r#"{"store":1}"#, "store"),
        ] {
            assert_eq!(BASE.find_unknown(text).as_deref(), Some(path), "{text}");
        }
        assert!(MORE.are_all_of(r#"{"store":1,"messages":[{"type":"image","url":"u"}]}"#));
    }
}
