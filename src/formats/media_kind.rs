//! What media are: by their type, or else by what their address or name ends in.

use url::Url;

use crate::model::Text;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaKind {
    Image,
    Audio,
    Video,
    /// A document, or anything else that has a type.
    File,
    Unknown,
}

/// Endings and what they say.
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

/// Its pages end in nothing, but native upstreams watch them.
const FILMS: [&str; 4] = [
    "youtube.com",
    "www.youtube.com",
    "m.youtube.com",
    "youtu.be",
];
const FILM: &str = "video/mp4";

impl MediaKind {
    pub(super) fn of_mime(mime: &str) -> MediaKind {
        match mime.split('/').next().unwrap_or_default() {
            "image" => MediaKind::Image,
            "audio" => MediaKind::Audio,
            "video" => MediaKind::Video,
            "" => MediaKind::Unknown,
            _ => MediaKind::File,
        }
    }

    /// For media that are only pointed at, without a type.
    pub(super) fn of_url(address: &str) -> MediaKind {
        match mime_of_url(address) {
            Some(mime) => MediaKind::of_mime(mime),
            None if has_ending(address) => MediaKind::File,
            None => MediaKind::Unknown,
        }
    }
}

pub(super) fn mime_of_url(address: &str) -> Option<&'static str> {
    let url = Url::parse(address).ok()?;
    if url.host_str().is_some_and(|host| FILMS.contains(&host)) {
        return Some(FILM);
    }
    mime_of_filename(url.path_segments()?.next_back()?)
}

pub(super) fn mime_of_filename(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    let known = EXTENSIONS
        .iter()
        .find(|(known, _)| extension.eq_ignore_ascii_case(known));
    known.map(|(_, mime)| *mime)
}

fn has_ending(address: &str) -> bool {
    let url = Url::parse(address).ok();
    let segments = url.as_ref().and_then(Url::path_segments);
    let last = segments.and_then(|mut segments| segments.next_back());
    last.is_some_and(|name| name.contains('.'))
}

/// Types mean the same in capitals; nobody has to care who reads them in small letters.
pub(super) fn lowercase_mime(mime: Text<'_>) -> Text<'_> {
    match mime.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => mime.to_ascii_lowercase().into(),
        false => mime,
    }
}

#[cfg(test)]
mod tests {
    use super::MediaKind;

    #[test]
    fn an_address_says_what_is_there() {
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
