//! The strict upstream: all four formats on one port. It finds the run by a mark in the request, notes what it received,
//! refuses what a vendor would refuse, and answers or fails as the scenario says.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, StatusCode, header};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::sleep;

use super::said::SaidAnswer;
use super::scenario::UpstreamFault;
use super::wire::{UpstreamError, WireFormat};

const MAX_BODY_BYTES: usize = 64 << 20;
/// Longer than a gateway waits that is set up as `--print-config` says.
const HANG: Duration = Duration::from_secs(40);
/// Bytes that are not flushed yet are lost with the connection, so the cut comes this much later.
const FLUSH_DELAY: Duration = Duration::from_millis(20);
const MARK_START: &str = "[run ";

/// What the upstream does in a run.
#[derive(Debug, Clone, Default)]
pub struct RunPlan {
    pub answer: SaidAnswer,
    /// The body of the response, where it is given instead.
    pub body: Option<Value>,
    pub fault: Option<UpstreamFault>,
    /// Of a cut: after how many events.
    pub cut_after: usize,
    pub byte_by_byte: bool,
}

impl RunPlan {
    /// Whether it says how the response ends, in words of its own.
    pub fn is_about_finish(&self) -> bool {
        self.body.is_some() || self.answer.finish.is_some() || self.answer.refusal.is_some()
    }

    /// The JSON response of an upstream of the format.
    pub fn response(&self, format: WireFormat, run: u64) -> Value {
        let given = self.body.clone();
        given.unwrap_or_else(|| format.response(&self.answer, run))
    }
}

/// A request as the upstream received it.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub format: WireFormat,
    pub body: Value,
    /// Why it was refused.
    pub complaint: Option<String>,
}

#[derive(Default)]
struct RunRecord {
    plan: RunPlan,
    requests: Vec<ReceivedRequest>,
}

/// The upstream and what it has seen.
#[derive(Default)]
pub struct StrictUpstream {
    runs: Mutex<HashMap<u64, RunRecord>>,
}

impl StrictUpstream {
    /// The words by which the upstream knows a run.
    pub fn mark(run: u64) -> String {
        format!("{MARK_START}{run}] ")
    }

    /// Plans a run.
    pub fn plan(&self, run: u64, plan: RunPlan) {
        let record = RunRecord {
            plan,
            requests: Vec::new(),
        };
        self.lock().insert(run, record);
    }

    /// Plans a run that is answered with a text.
    pub fn plan_answer(&self, run: u64, text: &str) {
        let answer = SaidAnswer {
            text: Some(text.to_owned()),
            ..SaidAnswer::default()
        };
        let plan = RunPlan {
            answer,
            ..RunPlan::default()
        };
        self.plan(run, plan);
    }

    /// Ends a run, and returns what was received in it.
    pub fn take(&self, run: u64) -> Vec<ReceivedRequest> {
        let record = self.lock().remove(&run);
        record.map(|record| record.requests).unwrap_or_default()
    }

    /// Serves until the process ends.
    pub async fn serve(self: Arc<StrictUpstream>, listener: TcpListener) -> std::io::Result<()> {
        let router = Router::new().fallback(answer).with_state(self);
        axum::serve(listener, router).await
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, RunRecord>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request; `None`: it belongs to no run.
    fn note(&self, run: Option<u64>, request: &ReceivedRequest) -> Option<RunPlan> {
        let mut runs = self.lock();
        let record = runs.get_mut(&run?)?;
        record.requests.push(request.clone());
        Some(record.plan.clone())
    }
}

async fn answer(State(upstream): State<Arc<StrictUpstream>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Some((format, is_native_stream)) = format_of(head.uri.path()) else {
        return no_such_path(head.uri.path());
    };
    let body = to_bytes(body, MAX_BODY_BYTES).await.unwrap_or_default();
    let parsed: Option<Value> = serde_json::from_slice(&body).ok();
    let is_array = is_native_stream
        && !head
            .uri
            .query()
            .is_some_and(|query| query.contains("alt=sse"));
    let is_stream = is_native_stream || parsed.as_ref().is_some_and(|body| body["stream"] == true);
    let complaint = match &parsed {
        Some(body) => format.complaint(&head.headers, body),
        None => Some("the body is no JSON".to_owned()),
    };
    let run = run_of(&body);
    let request = ReceivedRequest {
        format,
        body: parsed.unwrap_or_default(),
        complaint,
    };
    let plan = upstream.note(run, &request);
    let (Some(plan), Some(run)) = (plan, run) else {
        return refuse(format, 400, "the request has no mark of a run");
    };
    if let Some(reason) = &request.complaint {
        return refuse(format, 400, reason);
    }
    let form = match (is_stream, format, is_array) {
        (false, ..) => ReplyForm::Whole,
        (_, WireFormat::Native, true) => ReplyForm::Array,
        (_, WireFormat::Native, false) => ReplyForm::Lines("\r\n\r\n"),
        _ => ReplyForm::Lines("\n\n"),
    };
    act(format, run, &plan, form).await
}

/// The format of a path, and whether it asks for a stream.
fn format_of(path: &str) -> Option<(WireFormat, bool)> {
    if path.ends_with(":streamGenerateContent") {
        return Some((WireFormat::Native, true));
    }
    let ends = [
        (":generateContent", WireFormat::Native),
        ("/chat/completions", WireFormat::Chat),
        ("/messages", WireFormat::Messages),
        ("/responses", WireFormat::Responses),
    ];
    let found = ends.into_iter().find(|(end, _)| path.ends_with(end));
    found.map(|(_, format)| (format, false))
}

/// The number in the mark, wherever it stands.
fn run_of(body: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(body);
    let (_, rest) = text.split_once(MARK_START)?;
    let (number, _) = rest.split_once(']')?;
    number.parse().ok()
}

fn no_such_path(path: &str) -> Response {
    let models = WireFormat::ALL
        .map(|format| json!({"id": format!("score-{}", format.name()), "object": "model"}));
    match path.ends_with("/models") {
        true => whole(StatusCode::OK, &json!({"object": "list", "data": models})),
        false => StatusCode::NOT_FOUND.into_response(),
    }
}

fn refuse(format: WireFormat, status: u16, message: &str) -> Response {
    let error = UpstreamError {
        status,
        message: message.to_owned(),
    };
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    whole(status, &error.body(format))
}

fn whole(status: StatusCode, body: &Value) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    (status, json, body.to_string()).into_response()
}

/// In which form a client asked for the response.
#[derive(Clone, Copy)]
enum ReplyForm {
    Whole,
    /// Server-sent events, with what ends one: the vendor of the native format ends lines with both characters.
    Lines(&'static str),
    /// Without `alt=sse` a native stream is one JSON array.
    Array,
}

impl ReplyForm {
    fn is_stream(self) -> bool {
        !matches!(self, ReplyForm::Whole)
    }

    /// Frames of a stream in this form.
    fn frames(self, frames: Vec<String>, is_whole: bool) -> Vec<String> {
        match self {
            ReplyForm::Whole | ReplyForm::Lines("\n\n") => frames,
            ReplyForm::Lines(end) => frames
                .into_iter()
                .map(|frame| format!("{}{end}", frame.trim_end()))
                .collect(),
            ReplyForm::Array => {
                let elements = frames.iter().enumerate().map(|(at, frame)| {
                    let start = match at {
                        0 => "[",
                        _ => ",\r\n",
                    };
                    let data = frame.trim_end().trim_start_matches("data: ");
                    format!("{start}{data}\n")
                });
                elements.chain(is_whole.then(|| "]".to_owned())).collect()
            }
        }
    }
}

async fn act(format: WireFormat, run: u64, plan: &RunPlan, form: ReplyForm) -> Response {
    let body = plan.response(format, run);
    let inside = UpstreamError {
        status: 500,
        message: "the model failed after all".to_owned(),
    };
    match (plan.fault, form.is_stream()) {
        (
            Some(UpstreamFault::Status {
                status,
                retry_after,
            }),
            _,
        ) => failed(format, status, retry_after),
        (None, false) => whole(StatusCode::OK, &body),
        (Some(UpstreamFault::Cut), false) => half(&body.to_string()),
        (Some(UpstreamFault::Hang), false) => {
            sleep(HANG).await;
            refuse(format, 504, "the upstream has hung")
        }
        (Some(UpstreamFault::Garbage), false) => {
            let json = [(header::CONTENT_TYPE, "application/json")];
            (json, "<html>this is no JSON</html>").into_response()
        }
        (Some(UpstreamFault::ErrorInside), false) => whole(StatusCode::OK, &inside.body(format)),
        (fault, true) => {
            let script = format.stream(&body);
            let middle = (script.finish / 2).max(1);
            let (frames, ending) = match fault {
                Some(UpstreamFault::Cut) => (
                    script.frames[..plan.cut_after.min(script.finish)].to_vec(),
                    Ending::Cut,
                ),
                Some(UpstreamFault::Hang) => (script.frames[..middle].to_vec(), Ending::Hang),
                Some(UpstreamFault::Garbage) => {
                    let mut frames = script.frames[..middle].to_vec();
                    frames.push("data: <html>this is no JSON</html>\n\n".to_owned());
                    (frames, Ending::Clean)
                }
                Some(UpstreamFault::ErrorInside) => {
                    let mut frames = script.frames[..middle].to_vec();
                    frames.push(inside.frame(format));
                    (frames, Ending::Clean)
                }
                _ => (script.frames, Ending::Clean),
            };
            let frames = form.frames(frames, matches!(ending, Ending::Clean));
            let mut response = streamed(frames, ending, plan.byte_by_byte);
            if matches!(form, ReplyForm::Array) {
                let json = header::HeaderValue::from_static("application/json");
                response.headers_mut().insert(header::CONTENT_TYPE, json);
            }
            response
        }
    }
}

fn failed(format: WireFormat, status: u16, retry_after: Option<u32>) -> Response {
    let mut response = refuse(format, status, &fault_message(status));
    let seconds = retry_after.map(|seconds| seconds.to_string().parse());
    if let Some(Ok(seconds)) = seconds {
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

/// The words of an error, which its client should read.
pub fn fault_message(status: u16) -> String {
    format!("the upstream says {status} for a reason")
}

/// How a stream ends.
#[derive(Clone, Copy)]
enum Ending {
    Clean,
    Cut,
    Hang,
}

fn streamed(frames: Vec<String>, ending: Ending, byte_by_byte: bool) -> Response {
    let chunks: Vec<Bytes> = match byte_by_byte {
        true => cut_inside_characters(&frames.concat()),
        false => frames.into_iter().map(Bytes::from).collect(),
    };
    let body = stream::unfold(Some(chunks.into_iter()), move |chunks| async move {
        let mut chunks = chunks?;
        if let Some(chunk) = chunks.next() {
            // Each event is a packet of its own.
            tokio::task::yield_now().await;
            return Some((Ok(chunk), Some(chunks)));
        }
        match ending {
            Ending::Clean => return None,
            Ending::Cut => sleep(FLUSH_DELAY).await,
            Ending::Hang => sleep(HANG).await,
        }
        Some((Err(ScriptedCut), None))
    });
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("text/event-stream"),
    );
    (headers, Body::from_stream(body)).into_response()
}

/// Chunks that end at every byte of a character of several bytes; the others are longer.
fn cut_inside_characters(text: &str) -> Vec<Bytes> {
    const LONGEST: usize = 24;
    let bytes = text.as_bytes();
    let mut chunks = Vec::new();
    let mut start = 0;
    for at in 1..=bytes.len() {
        let is_inside =
            !bytes[at - 1].is_ascii() || bytes.get(at).is_some_and(|byte| !byte.is_ascii());
        if is_inside || at - start == LONGEST || at == bytes.len() {
            chunks.push(Bytes::copy_from_slice(&bytes[start..at]));
            start = at;
        }
    }
    chunks
}

/// Half of a body; the connection ends before the rest.
fn half(body: &str) -> Response {
    let mut response = streamed(vec![body[..body.len() / 2].to_owned()], Ending::Cut, false);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        header::HeaderValue::from_static("application/json"),
    );
    headers.insert(
        header::CONTENT_LENGTH,
        header::HeaderValue::from(body.len()),
    );
    response
}

/// Ends the connection in the middle of a body.
#[derive(Debug)]
struct ScriptedCut;

impl fmt::Display for ScriptedCut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("cut off, as the scenario says")
    }
}

impl std::error::Error for ScriptedCut {}
