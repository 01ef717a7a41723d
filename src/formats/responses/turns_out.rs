//! Turns as the items of `input`, for an upstream of this format.

use serde::Serialize;

use super::content_out::{Content, Part, write_media};
use super::pairs_out::{Pairs, pair};
use super::reply::{COMPLETED, Summary};
use super::response::NO_ARGUMENTS;
use crate::formats::base64_text;
use crate::model::{
    ApiError, Call, FieldLocation, Issuer, Losses, Media, PartField, PartKind, Role, Signature,
    Source, Text, ToolKind, ToolResult, Turn,
};

#[derive(Default)]
pub(super) struct Conversation<'r> {
    pub instructions: Option<Text<'r>>,
    pub input: Vec<Item<'r>>,
    /// Thoughts go back to the upstream with it.
    pub sealed: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Item<'r> {
    Message {
        /// Both only where the model's own words are a list: the types insist on them there.
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
        role: &'static str,
        content: Content<'r>,
    },
    Reasoning {
        id: &'r str,
        summary: Vec<Summary<'r>>,
        encrypted_content: &'r str,
    },
    FunctionCall {
        call_id: Text<'r>,
        name: &'r str,
        arguments: Text<'r>,
    },
    FunctionCallOutput {
        call_id: Text<'r>,
        output: Content<'r>,
    },
    CustomToolCall {
        call_id: Text<'r>,
        name: &'r str,
        input: Text<'r>,
    },
    CustomToolCallOutput {
        call_id: Text<'r>,
        output: Content<'r>,
    },
    ImageGenerationCall {
        id: String,
        result: Text<'r>,
        status: &'static str,
    },
}

const MODEL: &str = "assistant";

/// What stands for the result of a call that the client never answered.
const NO_RESULT: &str = "(no result)";

pub(super) fn write<'r>(
    turns: &'r [Turn<'_>],
    losses: &mut Losses,
) -> Result<Conversation<'r>, ApiError> {
    let is_system = |turn: &&Turn<'_>| turn.role == Role::System;
    let leading = turns.iter().take_while(is_system).count();
    let (instructions, rest) = turns.split_at(leading);
    let mut writer = Writer::new(pair(turns), losses);
    // An upstream without any input would refuse.
    if rest.is_empty() {
        writer.write_turns(instructions)?;
        return Ok(writer.conversation);
    }
    writer.conversation.instructions = join(instructions)?;
    writer.write_turns(rest)?;
    // Nothing in this format makes a model go on with its own words.
    if let Some(Item::Message { role: MODEL, .. }) = writer.conversation.input.last() {
        let turn = rest.last().and_then(|turn| turn.at);
        writer.losses.approximated(FieldLocation::Turn { turn });
    }
    Ok(writer.conversation)
}

/// The texts as paragraphs.
fn join<'r>(turns: &'r [Turn<'_>]) -> Result<Option<Text<'r>>, ApiError> {
    let mut joined = Text::default();
    for turn in turns {
        for part in &turn.parts {
            match &part.kind {
                PartKind::Text(text) if joined.is_empty() => joined = Text::Borrowed(text),
                PartKind::Text(text) if text.is_empty() => {}
                PartKind::Text(text) => {
                    joined.to_mut().push_str("\n\n");
                    joined.to_mut().push_str(text);
                }
                _ => {
                    let message = "instructions to the upstream of this model are text only";
                    return Err(ApiError::invalid(message).at_location(place_of(turn, part)));
                }
            }
        }
    }
    Ok(Some(joined).filter(|joined| !joined.is_empty()))
}

fn place_of(turn: &Turn<'_>, part: &crate::model::Part<'_>) -> FieldLocation {
    FieldLocation::Part {
        turn: turn.at,
        part: part.at,
    }
}

struct Writer<'r, 'l> {
    conversation: Conversation<'r>,
    pairs: Pairs<'r>,
    calls: usize,
    results: usize,
    /// Calls that no result answers, until the results of their step are over.
    unanswered: Vec<usize>,
    /// How many of them are of an earlier turn.
    overdue: usize,
    /// A thought is only taken together with what it led to.
    thoughts: Vec<(Item<'r>, FieldLocation)>,
    losses: &'l mut Losses,
}

impl<'r, 'l> Writer<'r, 'l> {
    fn new(pairs: Pairs<'r>, losses: &'l mut Losses) -> Writer<'r, 'l> {
        Writer {
            conversation: Conversation::default(),
            pairs,
            calls: 0,
            results: 0,
            unanswered: Vec::new(),
            overdue: 0,
            thoughts: Vec::new(),
            losses,
        }
    }

    fn write_turns(&mut self, turns: &'r [Turn<'_>]) -> Result<(), ApiError> {
        for turn in turns {
            self.overdue = self.unanswered.len();
            self.write_turn(turn)?;
        }
        self.drop_thoughts();
        self.overdue = self.unanswered.len();
        self.answer_overdue();
        Ok(())
    }

    fn write_turn(&mut self, turn: &'r Turn<'_>) -> Result<(), ApiError> {
        let role = match turn.role {
            Role::System => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Model => MODEL,
        };
        let is_empty = |part: &crate::model::Part<'_>| match &part.kind {
            PartKind::Text(text) | PartKind::Refusal(text) => text.is_empty(),
            _ => false,
        };
        if turn.parts.iter().all(is_empty) {
            self.losses
                .approximated(FieldLocation::Turn { turn: turn.at });
            return Ok(());
        }
        let mut content = Vec::new();
        for part in turn.parts.iter().filter(|part| !is_empty(part)) {
            let place = place_of(turn, part);
            match &part.kind {
                PartKind::Text(text) if turn.role == Role::Model => {
                    let annotations = [];
                    content.push(Part::OutputText { text, annotations });
                }
                PartKind::Refusal(refusal) if turn.role == Role::Model => {
                    content.push(Part::Refusal { refusal });
                }
                PartKind::Text(text) | PartKind::Refusal(text) => {
                    content.push(Part::InputText { text });
                }
                PartKind::Media(media) if turn.role != Role::Model => {
                    content.push(write_media(media, place, self.losses)?);
                }
                other => {
                    self.write_message(role, &mut content);
                    self.write_item(other, place)?;
                }
            }
        }
        self.write_message(role, &mut content);
        Ok(())
    }

    /// What is an item of its own.
    fn write_item(&mut self, part: &'r PartKind<'_>, place: FieldLocation) -> Result<(), ApiError> {
        match part {
            PartKind::Reasoning { text, signature } => {
                self.write_thought(text, signature.as_ref(), place)
            }
            PartKind::Call(call) => self.write_call(call, place),
            PartKind::Result(result) => self.write_result(result, place)?,
            PartKind::Media(media) => self.write_picture(media, place)?,
            PartKind::Text(_) | PartKind::Refusal(_) => {}
        }
        Ok(())
    }

    /// Everything but results, which may come in any number after the calls.
    fn push(&mut self, item: Item<'r>) {
        self.answer_overdue();
        self.conversation.input.push(item);
    }

    /// What the model said or did, right after the thoughts that led to it.
    fn push_own(&mut self, item: Item<'r>) {
        for (thought, _) in std::mem::take(&mut self.thoughts) {
            self.push(thought);
            self.conversation.sealed = true;
        }
        self.push(item);
    }

    fn write_message(&mut self, role: &'static str, content: &mut Vec<Part<'r>>) {
        if content.is_empty() {
            return;
        }
        let content = Content::of(std::mem::take(content));
        let is_list = role == MODEL && matches!(content, Content::Parts(_));
        let item = Item::Message {
            id: is_list.then(|| format!("msg_{}", self.conversation.input.len())),
            status: is_list.then_some(COMPLETED),
            role,
            content,
        };
        if role == MODEL {
            self.push_own(item);
        } else {
            self.drop_thoughts();
            self.push(item);
        }
    }

    fn write_thought(
        &mut self,
        text: &'r str,
        signature: Option<&'r Signature<'_>>,
        place: FieldLocation,
    ) {
        let own = signature.filter(|signature| signature.issuer == Issuer::Responses);
        let Some((id, encrypted_content)) =
            own.and_then(|signature| signature.data.split_once('\n'))
        else {
            if signature.is_some() || !text.is_empty() {
                self.losses.dropped(place);
            }
            return;
        };
        let summary = match text {
            "" => Vec::new(),
            text => vec![Summary { text: text.into() }],
        };
        let item = Item::Reasoning {
            id,
            summary,
            encrypted_content,
        };
        self.thoughts.push((item, place));
    }

    fn drop_thoughts(&mut self) {
        for (_, place) in std::mem::take(&mut self.thoughts) {
            self.losses.dropped(place);
        }
    }

    fn write_call(&mut self, call: &'r Call<'_>, place: FieldLocation) {
        if let Some(signature) = &call.signature {
            let proof = place.field(PartField::CallSignature);
            self.write_thought("", Some(signature), proof);
        }
        let number = self.calls;
        self.calls += 1;
        let paired = &self.pairs.calls[number];
        if paired.replaced {
            self.losses.approximated(place.clone());
        }
        let answered = paired.answered;
        let (call_id, name) = (paired.id.clone(), &*call.name);
        let words = call.arguments.to_text();
        self.push_own(match call.kind {
            ToolKind::Function => Item::FunctionCall {
                call_id,
                name,
                arguments: match words.trim() {
                    "" => NO_ARGUMENTS.into(),
                    _ => words,
                },
            },
            ToolKind::Custom => Item::CustomToolCall {
                call_id,
                name,
                input: words,
            },
        });
        if !answered {
            self.losses.approximated(place);
            self.unanswered.push(number);
        }
    }

    /// The upstream refuses calls without a result.
    fn answer_overdue(&mut self) {
        let overdue: Vec<usize> = self.unanswered.drain(..self.overdue).collect();
        self.overdue = 0;
        for number in overdue {
            self.push_output(number, Content::Text(NO_RESULT));
        }
    }

    fn push_output(&mut self, number: usize, output: Content<'r>) {
        let call = &self.pairs.calls[number];
        let call_id = call.id.clone();
        self.conversation.input.push(match call.kind {
            ToolKind::Function => Item::FunctionCallOutput { call_id, output },
            ToolKind::Custom => Item::CustomToolCallOutput { call_id, output },
        });
    }

    fn write_result(
        &mut self,
        result: &'r ToolResult<'_>,
        place: FieldLocation,
    ) -> Result<(), ApiError> {
        self.drop_thoughts();
        let call = self.pairs.results[self.results];
        self.results += 1;
        let Some(call) = call else {
            self.losses.dropped(place);
            return Ok(());
        };
        if result.failed {
            self.losses.dropped(place.field(PartField::Failure));
        }
        let mut output = Vec::new();
        for part in &result.parts {
            let place = place.in_tool_result(part.at);
            match &part.kind {
                PartKind::Text(text) if text.is_empty() => {}
                PartKind::Text(text) => output.push(Part::InputText { text }),
                PartKind::Media(media) => {
                    output.push(write_media(media, place, self.losses)?);
                }
                _ => self.losses.dropped(place),
            }
        }
        self.push_output(call, Content::of(output));
        Ok(())
    }

    /// The model's own images, which are items of a tool here.
    fn write_picture(
        &mut self,
        media: &'r Media<'_>,
        place: FieldLocation,
    ) -> Result<(), ApiError> {
        match &media.source {
            Source::Base64(data) if media.mime.starts_with("image/") => {
                let id = format!("ig_{}", self.conversation.input.len());
                self.push_own(Item::ImageGenerationCall {
                    id,
                    result: base64_text::standard(data),
                    status: COMPLETED,
                });
                Ok(())
            }
            _ => {
                let message = "the upstream of this model takes no such media from the model";
                Err(ApiError::invalid(message).at_location(place))
            }
        }
    }
}
