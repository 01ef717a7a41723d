//! The JSON reply.

use serde::Serialize;

use super::reasoning::Detail;
use super::usage::Tokens;
use super::wire::{Annotation, Audio, Heading, Image, Logprobs, Shown, ToolCall, finish_reason};
use crate::formats::ResponseOptions;
use crate::formats::identity::call_id;
use crate::formats::written::written;
use crate::model::{
    Call, Choice, FieldLocation, Finish, Losses, Part, PartKind, Response, Signature, Text,
    ToolKind,
};

#[derive(Serialize)]
struct Body<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: Vec<ChoiceBody<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Tokens>,
}

#[derive(Serialize)]
struct ChoiceBody<'a> {
    index: u32,
    message: Message<'a>,
    logprobs: Option<Logprobs<'a>>,
    finish_reason: &'static str,
}

#[derive(Default, Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Text<'a>>,
    refusal: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<Detail<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<Annotation<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<Image<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<Audio<'a>>,
}

pub(super) fn encode(
    response: &Response<'_>,
    asked: &ResponseOptions,
    losses: &mut Losses,
) -> Vec<u8> {
    let heading = Heading::new(&response.id, response.created, &response.model, asked);
    // Clients index the first choice without asking.
    let nothing = Choice {
        parts: Vec::new(),
        citations: Vec::new(),
        logprobs: Vec::new(),
        finish: Finish::Other,
    };
    let choices = match response.choices.as_slice() {
        [] => std::slice::from_ref(&nothing),
        choices => choices,
    };
    let body = Body {
        id: &heading.id,
        object: "chat.completion",
        created: heading.created,
        model: &heading.model,
        choices: (0..)
            .zip(choices)
            .map(|(index, choice)| {
                report(index, choice, losses);
                encode_choice(index, choice, &response.id, &heading)
            })
            .collect(),
        usage: response.usage.map(Tokens::from),
    };
    written(&body, response.size())
}

/// What this format cannot say of a choice.
fn report(index: u32, choice: &Choice<'_>, losses: &mut Losses) {
    let place = |field: &str| FieldLocation::Path(format!("choices[{index}].{field}").into());
    match &choice.finish {
        Finish::Paused | Finish::ContextFull => losses.approximated(place("finish_reason")),
        Finish::StopSequence(Some(_)) => losses.dropped(place("finish_reason")),
        _ => {}
    }
    let kinds = || choice.parts.iter().map(|part| &part.kind);
    let mut after_calls = kinds().skip_while(|kind| !matches!(kind, PartKind::Call(_)));
    // Words are all in one place, whatever was called between them.
    if after_calls.any(|kind| matches!(kind, PartKind::Text(text) if !text.is_empty())) {
        losses.approximated(place("message.content"));
    }
}

fn encode_choice<'a>(
    index: u32,
    choice: &'a Choice<'_>,
    upstream_id: &str,
    heading: &Heading,
) -> ChoiceBody<'a> {
    let mut message = Message {
        role: "assistant",
        annotations: choice.citations.iter().map(Annotation::new).collect(),
        ..Message::default()
    };
    let proven = choice.parts.iter().any(is_proven);
    let mut calls = 0;
    for part in &choice.parts {
        match &part.kind {
            PartKind::Text(text) => append(&mut message.content, text),
            PartKind::Refusal(text) => append(&mut message.refusal, text),
            PartKind::Reasoning { text, signature } => {
                if !text.is_empty() {
                    append(&mut message.reasoning_content, text);
                }
                let index = message.reasoning_details.len();
                let detail = match signature.as_ref().map(Signature::wrap) {
                    Some(wrapped) => Some(Detail::of_thought(text, wrapped, index)),
                    None if proven && !text.is_empty() => Some(Detail::unproven(text, index)),
                    None => None,
                };
                message.reasoning_details.extend(detail);
            }
            PartKind::Call(call) => {
                let id = match &call.id {
                    Some(id) => Text::Borrowed(&**id),
                    None => call_id(upstream_id, index, calls).into(),
                };
                calls += 1;
                add_call(&mut message, call, id);
            }
            PartKind::Media(media) => match Shown::new(media, heading) {
                Shown::Image(image) => message.images.push(image),
                Shown::Audio(audio) => message.audio = Some(audio),
            },
            // The client's own words, never a model's.
            PartKind::Result(_) => {}
        }
    }
    let has_calls = calls > 0;
    if has_calls && message.content.as_deref() == Some("") {
        message.content = None;
    }
    if let (None, Finish::Filtered(Some(words))) = (&message.refusal, &choice.finish) {
        message.refusal = Some(Text::Borrowed(words));
    }
    ChoiceBody {
        index,
        message,
        logprobs: (!choice.logprobs.is_empty()).then(|| Logprobs::new(&choice.logprobs)),
        finish_reason: finish_reason(&choice.finish, has_calls),
    }
}

/// A thought with words and a proof of them.
fn is_proven(part: &Part<'_>) -> bool {
    matches!(&part.kind, PartKind::Reasoning { text, signature: Some(_) } if !text.is_empty())
}

fn add_call<'a>(message: &mut Message<'a>, call: &'a Call<'_>, id: Text<'a>) {
    if let Some(signature) = &call.signature {
        let index = message.reasoning_details.len();
        let detail = Detail::of_call(id.clone(), signature.wrap(), index);
        message.reasoning_details.push(detail);
    }
    let mut text = call.arguments.to_text();
    if call.kind == ToolKind::Function && text.trim().is_empty() {
        text.to_mut().push_str("{}");
    }
    message
        .tool_calls
        .push(ToolCall::whole(id, call.kind, &call.name, text));
}

/// Blocks of one kind are joined as they are: a stream of them would be, too.
fn append<'a>(whole: &mut Option<Text<'a>>, text: &'a str) {
    match whole {
        Some(whole) => whole.to_mut().push_str(text),
        None => *whole = Some(Text::Borrowed(text)),
    }
}
