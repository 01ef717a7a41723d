//! What a request has cost.

use super::max_input::{ToolRounds, max_input};
use super::recording_time;
use super::reservation::max_output;
use super::response_time::{billed_time, milliseconds};
use super::searches::further_searches;
use crate::model::{Money, Usage};
use crate::proxy::context::{RequestContext, RequestCost};
use crate::proxy::large_body;
use crate::runtime::Prices;
use crate::translate::{BodyEstimate, MeasuredUsage, likely_tokens_of_text};

/// The cost of a request by the prices of the models that answered, computed once.
pub(in crate::proxy) fn cost(ctx: &mut RequestContext) -> Option<RequestCost> {
    if ctx.billing.cost().is_none() {
        ctx.billing.set_cost(compute_cost(ctx));
    }
    ctx.billing.cost()
}

/// Keeps what the unusable response of an attempt costs a key with a cap: another attempt follows.
/// Returns the cost of this attempt alone.
pub(in crate::proxy) fn keep_cost(ctx: &mut RequestContext) -> Option<Money> {
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
            let searches = prices.further_requests_cost(further_searches(ctx));
            let cost = || prices.cost(&metered.usage, took) + audio + searches;
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
    // One that is over has its cost already.
    let is_unread = is_unread && ctx.billing.is_reserved() && ctx.attempt.sent_at().is_some();
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
    let growth = ctx.billing.growth();
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
pub(in crate::proxy) fn before_header(ctx: &mut RequestContext) {
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
