//! Names of tools as this format takes them.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::model::Text;

/// The longest name, and what is kept of a longer one before its hash.
const MOST: usize = 64;
const KEPT: usize = MOST - 7;

/// The name itself where it is legal, else the nearest that is; the same each time.
pub(super) fn legal<'n>(name: &'n str) -> Text<'n> {
    let is_legal = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    if name.len() <= MOST && name.chars().all(is_legal) {
        return name.into();
    }
    let spell = |letter| if is_legal(letter) { letter } else { '_' };
    let mut spelled: String = name.chars().map(spell).collect();
    if spelled.len() > MOST {
        spelled.truncate(KEPT);
        spelled.push('_');
        for byte in &Sha256::digest(name)[..3] {
            write!(spelled, "{byte:02x}").expect("writing to a string cannot fail");
        }
    }
    spelled.into()
}

#[cfg(test)]
mod tests {
    use super::legal;

    #[test]
    fn names_become_legal_and_stay_apart() {
        assert!(matches!(
            legal("get_Weather-2"),
            std::borrow::Cow::Borrowed(_)
        ));
        assert_eq!(legal("maps.search:näher"), "maps_search_n_her");
        let long = "x".repeat(70);
        let (first, second) = (legal(&long), legal(&long[1..]));
        assert_eq!((first.len(), second.len()), (64, 64));
        assert!(first.starts_with(&format!("{}_", "x".repeat(57))));
        assert_ne!(first, second);
    }
}
