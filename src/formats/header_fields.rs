//! Header fields of a response, with all values in one buffer.

use std::fmt::{Display, Write as _};

use bytes::BytesMut;
use http::header::InvalidHeaderValue;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Enough for most responses: each value of its own would be an allocation of its own.
const FIELD_CAPACITY: usize = 12;
const VALUE_CAPACITY: usize = 320;

/// Header fields that are inserted into a [`HeaderMap`] together.
pub struct HeaderFields {
    text: BytesMut,
    /// The names, each with the end of its value.
    names: Vec<(HeaderName, usize)>,
}

impl Default for HeaderFields {
    fn default() -> HeaderFields {
        HeaderFields {
            text: BytesMut::with_capacity(VALUE_CAPACITY),
            names: Vec::with_capacity(FIELD_CAPACITY),
        }
    }
}

impl HeaderFields {
    /// Adds a field.
    pub fn insert(&mut self, name: HeaderName, value: impl Display) {
        write!(self.text, "{value}").expect("writing to memory does not fail");
        self.names.push((name, self.text.len()));
    }

    /// Adds a field of a number and its unit, without a formatter.
    pub fn insert_number(&mut self, name: HeaderName, number: u64, unit: &str) {
        let mut digits = itoa::Buffer::new();
        self.text
            .extend_from_slice(digits.format(number).as_bytes());
        self.insert_bytes(name, unit.as_bytes());
    }

    /// Adds a field of bytes.
    pub fn insert_bytes(&mut self, name: HeaderName, value: &[u8]) {
        self.text.extend_from_slice(value);
        self.names.push((name, self.text.len()));
    }

    /// Inserts all fields; of two with the same name the last one stays.
    pub fn insert_into(self, headers: &mut HeaderMap) -> Result<(), InvalidHeaderValue> {
        let text = self.text.freeze();
        let mut start = 0;
        for (name, end) in self.names {
            let value = HeaderValue::from_maybe_shared(text.slice(start..end))?;
            headers.insert(name, value);
            start = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{AGE, ALLOW, RETRY_AFTER};

    #[test]
    fn each_field_gets_its_own_value() {
        let mut fields = HeaderFields::default();
        fields.insert_number(AGE, 17, "");
        fields.insert_bytes(ALLOW, b"GET, DELETE");
        fields.insert(RETRY_AFTER, 17);
        fields.insert_number(AGE, 18, " s");
        let mut headers = HeaderMap::new();
        fields
            .insert_into(&mut headers)
            .expect("values that may be sent");
        let values = [RETRY_AFTER, ALLOW, AGE].map(|name| headers[name].clone());
        assert_eq!(values, ["17", "GET, DELETE", "18 s"]);
        assert_eq!(headers.len(), 3);
    }

    #[test]
    fn a_value_with_a_line_end_is_refused() {
        let mut fields = HeaderFields::default();
        fields.insert(ALLOW, "GET\r\nx-y: z");
        assert!(fields.insert_into(&mut HeaderMap::new()).is_err());
    }
}
