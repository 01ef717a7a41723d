//! Replies: images, as data or as addresses, and what they took.

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;

use super::picture::{self, Seen};
use crate::formats::base64_text;
use crate::formats::written::written;
use crate::formats::{ResponseOptions, no_answer, read_reply};
use crate::json::{RawJson, from_json};
use crate::model::{
    ApiError, Choice, Finish, Media, Part, PartKind, Response, Source, Text, Usage, truncated,
};

from_json! {
    pub(super) struct RawReply<'a> {
        "created" => pub(super) created: Option<i64>,
        "data" => pub(super) data: Option<Vec<RawPicture<'a>>>,
        "usage" => pub(super) usage: Option<RawUsage>,
        "error" => pub(super) error: Option<RawJson<'a>>,
    }
}

from_json! {
    pub(super) struct RawPicture<'a> {
        "b64_json" => pub(super) b64_json: Option<RawJson<'a>>,
        "url" => pub(super) url: Option<RawJson<'a>>,
    }
}

impl RawPicture<'_> {
    pub(super) const fn is_there(&self) -> bool {
        self.b64_json.is_some() || self.url.is_some()
    }
}

from_json! {
    pub(super) struct RawUsage {
        "input_tokens" => input_tokens: Option<u64>,
        "output_tokens" => output_tokens: Option<u64>,
        "input_tokens_details" => input_tokens_details: Option<RawShares>,
        "output_tokens_details" => output_tokens_details: Option<RawShares>,
    }
}

from_json! {
    struct RawShares {
        "image_tokens" => image_tokens: Option<u64>,
    }
}

impl RawUsage {
    pub(super) fn read(&self) -> Usage {
        let output = self.output_tokens.unwrap_or_default();
        let pictures = |shares: Option<&RawShares>| shares.and_then(|shares| shares.image_tokens);
        Usage {
            input: self.input_tokens.unwrap_or_default(),
            output,
            image_input: pictures(self.input_tokens_details.as_ref()).unwrap_or_default(),
            // Where nothing is told apart, it is what such a model is asked for.
            image_output: pictures(self.output_tokens_details.as_ref()).unwrap_or(output),
            ..Usage::default()
        }
    }
}

/// Borrowed wherever the JSON has no escapes.
/// Where the addresses of a reply's images stand in it, quotes included.
pub fn addresses(body: &[u8]) -> Vec<(Range<usize>, String)> {
    let reply: Option<RawReply<'_>> = read_reply(body).ok();
    let pictures = reply.and_then(|reply| reply.data).unwrap_or_default();
    let addresses = pictures.into_iter().filter_map(|picture| picture.url);
    let placed = addresses.filter_map(|raw| Some((raw.range_in(body), raw.text()?.into_owned())));
    placed.collect()
}

/// One image of a reply or of a stream.
pub(super) fn media<'a>(data: Option<RawJson<'a>>, url: Option<RawJson<'a>>) -> Option<Media<'a>> {
    let (source, mime) = match data.and_then(RawJson::text) {
        Some(data) => {
            let seen = picture::see_base64(&data);
            let mime = seen.map_or("image/png", |seen| seen.kind.mime());
            (Source::Base64(data), mime)
        }
        None => (Source::Url(url.and_then(RawJson::text)?), "image/*"),
    };
    Some(Media {
        mime: mime.into(),
        source,
        name: None,
        detail: None,
    })
}

pub(super) fn decode(body: &[u8]) -> Result<Response<'_>, ApiError> {
    let reply: RawReply<'_> = read_reply(body)?;
    let Some(data) = reply.data else {
        return Err(match reply.error {
            Some(_) => super::error::decode(200, body),
            None => no_answer(),
        });
    };
    let pictures: Vec<_> = data
        .into_iter()
        .filter_map(|picture| media(picture.b64_json, picture.url))
        .map(|media| Part {
            kind: PartKind::Media(media),
            at: None,
        })
        .collect();
    if pictures.is_empty() {
        return Err(no_answer());
    }
    let created = reply.created.unwrap_or_default();
    Ok(Response {
        // A reply has no id of its own here, and others must have one.
        id: format!("img{created}x{}", body.len()).into(),
        model: Text::default(),
        created,
        choices: vec![Choice {
            parts: pictures,
            citations: Vec::new(),
            logprobs: Vec::new(),
            finish: Finish::Stop,
        }],
        usage: reply.usage.map(|usage| usage.read()),
    })
}

#[derive(Serialize)]
struct Body<'a> {
    created: i64,
    #[serde(flatten)]
    look: Look,
    data: Vec<Datum<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Counts>,
}

#[derive(Serialize)]
pub(super) struct Datum<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    b64_json: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
}

impl<'a> Datum<'a> {
    pub(super) fn of(media: &'a Media<'_>) -> Option<Datum<'a>> {
        let (b64_json, url) = match &media.source {
            Source::Base64(data) => (Some(base64_text::standard(data)), None),
            Source::Url(url) => (None, Some(&**url)),
            Source::File(_) | Source::Plain(_) => return None,
        };
        Some(Datum { b64_json, url })
    }
}

/// What can be seen of an image; what cannot is left out.
#[derive(Serialize, Default)]
pub(super) struct Look {
    #[serde(skip_serializing_if = "Option::is_none")]
    background: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_format: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<String>,
}

impl Look {
    pub(super) fn of(media: &Media<'_>) -> Look {
        let Source::Base64(data) = &media.source else {
            return Look::default();
        };
        let Some(Seen { kind, size, opaque }) = picture::see_base64(data) else {
            return Look::default();
        };
        Look {
            background: opaque.then_some("opaque"),
            output_format: Some(kind.word()),
            size: size.map(|(width, height)| format!("{width}x{height}")),
        }
    }
}

#[derive(Serialize)]
pub(super) struct Counts {
    input_tokens: u64,
    input_tokens_details: Shares,
    output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens_details: Option<Shares>,
    total_tokens: u64,
}

#[derive(Serialize)]
struct Shares {
    image_tokens: u64,
    text_tokens: u64,
}

impl Shares {
    const fn of(image_tokens: u64, all: u64) -> Shares {
        Shares {
            image_tokens,
            text_tokens: all.saturating_sub(image_tokens),
        }
    }
}

impl From<Usage> for Counts {
    fn from(usage: Usage) -> Counts {
        let told = usage.image_output > 0;
        Counts {
            input_tokens: usage.input,
            input_tokens_details: Shares::of(usage.image_input, usage.input),
            output_tokens: usage.output,
            output_tokens_details: told.then(|| Shares::of(usage.image_output, usage.output)),
            total_tokens: usage.input.saturating_add(usage.output),
        }
    }
}

/// The images of an answer, whichever choice they belong to.
fn pictures<'a>(response: &'a Response<'_>) -> impl Iterator<Item = &'a Media<'a>> {
    let parts = response.choices.iter().flat_map(|choice| &choice.parts);
    parts.filter_map(|part| match &part.kind {
        PartKind::Media(media) if media.mime.starts_with("image/") => Some(media),
        _ => None,
    })
}

pub(super) fn encode(response: &Response<'_>, asked: &ResponseOptions) -> Vec<u8> {
    let body = Body {
        created: match response.created {
            0 => asked.at,
            created => created,
        },
        look: pictures(response).next().map(Look::of).unwrap_or_default(),
        data: pictures(response).filter_map(Datum::of).collect(),
        usage: response.usage.map(Counts::from),
    };
    written(&body, response.size())
}

/// An answer without an image is none, whatever it says.
pub(super) fn accept(response: &Response<'_>) -> Result<(), ApiError> {
    if pictures(response).next().is_some() {
        return Ok(());
    }
    let mut words = String::new();
    let mut filtered = false;
    for choice in &response.choices {
        if let Finish::Filtered(reason) = &choice.finish {
            filtered = true;
            words.push_str(reason.as_deref().unwrap_or_default());
        }
        filtered |= choice.finish == Finish::Refused;
        for part in &choice.parts {
            if let PartKind::Text(text) | PartKind::Refusal(text) = &part.kind {
                words.push_str(text);
            }
        }
    }
    Err(no_picture(filtered, &words))
}

pub(super) fn no_picture(filtered: bool, words: &str) -> ApiError {
    let (message, code) = match filtered {
        true => ("the picture was refused", "content_policy_violation"),
        false => ("the model answered without a picture", "no_image"),
    };
    let said = truncated(words.trim());
    let message = match &*said {
        "" => message.to_owned(),
        said => format!("{message}: {said}"),
    };
    let mut api_error = ApiError::invalid(message).at("prompt");
    api_error.code = Some(code.to_owned());
    api_error
}
