//! One inspected request: what it was and became, with every credential redacted before it comes here.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;

use super::memory::{CaptureMemory, CaptureShare};
use crate::model::{Money, Usage};

/// How many bytes of a body are shown.
pub const PANE_LIMIT: usize = 256 << 10;

/// How many events of a request are kept.
const MAX_EVENTS: usize = 1000;

/// How many attempts of a request are kept whole; of the others the timeline tells.
const MAX_ATTEMPTS: usize = 4;

/// One side of a request: a header and a body, as text, without credentials.
#[derive(Debug)]
pub struct CapturedMessage {
    /// The first line and the fields.
    pub head: String,
    pub body: String,
    /// How many bytes the body had.
    pub size: u64,
    /// Not all of it is here.
    pub is_cut: bool,
    /// What it takes of the memory of captures.
    pub share: CaptureShare,
}

/// One attempt at one upstream.
#[derive(Debug, Clone)]
pub struct CapturedAttempt {
    pub upstream: Arc<str>,
    /// The name of the upstream's format.
    pub format: &'static str,
    /// `None`: nothing was sent.
    pub request: Option<Arc<CapturedMessage>>,
    /// `None`: nothing came back.
    pub response: Option<Arc<CapturedMessage>>,
}

/// Where an event of the timeline happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSide {
    /// Between the client and the gateway.
    Client,
    /// Between the gateway and an upstream.
    Upstream,
}

/// What an event of the timeline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The header of the request has arrived.
    Arrived,
    /// All of its body has.
    BodyRead,
    /// An attempt starts; the detail is the upstream.
    AttemptStarted,
    /// The request goes out to the upstream.
    Sent,
    /// The header of the upstream's response is here; the detail is the status.
    HeaderReceived,
    /// The attempt has failed; the detail is why.
    AttemptFailed,
    /// The header of the response goes out to the client; the detail is the status.
    HeaderSent,
    /// One event of a stream; the detail is its name.
    StreamEvent,
    /// A part of a body that is no stream of events.
    Chunk,
    /// The client has gone before the end.
    ClientLeft,
    Ended,
}

/// One event of the timeline.
#[derive(Debug, Clone)]
pub struct TimelineEvent {
    /// Since the request has arrived.
    pub microseconds: u64,
    pub side: EventSide,
    pub kind: EventKind,
    pub detail: String,
    /// Of what came or went.
    pub bytes: u64,
}

impl TimelineEvent {
    const fn size(&self) -> usize {
        size_of::<TimelineEvent>() + self.detail.len()
    }
}

/// How the request ended.
#[derive(Debug, Clone, Default)]
pub struct CaptureOutcome {
    pub status: u16,
    /// The kind of error that the client was told.
    pub error: Option<&'static str>,
    pub usage: Option<Usage>,
    pub is_estimated: bool,
    /// `None`: the model has no prices, or nothing was used.
    pub cost: Option<Money>,
    /// The client's paths of what the upstream's format could not express.
    pub dropped: String,
    pub adjusted: String,
    /// The same of the response, in the client's format.
    pub response_dropped: String,
    pub response_adjusted: String,
    pub microseconds: u64,
}

/// What is known of a request so far.
#[derive(Debug, Clone, Default)]
pub struct CapturedRequest {
    pub model: String,
    /// The client's format.
    pub format: &'static str,
    pub is_stream: bool,
    pub client_request: Option<Arc<CapturedMessage>>,
    pub attempts: Vec<CapturedAttempt>,
    pub client_response: Option<Arc<CapturedMessage>>,
    pub timeline: Vec<TimelineEvent>,
    timeline_bytes: usize,
    /// How many more events there were.
    pub omitted_events: usize,
    /// `None`: it is under way.
    pub outcome: Option<CaptureOutcome>,
}

/// What is known of a request, and what its timeline takes of the memory of captures.
#[derive(Debug)]
struct CaptureState {
    request: CapturedRequest,
    timeline: CaptureShare,
}

/// One inspected request, shared by who writes it and who looks at it.
#[derive(Debug)]
pub struct Capture {
    /// The first one of an inspection is 1.
    pub number: u32,
    pub request_id: String,
    pub started: Timestamp,
    memory: Arc<CaptureMemory>,
    state: Mutex<CaptureState>,
    changes: watch::Sender<u64>,
}

impl Capture {
    pub(super) fn new(
        number: u32,
        request_id: &str,
        memory: Arc<CaptureMemory>,
        changes: watch::Sender<u64>,
    ) -> Capture {
        Capture {
            number,
            request_id: request_id.to_owned(),
            started: Timestamp::now(),
            state: Mutex::new(CaptureState {
                request: CapturedRequest::default(),
                timeline: CaptureShare::new(memory.clone()),
            }),
            memory,
            changes,
        }
    }

    /// Room for one more body.
    pub fn share(&self) -> CaptureShare {
        CaptureShare::new(self.memory.clone())
    }

    /// What is known by now.
    pub fn request(&self) -> CapturedRequest {
        self.state().request.clone()
    }

    /// Tells whether the request is over.
    pub(super) fn has_ended(&self) -> bool {
        self.state().request.outcome.is_some()
    }

    /// How much of the memory it has.
    pub(super) fn bytes(&self) -> usize {
        let state = self.state();
        let request = &state.request;
        let of_client = [&request.client_request, &request.client_response];
        let attempts = request.attempts.iter();
        let of_upstreams = attempts.flat_map(|attempt| [&attempt.request, &attempt.response]);
        let messages = of_client.into_iter().chain(of_upstreams).flatten();
        let messages: usize = messages.map(|message| message.share.bytes()).sum();
        messages + state.timeline.bytes()
    }

    /// Adds what has become known, and tells who waits for it.
    pub fn update(&self, change: impl FnOnce(&mut CapturedRequest)) {
        {
            let mut state = self.state();
            let CaptureState { request, timeline } = &mut *state;
            change(request);
            timeline.take(request.timeline_bytes.saturating_sub(timeline.bytes()));
            request.cut_timeline(timeline.bytes());
        }
        self.changes.send_modify(|count| *count += 1);
    }

    fn state(&self) -> MutexGuard<'_, CaptureState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CapturedRequest {
    pub fn add_event(&mut self, event: TimelineEvent) {
        match self.timeline.len() < MAX_EVENTS {
            true => {
                self.timeline_bytes += event.size();
                self.timeline.push(event);
            }
            false => self.omitted_events += 1,
        }
    }

    /// Leaves out the last events, as far as there is no room for them.
    fn cut_timeline(&mut self, room: usize) {
        while self.timeline_bytes > room
            && let Some(event) = self.timeline.pop()
        {
            self.timeline_bytes -= event.size();
            self.omitted_events += 1;
        }
    }

    /// Adds the events of a stream where they belong in time.
    pub fn add_stream(&mut self, events: impl IntoIterator<Item = TimelineEvent>) {
        for event in events {
            self.add_event(event);
        }
        self.timeline.sort_by_key(|event| event.microseconds);
    }

    /// Adds an attempt that is over; of many the first are left out.
    pub fn add_attempt(&mut self, attempt: CapturedAttempt) {
        if self.attempts.len() == MAX_ATTEMPTS {
            self.attempts.remove(0);
        }
        self.attempts.push(attempt);
    }
}
