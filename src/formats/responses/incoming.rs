//! Replies of an upstream of this format.

use super::error;
use super::items_in::{self, Said, Spoken};
use super::pass::RawUsage;
use crate::formats::{chat, no_answer, read_reply};
use crate::json::{Present, RawJson, from_json};
use crate::model::{
    ApiError, Choice, Citation, FieldLocation, Finish, Json, Losses, Part, PartKind, Response,
    Text, Usage,
};

from_json! {
    /// The reply object, alone or inside an event of a stream.
    pub(super) struct Whole<'a> {
        "id" => pub id: Option<Text<'a>>,
        "model" => pub model: Option<Text<'a>>,
        "created_at" => created_at: Option<f64>,
        "status" => status: Option<Text<'a>>,
        "incomplete_details" => incomplete_details: Option<Incomplete<'a>>,
        "error" => error: Option<Present>,
        "output" => output: Option<RawJson<'a>>,
        "usage" => usage: Option<RawUsage>,
    }
}

from_json! {
    struct Incomplete<'a> {
        "reason" => reason: Option<Text<'a>>,
    }
}

/// What decides between the ways to be complete.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Content {
    pub called: bool,
    pub refused: bool,
}

impl<'a> Whole<'a> {
    pub(super) fn items(&self) -> Vec<Json<'a>> {
        match self.output.map(|raw| serde_json::from_str(raw.get())) {
            Some(Ok(Json::Array(items))) => items,
            _ => Vec::new(),
        }
    }

    pub(super) fn created(&self) -> i64 {
        self.created_at.map_or(0, |seconds| seconds as i64)
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage.as_ref().map(RawUsage::read)
    }

    /// `Err`: the reply failed, or is none yet; `data` is what the upstream said.
    pub(super) fn finish(&self, content: Content, data: &str) -> Result<Finish<'static>, ApiError> {
        let details = self.incomplete_details.as_ref();
        let reason = details.and_then(|details| details.reason.as_deref());
        let finish = match (self.status.as_deref(), reason) {
            (Some("failed"), _) => return Err(error::decode_in_stream(data)),
            (Some(status @ ("cancelled" | "queued" | "in_progress")), _) => {
                let message = format!("the upstream's reply ended as {status}");
                return Err(ApiError::bad_gateway(message));
            }
            (Some("incomplete"), Some("max_output_tokens" | "max_messages")) => Finish::Length,
            (Some("incomplete"), Some("content_filter")) => Finish::Filtered(None),
            _ if content.called => Finish::Tools,
            (Some("completed") | None, _) if content.refused => Finish::Refused,
            (Some("completed") | None, _) => Finish::Stop,
            _ => Finish::Other,
        };
        Ok(finish)
    }
}

pub(super) fn decode<'a>(body: &'a [u8], losses: &mut Losses) -> Result<Response<'a>, ApiError> {
    let whole: Whole<'a> = read_reply(body)?;
    if whole.error.is_some() && whole.output.is_none() {
        return Err(chat::decode_error(200, body));
    }
    if whole.output.is_none() {
        return Err(no_answer());
    }
    let mut reading = Reading::default();
    for (number, item) in whole.items().into_iter().enumerate() {
        reading.add_item(number, item, losses);
    }
    let data = std::str::from_utf8(body).unwrap_or_default();
    let finish = whole.finish(reading.content, data)?;
    if finish == Finish::Other {
        losses.approximated(FieldLocation::Path("incomplete_details.reason".into()));
    }
    Ok(Response {
        created: whole.created(),
        usage: whole.usage(),
        id: whole.id.unwrap_or_default(),
        model: whole.model.unwrap_or_default(),
        choices: vec![Choice {
            parts: reading.parts,
            citations: reading.citations,
            logprobs: reading.logprobs,
            finish,
        }],
    })
}

#[derive(Default)]
struct Reading<'a> {
    parts: Vec<Part<'a>>,
    citations: Vec<Citation<'a>>,
    logprobs: Vec<crate::model::Logprob<'a>>,
    content: Content,
    /// Length of all texts so far.
    characters: u64,
}

impl<'a> Reading<'a> {
    fn add_item(&mut self, number: usize, item: Json<'a>, losses: &mut Losses) {
        let (_, said) = items_in::read(item);
        match said {
            Said::Message(spoken) => {
                for (at, spoken) in spoken.into_iter().enumerate() {
                    self.add_spoken(spoken, (number, at), losses);
                }
            }
            Said::Reasoning { text, signature } => {
                if signature.is_some() || !text.is_empty() {
                    self.add(PartKind::Reasoning { text, signature });
                }
            }
            Said::Call(call) => {
                self.content.called = true;
                self.add(PartKind::Call(call));
            }
            Said::Image(media) => self.add(PartKind::Media(media)),
            Said::Hosted => losses.dropped(FieldLocation::Path(format!("output[{number}]").into())),
        }
    }

    fn add(&mut self, kind: PartKind<'a>) {
        self.parts.push(Part { kind, at: None });
    }

    fn add_spoken(&mut self, spoken: Spoken<'a>, at: (usize, usize), losses: &mut Losses) {
        let (text, sources, logprobs) = match spoken {
            Spoken::Refusal(text) if text.is_empty() => return,
            Spoken::Refusal(text) => {
                self.content.refused = true;
                return self.add(PartKind::Refusal(text));
            }
            Spoken::Text {
                text,
                sources,
                logprobs,
            } => (text, sources, logprobs),
        };
        for source in sources {
            match source {
                Some(source) => self.citations.push(moved(source, self.characters)),
                None => {
                    let path = format!("output[{}].content[{}].annotations", at.0, at.1);
                    losses.dropped(FieldLocation::Path(path.into()));
                }
            }
        }
        self.logprobs.extend(logprobs);
        self.characters += text.chars().count() as u64;
        if !text.is_empty() {
            self.add(PartKind::Text(text));
        }
    }
}

/// The format counts from the start of each text, the model from the start of all of them.
pub(super) fn moved(source: Citation<'_>, before: u64) -> Citation<'_> {
    Citation {
        start: source.start.saturating_add(before),
        end: source.end.saturating_add(before),
        ..source
    }
}

#[cfg(test)]
#[path = "tests/incoming.rs"]
mod tests;
