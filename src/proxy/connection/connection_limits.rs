//! How many client connections may be open at once, in all and from one address. Where they run out, one makes room for the
//! next: one that has shown no right key, an idle one of the owner of keys that has most of them, or one of such an owner whose
//! requests are at no upstream.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::connection_state::ConnectionState;
use super::open_connections::{MaxConnections, OpenConnections};
use crate::access::client_network;
use crate::runtime::OwnerShare;

/// Counts the connections that are open.
#[derive(Debug, Default)]
pub(in crate::proxy) struct ConnectionLimits {
    open: Mutex<OpenConnections>,
    /// Counts the moments at which connections become idle or busy.
    moments: AtomicU64,
}

/// A connection of a client.
#[derive(Debug)]
pub(in crate::proxy) struct ClientConnection {
    limits: Arc<ConnectionLimits>,
    state: Arc<ConnectionState>,
}

/// One open connection, counted until this is dropped.
#[derive(Debug)]
pub(in crate::proxy) struct ConnectionPermit(Arc<ClientConnection>);

/// A request, until whose end its connection is not idle.
pub(in crate::proxy) struct ActiveRequest(Arc<ClientConnection>);

/// A request at an upstream, until whose end its connection makes no room for another.
pub(in crate::proxy) struct ForwardedRequest(Arc<ClientConnection>);

impl ConnectionLimits {
    /// Counts a connection that waits for its first request; `None`: it would be one too many.
    pub(in crate::proxy) fn admit(
        self: &Arc<Self>,
        peer: Option<SocketAddr>,
        max: MaxConnections,
    ) -> Option<ConnectionPermit> {
        let mut open = self.open();
        let permit = self.permit(&mut open, peer);
        let is_admitted = open.admit(&permit.0.state, max);
        // A permit that is not given takes the lock to end.
        drop(open);
        is_admitted.then_some(permit)
    }

    /// Lets a connection begin its TLS handshake.
    pub(in crate::proxy) fn admit_handshake(
        self: &Arc<Self>,
        peer: Option<SocketAddr>,
        max: MaxConnections,
    ) -> ConnectionPermit {
        let mut open = self.open();
        let permit = self.permit(&mut open, peer);
        open.admit_handshake(&permit.0.state, max);
        permit
    }

    fn permit(
        self: &Arc<Self>,
        open: &mut OpenConnections,
        peer: Option<SocketAddr>,
    ) -> ConnectionPermit {
        let address = peer.map(|peer| client_network(peer.ip()));
        let state = ConnectionState::new(address, open.next_number());
        ConnectionPermit(Arc::new(ClientConnection {
            limits: self.clone(),
            state: Arc::new(state),
        }))
    }

    fn next_moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::Relaxed)
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientConnection {
    /// Notes that the TLS handshake has finished; `false`: there is no place for the connection.
    pub(in crate::proxy) fn finish_handshake(&self, max: MaxConnections) -> bool {
        self.limits.open().finish_handshake(&self.state, max)
    }

    /// Notes that a request is served until what is returned is dropped.
    pub(in crate::proxy) fn serve_request(self: &Arc<Self>) -> ActiveRequest {
        let is_first = self.state.begin_request(|| self.limits.next_moment());
        if is_first && !self.has_key() {
            self.limits.open().set_turn(&self.state);
        }
        ActiveRequest(self.clone())
    }

    /// Notes that a request is at an upstream until what is returned is dropped.
    pub(in crate::proxy) fn forward_request(self: &Arc<Self>) -> ForwardedRequest {
        self.state.begin_forwarding();
        ForwardedRequest(self.clone())
    }

    /// Tells whether a connection that makes room may end now.
    pub(in crate::proxy) fn may_end(&self) -> bool {
        self.state.may_end()
    }

    /// Tells whether a request had a right key.
    pub(in crate::proxy) fn has_key(&self) -> bool {
        self.state.has_key()
    }

    /// Notes that a request had a right key of this owner: the connection is not ended while an upstream answers one.
    pub(in crate::proxy) fn set_owner(&self, owner: &Arc<OwnerShare>) {
        if self.state.set_owner(owner) {
            self.limits.open().set_known(&self.state);
        }
    }

    /// Waits until the connection has to make room for another one.
    pub(in crate::proxy) async fn evicted(&self) {
        self.state.closed().await;
    }
}

impl ConnectionPermit {
    pub(in crate::proxy) const fn connection(&self) -> &Arc<ClientConnection> {
        &self.0
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let ClientConnection { limits, state } = &*self.0;
        let is_last = state.end_request(limits.next_moment());
        if is_last && !state.has_key() {
            limits.open().set_turn(state);
        }
    }
}

impl Drop for ForwardedRequest {
    fn drop(&mut self) {
        self.0.state.end_forwarding();
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let ClientConnection { limits, state } = &*self.0;
        limits.open().remove(state);
    }
}

#[cfg(test)]
mod tests;
