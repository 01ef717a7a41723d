//! The attempt's part of a request: what one upstream is asked, and how that goes.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::Instant as TokioInstant;

use crate::formats::Operation;
use crate::json::ChunkedBytes;
use crate::model::{Losses, TranslationState};
use crate::runtime::UpstreamPermit;

/// One attempt at one upstream.
#[derive(Default)]
pub(in crate::proxy) struct AttemptState {
    /// What the upstream's format cannot express of the request.
    pub(in crate::proxy) losses: Losses,
    translated: Option<(TranslationState, Operation)>,
    /// The bytes of media in a translated body; `None`: as many as in the client's.
    translated_media: Option<u64>,
    started: Option<TokioInstant>,
    /// What follows the first chunk of the request body: long bodies are not copied into one.
    rest_of_body: ChunkedBytes,
    /// There must be content by now.
    first_content_deadline: Option<TokioInstant>,
    /// The attempt must be over by now.
    deadline: Option<TokioInstant>,
    permit: Option<UpstreamPermit>,
    failed: bool,
    /// The request was not sent or its response not read to the end: nothing may follow on that connection.
    unfinished: bool,
    other_addresses: Vec<SocketAddr>,
    next_address: Option<SocketAddr>,
    sent_at: Option<TokioInstant>,
    /// When the last byte of the response was read.
    read_at: Option<TokioInstant>,
    /// The response was one of success, and the client cannot get it.
    unusable: bool,
    /// The response was one of success, and what it says cannot be read.
    unread: bool,
}

impl AttemptState {
    /// A new attempt. The losses of the last one stay until this one has its own: an error may report them.
    pub(super) fn start(
        &mut self,
        now: TokioInstant,
        first_content_deadline: Option<TokioInstant>,
        deadline: Option<TokioInstant>,
    ) {
        *self = AttemptState {
            losses: std::mem::take(&mut self.losses),
            started: Some(now),
            first_content_deadline,
            deadline,
            ..AttemptState::default()
        };
    }

    /// When the attempt began; `None`: there is none yet.
    pub(super) const fn started(&self) -> Option<TokioInstant> {
        self.started
    }

    /// When the attempt has to be over; until content has been sent, that is sooner.
    pub(super) fn deadline(&self, has_content: bool) -> Option<TokioInstant> {
        let first = self.first_content_deadline.filter(|_| !has_content);
        first.into_iter().chain(self.deadline).min()
    }

    pub(in crate::proxy) fn set_translated(
        &mut self,
        losses: Losses,
        state: TranslationState,
        operation: Operation,
    ) {
        self.losses = losses;
        self.translated = Some((state, operation));
    }

    pub(in crate::proxy) const fn set_translated_media(&mut self, bytes: Option<u64>) {
        self.translated_media = bytes;
    }

    pub(in crate::proxy) const fn translated_media(&self) -> Option<u64> {
        self.translated_media
    }

    /// What the upstream is asked to do; `None` until the body is translated.
    pub(in crate::proxy) fn operation(&self) -> Option<Operation> {
        self.translated.as_ref().map(|(_, operation)| *operation)
    }

    /// What the response needs of the request's translation; another attempt makes its own.
    pub(in crate::proxy) fn take_translation_state(&mut self) -> TranslationState {
        let translated = self.translated.as_mut();
        translated
            .map(|(state, _)| std::mem::take(state))
            .unwrap_or_default()
    }

    pub(in crate::proxy) fn set_rest_of_body(&mut self, rest: ChunkedBytes) {
        self.rest_of_body = rest;
    }

    pub(in crate::proxy) fn take_rest_of_body(&mut self) -> ChunkedBytes {
        std::mem::take(&mut self.rest_of_body)
    }

    pub(in crate::proxy) fn set_permit(&mut self, permit: UpstreamPermit) {
        self.permit = Some(permit);
    }

    pub(in crate::proxy) fn release_permit(&mut self) {
        self.permit = None;
    }

    pub(in crate::proxy) const fn has_failed(&self) -> bool {
        self.failed
    }

    pub(in crate::proxy) const fn set_failed(&mut self) {
        self.failed = true;
    }

    pub(in crate::proxy) const fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    pub(in crate::proxy) const fn set_unfinished(&mut self, unfinished: bool) {
        self.unfinished |= unfinished;
    }

    pub(in crate::proxy) fn set_other_addresses(&mut self, addresses: Vec<SocketAddr>) {
        self.other_addresses = addresses;
    }

    /// Chooses another address of the same upstream, if one is left.
    pub(in crate::proxy) fn try_next_address(&mut self) -> Option<SocketAddr> {
        self.next_address = self.other_addresses.pop();
        self.next_address
    }

    pub(in crate::proxy) const fn take_next_address(&mut self) -> Option<SocketAddr> {
        self.next_address.take()
    }

    pub(in crate::proxy) fn set_sent(&mut self) {
        self.sent_at = Some(TokioInstant::now());
    }

    pub(in crate::proxy) const fn sent_at(&self) -> Option<TokioInstant> {
        self.sent_at
    }

    /// Notes that the upstream has sent something of its response.
    pub(in crate::proxy) fn note_read(&mut self) {
        self.read_at = Some(TokioInstant::now());
    }

    /// How long the upstream has been at work: until its last byte was read, or until now where it has sent none.
    pub(in crate::proxy) fn took(&self) -> Duration {
        let until = self.read_at.unwrap_or_else(TokioInstant::now);
        let took = self
            .sent_at
            .map(|since| until.saturating_duration_since(since));
        took.unwrap_or_default()
    }

    pub(in crate::proxy) const fn is_unusable(&self) -> bool {
        self.unusable
    }

    pub(in crate::proxy) const fn set_unusable(&mut self) {
        self.unusable = true;
    }

    pub(in crate::proxy) const fn is_unread(&self) -> bool {
        self.unread
    }

    /// Notes that a response of success cannot be read, so that its usage is not known.
    pub(in crate::proxy) const fn set_unread(&mut self) {
        (self.unusable, self.unread) = (true, true);
    }

    /// Forgets when the request was sent: the attempt has failed, and another follows.
    pub(in crate::proxy) const fn clear_sent(&mut self) {
        self.sent_at = None;
    }
}
