//! The host and the file name of a link, found without parsing it: a long international name takes the parser very long.

use std::borrow::Cow;

use url::Host;

/// How many bytes the name of a host has at most, by the rules of DNS.
pub(super) const MAX_HOST: usize = 253;

/// How many bytes the host of a link has that may be written in other letters. Names that are looked for are short.
const MAX_FOREIGN_HOST: usize = 140;

/// Schemes whose links always have a host, and in which a backslash is a slash.
const SPECIAL_SCHEMES: [&str; 5] = ["https", "http", "wss", "ws", "ftp"];

/// Parts of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link<'a> {
    /// Without credentials and port; empty where there is none.
    pub(super) host: &'a str,
    /// The last segment of the path; empty where there is none.
    pub(super) file_name: &'a str,
}

/// The link without the tabs and line breaks that parsers skip.
pub(super) fn without_breaks(address: &str) -> Cow<'_, str> {
    match address.contains(is_break) {
        true => address.replace(is_break, "").into(),
        false => address.into(),
    }
}

const fn is_break(letter: char) -> bool {
    matches!(letter, '\t' | '\n' | '\r')
}

impl<'a> Link<'a> {
    /// Finds the parts of a link that has no tabs and line breaks. `None`: it is no link to a host or to a path.
    pub(super) fn new(address: &'a str) -> Option<Link<'a>> {
        let address = address.trim_matches(|letter: char| letter <= ' ');
        let (scheme, rest) = address.split_once(':')?;
        if !is_scheme(scheme) {
            return None;
        }
        let is_special = SPECIAL_SCHEMES
            .iter()
            .any(|special| scheme.eq_ignore_ascii_case(special));
        let is_slash = |letter: char| letter == '/' || (is_special && letter == '\\');
        let rest = match (is_special, rest.strip_prefix("//")) {
            (true, _) => rest.trim_start_matches(is_slash),
            (false, Some(rest)) => rest,
            // It has a path and no host.
            (false, None) => {
                let file_name = file_name(rest.strip_prefix('/')?, is_slash);
                let host = "";
                return Some(Link { host, file_name });
            }
        };
        let end = rest.find(|letter: char| is_slash(letter) || matches!(letter, '?' | '#'));
        let (authority, path) = rest.split_at(end.unwrap_or(rest.len()));
        let host = authority.rsplit_once('@').map_or(authority, |(_, it)| it);
        let host = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        Some(Link {
            host,
            file_name: file_name(path, is_slash),
        })
    }

    /// Whether its host has one of these names, however it is written.
    pub(super) fn is_at(self, names: &[&str]) -> bool {
        let is_plain = |byte: u8| byte.is_ascii() && byte != b'%';
        if self.host.bytes().all(is_plain) {
            return names
                .iter()
                .any(|name| self.host.eq_ignore_ascii_case(name));
        }
        if self.host.len() > MAX_FOREIGN_HOST {
            return false;
        }
        matches!(Host::parse(self.host), Ok(Host::Domain(name)) if names.contains(&&*name))
    }
}

fn is_scheme(scheme: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(is_letter)
}

/// The last segment of a path, which dots alone do not name.
fn file_name(path: &str, is_slash: impl Fn(char) -> bool) -> &str {
    let end = path.find(['?', '#']).unwrap_or(path.len());
    let last = path[..end].rsplit(is_slash).next().unwrap_or_default();
    match last.trim_start_matches("%2e").trim_start_matches("%2E") {
        "" | "." | ".." => "",
        _ => last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_link_are_those_that_a_parser_finds() {
        for address in [
            "https://a.example/b/c.png",
            "https://a.example/b/c.png?d=e/f.mp4#g/h.mp3",
            "https://a.example#b/c.png",
            "https://a.example?b/c.png",
            "https://a.example",
            "https://a.example/b/",
            "https://a.example/b/..",
            "https://user:secret@a.example:8443/c.png",
            "HTTPS://A.example/c.PNG",
            "https:a.example/c.png",
            r"https:\\a.example\b\c.png",
            "https:///a.example/c.png",
            " https://a.example/c.png ",
            "https://[::1]:8/c.png",
            "gs://bucket/b/c.png",
            "file:///b/c.png",
            "x:/b/c.png",
            "mailto:c.png",
            "data:text/plain,c.png",
            "no address.png",
            "/b/c.png",
            "",
        ] {
            let parsed = url::Url::parse(address).ok();
            let expected = parsed.as_ref().and_then(|url| {
                let file_name = url.path_segments()?.next_back()?.to_owned();
                Some((url.host_str().unwrap_or_default().to_owned(), file_name))
            });
            let found = Link::new(address);
            let found = found.map(|it| (it.host.to_ascii_lowercase(), it.file_name.to_owned()));
            assert_eq!(found, expected, "{address}");
        }
    }

    #[test]
    fn a_host_is_known_however_it_is_written() {
        for (address, is_known) in [
            ("https://YouTu.be/1", true),
            ("https://you%54u.be/1", true),
            ("https://ｙoutu.be/1", true),
            ("https://a@youtu.be:443/1", true),
            ("https://youtu.be.a/1", false),
            ("https://a/youtu.be", false),
            (
                &*format!("https://{}youtu.be/1", "\u{ad}".repeat(100)),
                false,
            ),
        ] {
            let link = Link::new(address).expect(address);
            assert_eq!(link.is_at(&["youtu.be"]), is_known, "{address}");
        }
        assert_eq!(without_breaks("h\tt\r\ntps"), "https");
    }
}
