//! Edits of JSON change only their range; arrays are split where a parser splits them.

use bytes::Bytes;
use omniglot::formats::Operation;
use omniglot::json::{ArrayElements, Edit, replace};
use omniglot::model::Format;
use omniglot::translate::RequestSummary;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use crate::{many, pieces};

const SPACES: &[&str] = &["", "", " ", "\n\t", "\r\n "];
const VALUES: &[&str] = &[
    "1.50",
    "-0",
    "1e3",
    "null",
    "true",
    "\"\"",
    "\"a\\\"b\"",
    "\"\\ud83d\\ude00\\u0000\"",
    "\"é\"",
    "[ ]",
    "{ }",
    "[1,[2,{\"model\":\"x\"}],\"]\"]",
    "{\"model\":\"inner\",\"stream\":false}",
    "\"}{][\\\\\"",
];
const MODELS: &[&str] = &["\"m\"", "\"a\\/b\"", "\"\\u006d\"", "\"é\\\"\"", "\"x y\""];
const OPTIONS: &[&str] = &[
    "null",
    "{}",
    "{ }",
    "{\"include_usage\":true}",
    "{\"include_usage\" : false }",
    "{\"x\":[1]}",
    "{\"include_usage\":null,\"y\":{}}",
    "{\n\"y\" : 1 , \"include_usage\" : false}",
];

fn space() -> impl Strategy<Value = &'static str> {
    select(SPACES)
}

/// `key : value` with the white space of its own taste.
fn field(key: &'static str, values: &'static [&'static str]) -> impl Strategy<Value = String> {
    (select(values), space(), space(), space())
        .prop_map(move |(value, a, b, c)| format!("{a}\"{key}\"{b}:{c}{value}{a}"))
}

/// A chat request in odd spelling, with all that pass-through looks for.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let others = (
        field("a", VALUES),
        field("messages", VALUES),
        field("z", VALUES),
    );
    let read = (
        prop_oneof![field("model", MODELS), field("mod\\u0065l", MODELS)],
        prop::option::of(field("stream", &["true", "false", "null"])),
        prop::option::of(field("stream_options", OPTIONS)),
    );
    let ordered = (others, read).prop_map(|((a, b, c), (model, stream, options))| {
        let mut fields = vec![a, b, c, model];
        fields.extend(stream.into_iter().chain(options));
        fields
    });
    (ordered.prop_shuffle(), space())
        .prop_map(|(fields, space)| format!("{space}{{{}}}{space}", fields.join(",")).into_bytes())
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn a_passed_request_changes_only_where_necessary(body in bodies(), name in select(&["m", "new \"name\"\\", "é"][..])) {
        let body = Bytes::from(body);
        let codec = Format::Chat.codec();
        let wanted = RequestSummary::new(codec, Operation::Generate, None, &body).expect("a request");
        let before: Value = serde_json::from_slice(&body).expect("JSON");
        prop_assert_eq!(&before["model"], &wanted.model);
        let edited = wanted.passthrough_body(codec, &body, name, "google").into_bytes();
        let mut after: Value = serde_json::from_slice(&edited).expect("JSON");
        prop_assert_eq!(&after["model"], name);
        if wanted.stream {
            prop_assert_eq!(&after["stream_options"]["include_usage"], true);
        }
        if !wanted.hides_usage() {
            let place = wanted.model_range.clone().expect("a place");
            prop_assert_eq!(&edited[..place.start], &body[..place.start]);
            prop_assert!(edited.ends_with(&body[place.end..]));
        }
        after["model"] = before["model"].clone();
        match (before.get("stream_options"), after["stream_options"].as_object_mut()) {
            (Some(Value::Object(options)), Some(edited)) => {
                edited.remove("include_usage");
                let mut options = options.clone();
                options.remove("include_usage");
                prop_assert_eq!(&*edited, &options);
            }
            (None, Some(edited)) => prop_assert_eq!(edited.len(), 1),
            (_, _) => {}
        }
        for value in [&mut after, &mut before.clone()] {
            value.as_object_mut().expect("an object").remove("stream_options");
        }
        let mut rest = before;
        rest.as_object_mut().expect("an object").remove("stream_options");
        prop_assert_eq!(after, rest);
    }

    #[test]
    fn edits_change_their_ranges_and_nothing_else(
        body in vec(any::<u8>(), 0..30),
        marks in vec(any::<u8>(), 0..6),
        with in vec(any::<u8>(), 0..4),
    ) {
        let mut places: Vec<usize> = marks.iter().map(|&mark| body.len() * usize::from(mark) / 255).collect();
        places.sort_unstable();
        let edits: Vec<Edit> = places
            .chunks_exact(2)
            .map(|pair| Edit { range: pair[0]..pair[1], with: with.clone() })
            .collect();
        let mut expected = body.clone();
        for edit in edits.iter().rev() {
            expected.splice(edit.range.clone(), edit.with.iter().copied());
        }
        prop_assert_eq!(replace(&body, &edits), expected);
    }

    #[test]
    fn array_elements_equal_those_of_a_parser(
        elements in vec((select(&VALUES[9..13]), space()), 0..6),
        spaces in (space(), space()),
        cuts in vec(any::<u8>(), 0..5),
    ) {
        let inner: Vec<String> = elements.iter().map(|(value, space)| format!("{space}{value}{space}")).collect();
        let text = format!("{}[{}{}]{}", spaces.0, inner.join(","), spaces.1, spaces.0);
        let parsed: Vec<Value> = serde_json::from_str(&text).expect("JSON");
        let (mut splitter, mut seen) = (ArrayElements::default(), Vec::new());
        for piece in pieces(text.as_bytes(), &cuts) {
            splitter.push(piece, |element, end| {
                assert_eq!(element.last(), Some(&piece[end - 1]));
                seen.push(serde_json::from_slice::<Value>(element).expect("JSON"));
            });
        }
        prop_assert!(splitter.closed());
        prop_assert_eq!(seen, parsed);
    }
}
