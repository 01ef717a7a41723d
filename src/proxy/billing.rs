//! What a request may cost, before it is forwarded, and what it has cost.

pub(super) mod body_growth;
mod image_output;
mod known_cost;
mod recording_time;
mod response_time;
pub(super) mod settlement;
mod thinking_output;

use std::time::Duration;

use jiff::Timestamp;

use super::context::{RequestContext, RequestCost};
use super::large_body;
use crate::access::{self, Leases, PendingReservation, Reserve};
use crate::formats::{DEFAULT_TOOL_ROUNDS, Operation, RequestFindings};
use crate::model::{ApiError, Format, Money, Usage};
use crate::runtime::{Attempt, Prices};
use crate::translate::{BodyEstimate, MeasuredUsage, likely_tokens_of_text};
use image_output::max_image_tokens;
use known_cost::check_known_cost;
use response_time::{billed_time, longest_time};
use thinking_output::{explain_thinking, max_compaction, max_predicted, max_thinking};

/// The output of models that do not say how long it may be, where the request does not either.
const DEFAULT_OUTPUT_TOKENS: u64 = 4096;

/// The same of models that generate images in a conversation, where that limit is sent.
const DEFAULT_IMAGE_TOKENS: u64 = 8192;

/// The input of models that do not say how much they take: as much as the largest ones.
const DEFAULT_INPUT_TOKENS: u64 = 1 << 20;

/// What a request for images may do that could cost too much.
const SMALLER_IMAGES: &str = "name a smaller `size`, or ask for fewer images";

/// Reserves the highest price that any of the attempts may have, for a key with a cap; or says what to wait for.
pub(super) fn reserve(
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
                .saturating_add(compacted_of(attempt).unwrap_or_default()),
            false => 0,
        };
        let recording = recording_time::longest(request.operation, attempt);
        // What is compacted is read twice, and a prompt for images once for each.
        let readings = 1 + u64::from(compacted_of(attempt).is_some());
        let readings = readings.max(images_of(attempt, client, limit.choices));
        let tokens = input_of(attempt).tokens.saturating_mul(readings);
        let highest = prices.max_cost(tokens, output, milliseconds(longest_time(attempt)));
        Some(highest + prices.audio_cost(recording))
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

/// The most input that an attempt may be billed for.
#[derive(Clone, Copy)]
struct MaxInput {
    tokens: u64,
    /// Some of it is not in the body, so that it may be as much as the model takes.
    is_unseen: bool,
    /// How often the upstream may read it.
    readings: u64,
}

/// How often an upstream may read the prompt again for its own tools.
#[derive(Clone, Copy, Default)]
struct ToolRounds {
    /// As the request says, in the client's format.
    declared: u64,
    /// It has a field that the gateway does not know, and for which an upstream of that format may run tools.
    may_be_more: bool,
}

impl ToolRounds {
    fn of(findings: &RequestFindings) -> ToolRounds {
        ToolRounds {
            declared: findings.tool_rounds,
            may_be_more: findings.may_start_tools,
        }
    }

    /// Translation does not keep the limits of tools, and leaves behind what is not known.
    fn at(self, is_passthrough: bool) -> u64 {
        match (self.declared, is_passthrough) {
            (declared, true) if self.may_be_more => declared.max(DEFAULT_TOOL_ROUNDS),
            (declared, true) => declared,
            (0, false) => 0,
            (_, false) => DEFAULT_TOOL_ROUNDS,
        }
    }
}

fn max_input(
    estimate: BodyEstimate,
    rounds: ToolRounds,
    attempt: &Attempt,
    client: Format,
) -> MaxInput {
    let is_passthrough = attempt.upstream.format == client;
    let readings = rounds.at(is_passthrough).saturating_add(1);
    let is_unseen = estimate.has_unseen_input(is_passthrough) || readings > 1;
    let seen = estimate.max_tokens(attempt.settings.settings.max_image_tokens);
    // An upstream refuses more than its model takes, of each input.
    let most = attempt.settings.settings.max_input_tokens;
    let most = most.map(|most| most.saturating_mul(estimate.inputs()));
    let tokens = match most {
        Some(most) if is_unseen => most.saturating_mul(readings),
        Some(most) => seen.min(most),
        None if is_unseen => seen.saturating_mul(readings).max(DEFAULT_INPUT_TOKENS),
        None => seen,
    };
    MaxInput {
        tokens,
        is_unseen,
        readings,
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

/// Says in the error of a cap why so much would have been reserved.
fn explain_unseen(mut api_error: ApiError, input: MaxInput, field: Option<String>) -> ApiError {
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

/// Tells whether the images API answers a conversation: the client's limit is for text, and is not sent there.
fn answers_with_image(attempt: &Attempt, client: Format) -> bool {
    attempt.upstream.format == Format::Images && client != Format::Images
}

/// How many images the images API makes, for each of which the prompt is billed.
fn images_of(attempt: &Attempt, client: Format, choices: u64) -> u64 {
    match [attempt.upstream.format, client].contains(&Format::Images) {
        true => choices,
        false => 1,
    }
}

/// The longest output of an attempt, for each choice: the limit of the request, or else the one that is sent. `pixels`: width
/// and height of an image.
fn max_output(limit: Option<u64>, pixels: Option<(u32, u32)>, attempt: &Attempt) -> u64 {
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
pub(super) fn reserved_output(ctx: &RequestContext, attempt: &Attempt) -> Option<u64> {
    let is_capped = ctx.client.key().is_some_and(|key| key.is_capped());
    let request = ctx.route.request()?;
    let is_reserved = is_capped
        && attempt.settings.prices.is_some()
        && request.operation.has_output()
        && request.output_limit.output.is_none();
    is_reserved.then(|| max_output(None, request.output_limit.pixels, attempt))
}

/// The cost of a request by the prices of the models that answered, computed once.
pub(super) fn cost(ctx: &mut RequestContext) -> Option<RequestCost> {
    if ctx.billing.cost().is_none() {
        ctx.billing.set_cost(compute_cost(ctx));
    }
    ctx.billing.cost()
}

/// Keeps what the unusable response of an attempt costs a key with a cap: another attempt follows.
/// Returns the cost of this attempt alone.
pub(super) fn keep_cost(ctx: &mut RequestContext) -> Option<Money> {
    if !(ctx.billing.is_reserved() && ctx.attempt.is_unusable()) {
        return None;
    }
    let of_attempt = cost_of_attempt(ctx);
    ctx.billing.set_earlier(compute_cost(ctx));
    of_attempt?.cost
}

fn compute_cost(ctx: &RequestContext) -> Option<RequestCost> {
    match (ctx.billing.earlier(), cost_of_attempt(ctx)) {
        (Some(earlier), Some(last)) => Some(earlier.plus(last)),
        (earlier, last) => last.or(earlier),
    }
}

fn cost_of_attempt(ctx: &RequestContext) -> Option<RequestCost> {
    let unread = unread(ctx);
    let mut metered = unread.or_else(|| metered(ctx))?;
    let recording = recording_time::billed(ctx, || input_tokens(ctx));
    if let Some(recording) = recording.filter(|_| unread.is_none() && !is_counted(ctx)) {
        // What is billed by the minute has no tokens, unless the upstream counts them.
        metered = MeasuredUsage {
            usage: Usage::default(),
            estimated: recording.is_estimated,
        };
    }
    let recording = recording.map(|recording| recording.milliseconds);
    let prices = ctx.route.current()?.settings.prices;
    let took = milliseconds(billed_time(ctx));
    let reserved = ctx.billing.reserved().filter(|_| unread.is_some());
    // What is reserved for earlier attempts is theirs.
    let earlier = ctx.billing.earlier().and_then(|earlier| earlier.cost);
    let reserved = reserved.map(|all| all.saturating_sub(earlier.unwrap_or_default()));
    Some(RequestCost {
        metered,
        cost: prices.map(|prices| {
            let audio = prices.audio_cost(recording.unwrap_or_default());
            let cost = || prices.cost(&metered.usage, took) + audio;
            reserved.unwrap_or_else(cost)
        }),
        audio_milliseconds: recording,
        milliseconds: prices.filter(Prices::charges_time).map(|_| took),
    })
}

/// Tells whether the upstream has counted the tokens of the attempt under way.
fn is_counted(ctx: &RequestContext) -> bool {
    let translator = ctx.response.translator.as_ref();
    let usage = translator.and_then(|translator| translator.observer().usage);
    usage.is_some_and(|usage| !usage.is_blank())
}

/// The most that a response may have which the gateway cannot read to its end, for a key with a cap: it costs what was
/// reserved, since its usage stands at its end.
fn unread(ctx: &RequestContext) -> Option<MeasuredUsage> {
    let translator = ctx.response.translator.as_ref();
    let is_unread = translator.is_some_and(|translator| translator.observer().is_unread);
    let is_unread = is_unread || ctx.attempt.is_unread() || ctx.client.is_given_up();
    let is_unread = is_unread && ctx.billing.is_reserved();
    let (attempt, request) = (ctx.route.current()?, ctx.route.request()?);
    let limit = request.output_limit;
    is_unread.then(|| MeasuredUsage {
        usage: Usage {
            input: reserved_input(ctx).unwrap_or_else(|| input_tokens(ctx)),
            output: max_output(limit.output, limit.pixels, attempt).saturating_mul(limit.choices),
            ..Usage::default()
        },
        estimated: true,
    })
}

/// What is answered with an error costs nothing, unless the upstream has reported usage with a response that cannot be
/// used, and the key has a cap. A stream that breaks off costs what came of it, and a client that leaves what it had
/// asked until then.
fn metered(ctx: &RequestContext) -> Option<MeasuredUsage> {
    if ctx.route.is_token_count() {
        return None;
    }
    let left = ctx.client.has_left();
    let translator = ctx.response.translator.as_ref().filter(|translator| {
        let observed = translator.observer();
        let is_whole = observed.ended && observed.api_error.is_none();
        let is_received = is_whole || ctx.response.status() == 200 || left;
        let is_reported = observed.usage.is_some_and(|usage| !usage.is_blank());
        (is_received && (observed.has_content || observed.usage.is_some()))
            || (is_reported && ctx.attempt.is_unusable() && ctx.billing.is_reserved())
    });
    match translator {
        Some(translator) => Some(translator.usage(|| unreported_input(ctx))),
        None if left && ctx.attempt.sent_at().is_some() => {
            Some(MeasuredUsage::without_response(unreported_input(ctx)))
        }
        None => None,
    }
}

/// The input of a response that has not reported it. A client that leaves could leave each time: it pays for what was
/// reserved where that is more than its body.
fn unreported_input(ctx: &RequestContext) -> u64 {
    let reserved = || reserved_input(ctx).filter(|_| ctx.client.has_left());
    reserved().unwrap_or_else(|| input_tokens(ctx))
}

/// What the attempt is billed for its input, where the upstream may have read more than the client has sent.
fn reserved_input(ctx: &RequestContext) -> Option<u64> {
    let (estimate, attempt) = (ctx.billing.estimate()?, ctx.route.current()?);
    let request = ctx.route.request();
    let findings = request.map(|request| request.findings(ctx.client.codec(), &ctx.route.body));
    let rounds = findings.map_or_else(ToolRounds::default, ToolRounds::of);
    let input = max_input(estimate, rounds, attempt, ctx.client.format());
    let growth = ctx.billing.reserved_growth();
    let body = match input.is_unseen {
        true => input.tokens,
        false if growth > 0 => input_tokens(ctx),
        false => return None,
    };
    Some(body.saturating_add(likely_tokens_of_text(growth)))
}

/// About how many tokens were sent. The body itself is not kept until the end of a stream.
fn input_tokens(ctx: &RequestContext) -> u64 {
    let known = ctx.billing.input_tokens();
    known.unwrap_or_else(|| match ctx.billing.estimate() {
        Some(estimate) => estimate.read_tokens(&ctx.route.body),
        None => estimate_body(ctx).tokens(),
    })
}

/// What is paid for is counted; an estimate that costs nothing may be rough.
fn estimate_body(ctx: &RequestContext) -> BodyEstimate {
    let body = &ctx.route.body;
    let prices = ctx
        .route
        .current()
        .and_then(|attempt| attempt.settings.prices);
    let request = ctx.route.request();
    let request = request.filter(|request| prices.is_some() || !request.is_conversation());
    match request {
        Some(request) if !request.is_conversation() => {
            request.estimate(ctx.client.codec(), &ctx.route.model_traits(), body)
        }
        Some(request) => {
            let traits = ctx.route.model_traits();
            BodyEstimate::exact(ctx.client.codec(), &request.head(&traits), body)
        }
        None => BodyEstimate::sampled(body),
    }
}

/// The body is about to be freed; only what has no cost yet may need its size: a stream that breaks off.
pub(super) fn before_header(ctx: &mut RequestContext) {
    let translator = ctx.response.translator.as_ref();
    let usage = translator.and_then(|translator| translator.observer().usage);
    // What is reserved may be paid, whatever the upstream has reported so far.
    let may_be_billed = usage.unwrap_or_default().input == 0 || ctx.billing.estimate().is_some();
    let is_known = ctx.billing.input_tokens().is_some() || ctx.billing.cost().is_some();
    if may_be_billed && !is_known {
        let tokens = large_body::process(ctx.route.body.len(), || input_tokens(ctx));
        ctx.billing.set_input_tokens(tokens);
    }
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
