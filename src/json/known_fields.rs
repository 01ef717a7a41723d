//! Recognises a body that has nothing but known fields, in one pass and without decoding their values.

use super::reader::{DecodeResult, JsonReader};

/// The fields that a body may have, at whatever place they stand.
pub struct KnownFields {
    /// Their values are text, numbers, or objects that again have known fields only.
    pub fields: &'static [&'static str],
    /// Their values are the client's own data: names in them mean nothing to an upstream.
    pub opaque: &'static [&'static str],
    /// The values that the field `type` may have.
    pub types: &'static [&'static str],
}

impl KnownFields {
    /// Tells whether a text is JSON and has no field but these. A field in another case is another field.
    pub fn are_all_of(&self, text: &str) -> bool {
        let mut reader = JsonReader::new(text);
        self.read(&mut reader).is_ok() && reader.end().is_ok()
    }

    fn read(&self, reader: &mut JsonReader<'_>) -> DecodeResult {
        match reader.peek() {
            Some(b'{') => reader.object(|reader, key| self.read_field(reader, key)),
            Some(b'[') => reader.array(|reader| self.read(reader)),
            _ => reader.skip(),
        }
    }

    fn read_field(&self, reader: &mut JsonReader<'_>, key: &str) -> DecodeResult {
        if key == "type" {
            let kind = reader.text()?;
            return match self.types.contains(&&*kind) {
                true => Ok(()),
                false => Err(reader.stop("a known type")),
            };
        }
        if self.fields.contains(&key) {
            return self.read(reader);
        }
        match self.opaque.contains(&key) {
            true => reader.skip(),
            false => Err(reader.stop("a known field")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KnownFields;

    const KNOWN: KnownFields = KnownFields {
        fields: &["role", "content"],
        opaque: &["schema"],
        types: &["text"],
    };

    #[test]
    fn every_field_is_looked_at_but_those_of_opaque_data() {
        for text in [
            "{}",
            r#"[{"role":"user","content":[{"type":"text","content":"image_url"}]}]"#,
            r#"{"schema":{"file":1,"type":"image"},"\u0072ole":1,"role":2}"#,
        ] {
            assert!(KNOWN.are_all_of(text), "{text}");
        }
        for text in [
            "",
            "{} {}",
            r#"{"content":[{"type":"file"}]}"#,
            r#"{"content":[{"type":["text"]}]}"#,
            r#"{"content":{"file":1}}"#,
            r#"{"Content":1}"#,
        ] {
            assert!(!KNOWN.are_all_of(text), "{text}");
        }
    }
}
