//! The spans of a request that is traced, made when it has ended: one for the request and one for each attempt.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pingora_proxy::Session;

use super::span_content::add_content;
use crate::model::ApiErrorKind;
use crate::proxy::context::{AttemptSpan, RequestContext, RequestCost, RequestSpans, SpanContent};
use crate::proxy::gateway::Gateway;
use crate::proxy::request::admission::client_address;
use crate::telemetry::{
    Attributes, Span, SpanId, SpanKind, SpanStatus, SpanStatusCode, TraceContext, gen_ai,
};

/// The trace flags say whether the parent is in another process, where that is known.
const HAS_REMOTE_FLAG: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;
const IS_SAMPLED: u32 = 1;

/// How many bytes of a path a span has.
const MAX_PATH: usize = 1024;

/// Room for the attributes that most spans have.
const ATTRIBUTES: usize = 18;

impl Gateway {
    /// Finds the trace of a request, or begins one.
    pub(in crate::proxy) fn start_trace(&self, session: &Session, ctx: &mut RequestContext) {
        if let Some(telemetry) = &self.telemetry {
            let mut context = telemetry.start(&session.req_header().headers);
            let is_asked = context.is_sampled;
            // Whoever sends a header is not known yet.
            if context.parent.is_some() {
                context.is_sampled = telemetry.samples_request(&context);
            }
            ctx.spans = Some(Box::new(RequestSpans::new(context, is_asked)));
        }
    }

    /// Leaves the spans of a request that has ended to be exported, if it is sampled.
    pub(in crate::proxy) fn record_spans(
        &self,
        session: &Session,
        ctx: &RequestContext,
        cost: Option<RequestCost>,
    ) {
        if let (Some(telemetry), Some(spans)) = (&self.telemetry, &ctx.spans)
            && spans.context.is_sampled
        {
            let owner = ctx.client.key().map(|key| &key.share);
            telemetry.record(owner, request_spans(session, ctx, spans, cost));
        }
    }
}

fn request_spans(
    session: &Session,
    ctx: &RequestContext,
    traced: &RequestSpans,
    cost: Option<RequestCost>,
) -> Vec<Span> {
    let clock = SpanClock::now();
    let mut spans = Vec::with_capacity(1 + traced.attempts.len());
    spans.push(request_span(session, ctx, &traced.context, cost, &clock));
    let last = traced.attempts.len().checked_sub(1);
    for (number, attempt) in traced.attempts.iter().enumerate() {
        // What earlier attempts cost is in the sum too.
        let is_alone = Some(number) == last && ctx.billing.earlier().is_none();
        let cost = cost.filter(|_| is_alone);
        let content = traced.content.as_deref();
        let content = content.filter(|_| Some(number) == last);
        let details = (cost, content);
        spans.push(attempt_span(ctx, attempt, &traced.context, details, &clock));
    }
    spans
}

fn request_span(
    session: &Session,
    ctx: &RequestContext,
    context: &TraceContext,
    cost: Option<RequestCost>,
    clock: &SpanClock,
) -> Span {
    let header = session.req_header();
    let status = ctx.response.status();
    let error = error_type(ctx.error_kind(), status);
    let mut attributes = Attributes::with_capacity(ATTRIBUTES);
    attributes.text(gen_ai::HTTP_REQUEST_METHOD, header.method.as_str());
    let path = header.uri.path();
    attributes.text(
        gen_ai::URL_PATH,
        &path[..path.floor_char_boundary(MAX_PATH)],
    );
    attributes.integer(gen_ai::HTTP_RESPONSE_STATUS_CODE, status.into());
    let client = client_address(session).map(|address| address.to_string());
    attributes.known_text(gen_ai::CLIENT_ADDRESS, client);
    attributes.text(gen_ai::REQUEST_ID, ctx.client.request_id());
    let key = ctx.client.key();
    attributes.known_text(gen_ai::KEY, key.map(|key| &*key.name));
    attributes.known_text(gen_ai::FORMAT, ctx.client.path_label());
    let request = ctx.route.request();
    let operation =
        request.map(|request| gen_ai::operation_name(request.operation, ctx.client.format()));
    attributes.known_text(gen_ai::OPERATION_NAME, operation);
    attributes.known_text(gen_ai::REQUEST_MODEL, ctx.route.model_name());
    if let (true, Some(first)) = (ctx.route.is_stream(), ctx.response.first_byte()) {
        attributes.flag(gen_ai::REQUEST_STREAM, true);
        attributes.number(gen_ai::TIME_TO_FIRST_CHUNK, first.as_secs_f64());
    }
    let amount = cost.and_then(|cost| cost.cost);
    attributes.known_text(gen_ai::COST, amount.map(|amount| amount.to_string()));
    attributes.known_text(gen_ai::ERROR_TYPE, error.clone());
    // A mistake of the client is no error of this server.
    let is_error = error.is_some() && !(400..500).contains(&status);
    let model = ctx.route.model().map(|model| &*model.label);
    let name = match (operation, model) {
        (Some(operation), Some(model)) => format!("{operation} {model}"),
        _ => header.method.to_string(),
    };
    let times = clock.times(ctx.client.started(), None);
    let mut span = span(context, context.span_id, name, times, attributes, is_error);
    span.kind = SpanKind::Server.into();
    if let Some(parent) = context.parent {
        span.parent_span_id = parent.to_vec();
        span.flags |= IS_REMOTE;
    }
    span
}

fn attempt_span(
    ctx: &RequestContext,
    traced: &AttemptSpan,
    context: &TraceContext,
    (cost, content): (Option<RequestCost>, Option<&SpanContent>),
    clock: &SpanClock,
) -> Span {
    let upstream = &traced.attempt.upstream;
    let (format, model) = (upstream.format, &*traced.attempt.model);
    let operation = ctx.route.request().map(|request| request.operation);
    let operation = operation.map_or("", |operation| gen_ai::operation_name(operation, format));
    let mut attributes = Attributes::with_capacity(ATTRIBUTES);
    attributes.text(gen_ai::OPERATION_NAME, operation);
    let provider = gen_ai::provider_name(&upstream.base.host, format);
    attributes.text(gen_ai::PROVIDER_NAME, provider);
    attributes.text(gen_ai::REQUEST_MODEL, model);
    attributes.text(gen_ai::SERVER_ADDRESS, &upstream.base.host);
    attributes.integer(gen_ai::SERVER_PORT, upstream.base.port.into());
    attributes.text(gen_ai::UPSTREAM, &*upstream.name);
    attributes.text(gen_ai::FORMAT, format.name());
    if ctx.route.is_stream() {
        attributes.flag(gen_ai::REQUEST_STREAM, true);
        if let Some(first) = traced.first_chunk {
            attributes.number(gen_ai::TIME_TO_FIRST_CHUNK, first.as_secs_f64());
        }
    }
    let response = &traced.response;
    attributes.known_text(gen_ai::RESPONSE_MODEL, response.model.as_deref());
    attributes.texts(gen_ai::FINISH_REASONS, &response.finish_reasons);
    match cost {
        Some(cost) => {
            gen_ai::add_usage(&mut attributes, &cost.metered.usage);
            if cost.metered.estimated {
                attributes.flag(gen_ai::ESTIMATED, true);
            }
        }
        None => {
            if let Some(usage) = &response.usage {
                gen_ai::add_usage(&mut attributes, usage);
            }
        }
    }
    if let Some(content) = content {
        add_content(&mut attributes, content, traced, ctx.route.is_stream());
    }
    let error = traced.error.map(ApiErrorKind::name);
    attributes.known_text(gen_ai::ERROR_TYPE, error);
    let times = clock.times(traced.started, traced.ended);
    let name = format!("{operation} {model}");
    let mut span = span(context, traced.id, name, times, attributes, error.is_some());
    span.kind = SpanKind::Client.into();
    span.parent_span_id = context.span_id.to_vec();
    span
}

fn span(
    context: &TraceContext,
    id: SpanId,
    name: String,
    (started, ended): (u64, u64),
    attributes: Attributes,
    is_error: bool,
) -> Span {
    let state = context.state.as_ref();
    let state = state.and_then(|state| state.to_str().ok());
    let code = SpanStatusCode::Error.into();
    Span {
        trace_id: context.trace_id.to_vec(),
        span_id: id.to_vec(),
        trace_state: state.unwrap_or_default().to_owned(),
        name,
        start_time_unix_nano: started,
        end_time_unix_nano: ended,
        attributes: attributes.into_list(),
        status: is_error.then_some(SpanStatus { code }),
        flags: IS_SAMPLED | HAS_REMOTE_FLAG,
        ..Span::default()
    }
}

/// The class of an error: its kind, or the status where there is none, as for a client that has left.
fn error_type(kind: Option<ApiErrorKind>, status: u16) -> Option<String> {
    let by_status = || (status >= 400).then(|| status.to_string());
    kind.map(|kind| kind.name().to_owned()).or_else(by_status)
}

/// Makes times of the day from those that the request has kept.
struct SpanClock {
    now: Instant,
    nanoseconds: u64,
}

impl SpanClock {
    fn now() -> SpanClock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanoseconds = since.unwrap_or_default().as_nanos();
        SpanClock {
            now: Instant::now(),
            nanoseconds: u64::try_from(nanoseconds).unwrap_or(u64::MAX),
        }
    }

    /// Start and end in nanoseconds since 1970; what has no end yet ends now.
    fn times(&self, started: Instant, ended: Option<Instant>) -> (u64, u64) {
        (self.time(started), self.time(ended.unwrap_or(self.now)))
    }

    fn time(&self, at: Instant) -> u64 {
        let ago = self.now.saturating_duration_since(at).as_nanos();
        self.nanoseconds
            .saturating_sub(u64::try_from(ago).unwrap_or(u64::MAX))
    }
}
