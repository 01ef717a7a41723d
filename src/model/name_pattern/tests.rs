//! Which pattern a name is matched by, and what its `*` stands for.

use super::*;

fn index(patterns: &[&str]) -> PatternIndex {
    let mut index = PatternIndex::default();
    for (number, text) in patterns.iter().enumerate() {
        let pattern = NamePattern::parse(text).expect("a pattern");
        index.insert(&pattern, number);
    }
    index
}

/// The pattern that is found, and the text that its `*` stands for.
fn found<'p>(patterns: &[&'p str], name: &str) -> Option<(&'p str, String)> {
    let (number, matched) = index(patterns).find(name)?;
    Some((patterns[number], matched.to_owned()))
}

#[test]
fn a_pattern_has_one_star() {
    for text in ["", "gpt", "**", "a*b*", "*a*"] {
        assert_eq!(NamePattern::parse(text), None, "{text}");
    }
    for (text, filled) in [
        ("*", "x"),
        ("gpt-*", "gpt-x"),
        ("*:free", "x:free"),
        ("a*b", "axb"),
    ] {
        let pattern = NamePattern::parse(text).expect("a pattern");
        assert_eq!(pattern.fill("x"), filled);
    }
}

#[test]
fn the_longest_literal_text_wins_and_then_the_first() {
    let patterns = [
        "*", "gpt-*", "gpt-4*", "*-mini", "openai/*", "g*-mini", "*o-mini",
    ];
    for (name, pattern, matched) in [
        ("gpt-5", "gpt-*", "5"),
        ("gpt-4o", "gpt-4*", "o"),
        // `g*-mini` and `*o-mini` have six letters each.
        ("gpt-4o-mini", "g*-mini", "pt-4o"),
        ("o-mini", "*-mini", "o"),
        ("4o-mini", "*o-mini", "4"),
        ("openai/gpt-4o", "openai/*", "gpt-4o"),
        ("gpt-", "*", "gpt-"),
        ("-mini", "*", "-mini"),
        ("x", "*", "x"),
    ] {
        assert_eq!(
            found(&patterns, name),
            Some((pattern, matched.to_owned())),
            "{name}"
        );
    }
}

#[test]
fn literal_texts_do_not_overlap() {
    assert_eq!(found(&["ab*bc"], "abc"), None);
    assert_eq!(found(&["ab*bc"], "abbc"), None);
    assert_eq!(found(&["ab*bc"], "ab-bc"), Some(("ab*bc", "-".to_owned())));
    assert_eq!(
        found(&["acme/*"], "acme/"),
        None,
        "a star stands for something"
    );
    assert_eq!(found(&["acme/*"], "Acme/x"), None);
    assert_eq!(found(&[], "x"), None);
}

#[test]
fn names_that_could_harm_are_not_matched() {
    let long = "x".repeat(MAX_NAME_LENGTH + 1);
    for name in [
        "",
        "a b",
        "a\nb",
        "ä",
        "..",
        "a/../b",
        "./a",
        "a/.",
        "a,b",
        "a;b",
        "a|b",
        "a%2f..%2fb",
        "a%b",
        "a\\..\\b",
        &long,
    ] {
        assert_eq!(found(&["*"], name), None, "{name:?}");
    }
    for name in ["a..b", "...", "a/b:free", "hf.co/x/y:Q4_K_M", &long[1..]] {
        assert_eq!(found(&["*"], name), Some(("*", name.to_owned())));
    }
}

#[test]
fn thousands_of_patterns_are_searched_by_their_lengths() {
    let texts: Vec<String> = (0..9000).map(|number| format!("team-{number}/*")).collect();
    let patterns: Vec<&str> = texts.iter().map(String::as_str).collect();
    let index = index(&patterns);
    assert_eq!(index.lengths.len(), 4, "numbers of one to four digits");
    assert_eq!(index.find("team-8999/large"), Some((8999, "large")));
    assert_eq!(index.find("team-9000/large"), None);
}

/// What the index finds is what a search through all patterns finds.
#[test]
fn the_index_finds_what_a_scan_finds() {
    let letters = ["", "a", "b", "ab", "ba", "aab"];
    let texts = letters
        .iter()
        .flat_map(|prefix| letters.map(|suffix| format!("{prefix}*{suffix}")));
    let texts: Vec<String> = texts.collect();
    for skipped in 0..texts.len() {
        let patterns: Vec<&str> = texts[skipped..].iter().map(String::as_str).collect();
        let index = index(&patterns);
        for bits in 0..64_u32 {
            for length in 1..6 {
                let letter = |at: u32| if bits >> at & 1 == 1 { 'a' } else { 'b' };
                let name: String = (0..length).map(letter).collect();
                assert_eq!(
                    index.find(&name),
                    scan(&patterns, &name),
                    "{name} in {patterns:?}"
                );
            }
        }
    }
}

fn scan<'n>(patterns: &[&str], name: &'n str) -> Option<(usize, &'n str)> {
    let matched = patterns.iter().enumerate().filter_map(|(number, text)| {
        let (prefix, suffix) = text.split_once('*')?;
        let rest = name.strip_prefix(prefix)?.strip_suffix(suffix)?;
        (!rest.is_empty()).then_some((text.len(), number, rest))
    });
    // Of several that are the longest, `min_by_key` returns the first.
    let longest = matched.min_by_key(|(length, _, _)| std::cmp::Reverse(*length));
    longest.map(|(_, number, rest)| (number, rest))
}
