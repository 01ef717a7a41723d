//! Replies of an upstream of this format.

use super::error;
use super::grounding::Run;
use super::parts::push_thought;
use super::response_parts::{Candidate, PartIn, Piece, Said, is_exact, read_finish};
use crate::formats::read_reply;
use crate::model::{
    ApiError, Arguments, Call, Choice, FieldLocation, Finish, Json, Losses, Part, PartKind,
    Response, Signature, Text, ToolKind,
};

pub(super) fn decode<'a>(body: &'a [u8], losses: &mut Losses) -> Result<Response<'a>, ApiError> {
    if error::is_listed(body) {
        return Err(error::decode(200, body));
    }
    let mut piece: Piece<'a> = read_reply(body)?;
    if piece.error.is_some() {
        return Err(error::decode(200, body));
    }
    let candidates = piece.candidates.take().unwrap_or_default();
    let mut candidates: Vec<_> = candidates.into_iter().collect();
    candidates.sort_by_key(Candidate::number);
    let mut choices: Vec<_> = candidates
        .into_iter()
        .map(|candidate| read_candidate(candidate, losses))
        .collect();
    if choices.is_empty() {
        let words = piece.blocked().ok_or_else(|| {
            ApiError::bad_gateway("the upstream's reply holds neither an answer nor a reason")
        })?;
        choices.push(Choice {
            parts: Vec::new(),
            citations: Vec::new(),
            logprobs: Vec::new(),
            finish: Finish::Filtered(Some(words.into())),
        });
    }
    Ok(Response {
        created: piece.created(),
        id: piece.response_id.unwrap_or_default(),
        model: piece.model_version.unwrap_or_default(),
        choices,
        usage: piece.usage_metadata.map(|usage| usage.read()),
    })
}

fn read_candidate<'a>(candidate: Candidate<'a>, losses: &mut Losses) -> Choice<'a> {
    report(&candidate, losses);
    let mut parts = Parts::default();
    let content = candidate.content.and_then(|content| content.parts);
    for (number, part) in content.into_iter().flatten().enumerate() {
        parts.read(number, part, losses);
    }
    let Parts { parts, runs } = parts;
    let calls = parts
        .iter()
        .any(|part| matches!(part.kind, PartKind::Call(_)));
    let mut citations = Vec::new();
    if let Some(grounding) = candidate.grounding_metadata {
        citations.extend(grounding.citations(&runs));
    }
    if let Some(metadata) = candidate.citation_metadata {
        citations.extend(metadata.citations(&runs));
    }
    let logprobs = candidate.logprobs_result.into_iter();
    let reason = candidate.finish_reason.unwrap_or_default();
    let words = candidate.finish_message;
    Choice {
        parts,
        citations,
        logprobs: logprobs.flat_map(|logprobs| logprobs.read()).collect(),
        finish: read_finish(&reason, words, calls),
    }
}

/// What no other format can say of an answer.
fn report(candidate: &Candidate<'_>, losses: &mut Losses) {
    let mut dropped = |lost: bool, path: &'static str| {
        if lost {
            losses.dropped(FieldLocation::Path(path.into()));
        }
    };
    dropped(candidate.safety_ratings.is_some(), "safetyRatings");
    dropped(
        candidate.url_context_metadata.is_some(),
        "urlContextMetadata",
    );
    let reason = candidate.finish_reason.as_deref();
    let filtered = matches!(
        read_finish(reason.unwrap_or_default(), None, false),
        Finish::Filtered(_)
    );
    dropped(
        candidate.finish_message.is_some() && !filtered,
        "finishMessage",
    );
    report_finish(candidate.number(), reason, losses);
    if let Some(grounding) = &candidate.grounding_metadata {
        grounding.report(losses);
    }
    if let Some(citations) = &candidate.citation_metadata {
        citations.report(losses);
    }
}

/// A reason that not every format has a word for: a call that failed would look like any end.
pub(super) fn report_finish(candidate: u32, reason: Option<&str>, losses: &mut Losses) {
    if reason.is_some_and(|reason| !is_exact(reason)) {
        let path = format!("candidates[{candidate}].finishReason");
        losses.approximated(FieldLocation::Path(path.into()));
    }
}

#[derive(Default)]
struct Parts<'a> {
    parts: Vec<Part<'a>>,
    /// Plain words among them, by the numbers that sources speak of.
    runs: Vec<Run<'a>>,
}

impl<'a> Parts<'a> {
    fn read(&mut self, number: usize, part: PartIn<'a>, losses: &mut Losses) {
        let (said, signature) = part.read();
        let kind = match said {
            Said::Call(call) => {
                let name = call.name.unwrap_or_default();
                return self.push(PartKind::Call(Call {
                    id: call.id.filter(|id| !id.is_empty()),
                    name,
                    arguments: Arguments::Tree(arguments(call.args)),
                    signature,
                    kind: ToolKind::Function,
                }));
            }
            Said::Reasoning(text) => return push_thought(text, signature, None, &mut self.parts),
            Said::Words(text) => {
                self.runs.push(Run {
                    part: number,
                    text: text.clone(),
                });
                Some(PartKind::Text(text)).filter(|_| signature.is_none() || !self.is_empty_run())
            }
            Said::Media(media) => Some(PartKind::Media(media)),
            Said::Printed(text) => {
                losses.approximated(lost_part(number));
                Some(PartKind::Text(text))
            }
            // A signature may come in a part of its own.
            Said::Foreign if signature.is_some() => None,
            Said::Foreign => {
                losses.dropped(lost_part(number));
                None
            }
        };
        // Words and images have no place for a proof: it goes to the thought before them.
        self.signature(signature);
        if let Some(kind) = kind {
            self.push(kind);
        }
    }

    fn is_empty_run(&self) -> bool {
        self.runs.last().is_some_and(|run| run.text.is_empty())
    }

    fn signature(&mut self, signature: Option<Signature<'a>>) {
        if signature.is_some() {
            push_thought(Text::default(), signature, None, &mut self.parts);
        }
    }

    fn push(&mut self, kind: PartKind<'a>) {
        self.parts.push(Part { kind, at: None });
    }
}

fn lost_part(number: usize) -> FieldLocation {
    FieldLocation::Path(format!("content.parts[{number}]").into())
}

/// No arguments are an empty object.
pub(super) fn arguments(args: Option<Json<'_>>) -> Json<'_> {
    args.filter(Json::is_object)
        .unwrap_or_else(|| Json::Object(Vec::new().into()))
}
