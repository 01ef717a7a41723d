//! What is known of one connection of a client: its requests, whose they are, and whether it makes room for another.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::sync::Notify;

use crate::runtime::OwnerShare;

/// The state of a connection, which its requests and the limits of connections share.
#[derive(Debug, Default)]
pub(super) struct ConnectionState {
    pub(super) address: Option<IpAddr>,
    pub(super) number: u64,
    /// Whose key the first request had that had a right one.
    owner: OnceLock<Arc<OwnerShare>>,
    /// How many requests are served.
    requests: AtomicU64,
    /// How many of them are at an upstream.
    forwarded: AtomicU64,
    idle_since: AtomicU64,
    busy_since: AtomicU64,
    /// It has a place. One that is still in its handshake may have none, and one that has made room for another has none any
    /// more.
    is_counted: AtomicBool,
    /// It has made room while requests were served.
    is_cut: AtomicBool,
    closing: Notify,
}

impl ConnectionState {
    pub(super) fn new(address: Option<IpAddr>, number: u64) -> ConnectionState {
        ConnectionState {
            address,
            number,
            ..ConnectionState::default()
        }
    }

    /// Notes that a request begins; `true`: no other one is served.
    pub(super) fn begin_request(&self, moment: impl FnOnce() -> u64) -> bool {
        let is_first = self.requests.fetch_add(1, Ordering::AcqRel) == 0;
        if is_first {
            self.busy_since.store(moment(), Ordering::Relaxed);
        }
        is_first
    }

    /// Notes that a request is over; `true`: no other one is served.
    pub(super) fn end_request(&self, moment: u64) -> bool {
        self.idle_since.store(moment, Ordering::Relaxed);
        self.requests.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(super) fn begin_forwarding(&self) {
        self.forwarded.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn end_forwarding(&self) {
        self.forwarded.fetch_sub(1, Ordering::AcqRel);
    }

    /// Tells whether a request is served.
    pub(super) fn is_served(&self) -> bool {
        self.requests.load(Ordering::Acquire) > 0
    }

    fn is_forwarded(&self) -> bool {
        self.forwarded.load(Ordering::Acquire) > 0
    }

    pub(super) fn idle_since(&self) -> Option<u64> {
        (!self.is_served()).then(|| self.idle_since.load(Ordering::Relaxed))
    }

    /// Since when it serves requests, if none of them is at an upstream.
    pub(super) fn busy_since(&self) -> Option<u64> {
        let is_local = self.is_served() && !self.is_forwarded();
        is_local.then(|| self.busy_since.load(Ordering::Relaxed))
    }

    /// Tells whether a connection that makes room may end now. A request with a right key that has come at this very moment, or
    /// is at an upstream by now, is answered first.
    pub(super) fn may_end(&self) -> bool {
        let is_cut = self.is_cut.load(Ordering::Acquire) && !self.is_forwarded();
        !self.has_key() || !self.is_served() || is_cut
    }

    /// Tells whether a request had a right key.
    pub(super) fn has_key(&self) -> bool {
        self.owner.get().is_some()
    }

    pub(super) fn owner(&self) -> Option<&Arc<OwnerShare>> {
        self.owner.get()
    }

    /// Notes whose key a request had; `false`: it is known already.
    pub(super) fn set_owner(&self, owner: &Arc<OwnerShare>) -> bool {
        !self.has_key() && self.owner.set(owner.clone()).is_ok()
    }

    pub(super) fn is_counted(&self) -> bool {
        self.is_counted.load(Ordering::Relaxed)
    }

    /// Notes whether it has a place; returns what was so before.
    pub(super) fn set_counted(&self, is_counted: bool) -> bool {
        self.is_counted.swap(is_counted, Ordering::Relaxed)
    }

    /// Lets the connection end though requests are served.
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
    }

    /// Tells the connection that it has to make room.
    pub(super) fn close(&self) {
        self.closing.notify_one();
    }

    /// Waits until the connection has to make room.
    pub(super) async fn closed(&self) {
        self.closing.notified().await;
    }
}
