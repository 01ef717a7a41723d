//! The response's part of a request: what the client gets.

use std::time::{Duration, Instant};

use crate::model::{ApiError, ApiErrorKind};
use crate::translate::ResponseTranslator;

/// What the client gets.
pub(in crate::proxy) struct ResponseState {
    pub(in crate::proxy) translator: Option<ResponseTranslator>,
    /// Set by the hook that failed, rendered by `fail_to_proxy`.
    error: Option<ApiError>,
    /// The kind of the error that the client was told.
    error_kind: Option<ApiErrorKind>,
    status: u16,
    /// From here on a failure can only be told inside the stream.
    header_sent: bool,
    /// A chunk is being written to the client.
    writing: bool,
    first_byte: Option<Duration>,
    /// How long the client and the upstreams of earlier attempts took.
    waited: Duration,
    /// How long the upstream of this attempt takes.
    upstream_wait: Duration,
    sent: u64,
    last_sent: Instant,
    /// How long the ids of the response were when they were last noted.
    noted_ids: Option<usize>,
}

impl ResponseState {
    pub(super) fn new(now: Instant) -> ResponseState {
        ResponseState {
            translator: None,
            error: None,
            error_kind: None,
            status: 0,
            header_sent: false,
            writing: false,
            first_byte: None,
            waited: Duration::ZERO,
            upstream_wait: Duration::ZERO,
            sent: 0,
            last_sent: now,
            noted_ids: None,
        }
    }

    /// Forgets the response of an attempt that failed.
    pub(in crate::proxy) fn reset(&mut self) {
        self.translator = None;
        self.error = None;
        self.noted_ids = None;
    }

    /// Tells whether the ids of a response that has ended are to be noted: once, and again with the last chunk if there are more
    /// by then. An upstream may send many chunks after its end.
    pub(in crate::proxy) fn takes_ids(&mut self, length: usize, is_last: bool) -> bool {
        let is_due = self
            .noted_ids
            .is_none_or(|noted| is_last && noted != length);
        if is_due {
            self.noted_ids = Some(length);
        }
        is_due
    }

    pub(super) fn set_error(&mut self, error: ApiError) {
        self.error = Some(error);
    }

    pub(in crate::proxy) const fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// The kind of the error that a hook has set.
    pub(super) fn pending_error(&self) -> Option<ApiErrorKind> {
        self.error.as_ref().map(|error| error.kind)
    }

    /// The error that a hook has set, for the client.
    pub(in crate::proxy) fn take_error(&mut self) -> Option<ApiError> {
        self.error_kind = self.error.as_ref().map(|error| error.kind);
        self.error.take()
    }

    pub(in crate::proxy) const fn error_kind(&self) -> Option<ApiErrorKind> {
        self.error_kind
    }

    pub(in crate::proxy) const fn status(&self) -> u16 {
        self.status
    }

    pub(in crate::proxy) const fn set_status(&mut self, status: u16) {
        self.status = status;
    }

    pub(in crate::proxy) const fn header_sent(&self) -> bool {
        self.header_sent
    }

    /// The header is about to be written, `elapsed` after the request came.
    pub(in crate::proxy) fn start(&mut self, status: u16, elapsed: Duration) {
        self.status = status;
        self.header_sent = true;
        self.first_byte.get_or_insert(elapsed);
    }

    pub(in crate::proxy) const fn is_writing(&self) -> bool {
        self.writing
    }

    pub(in crate::proxy) const fn set_writing(&mut self, writing: bool) {
        self.writing = writing;
    }

    pub(in crate::proxy) const fn count_sent(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    pub(in crate::proxy) const fn sent_bytes(&self) -> u64 {
        self.sent
    }

    pub(in crate::proxy) fn touch(&mut self) {
        self.last_sent = Instant::now();
    }

    pub(in crate::proxy) const fn last_sent(&self) -> Instant {
        self.last_sent
    }

    pub(in crate::proxy) const fn first_byte(&self) -> Option<Duration> {
        self.first_byte
    }

    /// The client took this long to send its body.
    pub(in crate::proxy) fn add_wait(&mut self, wait: Duration) {
        self.waited += wait;
    }

    /// The upstream has taken this long so far. After the first byte it does not count any more.
    pub(in crate::proxy) fn set_upstream_wait(&mut self, wait: Duration) {
        if self.first_byte.is_none() {
            self.upstream_wait = wait;
        }
    }

    /// How long the upstream took until its first content; `None`: it has not answered.
    pub(super) fn upstream_wait(&self) -> Option<Duration> {
        Some(self.upstream_wait).filter(|wait| !wait.is_zero())
    }

    /// The attempt has failed, and another follows.
    pub(in crate::proxy) fn end_upstream_wait(&mut self) {
        self.waited += std::mem::take(&mut self.upstream_wait);
    }

    /// What the gateway itself added until the first byte; `None`: no upstream has answered.
    pub(in crate::proxy) fn added(&self) -> Option<Duration> {
        let first_byte = self.first_byte.filter(|_| !self.upstream_wait.is_zero());
        first_byte.map(|first_byte| first_byte.saturating_sub(self.waited + self.upstream_wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_a_response_are_noted_once_and_at_its_end() {
        let mut response = ResponseState::new(Instant::now());
        assert!(response.takes_ids(10, false));
        for length in [10, 20] {
            assert!(!response.takes_ids(length, false), "{length}");
        }
        assert!(!response.takes_ids(10, true));
        assert!(response.takes_ids(20, true));
        response.reset();
        assert!(response.takes_ids(0, false));
    }
}
