//! Bodies of `multipart/form-data` (RFC 7578): decoded strictly, without copying, and written anew.
//!
//! Parsers disagree about forms: about a field that stands there twice, two dispositions, quoted names, lines that
//! end with a line feed only. So an upstream gets a form that the gateway wrote, with the fields that it has
//! judged, and never the client's own bytes around them.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::ops::Range;
use std::sync::OnceLock;

use memchr::memmem;

use super::part_header::PartHeader;
use crate::model::{ApiError, truncated};

/// The limit of fields in a form; no request needs more.
const MAX_FIELDS: usize = 64;
/// The limit of a boundary by RFC 2046, in bytes.
const MAX_BOUNDARY_BYTES: usize = 70;

/// The fields that may stand in a form several times.
const LISTS: [&str; 3] = ["image", "image[]", "images"];

/// The fields that decide what a request does and costs. They have one spelling, and no other may stand beside it.
const SINGLE: [&str; 16] = [
    "model",
    "n",
    "size",
    "quality",
    "stream",
    "async",
    "prompt",
    "mask",
    "background",
    "moderation",
    "output_format",
    "output_compression",
    "response_format",
    "partial_images",
    "seed",
    "user",
];

/// The one of these that is a file.
const MASK: &str = "mask";

/// One field of a form.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MultipartField<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a [u8],
    /// The range of the value in the body.
    pub(super) value_range: Range<usize>,
    /// The range of the whole field, from its boundary to the next.
    pub(super) range: Range<usize>,
    header: PartHeader<'a>,
}

/// Whether a body is a multipart form: JSON never starts with two dashes.
pub(super) fn is_multipart(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"--")
}

/// The boundary of a form, for its `Content-Type` header.
pub(super) fn boundary(body: &[u8]) -> Option<&str> {
    let start = body.len() - body.trim_ascii_start().len();
    let rest = body[start..].strip_prefix(b"--")?;
    let end = memmem::find(&rest[..rest.len().min(MAX_BOUNDARY_BYTES + 8)], b"\r\n")?;
    let line = &rest[..end];
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=?".contains(byte);
    let fits = (1..=MAX_BOUNDARY_BYTES).contains(&line.len()) && line.iter().all(legal);
    std::str::from_utf8(line).ok().filter(|_| fits)
}

fn broken(what: &str) -> ApiError {
    ApiError::invalid(format!("the form is not readable: {what}"))
}

/// Decodes the fields of a form. `Err`: it is broken, or parsers may read it in two ways.
pub(super) fn decode(body: &[u8]) -> Result<Vec<MultipartField<'_>>, ApiError> {
    let boundary = boundary(body).ok_or_else(|| broken("it begins with no boundary"))?;
    let mark = format!("\r\n--{boundary}");
    let finder = memmem::Finder::new(mark.as_bytes());
    let mut fields = Vec::new();
    // Nothing but white space stands before the first boundary.
    let first = body.len() - body.trim_ascii_start().len();
    let mut start = first;
    let mut at = first + boundary.len() + 2;
    loop {
        if let Some(rest) = body[at..].strip_prefix(b"--") {
            return match rest.trim_ascii().is_empty() {
                true => check_names(&fields).map(|()| fields),
                false => Err(broken("something follows its last boundary")),
            };
        }
        if fields.len() == MAX_FIELDS {
            return Err(broken("it has too many parts"));
        }
        let part = body[at..].strip_prefix(b"\r\n");
        let part = part.ok_or_else(|| broken("a boundary is not the end of its line"))?;
        let (header, length) = PartHeader::decode(part).map_err(broken)?;
        let value = at + 2 + length;
        // An empty value has no line of its own: the boundary follows the headers at once.
        let from = value - 2;
        let end = finder.find(&body[from..]).map(|end| from + end);
        let end = end.ok_or_else(|| broken("its last boundary is missing"))?;
        fields.push(MultipartField {
            name: header.name,
            value: &body[value.min(end)..end],
            value_range: value.min(end)..end,
            range: start..end + 2,
            header,
        });
        start = end + 2;
        at = end + mark.len();
    }
}

/// Refuses names that stand there twice, and those that some parsers take for another.
fn check_names(fields: &[MultipartField<'_>]) -> Result<(), ApiError> {
    for (at, field) in fields.iter().enumerate() {
        let name = field.name;
        if LISTS.contains(&name) {
            continue;
        }
        let said = truncated(name);
        if fields[..at].iter().any(|before| before.name == name) {
            let message = format!("`{said}` stands in the form twice: send it once");
            return Err(ApiError::invalid(message).at(said));
        }
        // Some parsers make a list of `model[]`, and an object of `model[0]` and `model.a`; some read a dash as `_`.
        let base = name.split(['[', ']']).next().unwrap_or_default();
        let joined = base.replace(['.', '-'], "_");
        let first = base.split('.').next().unwrap_or_default();
        let is_meant = |known: &&&str| {
            let spelled = [first, &joined];
            spelled.iter().any(|name| known.eq_ignore_ascii_case(name))
        };
        let Some(known) = SINGLE.iter().find(is_meant) else {
            continue;
        };
        if *known != name {
            let message = format!("`{said}` must be spelled `{known}`");
            return Err(ApiError::invalid(message).at(said));
        }
        if field.header.is_file() && *known != MASK {
            let message =
                format!("`{said}` must be a value, not a file: send it without a filename");
            return Err(ApiError::invalid(message).at(said));
        }
    }
    Ok(())
}

/// The boundary of the forms that the gateway writes. No client knows it, so no value can hold it.
pub(super) fn own_boundary() -> &'static str {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| {
        let random = || RandomState::new().hash_one(0);
        format!("omniglot-{:016x}{:016x}", random(), random())
    })
}

/// Writes a form with the fields of another; `own` is its boundary.
pub(super) fn rewrite(body: &[u8], own: &str) -> Result<Vec<u8>, ApiError> {
    let fields = decode(body)?;
    let finder = memmem::Finder::new(own.as_bytes());
    let mut out = Vec::with_capacity(body.len() + fields.len() * own.len());
    for field in &fields {
        if finder.find(field.value).is_some() {
            return Err(broken("a value holds the boundary"));
        }
        out.extend_from_slice(b"--");
        out.extend_from_slice(own.as_bytes());
        out.extend_from_slice(b"\r\n");
        field.header.encode(&mut out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(field.value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"--");
    out.extend_from_slice(own.as_bytes());
    out.extend_from_slice(b"--\r\n");
    Ok(out)
}

#[cfg(test)]
#[path = "tests/multipart.rs"]
mod tests;
