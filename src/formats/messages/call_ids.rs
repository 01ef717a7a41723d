//! Ids of a request's tool calls, in the characters that the format accepts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};

/// The call ids of one request: the client's id and the encoded id of each call.
#[derive(Default)]
pub(super) struct CallIds<'a> {
    encoded: HashMap<&'a str, Cow<'a, str>>,
    taken: HashSet<Cow<'a, str>>,
}

impl<'a> CallIds<'a> {
    /// Encodes an id, the same way for a call and for its result. Of several ids that only differ in
    /// illegal characters the first gets no suffix, so that the ids of a conversation stay the same
    /// while it grows.
    pub(super) fn encode(&mut self, id: &'a str) -> Cow<'a, str> {
        if let Some(known) = self.encoded.get(id) {
            return known.clone();
        }
        let mut legal = legal(id);
        if self.taken.contains(&legal) {
            let digest = Sha256::digest(id);
            let suffix = format!("_{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2]);
            legal.to_mut().push_str(&suffix);
        }
        self.taken.insert(legal.clone());
        self.encoded.insert(id, legal.clone());
        legal
    }
}

fn legal(id: &str) -> Cow<'_, str> {
    let is_legal = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if id.chars().all(is_legal) {
        return Cow::Borrowed(id);
    }
    let legal = |letter| if is_legal(letter) { letter } else { '_' };
    Cow::Owned(id.chars().map(legal).collect())
}

#[cfg(test)]
mod tests {
    use super::CallIds;

    #[test]
    fn ids_that_differ_in_illegal_characters_stay_distinct() {
        let mut ids = CallIds::default();
        assert_eq!(ids.encode("a.b"), "a_b");
        let other = ids.encode("a:b").into_owned();
        assert!(other.starts_with("a_b_") && other.len() == 10, "{other}");
        assert!(ids.encode("a_b").starts_with("a_b_"));
        assert_eq!(ids.encode("a.b"), "a_b");
        assert_eq!(ids.encode("a:b"), other);
        assert_eq!(ids.encode("fine-1"), "fine-1");
    }
}
