//! The most input that an attempt may be billed for.

use super::thinking_output::max_compaction;
use crate::formats::{DEFAULT_TOOL_ROUNDS, RequestFindings};
use crate::model::{ApiError, Format};
use crate::runtime::Attempt;
use crate::translate::BodyEstimate;

/// The input of models that do not say how much they take: as much as the largest ones.
const DEFAULT_INPUT_TOKENS: u64 = 1 << 20;

/// The same of each input, where a request has several: models of embeddings and rankings take less.
const DEFAULT_TOKENS_PER_INPUT: u64 = 1 << 17;

/// The most input that an attempt may be billed for.
#[derive(Clone, Copy)]
pub(super) struct MaxInput {
    pub(super) tokens: u64,
    /// Some of it is not in the body, so that it may be as much as the model takes.
    pub(super) is_unseen: bool,
    /// How often the upstream may read it.
    readings: u64,
}

/// How often an upstream may read the prompt again for its own tools.
#[derive(Clone, Copy, Default)]
pub(super) struct ToolRounds {
    /// As the request says, in the client's format.
    declared: u64,
    /// It has a field that the gateway does not know, and for which an upstream of that format may run tools.
    may_be_more: bool,
    /// It may ask for images, which upstreams of the responses format make with a tool of their own.
    may_make_images: bool,
}

impl ToolRounds {
    pub(super) fn of(findings: &RequestFindings) -> ToolRounds {
        ToolRounds {
            declared: findings.tool_rounds,
            may_be_more: findings.may_start_tools,
            may_make_images: findings.may_make_images,
        }
    }

    /// Translation does not keep the limits of tools, and leaves behind what is not known.
    pub(super) fn at(self, upstream: Format, is_passthrough: bool) -> u64 {
        let has_image_tool = upstream == Format::Responses && self.may_make_images;
        match (self.declared, is_passthrough) {
            (declared, true) if self.may_be_more => declared.max(DEFAULT_TOOL_ROUNDS),
            (declared, true) => declared,
            (0, false) if !has_image_tool => 0,
            (_, false) => DEFAULT_TOOL_ROUNDS,
        }
    }
}

pub(super) fn max_input(
    estimate: BodyEstimate,
    rounds: ToolRounds,
    attempt: &Attempt,
    client: Format,
) -> MaxInput {
    let is_passthrough = attempt.upstream.format == client;
    let readings = rounds
        .at(attempt.upstream.format, is_passthrough)
        .saturating_add(1);
    let is_unseen = estimate.has_unseen_input(is_passthrough) || readings > 1;
    let seen = estimate.max_tokens(attempt.settings.settings.max_image_tokens);
    // An upstream refuses more than its model takes, of each input.
    let most = attempt.settings.settings.max_input_tokens;
    let most = most.map(|most| most.saturating_mul(estimate.inputs()));
    let tokens = match most {
        Some(most) if is_unseen => most.saturating_mul(readings),
        Some(most) => seen.min(most),
        None if is_unseen => {
            let of_inputs = estimate.inputs().saturating_mul(DEFAULT_TOKENS_PER_INPUT);
            let seen = seen.saturating_mul(readings);
            seen.max(of_inputs).max(DEFAULT_INPUT_TOKENS)
        }
        None => seen,
    };
    MaxInput {
        tokens,
        is_unseen,
        readings,
    }
}

/// The most input that an attempt may be billed for, with every time that it is read, for so many choices.
pub(super) fn max_billed_input(
    estimate: BodyEstimate,
    findings: &RequestFindings,
    choices: u64,
    attempt: &Attempt,
    client: Format,
) -> u64 {
    let input = max_input(estimate, ToolRounds::of(findings), attempt, client);
    // What is compacted is read twice, and a prompt for images once for each.
    let is_compacted = max_compaction(findings.may_compact, attempt, client).is_some();
    let readings = 1 + u64::from(is_compacted);
    let readings = readings.max(images_of(attempt, client, choices));
    input.tokens.saturating_mul(readings)
}

/// How many images the images API makes, for each of which the prompt is billed.
fn images_of(attempt: &Attempt, client: Format, choices: u64) -> u64 {
    match [attempt.upstream.format, client].contains(&Format::Images) {
        true => choices,
        false => 1,
    }
}

/// Says in the error of a cap why so much would have been reserved.
pub(super) fn explain_unseen(
    mut api_error: ApiError,
    input: MaxInput,
    field: Option<String>,
) -> ApiError {
    let (tokens, field) = (input.tokens, field.filter(|field| !field.is_empty()));
    let (which, instead) = match field {
        Some(field) => (format!("by `{field}`"), "leave that out"),
        None => (
            "such as a document, a recording or a stored conversation".to_owned(),
            "send the input as text",
        ),
    };
    let rounds = match input.readings {
        1 => String::new(),
        readings => format!(", read {readings} times for the upstream's own tools"),
    };
    let why = format!(
        " (it refers to input that the gateway cannot count, {which}, and that may have {tokens} tokens{rounds}: \
         {instead}, or set max_input_tokens of the model)"
    );
    api_error.message.push_str(&why);
    api_error
}
