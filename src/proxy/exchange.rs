//! One request and its reply, from the first header to the last byte: the context of every hook.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::metrics::InFlight;
use crate::model::{Fault, FaultKind, Format, Losses, Memory};
use crate::runtime::{Attempt, Key, Model, Snapshot};
use crate::translate::{Reply, Wanted};

pub struct Exchange {
    /// Taken once, so that a reload never changes a request halfway.
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) request_id: String,
    pub(super) started: Instant,
    /// The format of the path; errors are told in it.
    pub(super) format: Format,
    pub(super) key: Option<Arc<Key>>,
    pub(super) model: Option<Arc<Model>>,
    pub(super) wanted: Option<Wanted>,
    /// What the current attempt's format cannot say of the request.
    pub(super) losses: Losses,
    /// How the current attempt's upstream calls the request's tools.
    pub(super) memory: Memory,
    /// The client's body, kept for every attempt.
    pub(super) body: Bytes,
    pub(super) attempts: Vec<Attempt>,
    /// How many attempts have begun; the current one is the last of these.
    pub(super) tried: usize,
    /// Where the upstream of this attempt may also be reached.
    pub(super) other_addresses: Vec<SocketAddr>,
    pub(super) reply: Option<Reply>,
    /// Parked by the hook that failed, told to the client by `fail_to_proxy`.
    pub(super) fault: Option<Fault>,
    /// The header is out: from here on a failure can only be told inside the stream.
    pub(super) header_sent: bool,
    /// A piece is being written to the client.
    pub(super) writing: bool,
    /// The path has a format of its own, unlike the public catalog and paths unknown.
    pub(super) has_format: bool,
    /// What the client was told, where something went wrong.
    pub(super) told: Option<FaultKind>,
    pub(super) status: u16,
    pub(super) first_byte: Option<Duration>,
    pub(super) received: u64,
    pub(super) sent: u64,
    /// When the client was last sent a piece of the reply.
    pub(super) last_sent: Instant,
    _in_flight: InFlight,
}

impl Exchange {
    pub(super) fn new(snapshot: Arc<Snapshot>, in_flight: InFlight) -> Exchange {
        Exchange {
            snapshot,
            request_id: format!("req_{}", uuid::Uuid::now_v7().simple()),
            started: Instant::now(),
            format: Format::Chat,
            key: None,
            model: None,
            wanted: None,
            losses: Losses::default(),
            memory: Memory::default(),
            body: Bytes::new(),
            attempts: Vec::new(),
            tried: 0,
            other_addresses: Vec::new(),
            reply: None,
            fault: None,
            header_sent: false,
            writing: false,
            has_format: false,
            told: None,
            status: 0,
            first_byte: None,
            received: 0,
            sent: 0,
            last_sent: Instant::now(),
            _in_flight: in_flight,
        }
    }

    /// The attempt under way.
    pub(super) fn attempt(&self) -> Option<&Attempt> {
        self.attempts.get(self.tried.checked_sub(1)?)
    }

    pub(super) fn begin_attempt(&mut self) {
        self.tried += 1;
        self.reply = None;
        self.fault = None;
    }

    /// The attempt under way cannot be made at all: it does not count.
    pub(super) fn withdraw_attempt(&mut self) {
        if let Some(current) = self.tried.checked_sub(1) {
            self.attempts.remove(current);
            self.tried = current;
        }
    }

    pub(super) fn may_try_again(&self) -> bool {
        !self.header_sent && self.tried < self.attempts.len()
    }

    /// The model that was asked for answers with words only.
    pub(super) fn is_text_only(&self) -> bool {
        let model = self.model.as_ref().map(|model| &model.settings);
        model.is_some_and(|model| !model.has_image_output())
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
