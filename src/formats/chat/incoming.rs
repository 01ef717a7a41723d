//! Replies of an upstream of this format.

use super::reply_in::{Reply, Summary};
use super::said::{Bit, CallBit, WHOLE_SOUND};
use super::{error, reply_in};
use crate::formats::{no_answer, read_reply};
use crate::model::{
    ApiError, Call, Choice, Citation, FieldLocation, Losses, Part, PartKind, Response, Signature,
    Text,
};

pub(super) fn decode<'a>(body: &'a [u8], losses: &mut Losses) -> Result<Response<'a>, ApiError> {
    // Errors may come in a list.
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(error::decode(200, body));
    }
    let mut reply: Reply<'a> = read_reply(body)?;
    let Some(choices) = reply.choices.take().filter(|choices| !choices.is_empty()) else {
        return Err(reply.api_error().unwrap_or_else(no_answer));
    };
    let is_prompt_blocked = reply.is_prompt_blocked();
    let mut numbered = Vec::with_capacity(choices.len());
    for (position, choice) in (0..).zip(choices) {
        let number = choice.index.unwrap_or(position);
        let choice = read_choice(number, choice, is_prompt_blocked, losses)?;
        numbered.push((number, choice));
    }
    numbered.sort_by_key(|(number, _)| *number);
    Ok(Response {
        created: reply.created(),
        usage: reply.usage(),
        id: reply.id.unwrap_or_default(),
        model: reply.model.unwrap_or_default(),
        choices: numbered.into_iter().map(|(_, choice)| choice).collect(),
    })
}

fn read_choice<'a>(
    number: u32,
    mut choice: reply_in::Choice<'a>,
    is_prompt_blocked: bool,
    losses: &mut Losses,
) -> Result<Choice<'a>, ApiError> {
    let place = |field: &str| FieldLocation::Path(format!("choices[{number}].{field}").into());
    let mut answer = Answer::default();
    if let Some(said) = &mut choice.message {
        said.walk(&mut false, WHOLE_SOUND, &mut |bit| answer.add(bit));
    }
    if answer.fasten_seals() {
        losses.dropped(place("message.reasoning_details"));
    }
    let summary = Summary {
        has_calls: answer.has(|kind| matches!(kind, PartKind::Call(_))),
        has_refusal: answer.has(|kind| matches!(kind, PartKind::Refusal(_))),
        is_prompt_blocked,
    };
    let finish = choice.finish(summary)?;
    if choice.is_oddly_finished() {
        losses.approximated(place("finish_reason"));
    }
    Ok(Choice {
        logprobs: choice.logprobs().collect(),
        parts: answer.parts,
        citations: answer.citations,
        finish: finish.unwrap_or(summary.finish()),
    })
}

#[derive(Default)]
struct Answer<'a> {
    parts: Vec<Part<'a>>,
    citations: Vec<Citation<'a>>,
    call_seals: Vec<(Text<'a>, Signature<'a>)>,
    has_foreign_seal: bool,
}

impl<'a> Answer<'a> {
    /// Neighbours of one kind are one: in a stream nothing would stand between them.
    fn add(&mut self, bit: Bit<'a>) {
        let last = self.parts.last_mut().map(|part| &mut part.kind);
        match (bit, last) {
            (Bit::Text(more), Some(PartKind::Text(text)))
            | (Bit::Refusal(more), Some(PartKind::Refusal(text)))
            | (
                Bit::Reasoning(more),
                Some(PartKind::Reasoning {
                    text,
                    signature: None,
                }),
            ) => {
                text.to_mut().push_str(&more);
            }
            (Bit::Signature(new), Some(PartKind::Reasoning { signature, .. }))
                if signature.is_none() =>
            {
                *signature = Some(new);
            }
            (Bit::Text(text), _) => self.push(PartKind::Text(text)),
            (Bit::Refusal(text), _) => self.push(PartKind::Refusal(text)),
            (Bit::Reasoning(text), _) => self.push(PartKind::Reasoning {
                text,
                signature: None,
            }),
            (Bit::Signature(signature), _) => self.push(PartKind::Reasoning {
                text: Text::default(),
                signature: Some(signature),
            }),
            (Bit::Media(media), _) => self.push(PartKind::Media(media)),
            (Bit::Call(call), _) => self.push(PartKind::Call(whole(call))),
            (Bit::CallSeal { id, signature }, _) => self.call_seals.push((id, signature)),
            (Bit::ForeignSeal, _) => self.has_foreign_seal = true,
            (Bit::Citation(citation), _) => self.citations.push(citation),
        }
    }

    fn push(&mut self, kind: PartKind<'a>) {
        self.parts.push(Part { kind, at: None });
    }

    /// Puts each signature on its call. Whether one was lost.
    fn fasten_seals(&mut self) -> bool {
        let mut is_lost = self.has_foreign_seal;
        for (id, signature) in std::mem::take(&mut self.call_seals) {
            let sealed = self.parts.iter_mut().find_map(|part| match &mut part.kind {
                PartKind::Call(call) if call.id.as_ref() == Some(&id) => Some(call),
                _ => None,
            });
            match sealed {
                Some(call) => call.signature = Some(signature),
                None => is_lost = true,
            }
        }
        is_lost
    }

    fn has(&self, is: impl Fn(&PartKind<'_>) -> bool) -> bool {
        self.parts.iter().any(|part| is(&part.kind))
    }
}

fn whole(call: CallBit<'_>) -> Call<'_> {
    Call {
        id: call.id,
        name: call.name,
        arguments: call.arguments,
        signature: None,
        kind: call.kind,
    }
}
