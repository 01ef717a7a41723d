//! The response on its way to the client: a JSON document, a stream, or the upstream's error.

mod error_body;
mod held_header;
pub(super) mod late_usage;

use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::header::{CACHE_CONTROL, RETRY_AFTER, TRANSFER_ENCODING};
use http::{HeaderValue, Version};
use pingora_core::protocols::http::client::HttpSession as UpstreamSession;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::ResponseHeader;
use pingora_proxy::{ProxyHttp as _, Session};
use tokio::time::Instant as TokioInstant;

use super::attempt::upstream_response::{
    aws_error, client_error, is_failure, is_unknown_path, passes_through,
};
use super::context::{RequestContext, is_retryable};
use super::downstream::{write_body, write_header};
use super::gateway::Gateway;
use super::large_body_place::size_at_end;
use super::local::image_files;
use super::timer::{Idle, IdleTimeout};
use super::timer::{before, client_gone, is_downstream, sleep_to, within};
use super::upstream::decompress::Decompressor;
use super::upstream::redact;
use super::{billing, downstream, large_body, local};
use crate::formats::HeaderFields;
use crate::metrics::FailureCause;
use crate::model::ApiErrorKind;
use crate::translate::{BodyBuffer, ResponseMode, ResponseTranslator};
use error_body::read_error_body;
use held_header::HeldHeader;

/// How much of a stream may go out in one write.
const BATCH_LIMIT: usize = 64 << 10;

impl Gateway {
    /// Passes a response on to the client.
    pub(super) async fn respond(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
        upstream: &mut UpstreamSession,
        header: ResponseHeader,
        mut decompressor: Decompressor,
    ) -> Result<()> {
        let translator = ctx.response.translator.as_ref();
        match translator.map(ResponseTranslator::mode) {
            None if ctx.client.has_left() => {
                // A refusal costs nothing.
                ctx.attempt.clear_sent();
                Err(late_usage::client_left())
            }
            None => {
                self.respond_error(session, ctx, upstream, header, decompressor)
                    .await
            }
            Some(ResponseMode::Json) => {
                self.respond_json(session, ctx, upstream, header, decompressor)
                    .await
            }
            Some(ResponseMode::Stream) => {
                let decompressor = &mut decompressor;
                let done = match ctx.client.has_left() {
                    true => Err(late_usage::client_left()),
                    false => {
                        self.respond_stream(session, ctx, upstream, header, decompressor)
                            .await
                    }
                };
                late_usage::read_after(done, ctx, upstream, decompressor).await
            }
        }
    }

    /// One JSON document: nothing goes out before all of it is there and translated.
    async fn respond_json(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
        upstream: &mut UpstreamSession,
        mut header: ResponseHeader,
        mut decompressor: Decompressor,
    ) -> Result<()> {
        // A header is no byte of the body: until one comes, the upstream may still be at work.
        let mut limit = first_byte_timeout(ctx);
        let is_paid = late_usage::is_paid_to_the_end(ctx);
        let mut body = loop {
            let reading = pin!(read_chunk(upstream, limit));
            let end = (ctx.deadline(), is_paid);
            let chunk = late_usage::run_step(session, &mut ctx.client, end, reading).await?;
            ctx.note_upstream_wait();
            limit = idle_timeout(ctx);
            let end = chunk.is_none();
            if !end {
                ctx.attempt.note_read();
            }
            let mut chunk = decompress(ctx, &mut decompressor, chunk)?;
            let _place = match end {
                true => self.large_body_place(ctx, size_at_end(ctx)).await,
                false => None,
            };
            self.response_body_filter(session, &mut chunk, end, ctx)?;
            if end {
                break chunk.unwrap_or_default();
            }
        };
        if ctx.client.has_left() {
            return Err(late_usage::client_left());
        }
        if image_files::are_stored(ctx) {
            // On the heap: no other response need hold room for connections to somewhere else.
            body = Box::pin(self.store_images(session, ctx, body)).await?;
        }
        let translator = ctx.response.translator.as_mut();
        let rest = translator.map(ResponseTranslator::take_remaining);
        let mut rest = rest.unwrap_or_default();
        header.set_content_length(body.len() + rest.len())?;
        self.send_header(session, ctx, header).await?;
        while let Some(next) = rest.next_chunk() {
            let chunk = std::mem::replace(&mut body, next);
            write_body(session, ctx, Some(chunk), false).await?;
        }
        write_body(session, ctx, Some(body), true).await
    }

    /// A stream: the header is held for the first content, then every chunk goes out as it comes.
    async fn respond_stream(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
        upstream: &mut UpstreamSession,
        mut header: ResponseHeader,
        decompressor: &mut Decompressor,
    ) -> Result<()> {
        header.insert_header(CACHE_CONTROL, HeaderValue::from_static("no-cache"))?;
        if session.req_header().version == Version::HTTP_11 {
            let chunked = HeaderValue::from_static("chunked");
            header.insert_header(TRANSFER_ENCODING, chunked)?;
        }
        let mut held = HeldHeader::new(header);
        let mut limit = first_byte_timeout(ctx);
        let keep_alive = ctx.snapshot.server.timeouts.keep_alive;
        let mut idle = IdleTimeout::new(keep_alive, idle_timeout(ctx));
        loop {
            let chunk = if ctx.response.header_sent() {
                read_or_keep_alive(session, ctx, upstream, &mut idle).await
            } else {
                match read_or_release(session, upstream, limit, held.release_at(), ctx.deadline())
                    .await
                {
                    Ok(Some(chunk)) => {
                        ctx.note_upstream_wait();
                        Ok(chunk)
                    }
                    Ok(None) => {
                        held.release(self, session, ctx).await?;
                        continue;
                    }
                    Err(error) => Err(error),
                }
            };
            limit = idle_timeout(ctx);
            let mut batch = BodyBuffer::default();
            let mut last = self.translate_into(session, ctx, decompressor, chunk, &mut batch);
            // What has arrived meanwhile goes out in the same write.
            while matches!(last, Ok(false)) && batch.len() < BATCH_LIMIT {
                let Some(chunk) = upstream.read_response_body().now_or_never() else {
                    break;
                };
                let chunk = chunk.map_err(|error| error.into_up());
                last = self.translate_into(session, ctx, decompressor, chunk, &mut batch);
            }
            let end = matches!(last, Ok(true));
            let chunk = (!batch.is_empty()).then(|| batch.take());
            held.pass(self, session, ctx, chunk, end).await?;
            if last? {
                return Ok(());
            }
        }
    }

    /// Takes one chunk through the filters and into the batch; `true`: it was the last.
    fn translate_into(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
        decompressor: &mut Decompressor,
        chunk: Result<Option<Bytes>>,
        batch: &mut BodyBuffer,
    ) -> Result<bool> {
        let chunk = match chunk {
            // The stream is complete; how the upstream closes the connection does not matter. Without a mark of its end, nobody
            // knows whether another choice or event was to come.
            Err(error) if !is_downstream(&error) && is_complete(ctx) && has_mark(ctx) => None,
            chunk => chunk?,
        };
        let end = chunk.is_none();
        if !end {
            ctx.attempt.note_read();
        }
        let mut chunk = match is_complete(ctx) && end {
            true => decompressor.decompress(chunk).unwrap_or_default(),
            false => decompress(ctx, decompressor, chunk)?,
        };
        let filtered = self.response_body_filter(session, &mut chunk, end, ctx);
        if let Some(chunk) = chunk {
            batch.push(chunk);
        }
        filtered.map(|_| end)
    }

    /// Sends the header of an upstream's response, with ours. From here on no other attempt can follow.
    pub(super) async fn send_header(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
        mut header: ResponseHeader,
    ) -> Result<()> {
        self.response_filter(session, &mut header, ctx).await?;
        let place = self.large_body_place(ctx, ctx.route.body.len()).await;
        billing::before_header(ctx);
        drop(place);
        ctx.route.body = Bytes::new();
        ctx.route.body_memory.release_request();
        let translator = ctx.response.translator.as_ref();
        if !translator.is_some_and(ResponseTranslator::stores_response) {
            ctx.route.conversation.discard_added();
        }
        write_header(session, ctx, header).await
    }

    /// An upstream's error: passed on as it is where the client may see it, an error of ours otherwise.
    async fn respond_error(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
        upstream: &mut UpstreamSession,
        header: ResponseHeader,
        mut decompressor: Decompressor,
    ) -> Result<()> {
        let status = header.status.as_u16();
        let body = read_error_body(session, ctx, upstream, &mut decompressor).await?;
        if let Some(capture) = &mut ctx.capture {
            capture.note_upstream_chunk(&body);
        }
        let client_format = ctx.client.format();
        let attempt = ctx.route.current();
        let upstream_format = attempt.map_or(client_format, |attempt| attempt.upstream.format);
        let aws_error = aws_error(ctx, &header, &body);
        let is_aws = aws_error.is_some();
        let decode = || upstream_format.codec().decode_error(status, &body);
        let api_error = aws_error.unwrap_or_else(|| large_body::process(body.len(), decode));
        // What cannot be read here cannot be estimated either: then the refusal stands.
        if local::has_no_token_counter(ctx, status, &api_error)
            && let Ok(body) = local::estimated_tokens(ctx)
        {
            return local::respond_token_count(session, ctx, body).await;
        }
        if !is_aws && is_unknown_path(upstream_format, status, &body) {
            let api_error = self.unknown_path(ctx, status);
            return Err(ctx.set_error(api_error));
        }
        let mut api_error = client_error(api_error, ctx, &header);
        if is_failure(status) {
            self.upstream_failed(ctx, FailureCause::Status, &api_error);
        }
        if matches!(api_error.kind, ApiErrorKind::OverQuota) || matches!(status, 401 | 403) {
            ctx.route.skip_upstream();
        }
        let is_own_format = upstream_format == client_format && !is_aws;
        let is_own_error = is_own_format
            && !ctx.client.is_bedrock()
            && upstream_format.codec().is_own_error(&body);
        let retries = is_retryable(api_error.kind) && ctx.may_retry();
        if retries || !(is_own_error && passes_through(&api_error, status, &body)) {
            if is_own_format && api_error.kind != ApiErrorKind::BadGateway {
                api_error.status = status;
            }
            return Err(ctx.set_error(api_error));
        }
        let mut fields = HeaderFields::default();
        downstream::add_upstream(ctx, &mut fields);
        if let Some(value) = header.headers.get(RETRY_AFTER) {
            fields.insert_bytes(RETRY_AFTER, value.as_bytes());
        }
        let attempt = ctx.route.current();
        let redacted = attempt.and_then(|attempt| {
            large_body::process(body.len(), || redact::redact(&attempt.upstream, &body))
        });
        let body = redacted.unwrap_or_else(|| body.to_vec());
        local::respond_json(session, ctx, status, body, fields).await
    }
}

/// Decompresses a chunk of a response of success. One that cannot be read may have cost whatever was reserved.
fn decompress(
    ctx: &mut RequestContext,
    decompressor: &mut Decompressor,
    chunk: Option<Bytes>,
) -> Result<Option<Bytes>> {
    let decompressed = decompressor.decompress(chunk);
    if decompressed.is_err() {
        ctx.attempt.set_unread();
    }
    decompressed
}

fn first_byte_timeout(ctx: &RequestContext) -> Option<Duration> {
    ctx.route.current()?.timeouts.first_byte
}

fn idle_timeout(ctx: &RequestContext) -> Option<Duration> {
    ctx.route.current()?.timeouts.idle
}

fn is_complete(ctx: &RequestContext) -> bool {
    let translator = ctx.response.translator.as_ref();
    let observed = translator.map(ResponseTranslator::observer);
    observed.is_some_and(|observed| {
        observed.ended && (observed.api_error.is_none() || ctx.response.header_sent())
    })
}

fn has_mark(ctx: &RequestContext) -> bool {
    let translator = ctx.response.translator.as_ref();
    translator.is_none_or(|translator| !translator.observer().has_ended_by_choices())
}

/// The next chunk of a body, unless the upstream is silent for too long.
async fn read_chunk(
    upstream: &mut UpstreamSession,
    limit: Option<Duration>,
) -> Result<Option<Bytes>> {
    match within(limit, pin!(upstream.read_response_body())).await {
        Some(chunk) => chunk,
        None => Error::e_explain(ErrorType::ReadTimedout, "no chunk of the body in time"),
    }
}

/// The next chunk of a stream whose header is held; `None` in the first place: it was held for long enough.
async fn read_or_release(
    session: &mut Session,
    upstream: &mut UpstreamSession,
    limit: Option<Duration>,
    release: Option<TokioInstant>,
    deadline: Option<TokioInstant>,
) -> Result<Option<Option<Bytes>>> {
    let mut read = pin!(read_chunk(upstream, limit));
    tokio::select! {
        biased;
        chunk = before(deadline, read.as_mut()) => chunk.map(Some).map_err(|error| error.into_up()),
        gone = session.read_body_or_idle(true) => Err(client_gone(gone)),
        () = sleep_to(release), if release.is_some() => Ok(None),
    }
}

/// The next chunk of a stream whose header is out. Reading is not interrupted by the keep-alives
/// that are sent meanwhile: the time of the upstream goes on.
async fn read_or_keep_alive(
    session: &mut Session,
    ctx: &mut RequestContext,
    upstream: &mut UpstreamSession,
    idle: &mut IdleTimeout,
) -> Result<Option<Bytes>> {
    let deadline = ctx.deadline();
    let since = Instant::now();
    let mut read = pin!(upstream.read_response_body());
    loop {
        let passed = tokio::select! {
            biased;
            chunk = before(deadline, read.as_mut()) => {
                return chunk.map_err(|error| error.into_up());
            }
            gone = session.read_body_or_idle(true) => return Err(client_gone(gone)),
            passed = idle.passed(ctx.response.last_sent(), since) => passed,
        };
        let translator = ctx.response.translator.as_ref();
        let keep_alive = match passed {
            Idle::UpstreamTimedOut => return Err(stream_timed_out()),
            Idle::SendKeepAlive => translator.and_then(ResponseTranslator::encode_keep_alive),
        };
        if keep_alive.is_some() {
            write_body(session, ctx, keep_alive, false).await?;
        } else {
            // This format has none; it counts as sent.
            ctx.response.touch();
        }
    }
}

fn stream_timed_out() -> Box<Error> {
    Error::explain(ErrorType::ReadTimedout, "no event of the stream in time").into_up()
}
