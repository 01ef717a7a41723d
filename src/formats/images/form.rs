//! A form with files in it, as `multipart/form-data` writes it: found by its bytes, never copied.
//!
//! The whole body is in memory already, and names in it must be replaced where they stand, so
//! places are what is needed of it, not a stream of pieces.

use std::ops::Range;

use memchr::memmem;

use crate::model::ApiError;

/// More parts than any request has a use for.
const MOST_PARTS: usize = 64;
const LONGEST_HEADER: usize = 8 << 10;
/// By the rules of MIME.
const LONGEST_BOUNDARY: usize = 70;

/// One field of a form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a [u8],
    /// Where the value stands in the body.
    pub(super) at: Range<usize>,
    /// Where the part stands, from its boundary to the next.
    pub(super) whole: Range<usize>,
}

/// Whether a body is such a form: JSON never begins with a dash.
pub(super) fn is_form(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"--")
}

/// The words between the parts, as the header of the body has to name them.
pub(super) fn boundary(body: &[u8]) -> Option<&str> {
    let start = body.len() - body.trim_ascii_start().len();
    let rest = body[start..].strip_prefix(b"--")?;
    let end = memchr::memchr(b'\n', &rest[..rest.len().min(LONGEST_BOUNDARY + 8)])?;
    let line = rest[..end].trim_ascii_end();
    let legal = |byte: &u8| byte.is_ascii_graphic() && *byte != b'"' && *byte != b'\\';
    let fits = (1..=LONGEST_BOUNDARY).contains(&line.len()) && line.iter().all(legal);
    std::str::from_utf8(line).ok().filter(|_| fits)
}

pub(super) fn read(body: &[u8]) -> Result<Vec<Entry<'_>>, ApiError> {
    let broken = |what: &str| ApiError::invalid(format!("the form is not readable: {what}"));
    let boundary = boundary(body).ok_or_else(|| broken("it begins with no boundary"))?;
    let mark = format!("\r\n--{boundary}");
    let finder = memmem::Finder::new(mark.as_bytes());
    let mut entries = Vec::new();
    // The first boundary has no line before it, or nothing but blanks.
    let first = body.len() - body.trim_ascii_start().len();
    let mut part = first;
    let mut at = first + boundary.len() + 2;
    loop {
        if body[at..].starts_with(b"--") {
            return Ok(entries);
        }
        if entries.len() == MOST_PARTS {
            return Err(broken("it has too many parts"));
        }
        let line = body[at..].strip_prefix(b"\r\n");
        let line = line.ok_or_else(|| broken("a boundary is not the end of its line"))?;
        let header = at + 2;
        let (name, value) = match header_of(line) {
            Some((name, length)) => (name, header + length),
            None => return Err(broken("a part has no name")),
        };
        // A part without content ends where its header does.
        let from = value - 2;
        let end = finder.find(&body[from..]).map(|end| from + end);
        let end = end.ok_or_else(|| broken("its last boundary is missing"))?;
        entries.push(Entry {
            name,
            value: &body[value.min(end)..end],
            at: value.min(end)..end,
            whole: part..end + 2,
        });
        part = end + 2;
        at = end + mark.len();
    }
}

/// The name of a part, and how many bytes its header takes with the blank line after it.
fn header_of(part: &[u8]) -> Option<(&str, usize)> {
    let bounded = &part[..part.len().min(LONGEST_HEADER)];
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
    fn fields_are_found_where_they_stand() {
        assert!(is_form(FORM) && !is_form(b"{}") && !is_form(b""));
        assert_eq!(boundary(FORM), Some("b-1"));
        let entries = read(FORM).expect("a form");
        let said: Vec<_> = entries
            .iter()
            .map(|entry| (entry.name, entry.value))
            .collect();
        let expected: [(&str, &[u8]); 3] = [
            ("model", b"m"),
            ("image[]", b"\x89P\r\n--b-\r\nG"),
            ("n", b""),
        ];
        assert_eq!(said, expected);
        for entry in &entries {
            assert_eq!(&FORM[entry.at.clone()], entry.value);
            assert!(FORM[entry.whole.clone()].starts_with(b"--b-1\r\n"));
            assert!(FORM[entry.whole.end..].starts_with(b"--b-1"));
        }
    }

    #[test]
    fn what_is_broken_is_told_and_never_read_past() {
        for broken in [
            &b"--"[..],
            b"--b",
            b"--b\r\n",
            b"--b\r\n\r\n",
            b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--",
            b"--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nx\r\n--c--",
            b"--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nx\r\n--bc",
        ] {
            assert!(read(broken).is_err(), "{}", String::from_utf8_lossy(broken));
        }
        for end in 0..FORM.len() - 4 {
            assert!(read(&FORM[..end]).is_err(), "{end}");
        }
    }
}
