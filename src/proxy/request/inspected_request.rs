//! Begins and ends the capture of a request whose key is inspected. All others pay one look at a flag of their key.

use pingora_proxy::Session;

use crate::model::{Action, ApiErrorKind};
use crate::proxy::capture::{CaptureRecorder, FinishedRequest};
use crate::proxy::context::loss_paths::loss_paths;
use crate::proxy::context::{RequestContext, RequestCost};
use crate::runtime::CaptureOutcome;

/// Begins the capture of a request whose key is known, if the key is inspected.
pub(in crate::proxy) fn begin(session: &Session, ctx: &mut RequestContext) {
    let Some(key) = ctx.client.key() else {
        return;
    };
    let Some(capture) = key.inspection.begin(ctx.client.request_id()) else {
        return;
    };
    let (started, format) = (ctx.client.started(), ctx.client.label());
    let recorder = CaptureRecorder::new(capture, started, session.req_header(), format);
    ctx.capture = Some(Box::new(recorder));
}

/// Ends the capture of a request that has ended.
pub(in crate::proxy) fn finish(ctx: &mut RequestContext, cost: Option<RequestCost>) {
    let Some(mut recorder) = ctx.capture.take() else {
        return;
    };
    let upstream = ctx.route.current().map(|attempt| attempt.upstream.clone());
    recorder.finish(FinishedRequest {
        upstream: upstream.as_deref(),
        codec: ctx.client.codec(),
        model: ctx.route.model_name().unwrap_or_default(),
        is_stream: ctx.route.is_stream(),
        has_left: ctx.client.has_left(),
        outcome: outcome(ctx, cost, &recorder),
    });
}

fn outcome(
    ctx: &RequestContext,
    cost: Option<RequestCost>,
    recorder: &CaptureRecorder,
) -> CaptureOutcome {
    let (of_request, of_response) = (&ctx.attempt.losses, recorder.response_losses());
    let is_dropped = |action| action == Action::Dropped;
    let is_adjusted = |action| action != Action::Dropped;
    CaptureOutcome {
        status: ctx.response.status(),
        error: ctx.response.error_kind().map(ApiErrorKind::name),
        usage: cost.map(|cost| cost.metered.usage),
        is_estimated: cost.is_some_and(|cost| cost.metered.estimated),
        cost: cost.and_then(|cost| cost.cost),
        dropped: loss_paths(ctx, of_request, is_dropped),
        adjusted: loss_paths(ctx, of_request, is_adjusted),
        response_dropped: loss_paths(ctx, of_response, is_dropped),
        response_adjusted: loss_paths(ctx, of_response, is_adjusted),
        microseconds: recorder.elapsed(),
    }
}
