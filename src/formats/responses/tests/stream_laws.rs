//! Laws of every stream: it contains what the JSON response contains, and an error may end it anywhere.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::options;
use super::stream_grammar::{
    CLOSE, arguments, check, events_in, finish, names, open, signature, start, stream, text,
};
use crate::formats::responses::Responses;
use crate::formats::responses::stream::{ResponsesStreamDecoder, ResponsesStreamEncoder};
use crate::formats::{ResponseCodec as _, StreamDecoder as _, StreamEncoder as _};
use crate::model::{
    ApiError, ApiErrorKind, Arguments, Block, Call, Choice, Citation, Event, Finish, Fold, Issuer,
    Logprob, Losses, Media, Part, PartKind, Response, Signature, Source, ToolKind, Usage,
};
use crate::sse::SseWriter;

fn rich() -> Response<'static> {
    let signed = |issuer| {
        Some(Signature {
            issuer,
            data: "data".into(),
        })
    };
    let call = |id: Option<&'static str>, kind, signature| {
        PartKind::Call(Call {
            id: id.map(Into::into),
            name: "f".into(),
            arguments: Arguments::Text("{\"a\":1}".into()),
            signature,
            kind,
        })
    };
    let parts = vec![
        PartKind::Reasoning {
            text: "Hm.".into(),
            signature: signed(Issuer::Thinking),
        },
        PartKind::Reasoning {
            text: "".into(),
            signature: signed(Issuer::Redacted),
        },
        PartKind::Text("One".into()),
        PartKind::Text(" two.".into()),
        PartKind::Refusal("No.".into()),
        call(Some("c1"), ToolKind::Function, signed(Issuer::Native)),
        call(None, ToolKind::Custom, None),
        call(None, ToolKind::Function, None),
        PartKind::Media(Media {
            mime: "image/png".into(),
            source: Source::Base64("AAAA".into()),
            name: None,
            detail: None,
        }),
        PartKind::Text("End".into()),
    ];
    let citation = |start, end| Citation {
        url: "https://a.example".into(),
        title: Some("A".into()),
        start,
        end,
    };
    Response {
        id: "msg_1".into(),
        model: "m".into(),
        created: 7,
        choices: vec![Choice {
            parts: parts
                .into_iter()
                .map(|kind| Part { kind, at: None })
                .collect(),
            citations: vec![citation(0, 3), citation(8, 11)],
            logprobs: vec![Logprob {
                token: "End".into(),
                logprob: -0.1,
                top: Vec::new(),
            }],
            finish: Finish::Filtered(Some("Stopped.".into())),
        }],
        usage: Some(Usage {
            input: 3,
            output: 2,
            ..Usage::default()
        }),
    }
}

fn unfolded(response: &Response<'_>) -> Vec<Value> {
    let mut encoder = ResponsesStreamEncoder::new(&options("m-1"));
    let mut out = SseWriter::default();
    response.unfold(&mut |event| encoder.encode_event(event, &mut out));
    events_in(&mut out)
}

#[test]
fn the_stream_of_a_response_ends_with_its_json() {
    let response = rich();
    let json: Value = serde_json::from_slice(&Responses.encode_response(
        &response,
        &options("m-1"),
        &mut Losses::default(),
    ))
    .expect("JSON");
    assert_eq!(check(&unfolded(&response)), json);
}

/// What our own decoder makes of a stream.
fn decoded_again(events: &[Value]) -> Response<'static> {
    let mut decoder = ResponsesStreamDecoder::default();
    let mut fold = Fold::default();
    for event in events {
        let outcome = decoder.decode_event(&event.to_string(), &mut |event| fold.push(event));
        assert_eq!(outcome, Ok(()));
    }
    assert_eq!(decoder.finish(&mut |_| {}), Ok(()));
    fold.finish()
}

#[test]
fn a_stream_decodes_to_the_same_response_as_its_json() {
    let json = Responses.encode_response(&rich(), &options("m-1"), &mut Losses::default());
    let whole = Responses
        .decode_response(&json, &mut Losses::default())
        .expect("a response");
    let mut streamed = decoded_again(&unfolded(&rich()));
    // In a stream, the sources of earlier texts come last.
    streamed.choices[0]
        .citations
        .sort_by_key(|citation| citation.start);
    assert_eq!(streamed, whole);
}

#[test]
fn an_error_ends_the_stream_wherever_it_comes() {
    let mut count = 0;
    rich().unfold(&mut |_| count += 1);
    let api_error = ApiError::new(ApiErrorKind::Overloaded, "Overloaded.");
    for cut in 0..count {
        let mut encoder = ResponsesStreamEncoder::new(&options("m-1"));
        let mut out = SseWriter::default();
        let mut seen = 0;
        rich().unfold(&mut |event| {
            if seen == cut {
                encoder.encode_error(&api_error, &mut out);
            }
            encoder.encode_event(event, &mut out);
            seen += 1;
        });
        encoder.encode_error(&api_error, &mut out);
        let events = events_in(&mut out);
        let names = names(&events);
        assert_eq!(names[..2], ["created", "in_progress"]);
        assert_eq!(names[names.len() - 2..], ["error", "failed"]);
        assert!(!names[..names.len() - 2].contains(&"error"));
        let error = &events[events.len() - 2];
        assert_eq!(
            *error,
            json!({"type":"error","sequence_number":events.len() - 2,"code":"server_error",
                "message":"Overloaded.","param":null,"error":{"type":"server_error",
                "code":"server_error","message":"Overloaded.","param":null}})
        );
        let failed = &events[events.len() - 1]["response"];
        assert_eq!(failed["status"], "failed");
        assert_eq!(
            failed["error"],
            json!({"code":"server_error","message":"Overloaded."})
        );
        let done = names.iter().filter(|name| **name == "output_item.done");
        assert_eq!(
            failed["output"].as_array().expect("items").len(),
            done.count()
        );
    }
}

fn any_block() -> impl Strategy<Value = Vec<Event<'static>>> {
    let deltas = || prop::collection::vec(prop::sample::select(vec!["", "a", "é ", "{}"]), 0..3);
    let texts = |deltas: Vec<&'static str>| deltas.into_iter().map(text).collect::<Vec<_>>();
    let texts_of = move |block: Block<'static>| {
        deltas().prop_map(move |deltas| (open(block.clone()), texts(deltas)))
    };
    let kinds = prop::sample::select(vec![ToolKind::Function, ToolKind::Custom]);
    let calls =
        (any::<bool>(), any::<bool>(), kinds, deltas()).prop_map(|(named, signed, kind, texts)| {
            let id = named.then(|| "call_1".into());
            let name = "f".into();
            let first = signed.then(|| signature(Issuer::Native, "n"));
            let deltas = first.into_iter().chain(texts.into_iter().map(arguments));
            (open(Block::Call { id, name, kind }), deltas.collect())
        });
    let reasoning = (any::<bool>(), deltas()).prop_map(move |(signed, texts)| {
        let last = signed.then(|| signature(Issuer::Thinking, "m"));
        let deltas = texts.into_iter().map(text).chain(last);
        (open(Block::Reasoning), deltas.collect())
    });
    prop_oneof![
        texts_of(Block::Text),
        texts_of(Block::Refusal),
        reasoning,
        calls
    ]
    .prop_map(|(first, deltas): (_, Vec<_>)| {
        let mut events = vec![first];
        events.extend(deltas);
        events.push(CLOSE);
        events
    })
}

proptest! {
    #[test]
    fn any_valid_sequence_of_events_gives_a_valid_stream_with_the_same_content(
        blocks in prop::collection::vec(any_block(), 0..6),
        early in any::<bool>(),
        reason in prop::sample::select(vec![Finish::Stop, Finish::Length, Finish::Tools]),
    ) {
        let mut events = vec![start()];
        events.extend(early.then(|| finish(reason.clone())));
        events.extend(blocks.into_iter().flatten());
        events.extend((!early).then(|| finish(reason)));
        events.push(Event::End);
        let mut fold = Fold::default();
        events.iter().for_each(|event| fold.push(event.clone()));
        let whole = Responses.encode_response(&fold.finish(), &options("m-1"), &mut Losses::default());
        let whole: Value = serde_json::from_slice(&whole).expect("JSON");
        let streamed = stream(&events);
        prop_assert_eq!(&check(&streamed), &whole);
        let json = whole.to_string();
        let whole = Responses.decode_response(json.as_bytes(), &mut Losses::default()).expect("a response");
        prop_assert_eq!(decoded_again(&streamed), whole);
    }
}

#[test]
fn a_citation_may_come_before_everything_else() {
    let mut decoder = ResponsesStreamDecoder::default();
    let mut kinds = Vec::new();
    for event in [
        r#"{"type":"response.output_text.annotation.added","annotation":{"type":"url_citation","url":"https://a","end_index":2}}"#,
        r#"{"type":"response.created","response":{"id":"r","model":"m"}}"#,
    ] {
        let decoded = decoder.decode_event(event, &mut |event| {
            kinds.push(match event {
                Event::Start { .. } => "start",
                Event::Delta { .. } => "delta",
                _ => "another",
            });
        });
        decoded.expect("an event");
    }
    assert_eq!(kinds, ["start", "delta"]);
}
