//! The reply on its way to the client: gathered as a whole, piece by piece, or as an error.

use std::pin::pin;
use std::time::Duration;

use super::Session;
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt as _;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, TRANSFER_ENCODING};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Version};
use pingora_core::Result;
use pingora_core::protocols::http::client::HttpSession as Upstreaming;
use tokio::time::Instant;

use super::bill;
use super::context::RequestContext;
use super::counting;
use super::drive::{is_downstream, piece as next_piece, piece_or_hold, unless_gone};
use super::essentials::Essentials;
use super::plain::Plain;
use super::receipt;
use super::retry::may_be_better_elsewhere;
use super::silence::Silence;
use super::{Gateway, answer, files, secrets};
use crate::formats::HeaderFields;
use crate::metrics::FailureCause;
use crate::model::{ApiError, ApiErrorKind};
use crate::translate::{Gathered, ResponseTranslator};

/// How much of a stream may go out in one write.
const BATCH_LIMIT: usize = 64 << 10;

/// How long an error's body is waited for while another upstream could be asked.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(1);

/// Error bodies are short; what goes on for longer is not worth reading.
const ERROR_BODY_LIMIT: usize = 1 << 20;

/// One JSON document: nothing goes out before all of it is there and readable.
pub(super) async fn whole(
    gateway: &Gateway,
    session: &mut Session,
    exchange: &mut RequestContext,
    upstream: &mut Upstreaming,
    header: Essentials,
    mut plain: Plain,
) -> Result<()> {
    // A header is no byte of the reply: until one comes, the upstream may still be thinking.
    let mut limit = exchange.first_silence();
    let mut body = loop {
        let reading = pin!(next_piece(upstream, limit));
        let piece = unless_gone(session, exchange.deadline(), reading).await?;
        limit = exchange.later_silence();
        let end = piece.is_none();
        let mut piece = plain.chunk(piece)?;
        gateway.digest(&mut piece, end, exchange)?;
        if end {
            break piece.unwrap_or_default();
        }
    };
    if files::is_enabled(exchange) {
        // On the heap: no other reply need hold room for connections to somewhere else.
        body = Box::pin(gateway.persist(session, exchange, body)).await?;
    }
    let mut rest = exchange
        .reply
        .as_mut()
        .map(ResponseTranslator::take_rest)
        .unwrap_or_default();
    let mut out = answer::head(header.status);
    pass_headers(exchange, &header, &mut out.headers);
    let length = body.len() + rest.len();
    out.headers.insert(CONTENT_LENGTH, length.into());
    send_header(session, exchange, out).await?;
    while let Some(next) = rest.next_chunk() {
        let piece = std::mem::replace(&mut body, next);
        write(session, exchange, Some(piece), false).await?;
    }
    write(session, exchange, Some(body), true).await
}

/// A stream: the header waits for the first content, then every piece goes out as it comes.
pub(super) async fn stream(
    gateway: &Gateway,
    session: &mut Session,
    exchange: &mut RequestContext,
    upstream: &mut Upstreaming,
    header: Essentials,
    mut plain: Plain,
) -> Result<()> {
    let mut out = answer::head(header.status);
    pass_headers(exchange, &header, &mut out.headers);
    let no_cache = HeaderValue::from_static("no-cache");
    out.headers.insert(CACHE_CONTROL, no_cache);
    if session.req_header().version == Version::HTTP_11 {
        let chunked = HeaderValue::from_static("chunked");
        out.headers.insert(TRANSFER_ENCODING, chunked);
    }
    let mut held = Held::new(out);
    let mut limit = exchange.first_silence();
    let mut silence = Silence::watched(exchange);
    loop {
        let piece = if exchange.header_sent {
            silence.next_piece(session, exchange, upstream).await
        } else {
            match piece_or_hold(session, upstream, limit, held.since, exchange.deadline()).await {
                Ok(Some(piece)) => Ok(piece),
                Ok(None) => {
                    held.release(session, exchange).await?;
                    continue;
                }
                Err(error) => Err(error),
            }
        };
        limit = exchange.later_silence();
        let mut batch = Gathered::default();
        let mut last = take(gateway, exchange, &mut plain, piece, &mut batch);
        // What has arrived meanwhile goes out in the same write.
        while matches!(last, Ok(false)) && batch.len() < BATCH_LIMIT {
            let Some(piece) = upstream.read_response_body().now_or_never() else {
                break;
            };
            let piece = piece.map_err(|error| error.into_up());
            last = take(gateway, exchange, &mut plain, piece, &mut batch);
        }
        let end = matches!(last, Ok(true));
        held.pass(
            session,
            exchange,
            (!batch.is_empty()).then(|| batch.take()),
            end,
        )
        .await?;
        if last? {
            return Ok(());
        }
    }
}

/// One piece through the filters and into the batch; `true`: it was the last.
fn take(
    gateway: &Gateway,
    exchange: &mut RequestContext,
    plain: &mut Plain,
    piece: Result<Option<Bytes>>,
    batch: &mut Gathered,
) -> Result<bool> {
    let piece = match piece {
        // The upstream has said everything; how it hangs up does not matter.
        Err(error) if !is_downstream(&error) && has_ended(exchange) => None,
        piece => piece?,
    };
    let end = piece.is_none();
    let mut piece = match plain.chunk(piece) {
        Err(_) if end && has_ended(exchange) => None,
        piece => piece?,
    };
    let filtered = gateway.digest(&mut piece, end, exchange);
    if let Some(piece) = piece {
        batch.add(piece);
    }
    filtered.map(|()| end)
}

fn has_ended(exchange: &RequestContext) -> bool {
    let watch = exchange.reply.as_ref().map(|reply| reply.watch());
    watch.is_some_and(|watch| watch.ended && (watch.api_error.is_none() || exchange.header_sent))
}

/// The header of a stream and what came before its first content.
struct Held {
    header: Option<Parts>,
    bytes: BytesMut,
    since: Option<Instant>,
}

impl Held {
    fn new(header: Parts) -> Held {
        Held {
            header: Some(header),
            bytes: BytesMut::new(),
            since: None,
        }
    }

    async fn pass(
        &mut self,
        session: &mut Session,
        exchange: &mut RequestContext,
        piece: Option<Bytes>,
        end: bool,
    ) -> Result<()> {
        if exchange.header_sent {
            return write(session, exchange, piece, end).await;
        }
        let begun = exchange
            .reply
            .as_ref()
            .is_some_and(|reply| reply.watch().begun);
        let too_much = self.bytes.len() > exchange.snapshot.server.body_limit;
        if !(begun || end || too_much) {
            if let Some(piece) = piece {
                self.since.get_or_insert_with(Instant::now);
                self.bytes.extend_from_slice(&piece);
            }
            return Ok(());
        }
        if self.bytes.is_empty() {
            self.send_header(session, exchange).await?;
            return write(session, exchange, piece, end).await;
        }
        self.bytes.extend_from_slice(&piece.unwrap_or_default());
        self.release(session, exchange).await?;
        if end {
            write(session, exchange, None, true).await?;
        }
        Ok(())
    }

    async fn release(
        &mut self,
        session: &mut Session,
        exchange: &mut RequestContext,
    ) -> Result<()> {
        self.send_header(session, exchange).await?;
        let bytes = self.bytes.split().freeze();
        write(session, exchange, Some(bytes), false).await
    }

    async fn send_header(
        &mut self,
        session: &mut Session,
        exchange: &mut RequestContext,
    ) -> Result<()> {
        match self.header.take() {
            Some(header) => send_header(session, exchange, header).await,
            None => Ok(()),
        }
    }
}

pub(super) async fn write(
    session: &mut Session,
    exchange: &mut RequestContext,
    piece: Option<Bytes>,
    end: bool,
) -> Result<()> {
    receipt::before_piece(exchange, end);
    exchange.sent += piece.as_ref().map_or(0, Bytes::len) as u64;
    exchange.writing = true;
    let limit = exchange.snapshot.server.timeouts.write_idle;
    let written = answer::deliver(session, limit, piece.unwrap_or_default(), end).await;
    exchange.writing = false;
    exchange.last_sent = std::time::Instant::now();
    written
}

async fn send_header(
    session: &mut Session,
    exchange: &mut RequestContext,
    mut header: Parts,
) -> Result<()> {
    answer::dress(exchange, &mut header.headers)?;
    exchange.status = header.status.as_u16();
    exchange.header_sent = true;
    // No other attempt can follow; only a stream that breaks off may have to be weighed.
    let told = exchange
        .reply
        .as_ref()
        .and_then(|reply| reply.watch().usage);
    if told.unwrap_or_default().input == 0 {
        exchange.input = Some(bill::input(exchange));
    }
    exchange.body = Bytes::new();
    if !exchange
        .reply
        .as_ref()
        .is_some_and(ResponseTranslator::is_to_be_kept)
    {
        exchange.thread.let_go();
    }
    exchange.note_first_byte();
    exchange.writing = true;
    let limit = exchange.snapshot.server.timeouts.write_idle;
    let written = answer::begin(session, limit, header).await;
    exchange.writing = false;
    written
}

/// An upstream's refusal: kept as it is where it is the client's to know, an error of ours otherwise.
pub(super) async fn error(
    gateway: &Gateway,
    session: &mut Session,
    exchange: &mut RequestContext,
    upstream: &mut Upstreaming,
    header: &Essentials,
    mut plain: Plain,
) -> Result<()> {
    let status = header.status.as_u16();
    let body = error_body(session, exchange, upstream, &mut plain).await?;
    let upstream_format = exchange
        .attempt()
        .map_or(exchange.format, |attempt| attempt.upstream.format);
    let api_error = upstream_format.codec().decode_error(status, &body);
    // What cannot be read here cannot be estimated either: then the refusal stands.
    if counting::is_missing(exchange, status, &api_error)
        && let Ok(body) = counting::estimated(exchange)
    {
        return counting::tell(session, exchange, body).await;
    }
    let mut api_error = told(api_error, exchange, header);
    if is_failure(status) {
        gateway.upstream_failed(exchange, FailureCause::Status, &api_error);
    }
    if matches!(api_error.kind, ApiErrorKind::OverQuota) || matches!(status, 401 | 403) {
        exchange.forsake_upstream();
    }
    let own_words = upstream_format == exchange.format
        && (400..=599).contains(&status)
        && api_error.kind != ApiErrorKind::BadGateway
        && serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&body).is_ok();
    let goes_on = may_be_better_elsewhere(api_error.kind) && exchange.may_try_again();
    if goes_on || !own_words {
        if upstream_format == exchange.format && api_error.kind != ApiErrorKind::BadGateway {
            api_error.status = status;
        }
        return Err(gateway.park(exchange, api_error));
    }
    let mut extra = HeaderFields::default();
    answer::provenance(exchange, &mut extra);
    if let Some(value) = &header.retry_after {
        extra.spell(RETRY_AFTER, value.as_bytes());
    }
    let hidden = exchange
        .attempt()
        .and_then(|attempt| secrets::hide(&attempt.upstream, &body));
    let body = hidden.unwrap_or_else(|| body.to_vec());
    answer::json(session, exchange, status, body, extra).await
}

/// The body of an error, or as much of it as came in time: it is no reason to wait when another
/// upstream is there.
async fn error_body(
    session: &mut Session,
    exchange: &mut RequestContext,
    upstream: &mut Upstreaming,
    plain: &mut Plain,
) -> Result<BytesMut> {
    let limit = exchange.later_silence();
    let mut body = BytesMut::new();
    let hurry = exchange
        .may_try_again()
        .then(|| Instant::now() + ERROR_BODY_WAIT);
    loop {
        let deadline = hurry.or(exchange.deadline());
        let reading = pin!(next_piece(upstream, limit));
        let piece = match unless_gone(session, deadline, reading).await {
            Err(error) if hurry.is_some() && !is_downstream(&error) => {
                exchange.unfinished = true;
                return Ok(body);
            }
            piece => piece?,
        };
        let end = piece.is_none();
        let Ok(piece) = plain.chunk(piece) else {
            // The status says enough.
            exchange.unfinished = true;
            return Ok(body);
        };
        body.extend_from_slice(&piece.unwrap_or_default());
        if end || body.len() > ERROR_BODY_LIMIT {
            exchange.unfinished |= !end;
            return Ok(body);
        }
    }
}

/// What a client may know of an upstream's error.
fn told(mut api_error: ApiError, exchange: &RequestContext, header: &Essentials) -> ApiError {
    let status = header.status.as_u16();
    if matches!(status, 401 | 403) || is_about_credentials(api_error.kind) {
        return refused_credentials(exchange.upstream_name(), status);
    }
    if !(400..=599).contains(&status) {
        let message = format!("the upstream answered with status {status}, which is not followed");
        return ApiError::bad_gateway(message);
    }
    api_error.retry_after = header.pause().or(api_error.retry_after);
    api_error
}

/// A client's own mistake is no failure of the upstream.
const fn is_failure(status: u16) -> bool {
    !matches!(status, 400..500) || matches!(status, 401 | 402 | 403 | 408 | 429)
}

/// Only the gateway has credentials at an upstream, so no client can have presented wrong ones.
pub(super) const fn is_about_credentials(kind: ApiErrorKind) -> bool {
    matches!(
        kind,
        ApiErrorKind::Unauthenticated | ApiErrorKind::Forbidden
    )
}

/// What a client is told of it; an upstream's own words may name an account.
pub(super) fn refused_credentials(upstream: &str, status: u16) -> ApiError {
    log::error!("upstream {upstream} refuses the gateway's credentials with status {status}");
    ApiError::bad_gateway("the upstream refuses the gateway's own credentials")
}

/// This much of it reaches a client; a translation has a type of its own.
fn pass_headers(exchange: &RequestContext, from: &Essentials, to: &mut HeaderMap) {
    let translated = exchange
        .reply
        .as_ref()
        .and_then(ResponseTranslator::content_type);
    let translated = translated.map(HeaderValue::from_static);
    let given = || from.kind.clone();
    if let Some(kind) = translated.or_else(given) {
        to.insert(CONTENT_TYPE, kind);
    }
}
