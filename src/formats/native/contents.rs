//! The conversation as an upstream of this format takes it.
//!
//! Results of one step stand alone in one content; what the user says beside them comes in the
//! next. System turns move to the front, neighbours of one role become one content.

use serde::Serialize;

use super::calls::{CallNames, CallOut, ResultOut, write_call, write_result};
use super::media::{self, FileData, InlineData};
use crate::formats::Capabilities;
use crate::model::{
    ApiError, FieldLocation, Issuer, Losses, Part, PartField, PartKind, Role, Signature, Text, Turn,
};

/// The stand-in that models which insist on signatures take for calls they did not make.
const NO_SIGNATURE: &str = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=";

/// What the user is made to say where the model would speak first.
pub(super) const CONTINUED: &str = "(continued)";

pub(super) struct Conversation<'a> {
    pub(super) system: Vec<SystemText<'a>>,
    pub(super) contents: Vec<Content<'a>>,
}

#[derive(Serialize)]
pub(super) struct SystemText<'a> {
    text: &'a str,
}

#[derive(Serialize)]
pub(super) struct Content<'a> {
    role: &'static str,
    parts: Vec<PartOut<'a>>,
    /// The user has said something, not only handed in results.
    #[serde(skip)]
    spoken: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartOut<'a> {
    #[serde(flatten)]
    payload: Payload<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Payload<'a> {
    Text(&'a str),
    InlineData(InlineData<'a>),
    FileData(FileData<'a>),
    FunctionCall(CallOut<'a>),
    FunctionResponse(ResultOut<'a>),
}

const USER: &str = "user";
const MODEL: &str = "model";

impl<'a> Content<'a> {
    fn user(parts: Vec<PartOut<'a>>, spoken: bool) -> Content<'a> {
        Content {
            role: USER,
            parts,
            spoken,
        }
    }

    /// Words of the model that it would have to go on with.
    fn is_begun_answer(&self) -> bool {
        let is_call = |part: &PartOut<'_>| matches!(part.payload, Payload::FunctionCall(_));
        self.role == MODEL && !self.parts.iter().any(is_call)
    }
}

impl<'a> From<Payload<'a>> for PartOut<'a> {
    fn from(payload: Payload<'a>) -> PartOut<'a> {
        PartOut {
            payload,
            thought: false,
            thought_signature: None,
        }
    }
}

/// The user's side between two turns of the model.
#[derive(Default)]
pub(super) struct Step<'a> {
    pub(super) results: Vec<PartOut<'a>>,
    /// Media that came inside of results.
    pub(super) moved: Vec<PartOut<'a>>,
    said: Vec<PartOut<'a>>,
}

pub(super) fn write<'a>(
    turns: &'a [Turn<'_>],
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Result<Conversation<'a>, ApiError> {
    let mut writer = Writer {
        system: Vec::new(),
        contents: Vec::new(),
        step: Step::default(),
        names: CallNames::default(),
        media_in_results: capabilities.native_function_response_parts,
    };
    let mut leading = true;
    for turn in turns {
        match turn.role {
            Role::System | Role::Developer => writer.system(turn, leading, losses)?,
            Role::User => writer.user(turn, losses)?,
            Role::Model => writer.model(turn, losses)?,
        }
        leading &= matches!(turn.role, Role::System | Role::Developer);
    }
    writer.end_step();
    let Writer {
        system,
        mut contents,
        ..
    } = writer;
    if contents.first().is_none_or(|content| content.role != USER) {
        let words = PartOut::from(Payload::Text(CONTINUED));
        contents.insert(0, Content::user(vec![words], true));
        losses.approximated(FieldLocation::Turn {
            turn: turns.iter().find_map(|turn| turn.at),
        });
    }
    // Nothing in this format makes a model go on with its own words.
    if contents.last().is_some_and(Content::is_begun_answer) {
        let turn = turns.last().and_then(|turn| turn.at);
        losses.approximated(FieldLocation::Turn { turn });
    }
    if capabilities.native_requires_signature {
        stand_in(&mut contents);
    }
    Ok(Conversation { system, contents })
}

/// The first call of each step since the user last spoke must carry a signature.
fn stand_in(contents: &mut [Content<'_>]) {
    let asked = contents.iter().rposition(|content| content.spoken);
    for content in &mut contents[asked.map_or(0, |at| at + 1)..] {
        let call = |part: &&mut PartOut<'_>| matches!(part.payload, Payload::FunctionCall(_));
        if let Some(first) = content.parts.iter_mut().find(call) {
            first.thought_signature.get_or_insert(NO_SIGNATURE);
        }
    }
}

struct Writer<'a> {
    system: Vec<SystemText<'a>>,
    contents: Vec<Content<'a>>,
    step: Step<'a>,
    names: CallNames<'a>,
    media_in_results: bool,
}

impl<'a> Writer<'a> {
    fn system(
        &mut self,
        turn: &'a Turn<'_>,
        leading: bool,
        losses: &mut Losses,
    ) -> Result<(), ApiError> {
        let before = self.system.len();
        for part in &turn.parts {
            let PartKind::Text(text) = &part.kind else {
                let message = "a system prompt for this model can hold nothing but text";
                return Err(ApiError::invalid(message).at_location(place(turn, part)));
            };
            if !text.is_empty() {
                self.system.push(SystemText { text });
            }
        }
        if !leading && self.system.len() > before {
            losses.approximated(FieldLocation::Turn { turn: turn.at });
        }
        Ok(())
    }

    fn user(&mut self, turn: &'a Turn<'_>, losses: &mut Losses) -> Result<(), ApiError> {
        report_empty(turn, losses);
        for part in &turn.parts {
            match &part.kind {
                PartKind::Text(text) | PartKind::Refusal(text) => {
                    let words = (!text.is_empty()).then(|| Payload::Text(text).into());
                    self.step.said.extend(words);
                }
                PartKind::Media(media) => {
                    let payload = media::write(media, &place(turn, part), losses)?;
                    self.step.said.push(payload.into());
                }
                PartKind::Result(result) => {
                    let place = place(turn, part);
                    let Some(name) = self.names.answered(result, &place)? else {
                        losses.dropped(place);
                        continue;
                    };
                    let step = &mut self.step;
                    write_result(result, name, &place, self.media_in_results, step, losses)?;
                }
                // Only a model thinks and calls.
                PartKind::Reasoning { .. } | PartKind::Call(_) => losses.dropped(place(turn, part)),
            }
        }
        Ok(())
    }

    /// The model speaks next, or nobody does.
    fn end_step(&mut self) {
        let Step {
            results,
            moved,
            said,
        } = std::mem::take(&mut self.step);
        if !results.is_empty() {
            self.contents.push(Content::user(results, false));
        }
        let spoken = !said.is_empty();
        let parts: Vec<_> = moved.into_iter().chain(said).collect();
        if !parts.is_empty() {
            self.contents.push(Content::user(parts, spoken));
        }
    }

    fn model(&mut self, turn: &'a Turn<'_>, losses: &mut Losses) -> Result<(), ApiError> {
        report_empty(turn, losses);
        let parts = self.model_parts(turn, losses)?;
        if parts.is_empty() {
            return Ok(());
        }
        self.end_step();
        match self.contents.last_mut() {
            Some(content) if content.role == MODEL => content.parts.extend(parts),
            _ => self.contents.push(Content {
                role: MODEL,
                parts,
                spoken: false,
            }),
        }
        Ok(())
    }

    fn model_parts(
        &mut self,
        turn: &'a Turn<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<PartOut<'a>>, ApiError> {
        let mut parts = SignedParts::default();
        for part in &turn.parts {
            let place = || place(turn, part);
            match &part.kind {
                PartKind::Text(text) if text.is_empty() => {}
                PartKind::Text(text) => parts.push(Payload::Text(text), None),
                PartKind::Refusal(text) => {
                    losses.approximated(place());
                    parts.push(Payload::Text(text), None);
                }
                PartKind::Media(media) => {
                    parts.push(media::write(media, &place(), losses)?, None);
                }
                PartKind::Call(call) => {
                    self.names.note(call);
                    let proof = || place().field(PartField::CallSignature);
                    let signature = own_seal(call.signature.as_ref(), proof, losses);
                    parts.push(
                        Payload::FunctionCall(write_call(call, place, losses)),
                        signature,
                    );
                }
                PartKind::Reasoning { text, signature } => {
                    // Thoughts go back only to the format that can vouch for them.
                    match own_seal(signature.as_ref(), place, losses) {
                        Some(signature) => parts.push_thought(text, signature),
                        None if signature.is_none() && !text.is_empty() => losses.dropped(place()),
                        None => {}
                    }
                }
                PartKind::Result(_) => losses.dropped(place()),
            }
        }
        Ok(parts.finish())
    }
}

fn place(turn: &Turn<'_>, part: &Part<'_>) -> FieldLocation {
    FieldLocation::Part {
        turn: turn.at,
        part: part.at,
    }
}

/// A turn that says nothing is left out, and its neighbours may grow together.
fn report_empty(turn: &Turn<'_>, losses: &mut Losses) {
    let silent = |part: &Part<'_>| matches!(&part.kind, PartKind::Text(text) if text.is_empty());
    if turn.parts.iter().all(silent) {
        losses.approximated(FieldLocation::Turn { turn: turn.at });
    }
}

/// The signature, if an upstream of this format gave it.
fn own_seal<'a>(
    signature: Option<&'a Signature<'_>>,
    place: impl FnOnce() -> FieldLocation,
    losses: &mut Losses,
) -> Option<&'a str> {
    let signature = signature?;
    if signature.issuer != Issuer::Native {
        losses.dropped(place());
        return None;
    }
    Some(&signature.data)
}

/// Parts of a turn; a signature that came apart from its part goes to the next one, else to the last.
#[derive(Default)]
struct SignedParts<'a> {
    parts: Vec<PartOut<'a>>,
    waiting: Vec<&'a str>,
}

impl<'a> SignedParts<'a> {
    fn push(&mut self, payload: Payload<'a>, signature: Option<&'a str>) {
        let mut part = PartOut::from(payload);
        part.thought_signature = signature;
        if signature.is_none() && !self.waiting.is_empty() {
            part.thought_signature = Some(self.waiting.remove(0));
        }
        self.parts.push(part);
    }

    fn push_thought(&mut self, text: &'a Text<'_>, signature: &'a str) {
        if !text.is_empty() {
            let mut part = PartOut::from(Payload::Text(text));
            part.thought = true;
            self.parts.push(part);
        }
        self.waiting.push(signature);
    }

    fn finish(mut self) -> Vec<PartOut<'a>> {
        for signature in self.waiting {
            match self.parts.last_mut() {
                Some(part) if !part.thought && part.thought_signature.is_none() => {
                    part.thought_signature = Some(signature);
                }
                _ => {
                    let mut part = PartOut::from(Payload::Text(""));
                    part.thought_signature = Some(signature);
                    self.parts.push(part);
                }
            }
        }
        self.parts
    }
}
