//! The header of one part of a form: its name, and whether it is a file.

use std::borrow::Cow;

use memchr::memmem;

/// The limit of the header of one part, in bytes.
const MAX_BYTES: usize = 8 << 10;
/// The limit of a name and of a file's name, in bytes.
const MAX_NAME: usize = 200;
/// The name of a file that has none which every parser reads alike, and the longest ending that it keeps: upstreams
/// tell by it what a recording is.
const FILE: &str = "file";
const MAX_ENDING: usize = 8;
const BINARY: &str = "application/octet-stream";

/// What the header of a part says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PartHeader<'a> {
    pub(super) name: &'a str,
    /// `None`: the part is a value and no file.
    file_name: Option<Cow<'a, str>>,
    media_type: Option<&'a str>,
}

impl<'a> PartHeader<'a> {
    /// Decodes the header at the start of a part, and its length with the blank line after it.
    pub(super) fn decode(part: &'a [u8]) -> Result<(PartHeader<'a>, usize), &'static str> {
        let bounded = &part[..part.len().min(MAX_BYTES)];
        let end = memmem::find(bounded, b"\r\n\r\n").ok_or("a part has no name")?;
        let text =
            std::str::from_utf8(&bounded[..end]).map_err(|_| "a part's header is no text")?;
        let (mut disposition, mut media_type) = (None, None);
        for line in text.split("\r\n") {
            if line.contains(['\r', '\n', '\0']) {
                return Err("a line of a part's header does not end with CR and LF");
            }
            let (key, value) = line.split_once(':').ok_or("a part's header is no header")?;
            let value = value.trim();
            if key.eq_ignore_ascii_case("content-disposition") {
                if disposition.replace(value).is_some() {
                    return Err("a part has two dispositions");
                }
            } else if key.eq_ignore_ascii_case("content-type") {
                if media_type.replace(value).is_some() {
                    return Err("a part has two types");
                }
            } else if key.eq_ignore_ascii_case("content-transfer-encoding") {
                let plain = ["binary", "8bit", "7bit"];
                if !plain.iter().any(|name| name.eq_ignore_ascii_case(value)) {
                    return Err("a part is encoded");
                }
            }
        }
        let (name, file_name) = decode_disposition(disposition.ok_or("a part has no name")?)?;
        let header = PartHeader {
            name,
            file_name,
            media_type: media_type.and_then(plain_media_type),
        };
        Ok((header, end + 4))
    }

    /// Tells whether the part is a file and no value.
    pub(super) const fn is_file(&self) -> bool {
        self.file_name.is_some()
    }

    /// Encodes the header, without the blank line after it.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let name = self.name;
        let line = match &self.file_name {
            Some(file) => {
                let media_type = self.media_type.unwrap_or(BINARY);
                format!(
                    "Content-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\
                     Content-Type: {media_type}\r\n"
                )
            }
            None => format!("Content-Disposition: form-data; name=\"{name}\"\r\n"),
        };
        out.extend_from_slice(line.as_bytes());
    }
}

/// Decodes a disposition: the name of the part and of its file.
fn decode_disposition(text: &str) -> Result<(&str, Option<Cow<'_, str>>), &'static str> {
    let (kind, mut rest) = text.split_once(';').ok_or("a part has no name")?;
    if !kind.trim().eq_ignore_ascii_case("form-data") {
        return Err("a part is no form-data");
    }
    let (mut name, mut file_name, mut is_file) = (None, None, false);
    while let Some((key, value, after)) = next_parameter(rest)? {
        rest = after;
        if key.eq_ignore_ascii_case("name") {
            if name.replace(value).is_some() {
                return Err("a part has two names");
            }
        } else if key.eq_ignore_ascii_case("filename") {
            if file_name.replace(value).is_some() {
                return Err("a part has two file names");
            }
            is_file = true;
        } else if key.eq_ignore_ascii_case("filename*") {
            is_file = true;
        } else {
            return Err("a part's disposition has an unknown parameter");
        }
    }
    let name = name
        .filter(|name| is_plain(name, b"-_.[]"))
        .ok_or("a part has no plain name")?;
    let file_name = plain_file_name(file_name.unwrap_or_default());
    Ok((name, is_file.then_some(file_name)))
}

/// The name of a file as every parser reads it.
fn plain_file_name(name: &str) -> Cow<'_, str> {
    if is_plain(name, b"-_.[] ;,()@+=#!") {
        return Cow::Borrowed(name);
    }
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    match ending.filter(|ending| ending.len() <= MAX_ENDING && is_plain(ending, b"")) {
        Some(ending) => Cow::Owned(format!("{FILE}.{ending}")),
        None => Cow::Borrowed(FILE),
    }
}

/// The next parameter: its key, its value without quotes, and what follows it.
fn next_parameter(text: &str) -> Result<Option<(&str, &str, &str)>, &'static str> {
    let text = text.trim_start();
    if text.is_empty() {
        return Ok(None);
    }
    let (key, rest) = text
        .split_once('=')
        .ok_or("a part's disposition is broken")?;
    let (value, rest) = match rest.strip_prefix('"') {
        // A quote within a name is escaped in more than one way.
        Some(quoted) => quoted
            .split_once('"')
            .ok_or("a quote of a part's header is open")?,
        None => rest.split_at(rest.find(';').unwrap_or(rest.len())),
    };
    let rest = rest.trim_start();
    let after = match rest.strip_prefix(';') {
        Some(after) => after,
        None if rest.is_empty() => rest,
        None => return Err("a part's disposition is broken"),
    };
    Ok(Some((key.trim(), value.trim(), after)))
}

/// Whether every parser reads a name as it stands there: letters, digits and these signs.
fn is_plain(name: &str, signs: &[u8]) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || signs.contains(&byte);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(plain)
}

/// The type without its parameters, if it is one.
fn plain_media_type(text: &str) -> Option<&str> {
    let text = text.split(';').next().unwrap_or_default().trim();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.+/".contains(&byte);
    let is_type = text
        .split_once('/')
        .is_some_and(|(kind, of)| !kind.is_empty() && !of.contains('/'));
    (is_type && text.len() <= MAX_NAME && text.bytes().all(plain)).then_some(text)
}
