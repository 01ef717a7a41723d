//! Image and document blocks of a request.

use serde_json::{Value, json};

use super::{
    approximated, chat_request, decode, dropped, encode_chat, encode_from, media, only_part,
    refused_status, user,
};
use crate::model::{Action, FieldLocation, Format, Source};

#[test]
fn media_keep_their_source() {
    let image =
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}"#;
    assert_eq!(
        only_part(&user(image)),
        media("image/png", Source::Base64("iVBO".into()), None)
    );
    let image = r#"{"type":"image","source":{"type":"url","url":"https://example.com/cat.png"}}"#;
    assert_eq!(
        only_part(&user(image)),
        media(
            "image/*",
            Source::Url("https://example.com/cat.png".into()),
            None
        )
    );
    let document = r#"{"type":"document","title":"report.pdf","source":{"type":"base64","media_type":"application/pdf","data":"JVBE"}}"#;
    assert_eq!(
        only_part(&user(document)),
        media(
            "application/pdf",
            Source::Base64("JVBE".into()),
            Some("report.pdf")
        )
    );
    let document = r#"{"type":"document","source":{"type":"url","url":"https://example.com/a"}}"#;
    assert_eq!(
        only_part(&user(document)),
        media(
            "application/pdf",
            Source::Url("https://example.com/a".into()),
            None
        )
    );
    let document =
        r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"words"}}"#;
    assert_eq!(
        only_part(&user(document)),
        media("text/plain", Source::Plain("words".into()), None)
    );
    let document = r#"{"type":"document","source":{"type":"content","content":"words"}}"#;
    assert_eq!(
        only_part(&user(document)),
        media("text/plain", Source::Plain("words".into()), None)
    );
}

#[test]
fn a_document_in_blocks_becomes_one_text() {
    let body = user(
        r#"{"type":"document","context":"by Ann","citations":{"enabled":true},"source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}"#,
    );
    let (request, losses) = decode(&body);
    let kind = &request.expect("a good request").turns[0].parts[0].kind;
    assert_eq!(
        *kind,
        media("text/plain", Source::Plain("a\n\nb".into()), None)
    );
    assert_eq!(
        losses,
        [
            approximated("messages[0].content[0].source.content"),
            dropped("messages[0].content[0].context"),
            dropped("messages[0].content[0].citations"),
        ]
    );
}

#[test]
fn media_types_that_the_format_lacks_are_refused() {
    let part =
        |part: Value| chat_request(json!({"messages": [{"role": "user", "content": [part]}]}));
    let image = |url: &str| part(json!({"type": "image_url", "image_url": {"url": url}}));
    let sound = json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}});
    let file = json!({"type": "file", "file": {"file_id": "file-1"}});
    for body in [
        image("data:image/tiff;base64,AAAA"),
        part(sound),
        part(file),
    ] {
        let api_error = encode_from(Format::Chat, &body, &[], None).expect_err("refused");
        assert_eq!(api_error.status, 400);
        let location = FieldLocation::Part {
            turn: Some(0),
            part: Some(0),
        };
        assert_eq!(api_error.location, Some(location));
    }
    let images = chat_request(json!({"modalities": ["text", "image"]}));
    assert_eq!(refused_status(Format::Chat, &images, &[]), 400);
}

#[test]
fn media_are_encoded_as_image_and_document_blocks() {
    let body = json!({"contents": [{"parts": [
        {"inlineData": {"mimeType": "image/jpg", "data": "-_8"}},
        {"inlineData": {"mimeType": "text/csv", "data": "YSxi"}},
        {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.com/a"}},
    ]}], "generationConfig": {"maxOutputTokens": 9}});
    let (sent, losses) = encode_from(Format::Native, &body, &[], None).expect("a good request");
    assert_eq!(
        sent["messages"][0]["content"],
        json!([
            {"type": "image",
             "source": {"type": "base64", "media_type": "image/jpeg", "data": "+/8="}},
            {"type": "document",
             "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}},
            {"type": "document", "source": {"type": "url", "url": "https://example.com/a"}},
        ])
    );
    assert_eq!(losses, []);
    let detailed = json!({"type": "image_url",
        "image_url": {"url": "https://example.com/a.png", "detail": "high"}});
    let (_, losses) = sent_parts(detailed);
    assert_eq!(losses, [Action::Dropped]);
    let text = json!({"type": "file",
        "file": {"filename": "n.md", "file_data": "data:text/markdown;base64,IyBI"}});
    let (content, _) = sent_parts(text);
    assert_eq!(
        content[0],
        json!({"type": "document", "title": "n.md",
            "source": {"type": "text", "media_type": "text/plain", "data": "# H"}})
    );
}

fn sent_parts(part: Value) -> (Value, Vec<Action>) {
    let (body, losses) = encode_chat(
        json!({"messages": [{"role": "user", "content": [part]}]}),
        &[],
    );
    (body["messages"][0]["content"].clone(), losses)
}
