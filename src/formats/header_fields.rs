//! Fields of a reply's header, their values side by side in one piece of memory.

use std::fmt::{Display, Write as _};

use bytes::BytesMut;
use http::header::InvalidHeaderValue;
use http::{HeaderMap, HeaderName, HeaderValue};

/// Room for what most replies say: each value of its own would be a piece of memory of its own.
const COUNT: usize = 12;
const LENGTH: usize = 320;

pub struct HeaderFields {
    text: BytesMut,
    /// Each with where its value ends.
    names: Vec<(HeaderName, usize)>,
}

impl Default for HeaderFields {
    fn default() -> HeaderFields {
        HeaderFields {
            text: BytesMut::with_capacity(LENGTH),
            names: Vec::with_capacity(COUNT),
        }
    }
}

impl HeaderFields {
    pub fn insert(&mut self, name: HeaderName, value: impl Display) {
        write!(self.text, "{value}").expect("memory takes what is written");
        self.names.push((name, self.text.len()));
    }

    /// A number and its unit, which is most of what is said, and needs no formatter.
    pub fn insert_number(&mut self, name: HeaderName, number: u64, unit: &str) {
        let mut digits = itoa::Buffer::new();
        self.text
            .extend_from_slice(digits.format(number).as_bytes());
        self.insert_bytes(name, unit.as_bytes());
    }

    pub fn insert_bytes(&mut self, name: HeaderName, value: &[u8]) {
        self.text.extend_from_slice(value);
        self.names.push((name, self.text.len()));
    }

    /// The last word counts where a field is said twice.
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
    fn values_are_told_apart() {
        let mut fields = HeaderFields::default();
        fields.insert_number(AGE, 17, "");
        fields.insert_bytes(ALLOW, b"GET, DELETE");
        fields.insert(RETRY_AFTER, 17);
        fields.insert_number(AGE, 18, " s");
        let mut headers = HeaderMap::new();
        fields
            .insert_into(&mut headers)
            .expect("values that may be sent");
        let said = [RETRY_AFTER, ALLOW, AGE].map(|name| headers[name].clone());
        assert_eq!(said, ["17", "GET, DELETE", "18 s"]);
        assert_eq!(headers.len(), 3);
    }

    #[test]
    fn what_would_end_a_line_is_refused() {
        let mut fields = HeaderFields::default();
        fields.insert(ALLOW, "GET\r\nx-y: z");
        assert!(fields.insert_into(&mut HeaderMap::new()).is_err());
    }
}
