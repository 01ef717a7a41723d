//! The access log: one JSON line per request on stdout.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use pingora_http::RequestHeader;
use pingora_proxy::Session;
use serde::Serialize;
use serde_json::value::RawValue;

use super::context::{RequestContext, RequestCost};
use crate::model::ApiErrorKind;

/// Lines that may wait for a slow reader of stdout before lines are lost.
const QUEUED_LINES: usize = 65_536;

/// One line of the access log: never a secret, never content.
#[derive(Serialize)]
struct AccessLogLine<'a> {
    time: String,
    request_id: &'a str,
    /// The address of the connection, which may be that of a load balancer.
    client: Option<IpAddr>,
    key: Option<&'a str>,
    method: &'a str,
    path: &'a str,
    model: Option<&'a str>,
    format: &'static str,
    upstream_format: Option<&'static str>,
    upstream: Option<&'a str>,
    attempts: usize,
    status: u16,
    stream: bool,
    /// The kind of the error that the client was told, also inside a stream whose status was good.
    fault: Option<&'static str>,
    input_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    output_tokens: Option<u64>,
    thinking_tokens: Option<u64>,
    /// Some of the tokens are not the upstream's own count.
    estimated: bool,
    cost: Option<Box<RawValue>>,
    /// How long the response took, where time has a price.
    priced_ms: Option<u64>,
    /// How long the recording is, where its minutes have a price.
    audio_ms: Option<u64>,
    first_byte_ms: Option<f64>,
    total_ms: f64,
    received_bytes: u64,
    sent_bytes: u64,
}

impl<'a> AccessLogLine<'a> {
    fn new(
        (header, client): (&'a RequestHeader, Option<IpAddr>),
        ctx: &'a RequestContext,
        cost: Option<RequestCost>,
    ) -> AccessLogLine<'a> {
        let attempt = ctx.route.current();
        let usage = cost.map(|cost| cost.metered.usage);
        let amount = cost.and_then(|cost| cost.cost);
        AccessLogLine {
            time: jiff::Timestamp::now().to_string(),
            request_id: ctx.client.request_id(),
            client,
            key: ctx.client.key().map(|key| &*key.name),
            method: header.method.as_str(),
            path: header.uri.path(),
            model: ctx.route.model_name(),
            format: ctx.client.label(),
            upstream_format: attempt.map(|attempt| attempt.upstream.format.name()),
            upstream: attempt.map(|attempt| &*attempt.upstream.name),
            attempts: ctx.route.tried(),
            status: ctx.response.status(),
            stream: ctx.route.is_stream(),
            fault: ctx.error_kind().map(ApiErrorKind::name),
            input_tokens: usage.map(|usage| usage.input),
            cached_tokens: usage.map(|usage| usage.cached),
            output_tokens: usage.map(|usage| usage.output),
            thinking_tokens: usage.map(|usage| usage.thinking),
            estimated: cost.is_some_and(|cost| cost.metered.estimated),
            // A number with all its digits, which no float has.
            cost: amount.and_then(|amount| RawValue::from_string(amount.to_string()).ok()),
            priced_ms: cost.and_then(|cost| cost.milliseconds),
            audio_ms: cost.and_then(|cost| cost.audio_milliseconds),
            first_byte_ms: ctx.response.first_byte().map(milliseconds),
            total_ms: milliseconds(ctx.client.elapsed()),
            received_bytes: ctx.client.received_bytes(),
            sent_bytes: ctx.response.sent_bytes(),
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Lines go to stdout on a thread of their own: a reader that stalls must not stall a request.
#[derive(Clone)]
pub struct AccessLog {
    lines: SyncSender<LogMessage>,
}

enum LogMessage {
    Line(Vec<u8>),
    /// Acknowledged when everything before it has been written.
    Flush(SyncSender<()>),
}

impl AccessLog {
    pub fn to_stdout() -> std::io::Result<AccessLog> {
        let (lines, queued) = sync_channel(QUEUED_LINES);
        std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write_lines(&queued))?;
        Ok(AccessLog { lines })
    }

    /// Writes the line of a request that has ended.
    pub(super) fn write(&self, session: &Session, ctx: &RequestContext, cost: Option<RequestCost>) {
        let address = session.client_addr().and_then(|address| address.as_inet());
        let client = address.map(|address| address.ip().to_canonical());
        let line = AccessLogLine::new((session.req_header(), client), ctx, cost);
        let mut bytes = serde_json::to_vec(&line).expect("a struct of plain fields serialises");
        bytes.push(b'\n');
        if let Err(TrySendError::Full(_)) = self.lines.try_send(LogMessage::Line(bytes)) {
            log::warn!("access log: stdout is not being read, a line is lost");
        }
    }

    /// Returns when all lines so far are out.
    pub fn flush(&self) {
        let (done, written) = sync_channel(1);
        if self.lines.send(LogMessage::Flush(done)).is_ok() {
            // An error only says that the writer is gone, and then nothing is left to wait for.
            let _ = written.recv_timeout(Duration::from_secs(1));
        }
    }
}

fn write_lines(queued: &Receiver<LogMessage>) {
    let mut out = std::io::stdout().lock();
    while let Ok(message) = queued.recv() {
        let written = match message {
            LogMessage::Line(bytes) => out.write_all(&bytes),
            LogMessage::Flush(done) => {
                let flushed = out.flush();
                // The caller may have stopped waiting.
                let _ = done.send(());
                flushed
            }
        };
        if written.is_err() {
            return;
        }
    }
}
