//! Reserves the highest price that a request may have, before it is forwarded.

use jiff::Timestamp;

use super::image_output::{max_image_tokens, max_tool_images};
use super::known_cost::check_known_cost;
use super::max_input::{ToolRounds, explain_unseen, max_billed_input, max_input};
use super::recording_time;
use super::response_time::{longest_time, milliseconds};
use super::searches::max_further_searches;
use super::thinking_output::{explain_thinking, max_compaction, max_predicted, max_thinking};
use crate::access::{self, Leases, PendingReservation, Reserve};
use crate::formats::Operation;
use crate::model::{ApiError, Format};
use crate::proxy::context::RequestContext;
use crate::runtime::Attempt;

/// The output of models that do not say how long it may be, where the request does not either.
const DEFAULT_OUTPUT_TOKENS: u64 = 4096;

/// The same of models that generate images in a conversation, where that limit is sent.
const DEFAULT_IMAGE_TOKENS: u64 = 8192;

/// What a request for images may do that could cost too much.
const SMALLER_IMAGES: &str = "name a smaller `size`, or ask for fewer images";

/// Reserves the highest price that any of the attempts may have, for a key with a cap; or says what to wait for.
pub(in crate::proxy) fn reserve(
    leases: Option<&Leases>,
    ctx: &mut RequestContext,
) -> Result<Option<PendingReservation>, ApiError> {
    let key = ctx.client.key();
    let Some((key, capped)) = key.and_then(|key| Some((key, key.capped()?))) else {
        return Ok(None);
    };
    let request = ctx.route.request();
    let Some(request) = request.filter(|request| request.operation != Operation::CountTokens)
    else {
        return Ok(None);
    };
    let attempts = ctx.route.attempts();
    if attempts
        .iter()
        .all(|attempt| attempt.settings.prices.is_none())
    {
        return Ok(None);
    }
    let findings = request.findings(ctx.client.codec(), &ctx.route.body);
    check_known_cost(capped, request, findings, attempts)?;
    let limit = request.output_limit;
    let traits = ctx.route.model_traits();
    let body = &ctx.route.body;
    let estimate = request.estimate(ctx.client.codec(), &traits, body);
    let has_output = request.operation.has_output();
    let client = ctx.client.format();
    let rounds = ToolRounds::of(findings);
    let input_of = |attempt: &Attempt| max_input(estimate, rounds, attempt, client);
    let extra_thinking = findings.extra_thinking;
    let thinking_of = |attempt: &Attempt| max_thinking(extra_thinking, attempt, client);
    let compacted_of = |attempt: &Attempt| max_compaction(findings.may_compact, attempt, client);
    let images_of =
        |attempt: &Attempt| max_tool_images(findings, limit.choices, limit.pixels, attempt, client);
    let highest_of = |attempt: &Attempt| {
        let prices = attempt.settings.prices?;
        let limit_of_text = limit
            .output
            .filter(|_| !answers_with_image(attempt, client));
        let output = match has_output {
            true => max_output(limit_of_text, limit.pixels, attempt)
                .saturating_add(thinking_of(attempt))
                .saturating_add(max_predicted(findings.predicted_bytes, attempt, client))
                .saturating_mul(limit.choices)
                .saturating_add(compacted_of(attempt).unwrap_or_default())
                .saturating_add(images_of(attempt)),
            false => 0,
        };
        let recording = recording_time::longest(request.operation, attempt);
        let tokens = max_billed_input(estimate, findings, limit.choices, attempt, client);
        let highest = prices.max_cost(tokens, output, milliseconds(longest_time(attempt)));
        let seen = estimate.max_tokens(attempt.settings.settings.max_image_tokens);
        let searches = max_further_searches(request.operation, estimate.inputs(), seen);
        let searches = prices.further_requests_cost(searches);
        Some(highest + prices.audio_cost(recording) + searches)
    };
    let highest = attempts.iter().filter_map(highest_of).max();
    let highest = highest.unwrap_or_default();
    let unseen = attempts.iter().map(input_of).find(|input| input.is_unseen);
    let reserved = access::reserve(leases, key, highest, Timestamp::now());
    let reserved = reserved.map_err(|api_error| explain_images(api_error, client));
    let reserved = reserved.map_err(|api_error| match unseen {
        Some(input) => explain_unseen(api_error, input, findings.unknown_field.clone()),
        None => match (extra_thinking, attempts.iter().map(thinking_of).max()) {
            (Some(thinking), Some(tokens @ 1..)) => {
                explain_thinking(api_error, thinking.field, tokens)
            }
            _ => api_error,
        },
    })?;
    ctx.billing.set_estimate(estimate);
    match reserved {
        Reserve::Ready(reservation) => {
            ctx.billing.set_reservation(reservation);
            Ok(None)
        }
        Reserve::Pending(waiting) => Ok(Some(waiting)),
    }
}

/// Says in the error of a cap what makes images cheaper.
fn explain_images(mut api_error: ApiError, client: Format) -> ApiError {
    if client == Format::Images {
        let message = &mut api_error.message;
        *message = message.replace(access::SHORTER_ANSWER, SMALLER_IMAGES);
    }
    api_error
}

/// Tells whether the images API answers a conversation: the client's limit is for text, and is not sent there.
fn answers_with_image(attempt: &Attempt, client: Format) -> bool {
    attempt.upstream.format == Format::Images && client != Format::Images
}

/// The longest output of an attempt, for each choice: the limit of the request, or else the one that is sent. `pixels`: width
/// and height of an image.
pub(super) fn max_output(limit: Option<u64>, pixels: Option<(u32, u32)>, attempt: &Attempt) -> u64 {
    let usual = attempt.settings.settings.max_output_tokens;
    let is_image = attempt.settings.settings.is_image_model();
    let most = limit.or(usual).unwrap_or_else(|| match is_image {
        _ if attempt.upstream.format == Format::Images => max_image_tokens(pixels),
        true => DEFAULT_IMAGE_TOKENS,
        false => DEFAULT_OUTPUT_TOKENS,
    });
    most.max(attempt.upstream.format.min_output_tokens())
}

/// The limit of the output to send where the request has none, for a key with a cap: more would not be paid for.
pub(in crate::proxy) fn reserved_output(ctx: &RequestContext, attempt: &Attempt) -> Option<u64> {
    let request = ctx.route.request()?;
    let is_reserved = is_paid_by_cap(ctx, attempt)
        && request.operation.has_output()
        && request.output_limit.output.is_none();
    is_reserved.then(|| max_output(None, request.output_limit.pixels, attempt))
}

/// The most images to let an upstream make with its own tool, for a key with a cap: more would not be paid for.
pub(in crate::proxy) fn image_limit(ctx: &RequestContext, attempt: &Attempt) -> Option<u64> {
    let request = ctx.route.request()?;
    is_paid_by_cap(ctx, attempt).then_some(request.output_limit.choices)
}

fn is_paid_by_cap(ctx: &RequestContext, attempt: &Attempt) -> bool {
    let is_capped = ctx.client.key().is_some_and(|key| key.is_capped());
    is_capped && attempt.settings.prices.is_some()
}
