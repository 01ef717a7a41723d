//! One request and its reply, from the first header to the last byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::time::Instant as Moment;

use super::bill::Bill;
use super::patience::Bell;
use super::{kept, settle};
use crate::access::Admission;
use crate::formats::Operation;
use crate::journal::Journal;
use crate::metrics::{InFlight, Metrics};
use crate::model::{ApiError, ApiErrorKind, Format, Losses, TranslationState};
use crate::runtime::{Attempt, Key, Model, Reservation, Snapshot, UpstreamPermit};
use crate::translate::{ModelTraits, RequestSummary, ResponseTranslator};

pub struct RequestContext {
    /// Taken once, so that a reload never changes a request halfway.
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) request_id: String,
    pub(super) started: Instant,
    /// The format of the path; errors are told in it.
    pub(super) format: Format,
    pub(super) key: Option<Arc<Key>>,
    /// What the key is known by of a request that was admitted before, when it was handed in.
    pub(super) job: Option<[u8; 32]>,
    /// And how its client called the gateway then.
    pub(super) origin: Option<String>,
    pub(super) model: Option<Arc<Model>>,
    pub(super) wanted: Option<RequestSummary>,
    /// What the current attempt's format cannot say of the request.
    pub(super) losses: Losses,
    /// What the current attempt's upstream is asked to do.
    pub(super) operation: Operation,
    /// How the current attempt's upstream calls the request's tools.
    pub(super) memory: TranslationState,
    /// The client's body, kept as long as another attempt may need it.
    pub(super) body: Bytes,
    pub(super) thread: kept::ConversationState,
    pub(super) attempts: Vec<Attempt>,
    /// How many attempts have begun; the current one is the last of these.
    pub(super) tried: usize,
    /// No attempt is made after this, nor waited for that has no content yet.
    pub(super) give_up: Option<Moment>,
    /// The attempt under way must have content by now.
    pub(super) begin_by: Option<Moment>,
    /// The attempt under way must be over by now.
    pub(super) end_by: Option<Moment>,
    /// For what is waited for.
    pub(super) bell: Bell,
    /// The place of the attempt under way at its upstream.
    pub(super) place: Option<UpstreamPermit>,
    /// The upstream of the attempt under way has failed.
    pub(super) troubled: bool,
    /// The request was not written or its reply not read to the end: nothing may follow on that connection.
    pub(super) unfinished: bool,
    /// Where the upstream of this attempt may also be reached.
    pub(super) other_addresses: Vec<SocketAddr>,
    pub(super) reply: Option<ResponseTranslator>,
    /// Parked by the step that failed, told to the client by `tell`.
    pub(super) api_error: Option<ApiError>,
    /// The header is out: from here on a failure can only be told inside the stream.
    pub(super) header_sent: bool,
    /// A piece is being written to the client.
    pub(super) writing: bool,
    /// The path has a format of its own, unlike the public catalog and paths unknown.
    pub(super) has_format: bool,
    /// What the client was told, where something went wrong.
    pub(super) told: Option<ApiErrorKind>,
    pub(super) status: u16,
    pub(super) first_byte: Option<Duration>,
    pub(super) received: u64,
    pub(super) sent: u64,
    /// What the call holds of its key's limits and the gateway's.
    pub(super) admission: Option<Admission>,
    /// Money held back for the call.
    pub(super) hold: Option<Reservation>,
    /// When the attempt under way was handed to its upstream.
    pub(super) asked_at: Option<Instant>,
    /// About how many tokens that was, once the body is gone.
    pub(super) input: Option<u64>,
    pub(super) bill: Option<Bill>,
    /// It is written down and paid; it cannot change any more.
    pub(super) receipted: bool,
    /// The request is counted.
    pub(super) is_settled: bool,
    /// The client did not wait for the end.
    pub(super) client_left: bool,
    /// When the client was last sent a piece of the reply.
    pub(super) last_sent: Instant,
    pub(super) journal: Option<Arc<Journal>>,
    pub(super) metrics: Arc<Metrics>,
    /// Taken out where it must outlive the exchange.
    in_flight: Option<InFlight>,
}

/// A task that is dropped, as by a panic, never comes to its settlement: what it took is paid all
/// the same.
impl Drop for RequestContext {
    fn drop(&mut self) {
        if !self.is_settled {
            settle::abandoned(self);
        }
    }
}

impl RequestContext {
    pub(super) fn new(
        snapshot: Arc<Snapshot>,
        metrics: Arc<Metrics>,
        journal: Option<Arc<Journal>>,
    ) -> RequestContext {
        let started = Instant::now();
        RequestContext {
            snapshot,
            request_id: new_id(),
            started,
            format: Format::Chat,
            key: None,
            job: None,
            origin: None,
            model: None,
            wanted: None,
            losses: Losses::default(),
            operation: Operation::Generate,
            memory: TranslationState::default(),
            body: Bytes::new(),
            thread: kept::ConversationState::default(),
            attempts: Vec::new(),
            tried: 0,
            give_up: None,
            begin_by: None,
            end_by: None,
            bell: Bell::default(),
            place: None,
            troubled: false,
            unfinished: false,
            other_addresses: Vec::new(),
            reply: None,
            api_error: None,
            header_sent: false,
            writing: false,
            has_format: false,
            told: None,
            status: 0,
            first_byte: None,
            received: 0,
            sent: 0,
            admission: None,
            hold: None,
            asked_at: None,
            input: None,
            bill: None,
            receipted: false,
            is_settled: false,
            client_left: false,
            last_sent: started,
            journal,
            in_flight: Some(metrics.in_flight()),
            metrics,
        }
    }

    /// All is over but for what its result is needed for.
    pub(super) fn take_in_flight(&mut self) -> Option<InFlight> {
        self.in_flight.take()
    }

    /// The attempt under way.
    pub(super) fn attempt(&self) -> Option<&Attempt> {
        self.attempts.get(self.tried.checked_sub(1)?)
    }

    /// How long the upstream of the attempt under way may be silent before the reply's first byte.
    pub(super) fn first_silence(&self) -> Option<Duration> {
        self.attempt()?.timeouts.first_byte
    }

    /// And after it.
    pub(super) fn later_silence(&self) -> Option<Duration> {
        self.attempt()?.timeouts.idle
    }

    /// The next attempt is under way, within what is left of the time.
    pub(super) fn begin_attempt(&mut self) {
        self.tried += 1;
        self.delete_response();
        self.api_error = None;
        self.place = None;
        self.troubled = false;
        self.unfinished = false;
        self.other_addresses.clear();
        let settings = self.model.as_ref().map(|model| &model.settings);
        let retries = settings.map(|settings| settings.retries);
        let limit = retries.and_then(|retries| retries.per_attempt_timeout);
        let total = self.attempt().and_then(|attempt| attempt.timeouts.total);
        self.begin_by = earliest(limit.map(|limit| Moment::now() + limit), self.give_up);
        self.end_by = total.map(|limit| Moment::now() + limit);
    }

    /// The attempt under way has failed, and another will be made.
    pub(super) fn delete_response(&mut self) {
        self.reply = None;
        self.asked_at = None;
    }

    /// When the attempt has to be over; until there is content, that is sooner.
    pub(super) fn deadline(&self) -> Option<Moment> {
        match self.header_sent {
            true => self.end_by,
            false => earliest(self.begin_by, self.end_by),
        }
    }

    /// The attempt under way cannot be made at all: it does not count.
    pub(super) fn withdraw_attempt(&mut self) {
        if let Some(current) = self.tried.checked_sub(1) {
            let same = self.attempts.remove(current);
            self.attempts.retain(|attempt| !attempt.is_same_as(&same));
            self.tried = current;
        }
    }

    /// The upstream of this attempt would say the same again.
    pub(super) fn forsake_upstream(&mut self) {
        let Some(upstream) = self.attempt().map(|attempt| attempt.upstream.clone()) else {
            return;
        };
        let later = self.attempts.split_off(self.tried);
        let elsewhere = later.into_iter();
        let elsewhere = elsewhere.filter(|attempt| !Arc::ptr_eq(&attempt.upstream, &upstream));
        self.attempts.extend(elsewhere);
    }

    pub(super) fn may_try_again(&self) -> bool {
        !self.header_sent
            && self.tried < self.attempts.len()
            && self.give_up.is_none_or(|at| Moment::now() < at)
    }

    /// What the request must know of the model that was asked for.
    pub(super) fn traits(&self) -> ModelTraits<'_> {
        let model = self.model.as_ref();
        ModelTraits {
            text_only: model.is_some_and(|model| !model.settings.has_image_output()),
            sizes: model.map_or(&[], |model| &model.capabilities.image_sizes),
        }
    }

    /// The name of the upstream that is answering, or that was tried last.
    pub(super) fn upstream_name(&self) -> &str {
        self.attempt().map_or("", |attempt| &attempt.upstream.name)
    }

    pub(super) fn note_first_byte(&mut self) {
        let elapsed = self.started.elapsed();
        self.first_byte.get_or_insert(elapsed);
    }
}

/// Ids in the order of time.
fn new_id() -> String {
    let mut letters = uuid::Uuid::encode_buffer();
    let id = uuid::Uuid::now_v7().simple().encode_lower(&mut letters);
    ["req_", id].concat()
}

fn earliest(one: Option<Moment>, other: Option<Moment>) -> Option<Moment> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
