//! Turns as messages: results become messages of their own, thoughts stay behind.

use std::borrow::Cow;

use serde::Serialize;

use super::media_out::{self, ContentPart};
use super::paths::refuse;
use super::wire::ToolCall;
use crate::formats::UpstreamTarget;
use crate::formats::identity::past_call_id;
use crate::model::{
    ApiError, Call, FieldLocation, Losses, Part, PartField, PartKind, Request, Role, Text,
    ToolKind, ToolResult, Turn,
};

#[derive(Debug, Serialize)]
pub(super) struct Message<'a> {
    role: &'static str,
    /// Null where a model only called.
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Parts(Vec<ContentPart<'a>>),
}

impl<'a> Content<'a> {
    /// One text is a bare string: more backends take that.
    fn new(parts: Vec<ContentPart<'a>>) -> Option<Content<'a>> {
        match parts.as_slice() {
            [] => None,
            [ContentPart::Text { text }] => Some(Content::Text(text)),
            _ => Some(Content::Parts(parts)),
        }
    }

    fn into_parts(self) -> Vec<ContentPart<'a>> {
        match self {
            Content::Text(text) => vec![ContentPart::Text { text }],
            Content::Parts(parts) => parts,
        }
    }
}

impl<'a> Message<'a> {
    const fn new(role: &'static str, content: Option<Content<'a>>) -> Message<'a> {
        Message {
            role,
            content,
            reasoning_content: None,
            refusal: None,
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }
}

pub(super) fn encode<'a>(
    request: &'a Request<'_>,
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<Vec<Message<'a>>, ApiError> {
    let mut writer = Writer {
        messages: Vec::with_capacity(request.turns.len()),
        developer: target.capabilities.chat_developer_role,
        returns_reasoning: target.capabilities.chat_returns_reasoning,
        open: Vec::new(),
        moved: Vec::new(),
        held: Vec::new(),
        losses,
    };
    let loop_start = request.turns.iter().rposition(is_asked).unwrap_or(0);
    for (number, turn) in request.turns.iter().enumerate() {
        match turn.role {
            Role::System | Role::Developer => writer.system(turn)?,
            Role::User => writer.user(turn)?,
            Role::Model => writer.model(turn, number > loop_start)?,
        }
    }
    writer.end_step();
    let Writer { messages, .. } = writer;
    let Some(last) = messages.last() else {
        return Err(ApiError::invalid(
            "there is nothing to answer: every turn is empty",
        ));
    };
    // Nothing in this format makes a model go on with its own words.
    if last.role == "assistant" && last.tool_calls.is_empty() {
        let turn = request.turns.last().and_then(|turn| turn.at);
        losses.approximated(FieldLocation::Turn { turn });
    }
    Ok(messages)
}

/// Whether a turn is the user's own words, not only results of tools.
fn is_asked(turn: &Turn<'_>) -> bool {
    let is_word = |part: &Part<'_>| !matches!(part.kind, PartKind::Result(_));
    turn.role == Role::User && turn.parts.iter().any(is_word)
}

struct Writer<'a, 'l> {
    messages: Vec<Message<'a>>,
    developer: bool,
    returns_reasoning: bool,
    /// Calls that wait for their results.
    open: Vec<Cow<'a, str>>,
    /// Media of results, which only a user's message can hold.
    moved: Vec<ContentPart<'a>>,
    /// What was said between calls and their results, which nothing may part.
    held: Vec<Message<'a>>,
    losses: &'l mut Losses,
}

const fn place(turn: &Turn<'_>, part: &Part<'_>) -> FieldLocation {
    FieldLocation::Part {
        turn: turn.at,
        part: part.at,
    }
}

impl<'a> Writer<'a, '_> {
    /// The system turns that open a conversation are one message; later ones stay where they are.
    fn system(&mut self, turn: &'a Turn<'_>) -> Result<(), ApiError> {
        let mut parts = Vec::new();
        for part in &turn.parts {
            match &part.kind {
                PartKind::Text(text) if text.is_empty() => {}
                PartKind::Text(text) => parts.push(ContentPart::Text { text }),
                _ => return Err(refuse(&place(turn, part), "system turns hold only text")),
            }
        }
        let role = if self.developer || turn.role == Role::Developer {
            "developer"
        } else {
            "system"
        };
        if parts.is_empty() {
            return Ok(());
        }
        if let [opening] = self.messages.as_mut_slice()
            && opening.role == role
        {
            let before = opening.content.take().map(Content::into_parts);
            parts.splice(0..0, before.unwrap_or_default());
            opening.content = Content::new(parts);
            return Ok(());
        }
        self.say(Message::new(role, Content::new(parts)));
        Ok(())
    }

    /// Results first: they must follow their calls.
    fn user(&mut self, turn: &'a Turn<'_>) -> Result<(), ApiError> {
        let mut has_results = false;
        for part in &turn.parts {
            if let PartKind::Result(result) = &part.kind {
                has_results = true;
                self.result(result, &place(turn, part))?;
            }
        }
        let mut parts = Vec::new();
        for part in &turn.parts {
            match &part.kind {
                PartKind::Result(_) => {}
                PartKind::Text(text) | PartKind::Refusal(text) => {
                    if !text.is_empty() {
                        parts.push(ContentPart::Text { text });
                    }
                }
                PartKind::Media(media) => {
                    let part = media_out::encode(media, &place(turn, part), self.losses)?;
                    parts.push(part);
                }
                PartKind::Reasoning { .. } | PartKind::Call(_) => {
                    return Err(refuse(&place(turn, part), "only a model thinks and calls"));
                }
            }
        }
        if has_results && !parts.is_empty() {
            parts.splice(0..0, self.moved.drain(..));
        }
        if let Some(content) = Content::new(parts) {
            self.say(Message::new("user", Some(content)));
        } else if !has_results {
            self.losses
                .approximated(FieldLocation::Turn { turn: turn.at });
        }
        Ok(())
    }

    fn result(
        &mut self,
        result: &'a ToolResult<'_>,
        place: &FieldLocation,
    ) -> Result<(), ApiError> {
        let answered = |id: &Cow<'_, str>| Some(&**id) == result.id.as_deref();
        let Some(at) = self.open.iter().position(answered) else {
            self.losses.dropped(place.clone());
            return Ok(());
        };
        self.open.remove(at);
        if result.failed {
            self.losses.dropped(place.field(PartField::Failure));
        }
        let mut texts = Vec::new();
        for part in &result.parts {
            let place = &place.in_tool_result(part.at);
            match &part.kind {
                PartKind::Text(text) | PartKind::Refusal(text) => {
                    if !text.is_empty() {
                        texts.push(ContentPart::Text { text });
                    }
                }
                PartKind::Media(media) => match media_out::encode(media, place, self.losses)? {
                    text @ ContentPart::Text { .. } => texts.push(text),
                    part => {
                        self.losses.approximated(place.clone());
                        self.moved.push(part);
                    }
                },
                PartKind::Reasoning { .. } | PartKind::Call(_) | PartKind::Result(_) => {
                    return Err(refuse(place, "results hold only text and media"));
                }
            }
        }
        // The content of a result must be there, even when a tool says nothing.
        let content = Content::new(texts).unwrap_or(Content::Text(""));
        self.messages.push(Message {
            tool_call_id: result.id.as_deref(),
            ..Message::new("tool", Some(content))
        });
        Ok(())
    }

    fn model(&mut self, turn: &'a Turn<'_>, is_in_loop: bool) -> Result<(), ApiError> {
        self.end_step();
        let mut message = Message::new("assistant", None);
        let mut texts = Vec::new();
        for part in &turn.parts {
            let place = place(turn, part);
            match &part.kind {
                PartKind::Text(text) if text.is_empty() => {}
                PartKind::Text(text) => {
                    // Words after calls come before them now.
                    if !message.tool_calls.is_empty() {
                        self.losses.approximated(place);
                    }
                    texts.push(ContentPart::Text { text });
                }
                PartKind::Refusal(text) => append(&mut message.refusal, text),
                PartKind::Reasoning {
                    text,
                    signature: None,
                } if self.returns_reasoning && is_in_loop && !text.is_empty() => {
                    append(&mut message.reasoning_content, text);
                }
                PartKind::Reasoning { .. } => self.losses.dropped(place),
                PartKind::Call(call) => {
                    if call.signature.is_some() {
                        self.losses.dropped(place.field(PartField::CallSignature));
                    }
                    let call = self.call(call, turn, message.tool_calls.len());
                    message.tool_calls.push(call);
                }
                PartKind::Media(_) => {
                    return Err(refuse(
                        &place,
                        "a model's own turn holds only text and calls",
                    ));
                }
                PartKind::Result(_) => {
                    return Err(refuse(&place, "a model answers no calls"));
                }
            }
        }
        message.content = Content::new(texts);
        let says_something = message.content.is_some()
            || message.refusal.is_some()
            || !message.tool_calls.is_empty();
        if says_something {
            self.messages.push(message);
        } else {
            self.losses
                .approximated(FieldLocation::Turn { turn: turn.at });
        }
        Ok(())
    }

    fn call(&mut self, call: &'a Call<'_>, turn: &Turn<'_>, ordinal: usize) -> ToolCall<'a> {
        let id: Text<'a> = match &call.id {
            Some(id) => Text::Borrowed(id),
            None => {
                let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
                past_call_id(turn.at.unwrap_or_default(), ordinal, &call.name).into()
            }
        };
        self.open.push(id.clone());
        let mut text = call.arguments.to_text();
        if call.kind == ToolKind::Function && text.trim().is_empty() {
            text = "{}".into();
        }
        ToolCall::whole(id, call.kind, &call.name, text)
    }

    /// Others than the model speak, once its calls are answered.
    fn say(&mut self, message: Message<'a>) {
        if self.open.is_empty() {
            self.end_step();
            self.messages.push(message);
        } else {
            self.held.push(message);
        }
    }

    /// No more results are to come.
    fn end_step(&mut self) {
        if let Some(content) = Content::new(std::mem::take(&mut self.moved)) {
            self.messages.push(Message::new("user", Some(content)));
        }
        self.messages.append(&mut self.held);
    }
}

fn append<'a>(whole: &mut Option<Text<'a>>, text: &'a str) {
    match whole {
        Some(whole) => whole.to_mut().push_str(text),
        None => *whole = Some(Text::Borrowed(text)),
    }
}
