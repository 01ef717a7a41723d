//! Calls, and the results that answer them by name.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::contents::{Payload, Step};
use super::media;
use crate::model::{
    ApiError, Arguments, Call, FieldLocation, Json, Losses, Part, PartKind, Source, Text, ToolKind,
    ToolResult,
};

#[derive(Serialize)]
pub(super) struct CallOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: Args<'a>,
}

/// Always an object on the wire, whatever an earlier model wrote.
#[derive(Serialize)]
#[serde(untagged)]
enum Args<'a> {
    Tree(&'a Json<'a>),
    RawJson(&'a RawValue),
    Empty {},
    /// Of a tool that takes free text.
    Free {
        input: Text<'a>,
    },
    Unreadable {
        #[serde(rename = "_raw")]
        raw: Text<'a>,
    },
}

#[derive(Serialize)]
pub(super) struct ResultOut<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    response: Outcome<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Payload<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Outcome<'a> {
    Object(Cow<'a, RawValue>),
    Words { output: Text<'a> },
    Failure { error: Text<'a> },
}

/// The calls so far, for results that know only the id of theirs.
#[derive(Default)]
pub(super) struct CallNames<'a>(Vec<Known<'a>>);

struct Known<'a> {
    id: &'a str,
    name: &'a str,
    answered: bool,
}

impl<'a> CallNames<'a> {
    pub(super) fn note(&mut self, call: &'a Call<'_>) {
        self.0.extend(call.id.as_deref().map(|id| Known {
            id,
            name: &call.name,
            answered: false,
        }));
    }

    /// `None`: another result has answered the call before.
    pub(super) fn answered(
        &mut self,
        result: &'a ToolResult<'_>,
        place: &FieldLocation,
    ) -> Result<Option<&'a str>, ApiError> {
        let same_id = |call: &Known<'_>| Some(call.id) == result.id.as_deref();
        let mut latest = self.0.iter_mut().rev();
        if let Some(call) = latest.find(|call| same_id(call) && !call.answered) {
            call.answered = true;
            return Ok(Some(call.name));
        }
        if self.0.iter().any(same_id) {
            return Ok(None);
        }
        result.name.as_deref().map(Some).ok_or_else(|| {
            let message = "the tool result answers no call of this conversation";
            ApiError::invalid(message).at_location(place.clone())
        })
    }
}

pub(super) fn write_call<'a>(
    call: &'a Call<'_>,
    place: impl FnOnce() -> FieldLocation,
    losses: &mut Losses,
) -> CallOut<'a> {
    let args = write_arguments(call);
    if matches!(args, Args::Unreadable { .. }) {
        losses.approximated(place());
    }
    CallOut {
        id: call.id.as_deref(),
        name: &call.name,
        args,
    }
}

fn write_arguments<'a>(call: &'a Call<'_>) -> Args<'a> {
    match &call.arguments {
        arguments if call.kind == ToolKind::Custom => Args::Free {
            input: arguments.to_text(),
        },
        Arguments::Tree(tree @ Json::Object(_)) => Args::Tree(tree),
        Arguments::Tree(Json::Null) => Args::Empty {},
        Arguments::Text(text) if text.trim_ascii().is_empty() => Args::Empty {},
        Arguments::Text(text) => match serde_json::from_str::<&RawValue>(text) {
            Ok(raw) if raw.get().starts_with('{') => Args::RawJson(raw),
            _ => Args::Unreadable {
                raw: Text::Borrowed(text),
            },
        },
        arguments @ Arguments::Tree(_) => Args::Unreadable {
            raw: arguments.to_text(),
        },
    }
}

/// Into the step: the result itself, and its media where they cannot stay inside.
pub(super) fn write_result<'a>(
    result: &'a ToolResult<'_>,
    name: &'a str,
    place: &FieldLocation,
    media_inside: bool,
    step: &mut Step<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    let mut text: Option<Text<'a>> = None;
    let mut parts = Vec::new();
    for Part { kind, at } in &result.parts {
        let place = &place.in_tool_result(*at);
        match kind {
            PartKind::Media(media) if !matches!(media.source, Source::Plain(_)) => {
                let payload = media::write(media, place, losses)?;
                if media_inside && matches!(payload, Payload::InlineData(_)) {
                    parts.push(payload);
                } else {
                    losses.approximated(place.clone());
                    step.moved.push(payload.into());
                }
            }
            kind => {
                if let PartKind::Media(media) = kind {
                    losses.dropped_if_present(media.name_location(place));
                }
                join(&mut text, words(kind));
            }
        }
    }
    let response = write_outcome(text.unwrap_or_default(), result.failed);
    let result = ResultOut {
        id: result.id.as_deref(),
        name,
        response,
        parts,
    };
    step.results.push(Payload::FunctionResponse(result).into());
    Ok(())
}

fn words<'a>(kind: &'a PartKind<'_>) -> &'a str {
    match kind {
        PartKind::Text(text) | PartKind::Refusal(text) | PartKind::Reasoning { text, .. } => text,
        PartKind::Media(media) => match &media.source {
            Source::Plain(text) => text,
            _ => "",
        },
        PartKind::Call(_) | PartKind::Result(_) => "",
    }
}

fn join<'a>(whole: &mut Option<Text<'a>>, more: &'a str) {
    match whole {
        None => *whole = Some(more.into()),
        Some(whole) => {
            whole.to_mut().push_str("\n\n");
            whole.to_mut().push_str(more);
        }
    }
}

fn write_outcome(text: Text<'_>, failed: bool) -> Outcome<'_> {
    if failed {
        return Outcome::Failure { error: text };
    }
    match as_object(&text) {
        Some(object) => Outcome::Object(object),
        None => Outcome::Words { output: text },
    }
}

/// The text itself, if it is a JSON object.
fn as_object<'a>(text: &Text<'a>) -> Option<Cow<'a, RawValue>> {
    if !text.trim_ascii_start().starts_with('{') {
        return None;
    }
    match text {
        Text::Borrowed(text) => serde_json::from_str(text).ok().map(Cow::Borrowed),
        Text::Owned(text) => serde_json::from_str(text).ok().map(Cow::Owned),
    }
}
