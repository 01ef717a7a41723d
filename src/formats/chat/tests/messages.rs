//! Messages of every role, and what they may hold.

use serde_json::{Value, json};

use super::{decode, refuse, signature};
use crate::model::{Arguments, Detail, Issuer, PartKind, Role, Signature, Source, ToolKind, Turn};

fn turns(messages: Value, check: impl FnOnce(Vec<Turn<'_>>, Vec<String>)) {
    let body = json!({"model": "m", "messages": messages});
    decode(&body, |request, dropped| check(request.turns, dropped));
}

fn refused_at(messages: Value) -> String {
    let api_error = refuse(&json!({"model": "m", "messages": messages}));
    api_error.param.clone().expect("a param")
}

#[test]
fn roles_stay_in_their_order_and_place() {
    let messages = json!([
        {"role": "system", "content": "A"},
        {"role": "developer", "content": [{"type": "text", "text": "B"}, {"type": "text", "text": "C"}]},
        {"role": "user", "content": "D", "name": "ann"},
        {"role": "assistant", "content": null},
    ]);
    turns(messages, |turns, dropped| {
        let roles: Vec<_> = turns.iter().map(|turn| (turn.role, turn.at)).collect();
        assert_eq!(
            roles,
            [
                (Role::System, Some(0)),
                (Role::Developer, Some(1)),
                (Role::User, Some(2)),
                (Role::Model, Some(3)),
            ]
        );
        assert_eq!(turns[0].parts[0].at, None);
        assert_eq!(turns[1].parts[1].kind, PartKind::Text("C".into()));
        assert_eq!(turns[1].parts[1].at, Some(1));
        assert!(turns[3].parts.is_empty());
        assert_eq!(dropped, ["messages[2].name"]);
    });
}

#[test]
fn media_of_a_user() {
    let messages = json!([{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
        {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "r.pdf"}},
        {"type": "image_url", "image_url": {"url": "http://a", "detail": "auto"}},
        {"type": "file", "file": {"file_id": "file-1"}, "prompt_cache_breakpoint": {"mode": "explicit"}},
    ]}]);
    turns(messages, |turns, dropped| {
        let media: Vec<_> = turns[0]
            .parts
            .iter()
            .map(|part| match &part.kind {
                PartKind::Media(media) => media,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(media[0].mime, "image/png");
        assert_eq!(media[0].source, Source::Base64("AAAA".into()));
        assert_eq!(media[0].detail, Some(Detail::High));
        assert_eq!(
            media[1].source,
            Source::Url("https://example.com/cat.png".into())
        );
        assert_eq!(media[2].mime, "audio/mpeg");
        assert_eq!(media[3].mime, "application/pdf");
        assert_eq!(media[3].name.as_deref(), Some("r.pdf"));
        assert_eq!((&*media[4].mime, media[4].detail), ("image/*", None));
        assert_eq!(media[5].mime, "application/*");
        assert_eq!(media[5].source, Source::File("file-1".into()));
        assert_eq!(turns[0].parts[5].at, Some(5));
        assert_eq!(dropped, ["messages[0].content[5].prompt_cache_breakpoint"]);
    });
}

#[test]
fn a_picture_is_borrowed_from_the_body() {
    let body = br#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}"#;
    let request = super::request::decode(body, &mut super::Losses::default()).expect("a request");
    let PartKind::Media(media) = &request.turns[0].parts[0].kind else {
        panic!("{request:?}");
    };
    assert!(matches!(
        media.source,
        Source::Base64(std::borrow::Cow::Borrowed("AAAA"))
    ));
}

#[test]
fn calls_and_their_results() {
    let messages = json!([
        {"role": "assistant", "content": "Looking.", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"x\":"}},
            {"id": "c2", "type": "custom", "custom": {"name": "shout", "input": "hey"}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "18 C"},
        {"role": "tool", "tool_call_id": "c2", "name": "shout", "content": [
            {"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "http://x/y"}},
        ]},
        {"role": "assistant", "function_call": {"name": "f", "arguments": ""}},
        {"role": "function", "name": "f", "content": "ok"},
    ]);
    turns(messages, |turns, dropped| {
        let kinds: Vec<_> = turns
            .iter()
            .flat_map(|turn| turn.parts.iter().map(|part| &part.kind))
            .collect();
        let [
            PartKind::Text(words),
            PartKind::Call(look),
            PartKind::Call(shout),
            PartKind::Result(one),
            PartKind::Result(two),
            PartKind::Call(old),
            PartKind::Result(old_result),
        ] = kinds.as_slice()
        else {
            panic!("{kinds:?}");
        };
        assert_eq!(words, "Looking.");
        assert_eq!((look.id.as_deref(), &*look.name), (Some("c1"), "look"));
        assert_eq!(look.arguments, Arguments::Text("{\"x\":".into()));
        assert_eq!(
            (shout.kind, &shout.arguments),
            (ToolKind::Custom, &Arguments::Text("hey".into()))
        );
        assert_eq!((one.id.as_deref(), one.parts.len()), (Some("c1"), 1));
        assert_eq!(
            (two.name.as_deref(), two.parts[1].at),
            (Some("shout"), Some(1))
        );
        assert_eq!((&old.id, &*old.name), (&None, "f"));
        assert_eq!(
            (&old_result.id, old_result.name.as_deref()),
            (&None, Some("f"))
        );
        assert!(turns[1].role == Role::User && turns[4].role == Role::User);
        assert!(dropped.is_empty());
    });
}

#[test]
fn a_reply_sent_back_as_it_came_loses_only_its_sources() {
    let reply = |annotations: Value| {
        json!({"role": "assistant", "content": "Hi", "refusal": null, "annotations": annotations,
            "audio": null, "function_call": null, "tool_calls": null})
    };
    turns(
        json!([reply(json!([])), reply(json!([{}]))]),
        |_, dropped| {
            assert_eq!(dropped, ["messages[1].annotations"]);
        },
    );
}

#[test]
fn a_refusal_is_one_in_either_spelling() {
    let messages = json!([
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
        {"role": "assistant", "content": null, "refusal": "Never."},
    ]);
    turns(messages, |turns, dropped| {
        assert_eq!(turns[0].parts[0].kind, PartKind::Refusal("No.".into()));
        assert_eq!(turns[1].parts[0].kind, PartKind::Refusal("Never.".into()));
        assert!(dropped.is_empty());
    });
}

fn thoughts(
    message: Value,
    check: impl FnOnce(&[(&str, Option<&Signature<'_>>)], &Turn<'_>, Vec<String>),
) {
    turns(json!([message]), |turns, dropped| {
        let thoughts: Vec<_> = turns[0]
            .parts
            .iter()
            .filter_map(|part| match &part.kind {
                PartKind::Reasoning { text, signature } => Some((&**text, signature.as_ref())),
                _ => None,
            })
            .collect();
        check(&thoughts, &turns[0], dropped);
    });
}

#[test]
fn seals_come_back_to_what_they_seal() {
    let sealed = |issuer| signature(issuer).wrap();
    let message = json!({
        "role": "assistant", "content": "42", "reasoning_content": "Hm.",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "Hm.", "signature": sealed(Issuer::Thinking), "format": "omniglot-v1", "index": 0},
            {"type": "reasoning.encrypted", "data": sealed(Issuer::Redacted), "id": null, "format": "omniglot-v1", "index": 1},
            {"type": "reasoning.encrypted", "data": sealed(Issuer::Native), "id": "c1", "format": "omniglot-v1", "index": 2},
        ],
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    });
    thoughts(message, |thoughts, turn, dropped| {
        let (thinking, redacted) = (signature(Issuer::Thinking), signature(Issuer::Redacted));
        assert_eq!(thoughts, [("Hm.", Some(&thinking)), ("", Some(&redacted))]);
        assert_eq!(turn.parts[2].kind, PartKind::Text("42".into()));
        let PartKind::Call(call) = &turn.parts[3].kind else {
            panic!("{turn:?}");
        };
        assert_eq!(call.signature, Some(signature(Issuer::Native)));
        assert!(dropped.is_empty());
    });
}

#[test]
fn thoughts_without_our_seal() {
    for key in ["reasoning_content", "reasoning"] {
        let mut message = json!({"role": "assistant", "content": "42",
            "reasoning_details": [{"type": "reasoning.encrypted", "data": signature(Issuer::Native).wrap()}]});
        message[key] = json!("Hm.");
        thoughts(message, |thoughts, _, dropped| {
            let native = signature(Issuer::Native);
            assert_eq!(thoughts, [("Hm.", None), ("", Some(&native))]);
            assert!(dropped.is_empty());
        });
    }
    let foreign = json!({"role": "assistant", "reasoning_details": [
        {"type": "reasoning.text", "text": "Hm.", "signature": "EqQBCkYIBRgC"},
        {"type": "reasoning.summary", "summary": "So."},
        {"type": "reasoning.encrypted", "data": "gAAAA", "id": "rs_1"},
        {"type": "reasoning.encrypted", "data": signature(Issuer::Native).wrap(), "id": "gone"},
        {"type": "reasoning.dream", "depth": 1},
    ]});
    thoughts(foreign, |thoughts, _, dropped| {
        assert_eq!(thoughts, [("Hm.", None), ("So.", None)]);
        assert_eq!(
            dropped,
            [
                "messages[0].reasoning_details[2].data",
                "messages[0].reasoning_details[4]",
                "messages[0].reasoning_details[4].depth",
                "messages[0].reasoning_details",
            ]
        );
    });
}

#[test]
fn what_cannot_be_carried_is_refused_at_its_path() {
    let user =
        |part: Value| json!([{"role": "user", "content": [{"type": "text", "text": "a"}, part]}]);
    let image = |url: &str| user(json!({"type": "image_url", "image_url": {"url": url}}));
    for (messages, param) in [
        (json!([]), "messages"),
        (json!({}), "messages"),
        (
            json!([{"role": "king", "content": "a"}]),
            "messages[0].role",
        ),
        (json!([{"content": "a"}]), "messages[0].role"),
        (json!([{"role": "user"}]), "messages[0].content"),
        (
            json!([{"role": "user", "content": null}]),
            "messages[0].content",
        ),
        (
            json!([{"role": "user", "content": 7}]),
            "messages[0].content",
        ),
        (
            json!([{"role": "tool", "content": "a"}]),
            "messages[0].tool_call_id",
        ),
        (
            json!([{"role": "function", "content": "a"}]),
            "messages[0].name",
        ),
        (
            json!([{"role": "assistant", "audio": {"id": "audio_1"}}]),
            "messages[0].audio",
        ),
        (
            json!([{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {}}}]}]),
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            json!([{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "http://a"}}]}]),
            "messages[0].content[0].type",
        ),
        (
            user(json!({"type": "video_url", "video_url": {}})),
            "messages[0].content[1].type",
        ),
        (
            user(json!({"type": "refusal", "refusal": "No."})),
            "messages[0].content[1].type",
        ),
        (user(json!({"type": "text"})), "messages[0].content[1].text"),
        (image("ftp://a/b"), "messages[0].content[1].image_url.url"),
        (
            image("data:image/png,raw"),
            "messages[0].content[1].image_url.url",
        ),
        (
            user(json!({"type": "input_audio", "input_audio": {"data": "a", "format": "ogg"}})),
            "messages[0].content[1].input_audio.format",
        ),
        (
            user(json!({"type": "file", "file": {}})),
            "messages[0].content[1].file.file_data",
        ),
        (
            user(json!({"type": "file", "file": {"file_data": "JVBE"}})),
            "messages[0].content[1].file.file_data",
        ),
    ] {
        assert_eq!(refused_at(messages), param);
    }
    assert_eq!(
        refuse(&json!({"model": "m"})).param.as_deref(),
        Some("messages")
    );
}
