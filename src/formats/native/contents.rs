//! `systemInstruction` and `contents`: the conversation of a request.
//!
//! An upstream takes the results of one step alone in one content, and what else the user sends in
//! the next. System turns move into `systemInstruction`; neighbouring turns of one role become one
//! content.

use serde::Serialize;

use super::calls::{CallNames, encode_function_call, encode_function_response};
use super::enum_values::ROLES;
use super::field_names;
use super::media::{MediaPayload, encode_media};
use super::parts::{NativePart, NativePayload, SignedContentParts, decode_part};
use super::reasoning::encode_own_signature;
use crate::formats::Capabilities;
use crate::json::Fields;
use crate::model::{ApiError, FieldLocation, Losses, Part, PartField, PartKind, Role, Turn};

/// The signature that models which require one accept for calls they did not make.
const SKIP_SIGNATURE_VALIDATION: &str = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=";

/// The text of a user's content that has to stand where the client sent none.
pub(super) const PLACEHOLDER_TEXT: &str = "(continued)";

const USER: &str = "user";
const MODEL: &str = "model";

/// Decodes `systemInstruction`; its role, which some clients send, has no meaning.
pub(super) fn decode_system_instruction<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<Turn<'a>>, ApiError> {
    fields.take("role");
    let mut parts = Vec::new();
    fields.each("parts", |at, node| {
        let text = node.fields(|mut fields| {
            let text = fields.text("text")?;
            fields.finish(losses);
            Ok(text.unwrap_or_default())
        })?;
        parts.push(Part {
            kind: PartKind::Text(text),
            at: Some(at),
        });
        Ok(())
    })?;
    fields.finish(losses);
    Ok((!parts.is_empty()).then_some(Turn {
        role: Role::System,
        parts,
        at: None,
    }))
}

/// Decodes one element of `contents`.
pub(super) fn decode_content<'a>(
    at: u32,
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Turn<'a>, ApiError> {
    // Any other role is the user's: validation has refused what is none.
    let role = match field_names::take_enum(&mut fields, &["role"], ROLES) {
        Some(MODEL) => Role::Model,
        _ => Role::User,
    };
    let mut parts = Vec::new();
    fields.each("parts", |at, node| {
        node.fields(|fields| decode_part(role, at, fields, &mut parts, losses))
    })?;
    fields.finish(losses);
    // Other formats require the results first; here text may stand before and between them.
    parts.sort_by_key(|part| !matches!(part.kind, PartKind::Result(_)));
    Ok(Turn {
        role,
        parts,
        at: Some(at),
    })
}

/// The conversation of a request to an upstream.
pub(super) struct NativeConversation<'a> {
    pub(super) system: Vec<SystemPart<'a>>,
    pub(super) contents: Vec<NativeContent<'a>>,
}

#[derive(Serialize)]
pub(super) struct SystemPart<'a> {
    text: &'a str,
}

#[derive(Serialize)]
pub(super) struct NativeContent<'a> {
    role: &'static str,
    parts: Vec<NativePart<'a>>,
    /// Whether the user sent something besides results.
    #[serde(skip)]
    has_user_input: bool,
}

impl<'a> NativeContent<'a> {
    fn user(parts: Vec<NativePart<'a>>, has_user_input: bool) -> NativeContent<'a> {
        NativeContent {
            role: USER,
            parts,
            has_user_input,
        }
    }

    /// Whether the content is the beginning of an answer that the model should continue.
    fn is_prefill(&self) -> bool {
        self.role == MODEL && !self.parts.iter().any(NativePart::is_function_call)
    }
}

/// Encodes the turns of a request.
pub(super) fn encode_turns<'a>(
    turns: &'a [Turn<'_>],
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> Result<NativeConversation<'a>, ApiError> {
    let mut encoder = ContentsEncoder {
        system: Vec::new(),
        contents: Vec::new(),
        step: UserStep::default(),
        call_names: CallNames::default(),
        media_in_results: capabilities.native_function_response_parts,
    };
    let mut leading = true;
    for turn in turns {
        match turn.role {
            Role::System | Role::Developer => encoder.encode_system_turn(turn, leading, losses)?,
            Role::User => encoder.encode_user_turn(turn, losses)?,
            Role::Model => encoder.encode_model_turn(turn, losses)?,
        }
        leading &= matches!(turn.role, Role::System | Role::Developer);
    }
    encoder.end_step();
    let ContentsEncoder {
        system,
        mut contents,
        ..
    } = encoder;
    if contents.first().is_none_or(|content| content.role != USER) {
        let placeholder = NativePart::from(NativePayload::Text(PLACEHOLDER_TEXT));
        contents.insert(0, NativeContent::user(vec![placeholder], true));
        let turn = turns.iter().find_map(|turn| turn.at);
        losses.approximated(FieldLocation::turn_or_all(turn));
    }
    // The format has no way to make a model continue its own text.
    if contents.last().is_some_and(NativeContent::is_prefill) {
        let turn = turns.last().and_then(|turn| turn.at);
        losses.approximated(FieldLocation::Turn { turn });
    }
    if capabilities.native_requires_signature {
        add_missing_signatures(&mut contents);
    }
    Ok(NativeConversation { system, contents })
}

/// Signs the first call of each step since the last input of the user: such models refuse a request
/// without it.
fn add_missing_signatures(contents: &mut [NativeContent<'_>]) {
    let last_input = contents.iter().rposition(|content| content.has_user_input);
    for content in &mut contents[last_input.map_or(0, |at| at + 1)..] {
        let mut calls = content
            .parts
            .iter_mut()
            .filter(|part| part.is_function_call());
        if let Some(first) = calls.next() {
            first.set_default_signature(SKIP_SIGNATURE_VALIDATION);
        }
    }
}

struct ContentsEncoder<'a> {
    system: Vec<SystemPart<'a>>,
    contents: Vec<NativeContent<'a>>,
    step: UserStep<'a>,
    call_names: CallNames<'a>,
    media_in_results: bool,
}

/// What the user sends between two turns of the model.
#[derive(Default)]
struct UserStep<'a> {
    results: Vec<NativePart<'a>>,
    /// Media of results that cannot hold it themselves.
    moved_media: Vec<MediaPayload<'a>>,
    input: Vec<NativePart<'a>>,
}

impl<'a> ContentsEncoder<'a> {
    fn encode_system_turn(
        &mut self,
        turn: &'a Turn<'_>,
        leading: bool,
        losses: &mut Losses,
    ) -> Result<(), ApiError> {
        let before = self.system.len();
        for part in &turn.parts {
            let PartKind::Text(text) = &part.kind else {
                let message = "a system prompt for this model can hold nothing but text";
                return Err(ApiError::invalid(message).at_location(location_of(turn, part)));
            };
            if !text.is_empty() {
                self.system.push(SystemPart { text });
            }
        }
        if !leading && self.system.len() > before {
            losses.approximated(FieldLocation::Turn { turn: turn.at });
        }
        Ok(())
    }

    fn encode_user_turn(
        &mut self,
        turn: &'a Turn<'_>,
        losses: &mut Losses,
    ) -> Result<(), ApiError> {
        report_empty(turn, losses);
        for part in &turn.parts {
            match &part.kind {
                PartKind::Text(text) | PartKind::Refusal(text) => {
                    let text = (!text.is_empty()).then(|| NativePayload::Text(text).into());
                    self.step.input.extend(text);
                }
                PartKind::Media(media) => {
                    let media = encode_media(media, &location_of(turn, part), losses)?;
                    self.step.input.push(NativePayload::from(media).into());
                }
                PartKind::Result(result) => {
                    let location = location_of(turn, part);
                    let Some(name) = self.call_names.answer(result, &location)? else {
                        losses.dropped(location);
                        continue;
                    };
                    let response = encode_function_response(
                        result,
                        name,
                        &location,
                        self.media_in_results,
                        &mut self.step.moved_media,
                        losses,
                    )?;
                    let payload = NativePayload::FunctionResponse(response);
                    self.step.results.push(payload.into());
                }
                // Only a model thinks and calls.
                PartKind::Reasoning { .. } | PartKind::Call(_) => {
                    losses.dropped(location_of(turn, part));
                }
            }
        }
        Ok(())
    }

    /// Appends the contents of the user's step that a turn of the model, or the end, completes.
    fn end_step(&mut self) {
        let UserStep {
            results,
            moved_media,
            input,
        } = std::mem::take(&mut self.step);
        if !results.is_empty() {
            self.contents.push(NativeContent::user(results, false));
        }
        let has_user_input = !input.is_empty();
        let moved_media = moved_media
            .into_iter()
            .map(|media| NativePayload::from(media).into());
        let parts: Vec<_> = moved_media.chain(input).collect();
        if !parts.is_empty() {
            self.contents
                .push(NativeContent::user(parts, has_user_input));
        }
    }

    fn encode_model_turn(
        &mut self,
        turn: &'a Turn<'_>,
        losses: &mut Losses,
    ) -> Result<(), ApiError> {
        report_empty(turn, losses);
        let parts = self.encode_model_parts(turn, losses)?;
        if parts.is_empty() {
            return Ok(());
        }
        self.end_step();
        match self.contents.last_mut() {
            Some(content) if content.role == MODEL => content.parts.extend(parts),
            _ => self.contents.push(NativeContent {
                role: MODEL,
                parts,
                has_user_input: false,
            }),
        }
        Ok(())
    }

    fn encode_model_parts(
        &mut self,
        turn: &'a Turn<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<NativePart<'a>>, ApiError> {
        let mut parts = SignedContentParts::default();
        for part in &turn.parts {
            let location = || location_of(turn, part);
            match &part.kind {
                PartKind::Text(text) if text.is_empty() => {}
                PartKind::Text(text) => parts.push(NativePayload::Text(text), None),
                PartKind::Refusal(text) => {
                    losses.approximated(location());
                    parts.push(NativePayload::Text(text), None);
                }
                PartKind::Media(media) => {
                    parts.push(encode_media(media, &location(), losses)?.into(), None);
                }
                PartKind::Call(call) => {
                    self.call_names.add(call);
                    let of_signature = || location().field(PartField::CallSignature);
                    let signature =
                        encode_own_signature(call.signature.as_ref(), of_signature, losses);
                    let call = encode_function_call(call, location, losses);
                    parts.push(NativePayload::FunctionCall(call), signature);
                }
                PartKind::Reasoning { text, signature } => {
                    // Reasoning goes back only with a signature of this format.
                    match encode_own_signature(signature.as_ref(), location, losses) {
                        Some(signature) => parts.push_reasoning(text, signature),
                        None if signature.is_none() && !text.is_empty() => {
                            losses.dropped(location());
                        }
                        None => {}
                    }
                }
                PartKind::Result(_) => losses.dropped(location()),
            }
        }
        Ok(parts.finish())
    }
}

fn location_of(turn: &Turn<'_>, part: &Part<'_>) -> FieldLocation {
    FieldLocation::Part {
        turn: turn.at,
        part: part.at,
    }
}

/// Reports a turn without content, which is left out, so that its neighbours may become one.
fn report_empty(turn: &Turn<'_>, losses: &mut Losses) {
    let is_empty = |part: &Part<'_>| matches!(&part.kind, PartKind::Text(text) if text.is_empty());
    if turn.parts.iter().all(is_empty) {
        losses.approximated(FieldLocation::Turn { turn: turn.at });
    }
}
