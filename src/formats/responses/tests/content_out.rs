//! Parts on their way to an upstream of this format.

use serde_json::{Value, json};

use super::*;
use crate::model::Action;

fn media(mime: &'static str, source: Source<'static>) -> Media<'static> {
    Media {
        mime: mime.into(),
        source,
        name: None,
        detail: None,
    }
}

fn written(media: &Media<'_>) -> Option<(Value, Vec<Action>)> {
    let mut losses = Losses::default();
    let place = FieldLocation::Part {
        turn: Some(0),
        part: Some(0),
    };
    let part = write_media(media, place, &mut losses).ok()?;
    let told = losses.0.iter().map(|lost| lost.action).collect();
    Some((serde_json::to_value(&part).expect("JSON"), told))
}

#[test]
fn pictures_and_documents_are_told_apart() {
    let base64 = || Source::Base64("-_8".into());
    let url = |url: &'static str| Source::Url(url.into());
    let image = |url: &str| json!({"type": "input_image", "image_url": url, "detail": "auto"});
    let file = |url: &str| json!({"type": "input_file", "file_url": url});
    let cases = [
        (
            media("image/png", base64()),
            image("data:image/png;base64,+/8="),
            vec![],
        ),
        (
            media("image/*", url("http://a/b")),
            image("http://a/b"),
            vec![],
        ),
        (
            media("", url("https://a/b.PNG?c=d.pdf")),
            image("https://a/b.PNG?c=d.pdf"),
            vec![],
        ),
        (
            media("", url("https://a/b.pdf#1")),
            file("https://a/b.pdf#1"),
            vec![],
        ),
        (
            media("application/pdf", url("https://a/b")),
            file("https://a/b"),
            vec![],
        ),
        (
            media("text/csv", base64()),
            json!({"type": "input_file", "filename": "file.csv", "file_data": "data:text/csv;base64,+/8="}),
            vec![Action::Added],
        ),
        (
            media("application/*", Source::File("file-1".into())),
            json!({"type": "input_file", "file_id": "file-1"}),
            vec![],
        ),
        (
            media("text/plain", Source::Plain("Words.".into())),
            json!({"type": "input_text", "text": "Words."}),
            vec![Action::Approximated],
        ),
    ];
    for (media, expected, told) in cases {
        assert_eq!(written(&media), Some((expected, told)), "{media:?}");
    }
    for mime in ["audio/wav", "video/mp4", ""] {
        assert_eq!(written(&media(mime, base64())), None);
    }
    assert_eq!(written(&media("", url("https://a/b.mp4"))), None);
}

#[test]
fn details_and_names_are_kept() {
    let picture = Media {
        detail: Some(Detail::Original),
        ..media("image/*", Source::File("file-1".into()))
    };
    let expected = json!({"type": "input_image", "file_id": "file-1", "detail": "original"});
    assert_eq!(written(&picture), Some((expected, vec![])));
    let pointed = Media {
        name: Some("a.pdf".into()),
        ..media("application/pdf", Source::Url("https://a/b".into()))
    };
    let expected = json!({"type": "input_file", "file_url": "https://a/b"});
    assert_eq!(written(&pointed), Some((expected, vec![Action::Dropped])));
    let document = Media {
        name: Some("a.pdf".into()),
        ..media("application/pdf", Source::Base64("AAAA".into()))
    };
    let expected = json!({"type": "input_file", "filename": "a.pdf",
        "file_data": "data:application/pdf;base64,AAAA"});
    assert_eq!(written(&document), Some((expected, vec![])));
}
