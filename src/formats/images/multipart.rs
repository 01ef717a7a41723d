//! Bodies of `multipart/form-data` (RFC 7578), whose fields are located without copying.
//!
//! The whole body is in memory, and passthrough replaces values in place, so the decoder returns
//! ranges of the body instead of a stream of chunks.

use std::ops::Range;

use memchr::memmem;

use crate::model::ApiError;

/// The limit of fields in a form; no request needs more.
const MAX_FIELDS: usize = 64;
/// The limit of the headers of one field, in bytes.
const MAX_HEADER_BYTES: usize = 8 << 10;
/// The limit of a boundary by RFC 2046, in bytes.
const MAX_BOUNDARY_BYTES: usize = 70;

/// One field of a form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MultipartField<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a [u8],
    /// The range of the value in the body.
    pub(super) value_range: Range<usize>,
    /// The range of the whole field, from its boundary to the next.
    pub(super) range: Range<usize>,
}

/// Whether a body is a multipart form: JSON never starts with two dashes.
pub(super) fn is_multipart(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"--")
}

/// The boundary of a form, for its `Content-Type` header.
pub(super) fn boundary(body: &[u8]) -> Option<&str> {
    let start = body.len() - body.trim_ascii_start().len();
    let rest = body[start..].strip_prefix(b"--")?;
    let end = memchr::memchr(b'\n', &rest[..rest.len().min(MAX_BOUNDARY_BYTES + 8)])?;
    let line = rest[..end].trim_ascii_end();
    let legal = |byte: &u8| byte.is_ascii_graphic() && *byte != b'"' && *byte != b'\\';
    let fits = (1..=MAX_BOUNDARY_BYTES).contains(&line.len()) && line.iter().all(legal);
    std::str::from_utf8(line).ok().filter(|_| fits)
}

/// Decodes the fields of a form.
pub(super) fn decode(body: &[u8]) -> Result<Vec<MultipartField<'_>>, ApiError> {
    let broken = |what: &str| ApiError::invalid(format!("the form is not readable: {what}"));
    let boundary = boundary(body).ok_or_else(|| broken("it begins with no boundary"))?;
    let mark = format!("\r\n--{boundary}");
    let finder = memmem::Finder::new(mark.as_bytes());
    let mut fields = Vec::new();
    // Nothing but white space stands before the first boundary.
    let first = body.len() - body.trim_ascii_start().len();
    let mut start = first;
    let mut at = first + boundary.len() + 2;
    loop {
        if body[at..].starts_with(b"--") {
            return Ok(fields);
        }
        if fields.len() == MAX_FIELDS {
            return Err(broken("it has too many parts"));
        }
        let line = body[at..].strip_prefix(b"\r\n");
        let line = line.ok_or_else(|| broken("a boundary is not the end of its line"))?;
        let header = at + 2;
        let (name, value) = match decode_headers(line) {
            Some((name, length)) => (name, header + length),
            None => return Err(broken("a part has no name")),
        };
        // An empty value has no line of its own: the boundary follows the headers at once.
        let from = value - 2;
        let end = finder.find(&body[from..]).map(|end| from + end);
        let end = end.ok_or_else(|| broken("its last boundary is missing"))?;
        fields.push(MultipartField {
            name,
            value: &body[value.min(end)..end],
            value_range: value.min(end)..end,
            range: start..end + 2,
        });
        start = end + 2;
        at = end + mark.len();
    }
}

/// Decodes the headers of a field: its name, and their length with the blank line after them.
fn decode_headers(part: &[u8]) -> Option<(&str, usize)> {
    let bounded = &part[..part.len().min(MAX_HEADER_BYTES)];
    let end = memmem::find(bounded, b"\r\n\r\n")?;
    let header = std::str::from_utf8(&bounded[..end]).ok()?;
    let disposition = header.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.trim().eq_ignore_ascii_case("content-disposition");
        is_it.then_some(value)
    })?;
    let mut parameters = disposition.split(';').skip(1);
    let name = parameters.find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        let is_name = key.trim().eq_ignore_ascii_case("name");
        is_name.then(|| value.trim().trim_matches('"'))
    })?;
    Some((name, end + 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: &[u8] = b"--b-1\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n\
        --b-1\r\ncontent-disposition: form-data; name=\"image[]\"; filename=\"a;b.png\"\r\n\
        Content-Type: image/png\r\n\r\n\x89P\r\n--b-\r\nG\r\n\
        --b-1\r\nContent-Disposition: form-data; name=n\r\n\r\n\r\n--b-1--\r\n";

    #[test]
    fn fields_are_located_in_the_body() {
        assert!(is_multipart(FORM) && !is_multipart(b"{}") && !is_multipart(b""));
        assert_eq!(boundary(FORM), Some("b-1"));
        let fields = decode(FORM).expect("a form");
        let decoded: Vec<_> = fields
            .iter()
            .map(|field| (field.name, field.value))
            .collect();
        let expected: [(&str, &[u8]); 3] = [
            ("model", b"m"),
            ("image[]", b"\x89P\r\n--b-\r\nG"),
            ("n", b""),
        ];
        assert_eq!(decoded, expected);
        for field in &fields {
            assert_eq!(&FORM[field.value_range.clone()], field.value);
            assert!(FORM[field.range.clone()].starts_with(b"--b-1\r\n"));
            assert!(FORM[field.range.end..].starts_with(b"--b-1"));
        }
    }

    #[test]
    fn broken_and_truncated_forms_are_refused() {
        for broken in [
            &b"--"[..],
            b"--b",
            b"--b\r\n",
            b"--b\r\n\r\n",
            b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--",
            b"--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nx\r\n--c--",
            b"--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nx\r\n--bc",
        ] {
            assert!(
                decode(broken).is_err(),
                "{}",
                String::from_utf8_lossy(broken)
            );
        }
        for end in 0..FORM.len() - 4 {
            assert!(decode(&FORM[..end]).is_err(), "{end}");
        }
    }
}
