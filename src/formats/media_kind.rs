//! The kind of media: by their MIME type, or else by the extension of their URL or file name.

use super::link::{Link, without_breaks};
use crate::model::Text;

/// A kind of media.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaKind {
    Image,
    Audio,
    Video,
    /// A document, or anything else that has a type.
    File,
    Unknown,
}

/// File name extensions and their MIME types.
const EXTENSIONS: [(&str, &str); 34] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("heic", "image/heic"),
    ("heif", "image/heif"),
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("pdf", "application/pdf"),
    ("json", "application/json"),
    ("txt", "text/plain"),
    ("md", "text/markdown"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("xml", "text/xml"),
    ("doc", "application/msword"),
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    (
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    ("wav", "audio/wav"),
    ("mp3", "audio/mpeg"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
    ("aac", "audio/aac"),
    ("m4a", "audio/mp4"),
    ("mp4", "video/mp4"),
    ("mov", "video/quicktime"),
    ("webm", "video/webm"),
    ("mpeg", "video/mpeg"),
    ("mpg", "video/mpeg"),
    ("avi", "video/x-msvideo"),
    ("3gp", "video/3gpp"),
];

/// Hosts whose URLs have no extension, but are videos for native upstreams.
const VIDEO_HOSTS: [&str; 4] = [
    "youtube.com",
    "www.youtube.com",
    "m.youtube.com",
    "youtu.be",
];
const VIDEO: &str = "video/mp4";

impl MediaKind {
    /// Returns the kind of a MIME type.
    pub(super) fn of_mime(mime: &str) -> MediaKind {
        match mime.split('/').next().unwrap_or_default() {
            "image" => MediaKind::Image,
            "audio" => MediaKind::Audio,
            "video" => MediaKind::Video,
            "" => MediaKind::Unknown,
            _ => MediaKind::File,
        }
    }

    /// Returns the text of a tool result whose media were all moved into a message of the user: with
    /// nothing in it, a model takes the result for empty.
    pub(super) const fn moved_notice(self) -> &'static str {
        match self {
            MediaKind::Image => "(image: see the next user message)",
            MediaKind::Audio => "(audio: see the next user message)",
            MediaKind::Video => "(video: see the next user message)",
            MediaKind::File | MediaKind::Unknown => "(file: see the next user message)",
        }
    }

    /// Returns the kind of media at a URL, where no type is known.
    pub(super) fn of_url(address: &str) -> MediaKind {
        match mime_of_url(address) {
            Some(mime) => MediaKind::of_mime(mime),
            None if has_extension(address) => MediaKind::File,
            None => MediaKind::Unknown,
        }
    }
}

/// Returns the MIME type of a URL, by its extension.
pub(super) fn mime_of_url(address: &str) -> Option<&'static str> {
    let address = without_breaks(address);
    let link = Link::new(&address)?;
    if link.is_at(&VIDEO_HOSTS) {
        return Some(VIDEO);
    }
    mime_of_filename(link.file_name)
}

/// Returns the MIME type of a file name, by its extension.
pub(super) fn mime_of_filename(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    let known = EXTENSIONS
        .iter()
        .find(|(known, _)| extension.eq_ignore_ascii_case(known));
    known.map(|(_, mime)| *mime)
}

fn has_extension(address: &str) -> bool {
    let address = without_breaks(address);
    Link::new(&address).is_some_and(|link| link.file_name.contains('.'))
}

/// Tells whether a link that claims to lead to an image may do so: an extension of something else says no.
pub(super) fn may_be_image(address: &str) -> bool {
    matches!(
        MediaKind::of_url(address),
        MediaKind::Image | MediaKind::Unknown
    )
}

/// The extensions of files of which every byte is text, beside none. Upstreams unpack others, such as `xls`, `odt` and `epub`.
const TEXT_EXTENSIONS: [&str; 79] = [
    "asm",
    "bash",
    "bat",
    "bib",
    "c",
    "cc",
    "cfg",
    "cjs",
    "clj",
    "cmake",
    "conf",
    "cpp",
    "cs",
    "css",
    "csv",
    "cts",
    "cxx",
    "dart",
    "diff",
    "elm",
    "erl",
    "ex",
    "exs",
    "fs",
    "go",
    "gradle",
    "graphql",
    "groovy",
    "h",
    "hpp",
    "hs",
    "htm",
    "html",
    "ini",
    "java",
    "jl",
    "js",
    "json",
    "json5",
    "jsonl",
    "jsx",
    "kt",
    "kts",
    "less",
    "log",
    "lua",
    "m",
    "markdown",
    "md",
    "mjs",
    "ml",
    "mts",
    "ndjson",
    "patch",
    "php",
    "pl",
    "properties",
    "proto",
    "ps1",
    "py",
    "r",
    "rb",
    "rs",
    "rst",
    "scala",
    "scss",
    "sh",
    "sql",
    "srt",
    "swift",
    "tex",
    "toml",
    "ts",
    "tsv",
    "tsx",
    "txt",
    "xml",
    "yaml",
    "yml",
];

/// Tells whether a file that claims to be text may be it: an extension of anything else says no.
pub(super) fn may_be_text(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    extension.is_none_or(|extension| {
        let mut texts = TEXT_EXTENSIONS.iter();
        texts.any(|text| extension.eq_ignore_ascii_case(text))
    })
}

/// Converts a MIME type to lower case.
pub(super) fn lowercase_mime(mime: Text<'_>) -> Text<'_> {
    match mime.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => mime.to_ascii_lowercase().into(),
        false => mime,
    }
}

#[cfg(test)]
mod tests {
    use super::{MediaKind, may_be_image, may_be_text};

    #[test]
    fn what_claims_to_be_an_image_or_text_is_judged_by_its_name() {
        for (address, is_image) in [
            ("https://a.b/c.PNG", true),
            ("https://a.b/c", true),
            ("https://a.b/v1.2/c?name=d.mp4", true),
            ("https://a.b/c.mp4", false),
            ("https://a.b/c.pdf#page=1", false),
            ("https://a.b/c.mp%34", false),
            ("https://a.b/c.xyz", false),
            ("https://youtu.be/1", false),
        ] {
            assert_eq!(may_be_image(address), is_image, "{address}");
        }
        for (name, is_text) in [
            ("a.txt", true),
            ("a.rs", true),
            ("a.json", true),
            ("a", true),
            ("a.PDF", false),
            ("a.docx", false),
            ("a.xls", false),
            ("a.epub", false),
            ("a.pdf.", false),
            ("a.docx\n", false),
            ("a.v2.TXT", true),
            ("a.mp3", false),
            ("a.png", false),
        ] {
            assert_eq!(may_be_text(name), is_text, "{name}");
        }
    }

    #[test]
    fn a_url_tells_the_kind() {
        for (address, kind) in [
            ("https://a.b/c.PNG?d=e.mp4", MediaKind::Image),
            ("https://a.b/c.mp4#t=1", MediaKind::Video),
            ("https://www.youtube.com/watch?v=1", MediaKind::Video),
            ("https://youtu.be/1", MediaKind::Video),
            ("https://a.b/c.wav", MediaKind::Audio),
            ("https://a.b/c.docx", MediaKind::File),
            ("https://a.b/1234.5678", MediaKind::File),
            ("https://a.b/c", MediaKind::Unknown),
            ("https://a.png", MediaKind::Unknown),
            ("no address.png", MediaKind::Unknown),
        ] {
            assert_eq!(MediaKind::of_url(address), kind, "{address}");
        }
    }
}
