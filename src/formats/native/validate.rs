//! What the surface promises to refuse: words and numbers out of range, media that nobody can fetch.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use url::Url;

use super::spelling::{self, Spellings};
use crate::formats::base64_text;
use crate::json::{Fields, Node, Path};
use crate::model::{Fault, Losses, Place, Text};

/// For what only an upstream of this very format could do.
pub(super) fn no_counterpart(path: &Path<'_>) -> Fault {
    Fault::invalid(format!("{path} is not available for this model")).at(path.to_string())
}

/// The listed word that a field holds. Clients write words in either case; `…_UNSPECIFIED` is the
/// format's way to say nothing.
pub(super) fn word(
    node: Node<'_, '_>,
    words: &[&'static str],
) -> Result<Option<&'static str>, Fault> {
    let path = node.path;
    let given = node.text()?;
    if given.is_empty() || given.ends_with("_UNSPECIFIED") {
        return Ok(None);
    }
    let known = words.iter().find(|word| word.eq_ignore_ascii_case(&given));
    known
        .map(|word| Some(*word))
        .ok_or_else(|| path.wrong(&format!("one of {}", words.join(", "))))
}

pub(super) fn number(node: Node<'_, '_>, range: RangeInclusive<f64>) -> Result<f64, Fault> {
    let path = node.path;
    let given = node.f64()?;
    if range.contains(&given) {
        return Ok(given);
    }
    let (least, most) = range.into_inner();
    Err(path.wrong(&format!("a number from {least} to {most}")))
}

pub(super) fn whole(node: Node<'_, '_>, range: RangeInclusive<i64>) -> Result<i64, Fault> {
    let path = node.path;
    let given = node.i64()?;
    if range.contains(&given) {
        return Ok(given);
    }
    Err(match range.into_inner() {
        (least, i64::MAX) => path.wrong(&format!("an integer of at least {least}")),
        (least, most) => path.wrong(&format!("an integer from {least} to {most}")),
    })
}

/// A count of something that cannot be asked for zero times.
pub(super) fn count(node: Node<'_, '_>) -> Result<u64, Fault> {
    whole(node, 1..=i64::MAX).map(i64::unsigned_abs)
}

/// Standard base64 with padding, whichever alphabet the client wrote.
pub(super) fn base64<'a>(node: Node<'a, '_>) -> Result<Text<'a>, Fault> {
    let path = node.path;
    let text = node.text()?;
    let clean = match base64_text::standard(&text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(clean) => Some(clean),
    };
    let text = clean.map_or(text, Cow::Owned);
    let data = text.trim_end_matches('=');
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    // No early exit: this way the compiler checks many bytes at a time.
    let is_legal = data.bytes().fold(true, |so_far, byte| so_far & legal(byte));
    if data.len() % 4 == 1 || !is_legal {
        return Err(path.wrong("base64 without a data: prefix"));
    }
    Ok(text)
}

/// What a text document says; `None`: it is no text after all.
pub(super) fn plain_text(base64: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(base64).ok()?).ok()
}

pub(super) fn public_https<'a>(node: Node<'a, '_>) -> Result<Text<'a>, Fault> {
    let path = node.path;
    let text = node.text()?;
    if is_public_https(&text) {
        return Ok(text);
    }
    Err(path.wrong("a public https URL"))
}

pub(super) fn is_public_https(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| {
        url.scheme() == "https" && url.username().is_empty() && url.password().is_none()
    })
}

const CATEGORIES: &[&str] = &[
    "HARM_CATEGORY_HARASSMENT",
    "HARM_CATEGORY_HATE_SPEECH",
    "HARM_CATEGORY_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_DANGEROUS_CONTENT",
    "HARM_CATEGORY_CIVIC_INTEGRITY",
    "HARM_CATEGORY_JAILBREAK",
    "HARM_CATEGORY_IMAGE_HARASSMENT",
    "HARM_CATEGORY_IMAGE_HATE",
    "HARM_CATEGORY_IMAGE_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_IMAGE_DANGEROUS_CONTENT",
];
const THRESHOLDS: &[&str] = &[
    "BLOCK_NONE",
    "BLOCK_ONLY_HIGH",
    "BLOCK_MEDIUM_AND_ABOVE",
    "BLOCK_LOW_AND_ABOVE",
    "OFF",
];
const ASPECT_RATIOS: &[&str] = &[
    "1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9", "1:4", "4:1", "1:8",
    "8:1",
];
const IMAGE_SIZES: &[&str] = &["1K", "2K", "4K"];
const RESOLUTIONS: &[&str] = &[
    "MEDIA_RESOLUTION_LOW",
    "MEDIA_RESOLUTION_MEDIUM",
    "MEDIA_RESOLUTION_HIGH",
];

/// Checks a field that has no counterpart anywhere, and reports it as dropped.
pub(super) fn drop_checked(
    fields: &mut Fields<'_, '_>,
    spellings: Spellings,
    check: impl FnOnce(Node<'_, '_>) -> Result<(), Fault>,
    losses: &mut Losses,
) -> Result<(), Fault> {
    let Some(node) = spelling::node(fields, spellings) else {
        return Ok(());
    };
    let path = node.path.to_string();
    check(node)?;
    losses.dropped(Place::Path(path.into()));
    Ok(())
}

pub(super) fn safety_settings(node: Node<'_, '_>) -> Result<(), Fault> {
    node.each(|_, node| {
        node.fields(|mut setting| {
            check_word(&mut setting, &["category"], CATEGORIES)?;
            check_word(&mut setting, &["threshold"], THRESHOLDS)
        })
    })
}

pub(super) fn image_config(node: Node<'_, '_>) -> Result<(), Fault> {
    node.fields(|mut config| {
        check_word(&mut config, &["aspectRatio", "aspect_ratio"], ASPECT_RATIOS)?;
        check_word(&mut config, &["imageSize", "image_size"], IMAGE_SIZES)
    })
}

pub(super) fn media_resolution(node: Node<'_, '_>) -> Result<(), Fault> {
    word(node, RESOLUTIONS).map(drop)
}

pub(super) fn retrieval_config(node: Node<'_, '_>) -> Result<(), Fault> {
    node.fields(
        |mut config| match spelling::node(&mut config, &["latLng", "lat_lng"]) {
            None => Ok(()),
            Some(place) => place.fields(|mut place| {
                let mut degrees = |key, most: f64| match place.node(key) {
                    Some(node) => number(node, -most..=most).map(drop),
                    None => Ok(()),
                };
                degrees("latitude", 90.0)?;
                degrees("longitude", 180.0)
            }),
        },
    )
}

fn check_word(
    fields: &mut Fields<'_, '_>,
    spellings: Spellings,
    words: &[&'static str],
) -> Result<(), Fault> {
    match spelling::node(fields, spellings) {
        Some(node) => word(node, words).map(drop),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Json;

    fn node(text: &str) -> Node<'_, '_> {
        Node {
            value: Json::Str(text.into()),
            path: Path::Key(&Path::Root, "field"),
        }
    }

    #[test]
    fn base64_of_any_spelling_becomes_the_standard_one() {
        for (given, standard) in [
            ("", ""),
            ("aGk_", "aGk/"),
            ("-_8=", "+/8="),
            ("-_8", "+/8="),
            ("aGkh\r\naGkh", "aGkhaGkh"),
            ("aA", "aA=="),
            ("aA====", "aA=="),
        ] {
            assert_eq!(base64(node(given)).unwrap(), standard, "{given:?}");
        }
        assert!(matches!(base64(node("aGkh")), Ok(Text::Borrowed("aGkh"))));
        for bad in ["data:image/png;base64,aGkh", "aGk*", "aGkha", "aG=kh"] {
            assert_eq!(base64(node(bad)).unwrap_err().param.unwrap(), "field");
        }
    }

    #[test]
    fn only_public_https_addresses_can_be_fetched() {
        assert!(public_https(node("https://example.com/cat.png")).is_ok());
        for bad in [
            "http://example.com/cat.png",
            "https://me:secret@example.com/cat.png",
            "gs://bucket/cat.png",
            "files/abc",
            "https://",
        ] {
            assert!(public_https(node(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn words_are_read_in_either_case_and_others_are_refused() {
        assert_eq!(word(node("off"), THRESHOLDS).unwrap(), Some("OFF"));
        let unspecified = node("HARM_BLOCK_THRESHOLD_UNSPECIFIED");
        assert_eq!(word(unspecified, THRESHOLDS).unwrap(), None);
        let fault = word(node("BLOCK_ALL"), THRESHOLDS).unwrap_err();
        assert!(
            fault
                .message
                .starts_with("field: expected one of BLOCK_NONE")
        );
    }
}
