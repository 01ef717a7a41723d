//! Parts of every kind, their losses and refusals.

use super::*;
use crate::model::Detail;

fn decode_all<'a>(content: &'a str, losses: &mut Losses) -> Result<Vec<Part<'a>>, ApiError> {
    let value = serde_json::from_str(content).expect("valid JSON");
    let path = Path::Key(&Path::Root, "content");
    decode(Node { value, path }, losses)
}

fn media(part: &str) -> Media<'static> {
    let content = format!("[{part}]");
    let mut losses = Losses::default();
    let mut parts = decode_all(&content, &mut losses).expect("a valid part");
    assert_eq!(losses, Losses::default());
    match parts.remove(0).kind {
        PartKind::Media(media) => Media {
            mime: media.mime.into_owned().into(),
            source: match media.source {
                Source::Base64(text) => Source::Base64(text.into_owned().into()),
                Source::Url(text) => Source::Url(text.into_owned().into()),
                Source::File(text) => Source::File(text.into_owned().into()),
                Source::Plain(text) => Source::Plain(text.into_owned().into()),
            },
            name: media.name.map(|name| name.into_owned().into()),
            detail: media.detail,
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn images_come_by_value_by_url_or_by_id() {
    let image = |rest: &str| media(&format!(r#"{{"type":"input_image",{rest}}}"#));
    let expected = |mime: &'static str, source, detail| Media {
        mime: mime.into(),
        source,
        name: None,
        detail,
    };
    assert_eq!(
        image(r#""image_url":"data:image/png;base64,AAAA","detail":"auto""#),
        expected("image/png", Source::Base64("AAAA".into()), None)
    );
    // With an escape the text is no longer borrowed.
    assert_eq!(
        image(r#""image_url":"data:image\/png;base64,AAAA""#),
        expected("image/png", Source::Base64("AAAA".into()), None)
    );
    assert_eq!(
        image(r#""image_url":"https://example.com/cat.png","detail":"high""#),
        expected(
            "image/*",
            Source::Url("https://example.com/cat.png".into()),
            Some(Detail::High)
        )
    );
    assert_eq!(
        image(r#""file_id":"file-1","image_url":null,"detail":"original""#),
        expected(
            "image/*",
            Source::File("file-1".into()),
            Some(Detail::Original)
        )
    );
}

#[test]
fn files_come_by_value_by_url_or_by_id() {
    let file = |rest: &str| {
        let media = media(&format!(r#"{{"type":"input_file",{rest}}}"#));
        (media.mime, media.source, media.name)
    };
    assert_eq!(
        file(r#""filename":"r.pdf","file_data":"data:application/pdf;base64,JVBE""#),
        (
            "application/pdf".into(),
            Source::Base64("JVBE".into()),
            Some("r.pdf".into())
        )
    );
    assert_eq!(
        file(r#""file_url":"https://example.com/r""#),
        (
            "application/*".into(),
            Source::Url("https://example.com/r".into()),
            None
        )
    );
    assert_eq!(
        file(r#""file_url":"data:text/csv;base64,YQ==","filename":"a.csv""#),
        (
            "text/csv".into(),
            Source::Base64("YQ==".into()),
            Some("a.csv".into())
        )
    );
    assert_eq!(
        file(r#""file_id":"file-1""#).1,
        Source::File("file-1".into())
    );
}

#[test]
fn annotations_are_lost_only_when_there_are_any() {
    let mut losses = Losses::default();
    let content = r#"[{"type":"output_text","text":"a","annotations":[],"logprobs":[]},
        {"type":"output_text","text":"b","annotations":[{"type":"url_citation"}]},
        {"type":"input_text","text":"c","prompt_cache_breakpoint":{"mode":"explicit"}}]"#;
    assert_eq!(
        decode_all(content, &mut losses).expect("valid parts").len(),
        3
    );
    let dropped = [
        "content[1].annotations",
        "content[2].prompt_cache_breakpoint",
    ];
    let mut expected = Losses::default();
    for path in dropped {
        expected.dropped(FieldLocation::Path(path.into()));
    }
    assert_eq!(losses, expected);
}

#[test]
fn invalid_parts_are_refused_with_their_path() {
    for (part, param) in [
        (r#"{"text":"x"}"#, "content[0].type"),
        (r#"{"type":"input_text"}"#, "content[0].text"),
        (r#"{"type":"refusal"}"#, "content[0].refusal"),
        (r#"{"type":"input_audio","input_audio":{}}"#, "content[0]"),
        (r#"{"type":"input_image"}"#, "content[0].image_url"),
        (
            r#"{"type":"input_image","image_url":{"url":"x"}}"#,
            "content[0].image_url",
        ),
        (
            r#"{"type":"input_image","image_url":"data:image/png,x"}"#,
            "content[0].image_url",
        ),
        (
            r#"{"type":"input_image","image_url":"x","detail":"max"}"#,
            "content[0].detail",
        ),
        (
            r#"{"type":"input_file","filename":"a"}"#,
            "content[0].file_data",
        ),
        (
            r#"{"type":"input_file","file_data":"JVBE"}"#,
            "content[0].file_data",
        ),
        (r#""bare""#, "content[0]"),
    ] {
        let content = format!("[{part}]");
        let api_error = decode_all(&content, &mut Losses::default()).expect_err(part);
        assert_eq!(api_error.param.as_deref(), Some(param), "{part}");
    }
}
