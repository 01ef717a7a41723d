//! After the last byte: what it cost is spent, metrics, and one line in the access log.

use std::io::Write as _;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use super::Session;
use serde::Serialize;
use serde_json::value::RawValue;

use super::Gateway;
use super::bill::{self, Bill};
use super::context::RequestContext;
use super::receipt;
use crate::metrics::RequestSummary;
use crate::model::ApiErrorKind;

/// Lines that may wait for a slow reader of stdout before lines are lost.
const WAITING_LINES: usize = 65_536;

pub(super) fn settle(gateway: &Gateway, session: &Session, exchange: &mut RequestContext) {
    let bill = pay(exchange);
    let total = exchange.started.elapsed();
    count(exchange, bill, total);
    if let Some(log) = &gateway.access_log {
        log.write(&line(session, exchange, bill, total));
    }
}

/// A request that nobody will come back to. To its client it is as if the client had left.
pub(super) fn abandoned(exchange: &mut RequestContext) {
    exchange.client_left = true;
    exchange.status = 499;
    let bill = pay(exchange);
    if bill.is_some() {
        count(exchange, bill, exchange.started.elapsed());
    }
}

fn pay(exchange: &mut RequestContext) -> Option<Bill> {
    exchange.is_settled = true;
    receipt::write(exchange);
    let bill = bill::of(exchange);
    exchange.hold = None;
    if let (Some(key), Some(bill)) = (&exchange.key, bill) {
        let usage = bill.metered.usage;
        let tokens = usage.input.saturating_add(usage.output);
        key.limiter
            .charge_tokens(&key.limits, tokens, Instant::now());
        if let Some(admission) = &exchange.admission {
            admission.charge(tokens);
        }
    }
    bill
}

fn count(exchange: &RequestContext, bill: Option<Bill>, total: Duration) {
    exchange.metrics.record_request(&RequestSummary {
        format: exchange.has_format.then_some(exchange.format),
        model: exchange.model.as_ref().map_or("", |model| &model.label),
        upstream: exchange.upstream_name(),
        status: exchange.status,
        first_byte: exchange.first_byte,
        total,
        received: exchange.received,
        sent: exchange.sent,
        key: exchange.key.as_ref().map_or("", |key| &key.name),
        metered: bill.map(|bill| bill.metered),
        cost: bill.and_then(|bill| bill.cost),
    });
}

/// Never a key, never content.
#[derive(Serialize)]
struct Line<'a> {
    time: String,
    request_id: &'a str,
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
    /// What the client was told, also inside a stream whose status was good.
    fault: Option<&'static str>,
    input_tokens: Option<u64>,
    cached_tokens: Option<u64>,
    output_tokens: Option<u64>,
    thinking_tokens: Option<u64>,
    /// Some of the tokens are not the upstream's own count.
    estimated: bool,
    cost: Option<Box<RawValue>>,
    /// How long the reply took, where time has a price.
    priced_ms: Option<u64>,
    first_byte_ms: Option<f64>,
    total_ms: f64,
    received_bytes: u64,
    sent_bytes: u64,
}

fn line<'a>(
    session: &'a Session,
    exchange: &'a RequestContext,
    bill: Option<Bill>,
    total: Duration,
) -> Line<'a> {
    let header = session.req_header();
    let attempt = exchange.attempt();
    let usage = bill.map(|bill| bill.metered.usage);
    let cost = bill.and_then(|bill| bill.cost);
    Line {
        time: jiff::Timestamp::now().to_string(),
        request_id: &exchange.request_id,
        key: exchange.key.as_ref().map(|key| &*key.name),
        method: header.method.as_str(),
        path: header.uri.path(),
        model: exchange.model.as_ref().map(|model| &*model.label),
        format: exchange.format.name(),
        upstream_format: attempt.map(|attempt| attempt.upstream.format.name()),
        upstream: attempt.map(|attempt| &*attempt.upstream.name),
        attempts: exchange.tried,
        status: exchange.status,
        stream: exchange.wanted.as_ref().is_some_and(|wanted| wanted.stream),
        fault: exchange.told.map(ApiErrorKind::name),
        input_tokens: usage.map(|usage| usage.input),
        cached_tokens: usage.map(|usage| usage.cached),
        output_tokens: usage.map(|usage| usage.output),
        thinking_tokens: usage.map(|usage| usage.thinking),
        estimated: bill.is_some_and(|bill| bill.metered.estimated),
        // A number with all its digits, which no float has.
        cost: cost.and_then(|cost| RawValue::from_string(cost.to_string()).ok()),
        priced_ms: bill.and_then(|bill| bill.milliseconds),
        first_byte_ms: exchange.first_byte.map(milliseconds),
        total_ms: milliseconds(total),
        received_bytes: exchange.received,
        sent_bytes: exchange.sent,
    }
}

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Lines go to stdout on a thread of their own: a reader that stalls must not stall a request.
#[derive(Clone)]
pub struct AccessLog {
    lines: SyncSender<Entry>,
}

enum Entry {
    Line(Vec<u8>),
    /// Answered when everything before it has been written.
    Flush(SyncSender<()>),
}

impl AccessLog {
    pub fn to_stdout() -> std::io::Result<AccessLog> {
        let (lines, waiting) = sync_channel(WAITING_LINES);
        std::thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write_lines(&waiting))?;
        Ok(AccessLog { lines })
    }

    fn write(&self, line: &Line<'_>) {
        let mut bytes = serde_json::to_vec(line).expect("a struct of plain fields serialises");
        bytes.push(b'\n');
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Entry::Line(bytes)) {
            log::warn!("access log: stdout is not being read, a line is lost");
        }
    }

    /// Returns when all that was written so far is out.
    pub fn flush(&self) {
        let (done, written) = sync_channel(1);
        if self.lines.send(Entry::Flush(done)).is_ok() {
            // An error only says that the writer is gone, and then nothing is left to wait for.
            let _ = written.recv_timeout(Duration::from_secs(1));
        }
    }
}

fn write_lines(waiting: &Receiver<Entry>) {
    // Not locked for good: others have a line to print too.
    let mut out = std::io::stdout();
    while let Ok(entry) = waiting.recv() {
        let written = match entry {
            Entry::Line(bytes) => out.write_all(&bytes),
            Entry::Flush(done) => {
                let flushed = out.flush();
                // Who asked may have stopped waiting.
                let _ = done.send(());
                flushed
            }
        };
        if written.is_err() {
            return;
        }
    }
}
