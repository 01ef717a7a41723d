//! Media as parts for an upstream of this format.

use serde_json::{Value, json};

use super::super::content::encode_media;
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

fn encoded(media: &Media<'_>) -> Option<(Value, Vec<Action>)> {
    let mut losses = Losses::default();
    let location = FieldLocation::Part {
        turn: Some(0),
        part: Some(0),
    };
    let part = encode_media(media, location, &mut losses).ok()?;
    let actions = losses.0.iter().map(|loss| loss.action).collect();
    Some((serde_json::to_value(&part).expect("JSON"), actions))
}

#[test]
fn images_and_files_are_told_apart() {
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
    for (media, expected, actions) in cases {
        assert_eq!(encoded(&media), Some((expected, actions)), "{media:?}");
    }
    for mime in ["audio/wav", "video/mp4", ""] {
        assert_eq!(encoded(&media(mime, base64())), None);
    }
    assert_eq!(encoded(&media("", url("https://a/b.mp4"))), None);
}

#[test]
fn details_and_names_are_encoded() {
    let image = Media {
        detail: Some(Detail::Original),
        ..media("image/*", Source::File("file-1".into()))
    };
    let expected = json!({"type": "input_image", "file_id": "file-1", "detail": "original"});
    assert_eq!(encoded(&image), Some((expected, vec![])));
    let linked = Media {
        name: Some("a.pdf".into()),
        ..media("application/pdf", Source::Url("https://a/b".into()))
    };
    let expected = json!({"type": "input_file", "file_url": "https://a/b"});
    assert_eq!(encoded(&linked), Some((expected, vec![Action::Dropped])));
    let document = Media {
        name: Some("a.pdf".into()),
        ..media("application/pdf", Source::Base64("AAAA".into()))
    };
    let expected = json!({"type": "input_file", "filename": "a.pdf",
        "file_data": "data:application/pdf;base64,AAAA"});
    assert_eq!(encoded(&document), Some((expected, vec![])));
}
