//! Ids of calls in the letters that the format takes, each for one call of the client alone.

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

/// The ids of one conversation, as the client gave them and as they are written.
#[derive(Default)]
pub(super) struct CallIds<'a> {
    written: Vec<(&'a str, Cow<'a, str>)>,
}

impl<'a> CallIds<'a> {
    /// The same id for a call and its result. Who comes first gets the plain form, so that the
    /// ids of a conversation stay as they are while it grows.
    pub(super) fn write(&mut self, id: &'a str) -> Cow<'a, str> {
        if let Some((_, known)) = self.written.iter().find(|(client, _)| *client == id) {
            return known.clone();
        }
        let mut legal = legal(id);
        if self.written.iter().any(|(_, known)| *known == legal) {
            let digest = Sha256::digest(id);
            let mark = format!("_{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2]);
            legal.to_mut().push_str(&mark);
        }
        self.written.push((id, legal.clone()));
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
    fn ids_that_would_become_one_stay_two() {
        let mut ids = CallIds::default();
        assert_eq!(ids.write("a.b"), "a_b");
        let other = ids.write("a:b").into_owned();
        assert!(other.starts_with("a_b_") && other.len() == 10, "{other}");
        assert!(ids.write("a_b").starts_with("a_b_"));
        assert_eq!(ids.write("a.b"), "a_b");
        assert_eq!(ids.write("a:b"), other);
        assert_eq!(ids.write("fine-1"), "fine-1");
    }
}
