//! Bodies of `multipart/form-data` (RFC 7578): decoded strictly, without copying, and written anew.
//!
//! Parsers disagree about forms: about a field that stands there twice, two dispositions, quoted names, lines that
//! end with a line feed only. So an upstream gets a form that the gateway wrote, with the fields that it has
//! judged, and never the client's own bytes around them.

mod part_header;
#[cfg(test)]
mod tests;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::ops::Range;
use std::sync::OnceLock;

use memchr::memmem;

use part_header::PartHeader;

use super::request_options::ModelField;
use crate::model::{ApiError, truncated};

/// The limit of fields in a form; no request needs more.
const MAX_FIELDS: usize = 64;
/// The limit of a boundary by RFC 2046, in bytes.
const MAX_BOUNDARY_BYTES: usize = 70;

const MODEL: &str = "model";

/// What the fields of an endpoint's forms are.
#[derive(Debug)]
pub(super) struct FormRules {
    /// The fields that may stand in a form several times.
    pub(super) lists: &'static [&'static str],
    /// The fields that decide what a request does and costs. They have one spelling, and no other may stand beside it.
    pub(super) single: &'static [&'static str],
    /// Those of them that are files.
    pub(super) files: &'static [&'static str],
}

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

impl<'a> MultipartField<'a> {
    /// The name of the field and those inside of it: forms spell the fields of an object as `a[b]` or `a.b`, and the items of a
    /// list as `a[]` or `a[0]`.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let parts = self.name.split(['[', ']', '.']).map(str::trim);
        parts.filter(|part| !part.is_empty())
    }

    /// The value as text.
    pub(super) fn text(&self) -> Result<&'a str, ApiError> {
        let text = std::str::from_utf8(self.value);
        text.map_err(|_| ApiError::invalid(format!("{}: expected text", self.name)).at(self.name))
    }

    pub(super) fn flag(&self) -> Result<bool, ApiError> {
        match self.value {
            b"true" | b"True" | b"1" => Ok(true),
            b"false" | b"False" | b"0" => Ok(false),
            _ => Err(self.wrong_value("`true` or `false`")),
        }
    }

    pub(super) fn count(&self) -> Result<u64, ApiError> {
        let text = std::str::from_utf8(self.value).unwrap_or_default();
        text.parse()
            .map_err(|_| self.wrong_value("a non-negative integer"))
    }

    fn wrong_value(&self, expected: &str) -> ApiError {
        let (name, got) = (self.name, String::from_utf8_lossy(self.value));
        let message = format!("`{name}` must be {expected}, got `{}`", truncated(&got));
        ApiError::invalid(message).at(name)
    }
}

/// Returns the model that a form names, and where.
pub(super) fn model_of<'a>(
    fields: &[MultipartField<'a>],
) -> Result<Option<ModelField<'a>>, ApiError> {
    let field = fields.iter().find(|field| field.name == MODEL);
    let named = field.map(|field| {
        Ok(ModelField {
            name: field.text()?.into(),
            range: field.value_range.clone(),
        })
    });
    named.transpose()
}

/// The `Content-Type` of a request with this form.
pub(super) fn content_type(body: &[u8]) -> Option<String> {
    let boundary = boundary(body).filter(|_| is_multipart(body))?;
    Some(format!("multipart/form-data; boundary=\"{boundary}\""))
}

/// Whether a body is a multipart form: JSON never starts with two dashes.
pub(super) fn is_multipart(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"--")
}

/// The boundary of a form, for its `Content-Type` header.
fn boundary(body: &[u8]) -> Option<&str> {
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
pub(super) fn decode<'a>(
    body: &'a [u8],
    rules: &FormRules,
) -> Result<Vec<MultipartField<'a>>, ApiError> {
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
                true => check_names(&fields, rules).map(|()| fields),
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
fn check_names(fields: &[MultipartField<'_>], rules: &FormRules) -> Result<(), ApiError> {
    for (at, field) in fields.iter().enumerate() {
        let name = field.name;
        if rules.lists.contains(&name) {
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
        let Some(known) = rules.single.iter().find(is_meant) else {
            continue;
        };
        if *known != name {
            let message = format!("`{said}` must be spelled `{known}`");
            return Err(ApiError::invalid(message).at(said));
        }
        if field.header.is_file() && !rules.files.contains(known) {
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

/// Writes one field that is no file, as it stands in a form with this boundary.
pub(super) fn encode_field(own: &str, name: &str, value: &str) -> Vec<u8> {
    format!("--{own}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        .into_bytes()
}

/// Writes a form with the fields of another; `own` is its boundary.
pub(super) fn rewrite(body: &[u8], own: &str, rules: &FormRules) -> Result<Vec<u8>, ApiError> {
    let fields = decode(body, rules)?;
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
