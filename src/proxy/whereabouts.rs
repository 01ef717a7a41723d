//! Where an upstream is, found in what its errors tell: that is for the gateway's operator alone.

use crate::config::BaseUrl;

pub(super) struct Whereabouts<'u> {
    /// The host as it stands in a URL.
    name: &'u str,
    /// With the colon before it.
    port: String,
    /// It is the name of a host wherever it stands; others may be any word.
    telling: bool,
}

impl<'u> Whereabouts<'u> {
    pub(super) fn of(base: &'u BaseUrl) -> Whereabouts<'u> {
        let port = format!(":{}", base.port);
        let authority = base.authority.as_str();
        let name = authority.strip_suffix(&port).unwrap_or(authority);
        Whereabouts {
            name,
            port,
            telling: name.contains(['.', ':']),
        }
    }

    /// How many bytes it takes at this place of a text, which may be written as JSON.
    pub(super) fn length_at(&self, text: &[u8], at: usize) -> Option<usize> {
        let (before, rest) = text.split_at(at);
        let (name, after) = rest.split_at_checked(self.name.len())?;
        if !name.eq_ignore_ascii_case(self.name.as_bytes()) || goes_on(before) {
            return None;
        }
        let with_port = after.strip_prefix(self.port.as_bytes());
        let with_port = with_port.filter(|after| !after.first().is_some_and(u8::is_ascii_digit));
        if with_port.is_some() {
            return Some(self.name.len() + self.port.len());
        }
        let in_url = before.ends_with(b"//") || before.ends_with(br"\/\/");
        (ends(after) && (self.telling || in_url)).then_some(self.name.len())
    }
}

const fn is_part_of_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Whether a name began before this place. The letters of an escape are none.
fn goes_on(before: &[u8]) -> bool {
    let escaped = |length: usize| before.len().checked_sub(length).map(|at| &before[at..]);
    match (before.last(), escaped(2), escaped(6)) {
        (_, Some([b'\\', b'n' | b'r' | b't' | b'b' | b'f']), _)
        | (_, _, Some([b'\\', b'u', ..])) => false,
        (last, ..) => last.copied().is_some_and(is_part_of_a_name),
    }
}

/// Whether no longer name stands here. A full stop ends a sentence as well.
fn ends(after: &[u8]) -> bool {
    match after {
        [b'.', next, ..] => !next.is_ascii_alphanumeric(),
        [b'.'] | [] => true,
        [next, ..] => !is_part_of_a_name(*next),
    }
}
