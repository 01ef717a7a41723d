//! The words that steer the mock, found in a prompt (`mock:pace=5ms`) or in a model's name (`demo+pace=5ms`).

use memchr::memmem;

const MARK: &str = "mock:";
/// The words whose values may hold white space: they run up to the next word.
const RUNNING: [&str; 2] = ["text", "arguments"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub key: &'a str,
    pub value: Option<&'a str>,
}

impl<'a> Word<'a> {
    fn read(word: &'a str) -> Word<'a> {
        match word.split_once('=') {
            Some((key, value)) => Word {
                key,
                value: Some(value),
            },
            None => Word {
                key: word,
                value: None,
            },
        }
    }
}

/// A text taken apart into words for the mock and all the rest, in the order they stand.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prompt<'a> {
    pub words: Vec<Word<'a>>,
    pub rest: Vec<&'a str>,
}

impl<'a> Prompt<'a> {
    pub(super) fn read(texts: impl IntoIterator<Item = &'a str>) -> Prompt<'a> {
        let mut prompt = Prompt::default();
        for text in texts {
            prompt.decode_json(text);
        }
        prompt
    }

    /// Searches for the mark only: a prompt may be many megabytes.
    fn decode_json(&mut self, text: &'a str) {
        let starts: Vec<usize> = memmem::find_iter(text.as_bytes(), MARK)
            .filter(|start| {
                text[..*start]
                    .chars()
                    .next_back()
                    .is_none_or(char::is_whitespace)
            })
            .collect();
        let mut read = 0;
        for (number, start) in starts.iter().copied().enumerate() {
            self.keep(&text[read..start]);
            let next = starts.get(number + 1).copied().unwrap_or(text.len());
            let mut end = text[start..]
                .find(char::is_whitespace)
                .map_or(text.len(), |length| start + length);
            let key = text[start + MARK.len()..end].split('=').next();
            if key.is_some_and(|key| RUNNING.contains(&key)) {
                end = next;
            }
            self.words
                .push(Word::read(text[start + MARK.len()..end].trim_end()));
            read = end;
        }
        self.keep(&text[read..]);
    }

    fn keep(&mut self, rest: &'a str) {
        let rest = rest.trim();
        if !rest.is_empty() {
            self.rest.push(rest);
        }
    }
}

/// The words of a model's name: `demo-chat+tool+pace=5ms`.
pub(super) fn of_model(model: &str) -> Vec<Word<'_>> {
    model.split('+').skip(1).map(Word::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word<'a>(key: &'a str, value: Option<&'a str>) -> Word<'a> {
        Word { key, value }
    }

    #[test]
    fn words_stand_anywhere_between_white_space() {
        let prompt = Prompt::read(["mock:tool hello\tmock:pace=5ms\nworld", "not-mock:length"]);
        assert_eq!(
            prompt.words,
            [word("tool", None), word("pace", Some("5ms"))]
        );
        assert_eq!(prompt.rest, ["hello", "world", "not-mock:length"]);
    }

    #[test]
    fn a_text_runs_up_to_the_next_word() {
        let prompt = Prompt::read(["mock:text=a = b,\n c mock:length"]);
        assert_eq!(
            prompt.words,
            [word("text", Some("a = b,\n c")), word("length", None)]
        );
        assert!(prompt.rest.is_empty());
    }

    #[test]
    fn a_model_carries_words_after_plus_signs() {
        assert_eq!(of_model("acme/demo"), []);
        assert_eq!(
            of_model("acme/demo+tools+error=503,later"),
            [word("tools", None), word("error", Some("503,later"))]
        );
    }
}
