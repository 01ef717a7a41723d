//! Tool names that an upstream takes, for names that only the client's format allows.

use sha2::{Digest as _, Sha256};

/// The names of one request that must change. Afterwards no two tools have the same name.
#[derive(Debug)]
pub(in crate::formats) struct Names<'a> {
    changed: Vec<(&'a str, String)>,
}

impl<'a> Names<'a> {
    /// Of names that are at most so long, of letters, digits, underscores and dashes.
    pub(in crate::formats) fn new(names: &[&'a str], most: usize) -> Names<'a> {
        let is_legal = |name: &str| name.len() <= most && name.chars().all(is_legal_letter);
        let mut changed: Vec<(&'a str, String)> = Vec::new();
        for name in names.iter().copied().filter(|name| !is_legal(name)) {
            if changed.iter().any(|(known, _)| *known == name) {
                continue;
            }
            let plain = rewritten(name, usize::MAX);
            let taken =
                names.contains(&plain.as_str()) || changed.iter().any(|(_, other)| *other == plain);
            let legal = if taken || plain.len() > most {
                let digest = Sha256::digest(name);
                let mark = format!("_{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2]);
                rewritten(name, most - mark.len()) + &mark
            } else {
                plain
            };
            changed.push((name, legal));
        }
        Names { changed }
    }

    /// What the upstream is to call it.
    pub(in crate::formats) fn of<'n>(&'n self, name: &'n str) -> &'n str {
        let changed = self.changed.iter().find(|(known, _)| *known == name);
        changed.map_or(name, |(_, legal)| legal)
    }
}

fn is_legal_letter(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

fn rewritten(name: &str, most: usize) -> String {
    let legal = |letter| if is_legal_letter(letter) { letter } else { '_' };
    name.chars().map(legal).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_names_stay_and_others_stay_apart() {
        let long = "x".repeat(65);
        let names = Names::new(&["ok-1", "a.b", "a:b", "c.d", "c_d", &long, "a.b"], 64);
        assert_eq!(names.of("ok-1"), "ok-1");
        assert_eq!(names.of("a.b"), "a_b");
        assert_eq!(names.of("c_d"), "c_d");
        for (name, start, length) in [("a:b", "a_b_", 10), ("c.d", "c_d_", 10), (&long, "xxx", 64)]
        {
            let legal = names.of(name);
            assert!(legal.starts_with(start) && legal.len() == length, "{legal}");
        }
    }
}
