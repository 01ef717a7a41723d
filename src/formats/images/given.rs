//! What a request for images says, be it JSON or a form, held against the rules of the format.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::form::{self, Entry};
use super::picture::{self, Kind, Seen};
use crate::formats::RequestHead;
use crate::formats::base64_text;
use crate::json::{Fields, Node};
use crate::model::{
    ApiError, ApiErrorKind, FieldLocation, ImageSize, Json, Losses, Media, Source, Text,
    split_data_url, truncated,
};

/// Of one image that is given.
const LARGEST: usize = 50 << 20;
const LONGEST_SIDE: u32 = 16_384;
const MOST_GIVEN: usize = 16;
const MOST_WANTED: u64 = 10;
const LONGEST_PROMPT: usize = 32_000;
const MOST_DRAFTS: u64 = 3;

pub(super) struct Given<'a> {
    pub(super) prompt: Text<'a>,
    pub(super) count: Option<u64>,
    pub(super) size: Option<ImageSize>,
    pub(super) quality: Option<Text<'a>>,
    pub(super) file: Option<Text<'a>>,
    pub(super) compression: Option<u64>,
    pub(super) background: Option<Text<'a>>,
    pub(super) moderation: Option<Text<'a>>,
    pub(super) as_url: bool,
    pub(super) drafts: Option<u64>,
    pub(super) user: Option<Text<'a>>,
    pub(super) seed: Option<i64>,
    pub(super) pictures: Vec<Shot<'a>>,
    pub(super) mask: Option<Shot<'a>>,
}

/// An image that came with the request.
pub(super) struct Shot<'a> {
    source: ShotSource<'a>,
    seen: Option<Seen>,
}

enum ShotSource<'a> {
    /// A file of a form.
    Bytes(&'a [u8]),
    Elsewhere(Source<'a>),
}

impl<'a> Shot<'a> {
    pub(super) fn into_media(self) -> Media<'a> {
        Media {
            mime: self.seen.map_or("", |seen| seen.kind.mime()).into(),
            source: match self.source {
                ShotSource::Bytes(bytes) => Source::Base64(STANDARD.encode(bytes).into()),
                ShotSource::Elsewhere(source) => source,
            },
            name: None,
            detail: None,
        }
    }
}

/// Reads a request. What it says beyond the format is reported.
pub(super) fn read<'a>(
    head: &RequestHead<'_>,
    body: &'a [u8],
    losses: &mut Losses,
) -> Result<Given<'a>, ApiError> {
    let mut body = match form::is_form(body) {
        true => Body::Form(form::read(body)?),
        false => Body::Json(Fields::of_body(body)?),
    };
    // Said to others: which model, whether as a stream, whether now.
    for key in ["model", "stream", "async"] {
        body.skip(key);
    }
    let given = Given {
        prompt: prompt(&mut body)?,
        count: within(body.number("n")?, 1, MOST_WANTED, "n")?,
        size: size(&mut body, head.sizes)?,
        quality: unless_auto(body.text("quality")?),
        file: word(&mut body, "output_format", &["png", "jpeg", "webp"])?,
        compression: within(
            body.number("output_compression")?,
            0,
            100,
            "output_compression",
        )?,
        background: word(&mut body, "background", &["transparent", "opaque"])?,
        moderation: word(&mut body, "moderation", &["low"])?,
        as_url: word(&mut body, "response_format", &["url", "b64_json"])?.as_deref() == Some("url"),
        drafts: within(
            body.number("partial_images")?,
            0,
            MOST_DRAFTS,
            "partial_images",
        )?,
        user: body.text("user")?,
        seed: body.number("seed")?,
        pictures: pictures(&mut body)?,
        mask: body.shots("mask")?.into_iter().next(),
    };
    if head.edits && given.pictures.is_empty() {
        return Err(ApiError::invalid("missing required field image").at("image"));
    }
    check_mask(&given)?;
    body.finish(losses);
    Ok(given)
}

fn prompt<'a>(body: &mut Body<'a>) -> Result<Text<'a>, ApiError> {
    let prompt = body
        .text("prompt")?
        .filter(|words| !words.trim().is_empty());
    let missing = || ApiError::invalid("missing required field prompt").at("prompt");
    let prompt = prompt.ok_or_else(missing)?;
    if prompt.chars().nth(LONGEST_PROMPT).is_some() {
        let message = format!("prompt: expected at most {LONGEST_PROMPT} characters");
        return Err(ApiError::invalid(message).at("prompt"));
    }
    Ok(prompt)
}

fn size(body: &mut Body<'_>, allowed: &[ImageSize]) -> Result<Option<ImageSize>, ApiError> {
    let Some(text) = unless_auto(body.text("size")?) else {
        return Ok(None);
    };
    let size = ImageSize::of_pixels(&text);
    if size.is_some_and(|size| allowed.is_empty() || allowed.contains(&size)) {
        return Ok(size);
    }
    let sizes = allowed.iter().map(|size| match size {
        ImageSize::Pixels { width, height } => format!("{width}x{height}, "),
        ImageSize::Shape { .. } => String::new(),
    });
    let sizes: String = match allowed {
        [] => "a width and a height like 1024x1536, ".to_owned(),
        _ => sizes.collect(),
    };
    let text = truncated(&text);
    let message = format!("size: `{text}` is not supported, use {sizes}or auto");
    let mut api_error = ApiError::invalid(message).at("size");
    api_error.code = Some("unsupported_size".to_owned());
    Err(api_error)
}

fn unless_auto(text: Option<Text<'_>>) -> Option<Text<'_>> {
    text.filter(|text| text != "auto" && !text.is_empty())
}

fn word<'a>(
    body: &mut Body<'a>,
    key: &'static str,
    words: &[&str],
) -> Result<Option<Text<'a>>, ApiError> {
    let text = unless_auto(body.text(key)?);
    match text {
        Some(text) if !words.contains(&&*text) => {
            let known = words.join(", ");
            let text = truncated(&text);
            let message = format!("{key}: `{text}` is unknown, use one of {known}");
            Err(ApiError::invalid(message).at(key))
        }
        text => Ok(text),
    }
}

fn within(
    number: Option<i64>,
    fewest: u64,
    most: u64,
    key: &'static str,
) -> Result<Option<u64>, ApiError> {
    let Some(number) = number else {
        return Ok(None);
    };
    let fits = u64::try_from(number).ok();
    let fits = fits.filter(|number| (fewest..=most).contains(number));
    let message = || ApiError::invalid(format!("{key}: expected {fewest} to {most}")).at(key);
    fits.map(Some).ok_or_else(message)
}

/// Under any of the names that clients have for them.
fn pictures<'a>(body: &mut Body<'a>) -> Result<Vec<Shot<'a>>, ApiError> {
    let mut pictures = Vec::new();
    for key in ["image", "image[]", "images"] {
        pictures.extend(body.shots(key)?);
    }
    if pictures.len() > MOST_GIVEN {
        let message = format!("image: expected at most {MOST_GIVEN} pictures");
        return Err(ApiError::invalid(message).at("image"));
    }
    Ok(pictures)
}

fn check_mask(given: &Given<'_>) -> Result<(), ApiError> {
    let Some(mask) = given.mask.as_ref().and_then(|mask| mask.seen) else {
        return Ok(());
    };
    if mask.kind != Kind::Png {
        return Err(no_picture("mask", "expected a PNG"));
    }
    let first = given.pictures.first().and_then(|shot| shot.seen);
    match (mask.size, first.and_then(|seen| seen.size)) {
        (Some(mask), Some(picture)) if mask != picture => {
            Err(no_picture("mask", "expected the size of the first picture"))
        }
        _ => Ok(()),
    }
}

fn no_picture(key: &str, expected: &str) -> ApiError {
    let mut api_error = ApiError::invalid(format!("{key}: {expected}")).at(key);
    api_error.code = Some("invalid_image".to_owned());
    api_error
}

/// By its first bytes, whatever its name or its type say.
fn shot<'a>(source: ShotSource<'a>, key: &str) -> Result<Shot<'a>, ApiError> {
    let (length, seen) = match &source {
        ShotSource::Bytes(bytes) => (bytes.len(), picture::see(bytes)),
        ShotSource::Elsewhere(Source::Base64(text)) => {
            (text.len() / 4 * 3, picture::see_base64(text))
        }
        // Whoever fetches it will see.
        ShotSource::Elsewhere(_) => return Ok(Shot { source, seen: None }),
    };
    if length > LARGEST {
        let message = format!("{key}: a picture is larger than {LARGEST} bytes");
        return Err(ApiError::new(ApiErrorKind::TooLarge, message).at(key));
    }
    let seen = seen.ok_or_else(|| no_picture(key, "expected a PNG, JPEG, WebP or GIF file"))?;
    let is_long =
        |(width, height): (u32, u32)| width.max(height) > LONGEST_SIDE || width == 0 || height == 0;
    if seen.size.is_some_and(is_long) {
        let expected = format!("expected sides of 1 to {LONGEST_SIDE} pixels");
        return Err(no_picture(key, &expected));
    }
    Ok(Shot {
        source,
        seen: Some(seen),
    })
}

/// The two ways to write a request.
enum Body<'a> {
    Json(Fields<'a, 'static>),
    Form(Vec<Entry<'a>>),
}

impl<'a> Body<'a> {
    fn skip(&mut self, key: &str) {
        match self {
            Body::Json(fields) => drop(fields.take(key)),
            Body::Form(entries) => entries.retain(|entry| entry.name != key),
        }
    }

    fn take(entries: &mut Vec<Entry<'a>>, key: &str) -> Option<&'a [u8]> {
        let at = entries.iter().position(|entry| entry.name == key)?;
        Some(entries.remove(at).value)
    }

    fn text(&mut self, key: &str) -> Result<Option<Text<'a>>, ApiError> {
        match self {
            Body::Json(fields) => fields.text(key),
            Body::Form(entries) => {
                let value = Self::take(entries, key).map(std::str::from_utf8);
                let wrong = |_| ApiError::invalid(format!("{key}: expected text")).at(key);
                value
                    .transpose()
                    .map_err(wrong)
                    .map(|text| text.map(Text::from))
            }
        }
    }

    fn number(&mut self, key: &str) -> Result<Option<i64>, ApiError> {
        match self {
            Body::Json(fields) => fields.i64(key),
            Body::Form(_) => {
                let wrong = |_| ApiError::invalid(format!("{key}: expected an integer")).at(key);
                let text = self.text(key)?;
                text.map(|text| text.trim().parse().map_err(wrong))
                    .transpose()
            }
        }
    }

    fn shots(&mut self, key: &str) -> Result<Vec<Shot<'a>>, ApiError> {
        let mut shots = Vec::new();
        match self {
            Body::Form(entries) => {
                while let Some(bytes) = Self::take(entries, key) {
                    // Some clients write the data URL of JSON into a form.
                    let text = std::str::from_utf8(bytes).ok();
                    let url = text.and_then(|text| address(text.into()));
                    let source = url.map_or(ShotSource::Bytes(bytes), ShotSource::Elsewhere);
                    shots.push(shot(source, key)?);
                }
            }
            Body::Json(fields) => match fields.node(key) {
                None => {}
                Some(node) if matches!(node.value, Json::Array(_)) => {
                    node.each(|_, node| {
                        shots.push(named(node)?);
                        Ok(())
                    })?;
                }
                Some(node) => shots.push(named(node)?),
            },
        }
        Ok(shots)
    }

    fn finish(self, losses: &mut Losses) {
        match self {
            Body::Json(fields) => fields.finish(losses),
            Body::Form(entries) => {
                for entry in entries {
                    let name = truncated(entry.name).into_owned();
                    losses.dropped(FieldLocation::Path(name.into()));
                }
            }
        }
    }
}

/// A data URL or another, bare or in an object, or the id of a file.
fn named<'a>(node: Node<'a, '_>) -> Result<Shot<'a>, ApiError> {
    let path = node.path.to_string();
    let expected = || no_picture(&path, "expected a picture as a data URL or an https URL");
    let source = match node.value {
        Json::Str(text) => address(text).ok_or_else(expected)?,
        Json::Object(_) => node.fields(|mut fields| {
            let (url, file) = (fields.text("image_url")?, fields.text("file_id")?);
            let url = url
                .map(|url| address(url).ok_or_else(expected))
                .transpose()?;
            url.or(file.map(Source::File)).ok_or_else(expected)
        })?,
        _ => return Err(expected()),
    };
    shot(ShotSource::Elsewhere(source), &path)
}

fn address(text: Text<'_>) -> Option<Source<'_>> {
    if text.starts_with("https://") {
        return Some(Source::Url(text));
    }
    let data = match text {
        Text::Borrowed(text) => Text::Borrowed(split_data_url(text)?.1),
        Text::Owned(text) => Text::Owned(split_data_url(&text)?.1.to_owned()),
    };
    Some(Source::Base64(match data {
        Text::Borrowed(data) => base64_text::standard(data),
        Text::Owned(data) => Text::Owned(base64_text::standard(&data).into_owned()),
    }))
}
