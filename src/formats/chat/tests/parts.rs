//! Content parts: text, images, audio and files.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::{
    decode_turns, encoded, messages, native, part, rejected, rejected_location, responses,
};
use crate::formats::chat::Chat;
use crate::formats::{RequestCodec as _, RequestHead};
use crate::model::{Action, Detail, FieldLocation, Format, Losses, PartKind, Setting, Source};

#[test]
fn media_of_a_user_message_are_decoded() {
    let messages = json!([{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "high"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
        {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "r.pdf"}},
        {"type": "image_url", "image_url": {"url": "http://a", "detail": "auto"}},
        {"type": "file", "file": {"file_id": "file-1"}, "prompt_cache_breakpoint": {"mode": "explicit"}},
    ]}]);
    decode_turns(messages, |turns, dropped| {
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
fn image_data_is_borrowed_from_the_body() {
    let body = br#"{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}"#;
    let request = Chat
        .decode_request(&RequestHead::default(), body, &mut Losses::default())
        .expect("a request");
    let PartKind::Media(media) = &request.turns[0].parts[0].kind else {
        panic!("{request:?}");
    };
    assert!(matches!(
        media.source,
        Source::Base64(Cow::Borrowed("AAAA"))
    ));
}

fn rejected_path(messages: Value) -> String {
    let api_error = rejected(&json!({"model": "m", "messages": messages}));
    api_error.param.clone().expect("a param")
}

#[test]
fn invalid_messages_are_rejected_with_their_path() {
    let user =
        |part: Value| json!([{"role": "user", "content": [{"type": "text", "text": "a"}, part]}]);
    let image_part = |url: &str| user(json!({"type": "image_url", "image_url": {"url": url}}));
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
        (
            image_part("ftp://a/b"),
            "messages[0].content[1].image_url.url",
        ),
        (
            image_part("data:image/png,raw"),
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
        assert_eq!(rejected_path(messages), param);
    }
    assert_eq!(
        rejected(&json!({"model": "m"})).param.as_deref(),
        Some("messages")
    );
}

#[test]
fn documents_become_files_or_text() {
    let (body, losses) = encoded(
        Format::Messages,
        messages(json!([{"role": "user", "content": [
            {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}},
            {"type": "document", "title": "t", "source": {"type": "text", "media_type": "text/plain", "data": "text"}},
        ]}])),
    );
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "file.pdf"}},
            {"type": "text", "text": "text"},
        ])
    );
    assert_eq!(
        losses,
        [
            (Action::Added, part(0, 0)),
            (Action::Approximated, part(0, 1))
        ]
    );
    let by_id = json!([{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]);
    let (body, _) = encoded(Format::Responses, responses(by_id));
    assert_eq!(
        body["messages"][0]["content"],
        json!([{"type": "file", "file": {"file_id": "file-1"}}])
    );
}

#[test]
fn media_without_a_counterpart_are_rejected() {
    for data in [
        json!({"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}),
        json!({"inlineData": {"mimeType": "audio/flac", "data": "AAAA"}}),
        json!({"fileData": {"mimeType": "application/pdf", "fileUri": "https://a.example/b.pdf"}}),
        json!({"fileData": {"fileUri": "https://a.example/b.mp4"}}),
    ] {
        let location = rejected_location(Format::Native, native(json!([{"text": "See"}, data])));
        assert_eq!(location, part(0, 1));
    }
    let image =
        json!([{"role": "user", "content": [{"type": "input_image", "file_id": "file-1"}]}]);
    assert_eq!(
        rejected_location(Format::Responses, responses(image)),
        part(0, 0)
    );
    let code = json!({"contents": [{"parts": [{"text": "A"}]}], "tools": [{"codeExecution": {}}]});
    let location = rejected_location(Format::Native, code);
    assert_eq!(location, FieldLocation::Setting(Setting::CodeExecution));
}

#[test]
fn audio_is_accepted_under_every_media_type() {
    for (mime, format) in [
        ("audio/x-wav", "wav"),
        ("audio/wave", "wav"),
        ("audio/mp3", "mp3"),
    ] {
        let inline = json!([{"inlineData": {"mimeType": mime, "data": "AAAA"}}]);
        let (body, _) = encoded(Format::Native, native(inline));
        let audio = &body["messages"][0]["content"][0]["input_audio"];
        assert_eq!(audio, &json!({"data": "AAAA", "format": format}));
    }
}
