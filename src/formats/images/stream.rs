//! Streams: drafts of an image, then the image itself.

use serde::Serialize;

use super::error;
use super::reply::{Counts, Datum, Look, RawUsage, media, no_picture};
use crate::formats::{ResponseOptions, StreamDecoder, StreamEncoder, read_event};
use crate::json::{RawJson, from_json};
use crate::model::{ApiError, Block, Delta, Event, Finish, Media, Text, Usage};
use crate::sse::SseWriter;

from_json! {
    pub(super) struct RawEvent<'a> {
        "type" => kind: Option<Text<'a>>,
        "created_at" => created_at: Option<i64>,
        "b64_json" => b64_json: Option<RawJson<'a>>,
        "url" => url: Option<RawJson<'a>>,
        "usage" => pub(super) usage: Option<RawUsage>,
        "error" => error: Option<RawJson<'a>>,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Draft,
    Image,
    Failure,
    Other,
}

impl RawEvent<'_> {
    pub(super) fn stage(&self) -> Stage {
        let kind = self.kind.as_deref().unwrap_or_default();
        let (_, last) = kind.rsplit_once('.').unwrap_or(("", kind));
        match last {
            _ if self.error.is_some() => Stage::Failure,
            "completed" => Stage::Image,
            "partial_image" => Stage::Draft,
            "error" | "failed" => Stage::Failure,
            _ => Stage::Other,
        }
    }
}

/// Drafts are shown by this format alone; the others get the images.
#[derive(Default)]
pub(super) struct Decoder {
    begun: bool,
    complete: bool,
    usage: Option<Usage>,
}

impl StreamDecoder for Decoder {
    fn event(&mut self, data: &str, out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError> {
        if data == "[DONE]" {
            return Ok(());
        }
        let event: RawEvent<'_> = read_event(data)?;
        match event.stage() {
            Stage::Failure => return Err(error::decode_in_stream(data)),
            Stage::Draft | Stage::Other => return Ok(()),
            Stage::Image => {}
        }
        if !self.begun {
            self.begun = true;
            let created = event.created_at.unwrap_or_default();
            out(Event::Start {
                id: format!("img{created}x{}", data.len()).into(),
                model: Text::default(),
                created,
            });
        }
        let Some(media) = media(event.b64_json, event.url) else {
            return Err(ApiError::bad_gateway("the upstream's picture is not there"));
        };
        let block = Block::Media(media);
        out(Event::Open { choice: 0, block });
        out(Event::Close { choice: 0 });
        if let Some(usage) = &event.usage {
            self.usage = Some(plus(self.usage, usage.read()));
        }
        self.complete = true;
        Ok(())
    }

    fn close(&mut self, out: &mut dyn FnMut(Event<'_>)) -> Result<(), ApiError> {
        if !self.complete {
            let message = "the upstream's stream broke off before its end";
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

/// Every image of a stream tells its own counts.
pub(super) fn plus(before: Option<Usage>, more: Usage) -> Usage {
    let before = before.unwrap_or_default();
    Usage {
        input: before.input.saturating_add(more.input),
        output: before.output.saturating_add(more.output),
        image_input: before.image_input.saturating_add(more.image_input),
        image_output: before.image_output.saturating_add(more.image_output),
        ..more
    }
}

#[derive(Serialize)]
struct Completed<'a> {
    r#type: &'static str,
    created_at: i64,
    #[serde(flatten)]
    look: Look,
    #[serde(flatten)]
    datum: Datum<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Counts>,
}

/// Images wait for the counts, which come last and stand beside them.
pub(super) struct Encoder {
    name: &'static str,
    created: i64,
    pictures: Vec<Media<'static>>,
    /// Of an answer that turns out to hold no image.
    words: String,
    filtered: bool,
    usage: Option<Usage>,
}

/// As much of an answer as a client is told.
const MOST_WORDS: usize = 1000;

impl Encoder {
    pub(super) fn new(asked: &ResponseOptions) -> Encoder {
        Encoder {
            name: match asked.memory.image_edit {
                true => "image_edit.completed",
                false => "image_generation.completed",
            },
            created: asked.at,
            pictures: Vec::new(),
            words: String::new(),
            filtered: false,
            usage: None,
        }
    }

    fn finish(&mut self, out: &mut SseWriter) {
        let pictures = std::mem::take(&mut self.pictures);
        if pictures.is_empty() {
            let api_error = no_picture(self.filtered, &self.words);
            return error::encode_in_stream(&api_error, out);
        }
        let mut usage = self.usage.map(Counts::from);
        for media in &pictures {
            let Some(datum) = Datum::of(media) else {
                continue;
            };
            let completed = Completed {
                r#type: self.name,
                created_at: self.created,
                look: Look::of(media),
                datum,
                // They are those of the whole answer.
                usage: usage.take(),
            };
            out.event(self.name, &completed);
        }
    }
}

impl StreamEncoder for Encoder {
    fn event(&mut self, event: Event<'_>, out: &mut SseWriter) {
        match event {
            Event::Start { created, .. } if created > 0 => self.created = created,
            Event::Open {
                block: Block::Media(media),
                ..
            } if media.mime.starts_with("image/") => self.pictures.push(media.into_owned()),
            Event::Delta {
                delta: Delta::Text(text),
                ..
            } if self.words.len() < MOST_WORDS => self.words.push_str(&text),
            Event::Finish { reason, .. } => {
                self.filtered |= matches!(reason, Finish::Filtered(_) | Finish::Refused);
                if let Finish::Filtered(Some(reason)) = &reason {
                    self.words.push_str(reason);
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
