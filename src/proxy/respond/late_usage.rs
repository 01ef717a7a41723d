//! Reads on for a client that has left, where its key pays by what the upstream still reports.

use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use bytes::Bytes;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::http::client::HttpSession as UpstreamSession;
use pingora_core::{Error, ErrorType, Result};
use tokio::time::Instant as TokioInstant;

use crate::formats::ResponseObserver;
use crate::proxy::attempt::response_memory;
use crate::proxy::context::{ClientState, RequestContext};
use crate::proxy::large_body;
use crate::proxy::timer::{before, is_downstream, unless_gone, within};
use crate::proxy::upstream::decompress::Decompressor;

/// How long the usage of a complete stream is waited for, or its end mark, and how much may come before it: they follow the
/// finish reason at once.
const MAX_WAIT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 256 << 10;

/// How long an upstream is read for a client that has left, where the attempt has no end.
const MAX_READ: Duration = Duration::from_secs(600);

/// Tells whether a client that leaves pays for all that the upstream does. It does with a key that has a spending cap:
/// such a client could leave each time, and the upstream bills what nobody has read.
pub(in crate::proxy) fn is_paid_to_the_end(ctx: &RequestContext) -> bool {
    let attempt = ctx.route.current();
    ctx.billing.is_reserved() && attempt.is_some_and(|attempt| attempt.settings.prices.is_some())
}

/// Runs a step towards the upstream. It ends when the client leaves, unless the step `is_paid` for all the same.
pub(in crate::proxy) async fn run_step<T>(
    session: &mut ServerSession,
    client: &mut ClientState,
    (deadline, is_paid): (Option<TokioInstant>, bool),
    mut step: Pin<&mut impl Future<Output = Result<T>>>,
) -> Result<T> {
    if client.left_at().is_none() {
        match unless_gone(session, deadline, step.as_mut()).await {
            Err(error) if is_paid && is_downstream(&error) => {
                client.set_left();
                if !client.may_finish_without() {
                    return Err(error);
                }
                log_reading(client);
            }
            done => return done,
        }
    }
    let done = before(Some(read_until(client, deadline)), step).await;
    done.map_err(|error| error.into_up())
}

fn log_reading(client: &ClientState) {
    let id = client.request_id();
    log::debug!("{id}: the client has left, and its response is read to the end");
}

/// When reading for a client that has left must be over.
fn read_until(client: &ClientState, deadline: Option<TokioInstant>) -> TokioInstant {
    let left_at = client.left_at().unwrap_or_else(Instant::now);
    deadline.unwrap_or_else(|| (left_at + MAX_READ).into())
}

/// The error of a step that was finished for a client that has left.
pub(in crate::proxy) fn client_left() -> Box<Error> {
    Error::explain(ErrorType::ConnectionClosed, "the client has left").into_down()
}

/// Passes on how a stream has ended; if the client has left it, reads its usage first.
pub(in crate::proxy) async fn read_after(
    ended: Result<()>,
    ctx: &mut RequestContext,
    upstream: &mut UpstreamSession,
    decompressor: &mut Decompressor,
) -> Result<()> {
    if ended.as_ref().is_err_and(|error| is_downstream(error)) {
        ctx.client.set_left();
        let limits = ReadLimits::of(ctx);
        if limits.is_to_the_end {
            log_reading(&ctx.client);
        }
        read(ctx, upstream, decompressor, limits).await;
    }
    ended
}

/// How far a stream is read without its client.
struct ReadLimits {
    until: Instant,
    first_byte: Option<Duration>,
    idle: Option<Duration>,
    bytes: usize,
    /// More than the usage of a complete response is read.
    is_to_the_end: bool,
    /// Usage that has come may not be the last, so that a stream with an end mark is read until then.
    is_to_the_mark: bool,
}

impl ReadLimits {
    /// What the upstream goes on to generate, or has not shown, is paid for, so that all of it is read. Without a spending cap
    /// the upstream is cancelled: what came can be estimated.
    fn of(ctx: &mut RequestContext) -> ReadLimits {
        let timeouts = ctx.route.current().map(|attempt| attempt.timeouts);
        let is_paid = is_paid_to_the_end(ctx);
        match timeouts.filter(|_| is_paid) {
            Some(timeouts) if !is_counted(ctx) && ctx.client.may_finish_without() => ReadLimits {
                until: read_until(&ctx.client, ctx.deadline()).into(),
                first_byte: timeouts.first_byte,
                idle: timeouts.idle,
                bytes: usize::MAX,
                is_to_the_end: true,
                is_to_the_mark: true,
            },
            _ => ReadLimits {
                until: Instant::now() + MAX_WAIT,
                first_byte: None,
                idle: None,
                bytes: MAX_BYTES,
                is_to_the_end: false,
                is_to_the_mark: is_paid && has_end_mark(ctx),
            },
        }
    }

    fn is_awaited(&self, observer: &ResponseObserver) -> bool {
        let is_over = observer.closed || observer.api_error.is_some();
        observer.awaits_usage() || (self.is_to_the_mark && !is_over)
    }
}

/// Reads on while something that is paid for is still to come. What cannot be read is estimated.
async fn read(
    ctx: &mut RequestContext,
    upstream: &mut UpstreamSession,
    decompressor: &mut Decompressor,
    mut limits: ReadLimits,
) {
    let mut silence = limits.first_byte;
    while is_awaited(ctx, &limits) {
        let left = limits.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // A body whose chunks are always ready would go on.
            return;
        }
        let limit = silence.map_or(left, |silence| silence.min(left));
        let chunk = within(limit, pin!(upstream.read_response_body())).await;
        let Some(Ok(chunk)) = chunk else {
            return;
        };
        let end = chunk.is_none();
        if !end {
            ctx.attempt.note_read();
        }
        let Some(rest) = limits
            .bytes
            .checked_sub(chunk.as_ref().map_or(0, Bytes::len))
        else {
            return;
        };
        (limits.bytes, silence) = (rest, limits.idle);
        // What the upstream has generated beyond what cannot be read is not known.
        let is_guess = limits.is_to_the_end && !end;
        match decompressor.decompress(chunk) {
            Ok(chunk) => {
                if !observe(ctx, chunk, end, is_guess) || end {
                    return;
                }
            }
            Err(_) if limits.is_to_the_end => return ctx.attempt.set_unread(),
            Err(_) => return,
        }
    }
}

/// Tells whether a stream is complete, and all of it counted. One that just ends may have a finish reason and usage in every
/// chunk.
fn is_counted(ctx: &RequestContext) -> bool {
    let translator = ctx.response.translator.as_ref();
    let is_counted = translator.is_some_and(|translator| translator.observer().is_counted());
    is_counted && has_end_mark(ctx)
}

fn has_end_mark(ctx: &RequestContext) -> bool {
    let attempt = ctx.route.current();
    attempt.is_some_and(|attempt| attempt.upstream.format.has_end_mark())
}

fn is_awaited(ctx: &RequestContext, limits: &ReadLimits) -> bool {
    let translator = ctx.response.translator.as_ref();
    translator.is_some_and(|translator| limits.is_awaited(translator.observer()))
}

/// Observes a chunk that nobody gets; `false`: nothing that follows can be read. `is_guess`: then nobody knows what was generated.
fn observe(ctx: &mut RequestContext, mut chunk: Option<Bytes>, end: bool, is_guess: bool) -> bool {
    let length = chunk.as_ref().map_or(0, Bytes::len);
    if response_memory::count_memory(ctx, length).is_err() {
        return false;
    }
    if let (Some(capture), Some(chunk)) = (&mut ctx.capture, &chunk) {
        capture.note_upstream_chunk(chunk);
    }
    let Some(translator) = &mut ctx.response.translator else {
        return false;
    };
    let size = translator.buffered() + length;
    let translated = large_body::process(size, || translator.translate_chunk(&mut chunk, end));
    if translated.is_err() && is_guess {
        translator.set_unread();
    }
    translated.is_ok()
}
