//! Whatever an upstream's parser makes of a body: it reads no other model and allows no longer response than the gateway has reserved.

use omniglot::formats::Operation;
use omniglot::model::Format;
use omniglot::translate::RequestSummary;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A value, as it is written and as parsers may take it.
#[derive(Debug, Clone)]
enum Written {
    Null,
    Model(&'static str),
    Number(&'static str, u64),
    /// Nobody knows what an upstream makes of it.
    Odd(&'static str),
    Object(Entries),
}

type Entries = Vec<(String, Written)>;

/// How a parser finds a field in an object.
#[derive(Debug, Clone, Copy)]
enum Parser {
    /// The first of several, as this gateway's own trees.
    First,
    /// The last of several, as Python's `json`.
    Last,
    /// The last, and no matter in which case, as Go's `encoding/json`; objects are merged.
    LastInAnyCase,
}

impl Parser {
    fn matches(self, key: &str, name: &str) -> bool {
        match self {
            Parser::First | Parser::Last => key == name,
            Parser::LastInAnyCase => {
                let folded = key.replace('ſ', "s").replace('\u{212a}', "k");
                folded.eq_ignore_ascii_case(name)
            }
        }
    }

    fn find<'e>(self, entries: &'e Entries, name: &str) -> Vec<&'e Written> {
        let found = entries.iter().filter(|(key, _)| self.matches(key, name));
        let found: Vec<_> = found.map(|(_, value)| value).collect();
        match self {
            Parser::First => found.into_iter().take(1).collect(),
            Parser::Last => found.into_iter().last().into_iter().collect(),
            // Merged objects: each of them counts.
            Parser::LastInAnyCase => found,
        }
    }

    /// The largest number that this parser may find under any of the names.
    fn allows(self, entries: &Entries, names: &[&str]) -> u64 {
        let values = names.iter().flat_map(|name| self.find(entries, name));
        let numbers = values.map(|value| match value {
            Written::Null => 0,
            Written::Number(_, number) => *number,
            Written::Model(_) | Written::Odd(_) | Written::Object(_) => u64::MAX,
        });
        numbers.max().unwrap_or(0)
    }
}

const PARSERS: [Parser; 3] = [Parser::First, Parser::Last, Parser::LastInAnyCase];

/// The names of what decides: the object they stand in, those of the limit, those of the number of choices.
fn names(
    format: Format,
) -> (
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
) {
    match format {
        Format::Chat => (&[], &["max_tokens", "max_completion_tokens"], &["n"]),
        Format::Messages => (&[], &["max_tokens"], &[]),
        Format::Responses => (&[], &["max_output_tokens"], &[]),
        Format::Images => (&[], &[], &["n"]),
        Format::Native => (
            &["generationConfig", "generation_config"],
            &["maxOutputTokens", "max_output_tokens"],
            &["candidateCount", "candidate_count"],
        ),
    }
}

/// A name, mostly as it is; sometimes in another case, with a letter that folds to one of its own.
fn spelled(name: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        6 => Just(name.to_owned()),
        1 => Just(name.to_ascii_uppercase()),
        1 => Just(name.to_ascii_lowercase()),
        1 => Just(name.replacen('s', "ſ", 1)),
        1 => Just(name.replacen('k', "\u{212a}", 1)),
    ]
}

fn number() -> impl Strategy<Value = Written> {
    prop_oneof![
        6 => select(vec![("0", 0), ("1", 1), ("100", 100), ("64000", 64_000), ("8e3", 8000), ("7.0", 7),
            ("99999999999999999999", u64::MAX)])
            .prop_map(|(text, number)| Written::Number(text, number)),
        1 => Just(Written::Null),
        1 => select(vec!["-1", "1.5", "[5]", "{}", "true", "\"many\"", "1e999"]).prop_map(Written::Odd),
    ]
}

fn limits(format: Format, most: usize) -> impl Strategy<Value = Entries> {
    let (_, output, choices) = names(format);
    let all = [output, choices, &["other"]].concat();
    vec(select(all).prop_flat_map(spelled), 0..most).prop_flat_map(|keys| {
        let values = vec(number(), keys.len());
        values.prop_map(move |values| keys.clone().into_iter().zip(values).collect())
    })
}

fn models() -> impl Strategy<Value = Entries> {
    let other = select(vec!["cheap", "dear"]).prop_map(Written::Model);
    let more = vec((spelled("model"), other), 0..2);
    more.prop_map(|more| [vec![("model".to_owned(), Written::Model("cheap"))], more].concat())
}

fn bodies(format: Format) -> BoxedStrategy<Entries> {
    let (parents, ..) = names(format);
    let inner = match parents {
        [] => limits(format, 4).boxed(),
        _ => {
            let parent = select(parents.to_vec()).prop_flat_map(spelled);
            let object = limits(format, 3).prop_map(Written::Object);
            vec((parent, object), 0..3).boxed()
        }
    };
    (models(), inner)
        .prop_map(|(models, inner)| [models, inner].concat())
        .prop_shuffle()
        .boxed()
}

fn cases() -> impl Strategy<Value = (Format, Entries)> {
    select(Format::EVERY.to_vec())
        .prop_flat_map(|format| bodies(format).prop_map(move |body| (format, body)))
}

fn write(entries: &Entries, out: &mut String) {
    out.push('{');
    for (at, (key, value)) in entries.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        *out += &format!("{comma}{key:?}:");
        match value {
            Written::Null => *out += "null",
            Written::Model(name) => *out += &format!("{name:?}"),
            Written::Number(text, _) | Written::Odd(text) => *out += text,
            Written::Object(entries) => write(entries, out),
        }
    }
    out.push('}');
}

fn summary(format: Format, body: &str) -> Option<RequestSummary> {
    let path_model = (format == Format::Native).then_some("cheap");
    let operation = Operation::Generate;
    RequestSummary::new(format.codec(), operation, path_model, body.as_bytes()).ok()
}

/// The objects that this parser looks for limits in.
fn limited(parser: Parser, format: Format, body: &Entries) -> Vec<&Entries> {
    let (parents, ..) = names(format);
    if parents.is_empty() {
        return vec![body];
    }
    let found = parents.iter().flat_map(|parent| parser.find(body, parent));
    found
        .filter_map(|value| match value {
            Written::Object(entries) => Some(entries),
            _ => None,
        })
        .collect()
}

proptest! {
    #![proptest_config(crate::many())]

    #[test]
    fn no_parser_allows_more_than_is_reserved((format, body) in cases()) {
        let mut text = String::new();
        write(&body, &mut text);
        let Some(summary) = summary(format, &text) else {
            return Ok(());
        };
        let (_, output, choices) = names(format);
        for parser in PARSERS {
            for model in parser.find(&body, "model") {
                let same = matches!(model, Written::Model(name) if *name == summary.model);
                prop_assert!(same, "{parser:?} reads {model:?}: {text}");
            }
            for entries in limited(parser, format, &body) {
                let limit = summary.output_limit;
                let (most, times) = (parser.allows(entries, output), parser.allows(entries, choices));
                // Without a limit, what the model usually may write is reserved.
                prop_assert!(limit.output.unwrap_or(0) >= most, "{parser:?} allows {most}: {text}");
                // An upstream may take 0 for no limit: either it is replaced, or refused where it matters.
                let finds_zero = output.iter().any(|name| {
                    let mut found = parser.find(entries, name).into_iter();
                    found.any(|value| matches!(value, Written::Number(_, 0)))
                });
                let is_told = limit.output.is_none() || limit.zero_field.is_some();
                prop_assert!(!finds_zero || is_told, "{parser:?} finds a limit of 0: {text}");
                prop_assert!(limit.choices >= times, "{parser:?} allows {times} choices: {text}");
            }
        }
    }

    #[test]
    fn bodies_that_every_parser_reads_alike_are_accepted(
        (format, body) in cases(),
    ) {
        let (parents, output, choices) = names(format);
        let groups = [&["model"][..], parents, choices];
        let mut seen = Vec::new();
        let mut keep = |(key, value): &(String, Written)| {
            let exact = [output, choices, parents, &["model", "other"]].concat().contains(&key.as_str());
            let group = groups.iter().position(|names| names.contains(&key.as_str()));
            // The two limits of chat are two fields; other spellings in one group are one.
            let field = match group {
                Some(group) => group.to_string(),
                None if format == Format::Native => output.contains(&key.as_str()).to_string(),
                None => key.clone(),
            };
            let first = !seen.contains(&field);
            seen.push(field);
            exact && first && !matches!(value, Written::Odd(_) | Written::Model("dear"))
        };
        let mut plain: Entries = body;
        plain.retain(&mut keep);
        for (_, value) in &mut plain {
            if let Written::Object(entries) = value {
                let mut inner = Vec::new();
                entries.retain(|(key, value)| {
                    let group = output.contains(&key.as_str());
                    let known = [output, choices, &["other"]].concat().contains(&key.as_str());
                    let first = !inner.contains(&group);
                    inner.push(group);
                    known && first && !matches!(value, Written::Odd(_))
                });
            }
        }
        if !plain.iter().any(|(key, _)| key == "model") {
            plain.push(("model".to_owned(), Written::Model("cheap")));
        }
        let mut text = String::new();
        write(&plain, &mut text);
        prop_assert!(summary(format, &text).is_some(), "{text}");
    }
}
