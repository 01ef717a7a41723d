//! Streams: partial images, then the image itself.

use serde::Serialize;

use super::response::{EncodedImage, ImageProperties, decode_image, encode_image, no_image};
use super::usage::{ImageUsage, RawImageUsage, encode_usage};
use super::{Images, error};
use crate::formats::{
    ReportedUsage, ResponseOptions, StreamCodec, StreamDecoder, StreamEncoder, decode_event_data,
};
use crate::json::{RawJson, from_json};
use crate::model::{ApiError, Block, Delta, Event, Finish, Media, Text, Usage};
use crate::sse::SseWriter;

from_json! {
    /// An event of an upstream's stream.
    pub(super) struct RawImageEvent<'a> {
        "type" => kind: Option<Text<'a>>,
        "created_at" => created_at: Option<i64>,
        "b64_json" => b64_json: Option<RawJson<'a>>,
        "url" => url: Option<RawJson<'a>>,
        "usage" => pub(super) usage: Option<RawImageUsage>,
        "error" => error: Option<RawJson<'a>>,
    }
}

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageEventType {
    PartialImage,
    Completed,
    Error,
    Other,
}

impl RawImageEvent<'_> {
    pub(super) fn event_type(&self) -> ImageEventType {
        let kind = self.kind.as_deref().unwrap_or_default();
        let (_, last) = kind.rsplit_once('.').unwrap_or(("", kind));
        match last {
            _ if self.error.is_some() => ImageEventType::Error,
            "completed" => ImageEventType::Completed,
            "partial_image" => ImageEventType::PartialImage,
            "error" | "failed" => ImageEventType::Error,
            _ => ImageEventType::Other,
        }
    }
}

impl StreamCodec for Images {
    fn stream_decoder(&self) -> Box<dyn StreamDecoder> {
        Box::new(ImageStreamDecoder::default())
    }

    fn stream_encoder(&self, options: &ResponseOptions) -> Box<dyn StreamEncoder> {
        Box::new(ImageStreamEncoder::new(options))
    }
}

/// Decodes a stream. Partial images are left out: no other format has them.
#[derive(Default)]
pub(super) struct ImageStreamDecoder {
    started: bool,
    complete: bool,
    usage: Option<Usage>,
    /// What the last event has reported of it.
    reported: Option<ReportedUsage>,
}

impl StreamDecoder for ImageStreamDecoder {
    fn decode_event(&mut self, data: &str, out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError> {
        if data == "[DONE]" {
            return Ok(());
        }
        let event: RawImageEvent<'_> = decode_event_data(data)?;
        match event.event_type() {
            ImageEventType::Error => return Err(error::decode_in_stream(data)),
            ImageEventType::PartialImage | ImageEventType::Other => return Ok(()),
            ImageEventType::Completed => {}
        }
        if !self.started {
            self.started = true;
            let created = event.created_at.unwrap_or_default();
            out(Event::Start {
                id: format!("img{created}x{}", data.len()).into(),
                model: Text::default(),
                created,
            });
        }
        let Some(media) = decode_image(event.b64_json, event.url) else {
            return Err(ApiError::bad_gateway("the upstream's event holds no image"));
        };
        let block = Block::Media(media);
        out(Event::Open { choice: 0, block });
        out(Event::Close { choice: 0 });
        if let Some(usage) = &event.usage {
            self.reported = Some(usage.report(self.usage));
            self.usage = self.reported.map(|report| report.usage);
        }
        self.complete = true;
        Ok(())
    }

    fn take_usage_report(&mut self) -> Option<ReportedUsage> {
        self.reported.take()
    }

    fn finish(&mut self, out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError> {
        if !self.complete {
            let message = "the upstream's stream ended before its response was complete";
            return Err(ApiError::bad_gateway(message));
        }
        out(Event::Finish {
            choice: 0,
            reason: Finish::Stop,
        });
        if let Some(usage) = self.usage {
            out(Event::Usage(usage));
        }
        out(Event::End);
        Ok(())
    }
}

/// The event of a complete image.
#[derive(Serialize)]
struct ImageCompletedEvent<'a> {
    r#type: &'static str,
    created_at: i64,
    #[serde(flatten)]
    properties: ImageProperties,
    #[serde(flatten)]
    image: EncodedImage<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ImageUsage>,
}

/// Encodes a stream. Images wait until the end, because the usage comes last and stands beside them.
pub(super) struct ImageStreamEncoder {
    event_name: &'static str,
    created: i64,
    images: Vec<Media<'static>>,
    /// The text of the response, for the error if it holds no image.
    text: String,
    filtered: bool,
    usage: Option<Usage>,
}

/// The limit of the text that is kept for the error, in bytes.
const MAX_TEXT_BYTES: usize = 1000;

impl ImageStreamEncoder {
    pub(super) fn new(options: &ResponseOptions) -> ImageStreamEncoder {
        ImageStreamEncoder {
            event_name: match options.translation_state.image_edit {
                true => "image_edit.completed",
                false => "image_generation.completed",
            },
            created: options.created_at,
            images: Vec::new(),
            text: String::new(),
            filtered: false,
            usage: None,
        }
    }

    fn finish(&mut self, out: &mut SseWriter) {
        let images = std::mem::take(&mut self.images);
        if images.is_empty() {
            let api_error = no_image(self.filtered, &self.text);
            return error::encode_in_stream(&api_error, out);
        }
        let mut usage = self.usage.map(encode_usage);
        for media in &images {
            let Some(image) = encode_image(media) else {
                continue;
            };
            let event = ImageCompletedEvent {
                r#type: self.event_name,
                created_at: self.created,
                properties: ImageProperties::of(media),
                image,
                // The first image carries the usage of all.
                usage: usage.take(),
            };
            out.event(self.event_name, &event);
        }
    }
}

impl StreamEncoder for ImageStreamEncoder {
    fn encode_event(&mut self, event: Event<'_>, out: &mut SseWriter) {
        match event {
            Event::Start { created, .. } if created > 0 => self.created = created,
            Event::Open {
                block: Block::Media(media),
                ..
            } if media.mime.starts_with("image/") => self.images.push(media.into_owned()),
            Event::Delta {
                delta: Delta::Text(text),
                ..
            } if self.text.len() < MAX_TEXT_BYTES => self.text.push_str(&text),
            Event::Finish { reason, .. } => {
                self.filtered |= matches!(reason, Finish::Filtered(_) | Finish::Refused);
                if let Finish::Filtered(Some(reason)) = &reason {
                    self.text.push_str(reason);
                }
            }
            Event::Usage(usage) => self.usage = Some(usage),
            Event::End => self.finish(out),
            Event::Start { .. }
            | Event::Open { .. }
            | Event::Delta { .. }
            | Event::Close { .. } => {}
        }
    }

    fn encode_error(&mut self, api_error: &ApiError, out: &mut SseWriter) {
        error::encode_in_stream(api_error, out);
    }
}
