//! The directives that control the mock, in a prompt (`mock:pace=5ms`) or in a model's name (`demo+pace=5ms`).

use memchr::memmem;

const MARK: &str = "mock:";
/// The directives whose values may hold white space: they end at the next directive.
const WITH_SPACES: [&str; 2] = ["text", "arguments"];

/// One directive, like `pace=5ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Directive<'a> {
    pub key: &'a str,
    pub value: Option<&'a str>,
}

impl<'a> Directive<'a> {
    fn parse(text: &'a str) -> Directive<'a> {
        match text.split_once('=') {
            Some((key, value)) => Directive {
                key,
                value: Some(value),
            },
            None => Directive {
                key: text,
                value: None,
            },
        }
    }
}

/// The directives of a prompt and the rest of it, each in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MockPrompt<'a> {
    pub directives: Vec<Directive<'a>>,
    pub rest: Vec<&'a str>,
}

impl<'a> MockPrompt<'a> {
    /// Parses the texts of a prompt.
    pub(super) fn parse(texts: impl IntoIterator<Item = &'a str>) -> MockPrompt<'a> {
        let mut prompt = MockPrompt::default();
        for text in texts {
            prompt.parse_text(text);
        }
        prompt
    }

    /// Searches only for the mark: a prompt may be many megabytes.
    fn parse_text(&mut self, text: &'a str) {
        let starts: Vec<usize> = memmem::find_iter(text.as_bytes(), MARK)
            .filter(|start| {
                text[..*start]
                    .chars()
                    .next_back()
                    .is_none_or(char::is_whitespace)
            })
            .collect();
        let mut parsed = 0;
        for (number, start) in starts.iter().copied().enumerate() {
            self.push_rest(&text[parsed..start]);
            let next = starts.get(number + 1).copied().unwrap_or(text.len());
            let mut end = text[start..]
                .find(char::is_whitespace)
                .map_or(text.len(), |length| start + length);
            let key = text[start + MARK.len()..end].split('=').next();
            if key.is_some_and(|key| WITH_SPACES.contains(&key)) {
                end = next;
            }
            self.directives
                .push(Directive::parse(text[start + MARK.len()..end].trim_end()));
            parsed = end;
        }
        self.push_rest(&text[parsed..]);
    }

    fn push_rest(&mut self, rest: &'a str) {
        let rest = rest.trim();
        if !rest.is_empty() {
            self.rest.push(rest);
        }
    }
}

/// Parses the directives of a model's name: `demo-chat+tool+pace=5ms`.
pub(super) fn of_model(model: &str) -> Vec<Directive<'_>> {
    model.split('+').skip(1).map(Directive::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directive<'a>(key: &'a str, value: Option<&'a str>) -> Directive<'a> {
        Directive { key, value }
    }

    #[test]
    fn directives_stand_anywhere_between_white_space() {
        let prompt =
            MockPrompt::parse(["mock:tool hello\tmock:pace=5ms\nworld", "not-mock:length"]);
        assert_eq!(
            prompt.directives,
            [directive("tool", None), directive("pace", Some("5ms"))]
        );
        assert_eq!(prompt.rest, ["hello", "world", "not-mock:length"]);
    }

    #[test]
    fn a_text_ends_at_the_next_directive() {
        let prompt = MockPrompt::parse(["mock:text=a = b,\n c mock:length"]);
        assert_eq!(
            prompt.directives,
            [
                directive("text", Some("a = b,\n c")),
                directive("length", None)
            ]
        );
        assert!(prompt.rest.is_empty());
    }

    #[test]
    fn directives_of_a_model_follow_plus_signs() {
        assert_eq!(of_model("acme/demo"), []);
        assert_eq!(
            of_model("acme/demo+tools+error=503,later"),
            [
                directive("tools", None),
                directive("error", Some("503,later"))
            ]
        );
    }
}
