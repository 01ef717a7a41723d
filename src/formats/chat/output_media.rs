//! Images and audio in a response. Only audio has an official field; images have the widespread
//! extension `images`.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::fragment::ChatFragment;
use super::identity::ChatIdentity;
use super::text::non_empty;
use crate::json::from_json;
use crate::model::{Media, Source, Text, split_data_url};

/// The media type of the audio in a JSON response; the wire does not name it.
pub(super) const AUDIO_TYPE: &str = "audio/wav";
/// The media type of the audio in a stream.
pub(super) const STREAMED_AUDIO_TYPE: &str = "audio/pcm;rate=24000";

from_json! {
    /// One entry of `images` in a response or a chunk.
    pub(super) struct CompletionImage<'a> {
        "image_url" => pub(super) image_url: Option<CompletionImageUrl<'a>>,
    }
}

from_json! {
    pub(super) struct CompletionImageUrl<'a> {
        "url" required => pub(super) url: Text<'a>,
    }
}

/// Decodes an image: a data URL or a link.
pub(super) fn decode_image(image_url: CompletionImageUrl<'_>) -> Media<'_> {
    let url = image_url.url;
    let split = match &url {
        Cow::Borrowed(url) => split_data_url(url).map(|(mime, data)| (mime.into(), data.into())),
        Cow::Owned(url) => {
            split_data_url(url).map(|(mime, data)| (mime.to_owned().into(), data.to_owned().into()))
        }
    };
    let (mime, source) = match split {
        Some((mime, data)) => (mime, Source::Base64(data)),
        None => ("image/*".into(), Source::Url(url)),
    };
    Media {
        mime,
        source,
        name: None,
        detail: None,
    }
}

/// One encoded entry of `images`.
#[derive(Serialize)]
pub(super) struct ChatOutputImage<'a> {
    /// The position of the image, in a stream only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<u32>,
    r#type: &'static str,
    image_url: ChatOutputImageUrl<'a>,
}

#[derive(Serialize)]
struct ChatOutputImageUrl<'a> {
    url: Text<'a>,
}

from_json! {
    /// Audio and its transcript.
    pub(super) struct CompletionAudio<'a> {
        "data" => pub(super) data: Option<Text<'a>>,
        "transcript" => pub(super) transcript: Option<Text<'a>>,
    }
}

/// Decodes audio; its transcript becomes text, for clients that cannot play it.
pub(super) fn decode_audio<'a>(
    audio: CompletionAudio<'a>,
    mime: &'static str,
    emit: &mut dyn FnMut(ChatFragment<'a>),
) {
    if let Some(text) = non_empty(audio.transcript) {
        emit(ChatFragment::Text(text));
    }
    if let Some(data) = non_empty(audio.data) {
        emit(ChatFragment::Media(Media {
            mime: mime.into(),
            source: Source::Base64(data),
            name: None,
            detail: None,
        }));
    }
}

/// The encoded `audio` of a message.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct ChatOutputAudio<'a> {
    id: Option<String>,
    pub(super) data: Text<'a>,
    /// The audio is not stored, so it has expired from the start.
    expires_at: Option<i64>,
    transcript: &'static str,
}

impl ChatOutputAudio<'_> {
    /// A later delta: clients would join the fields that are repeated.
    pub(super) fn continued(self) -> Self {
        ChatOutputAudio {
            id: None,
            expires_at: None,
            ..self
        }
    }
}

/// Encoded media of a message.
pub(super) enum ChatOutputMedia<'a> {
    Image(ChatOutputImage<'a>),
    Audio(ChatOutputAudio<'a>),
}

impl<'a> ChatOutputMedia<'a> {
    /// Encodes media: audio in its own field, everything else as an image.
    pub(super) fn new(media: Media<'a>, identity: &ChatIdentity<'_>) -> ChatOutputMedia<'a> {
        let mime = media.mime;
        let url = match media.source {
            Source::Base64(data) if mime.starts_with("audio/") => {
                return ChatOutputMedia::Audio(ChatOutputAudio {
                    id: Some(identity.id.replacen("chatcmpl-", "audio_", 1)),
                    data,
                    expires_at: Some(identity.created),
                    transcript: "",
                });
            }
            Source::Base64(data) => format!("data:{mime};base64,{data}").into(),
            Source::Plain(text) => format!("data:{mime};base64,{}", STANDARD.encode(&*text)).into(),
            Source::Url(url) | Source::File(url) => url,
        };
        ChatOutputMedia::Image(ChatOutputImage {
            index: None,
            r#type: "image_url",
            image_url: ChatOutputImageUrl { url },
        })
    }
}
