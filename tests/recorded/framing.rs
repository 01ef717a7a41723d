//! Hand-made framings of one small stream, some of them broken.

use bytes::Bytes;
use omniglot::model::{Fold, Format, PartKind};

use crate::corpus::{others, root};
use crate::streams::{Cuts, End, StreamResult, cut_anywhere, ending, events, streamed};

/// The number of the case, its format, its text, and its error if it is broken.
const CASES: &[(&str, Format, &str, Option<&str>)] = &[
    ("01", Format::Chat, "Hello", None),
    ("02", Format::Chat, "Hello", None),
    ("03", Format::Chat, "Hello", None),
    ("04", Format::Chat, "Hello", None),
    ("05", Format::Chat, "Hello", None),
    ("06", Format::Chat, "Hello", None),
    ("07", Format::Chat, "Hello", None),
    ("08", Format::Chat, "Hello", None),
    ("09", Format::Chat, "Hello", None),
    ("10", Format::Chat, "Hello", Some("")),
    ("11", Format::Chat, "日本語 😀 é", None),
    ("12", Format::Chat, "😀", None),
    ("13", Format::Chat, "Hello", None),
    ("14", Format::Chat, "Hello", None),
    ("15", Format::Messages, "Hello", None),
    ("16", Format::Chat, "", Some("The server had an error")),
    (
        "17",
        Format::Native,
        "Hel",
        Some("The model is overloaded."),
    ),
    ("18", Format::Chat, "a: b\n\ndata: not an event", None),
];

fn case(number: &str) -> Option<(String, Bytes)> {
    let mut files = std::fs::read_dir(root()?.join("framing")).expect("a folder");
    let file = files.find_map(|file| {
        let path = file.expect("an entry").path();
        let name = path.file_name()?.to_str()?.to_owned();
        name.starts_with(number).then_some((name, path))
    });
    let (name, path) = file.expect("the case");
    Some((name, std::fs::read(path).expect("a file").into()))
}

#[test]
fn every_framing_has_the_same_events() {
    for (number, format, text, api_error) in CASES {
        let Some((name, bytes)) = case(number) else {
            return;
        };
        for to in others(*format) {
            let name = format!("{name} in {}", to.name());
            let expected = streamed(to, "m");
            let start = || StreamResult::start(to, *format, &expected, "text/event-stream");
            let whole = cut_anywhere(&name, &bytes, Cuts::Many, &start);
            assert_eq!(text_of(to, &whole.out), *text, "{name}");
            assert_end(&name, &whole, ending(to, &whole.out), *api_error);
        }
        let expected = streamed(*format, "m");
        let start = || StreamResult::start(*format, *format, &expected, "text/event-stream");
        let whole = cut_anywhere(&name, &bytes, Cuts::Many, &start);
        assert_end(&name, &whole, ending(*format, &whole.out), *api_error);
    }
}

fn assert_end(name: &str, whole: &StreamResult, end: End, api_error: Option<&str>) {
    // An error that the upstream told in its own words passes with them.
    match (
        whole
            .api_error
            .as_ref()
            .or(whole.observer.api_error.as_ref()),
        api_error,
    ) {
        (None, None) => assert_ne!(end, End::Error, "{name}"),
        (Some(found), Some(expected)) => {
            assert!(found.message.contains(expected), "{name}: {found:?}");
            assert_eq!(
                end,
                End::Error,
                "{name}: {}",
                String::from_utf8_lossy(&whole.out)
            );
        }
        (found, _) => panic!("{name}: {found:?}"),
    }
}

/// The text of a stream, as far as it came.
fn text_of(format: Format, bytes: &[u8]) -> String {
    let mut decoder = format.codec().stream_decoder();
    let mut fold = Fold::default();
    for (_, data) in events(bytes) {
        if decoder
            .decode_event(&data, &mut |event| fold.push(event))
            .is_err()
        {
            break;
        }
    }
    let mut words = String::new();
    for part in fold
        .finish()
        .choices
        .into_iter()
        .flat_map(|choice| choice.parts)
    {
        if let PartKind::Text(text) = part.kind {
            words.push_str(&text);
        }
    }
    words
}
