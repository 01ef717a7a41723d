//! How many client connections may be open at once, in all and from one address. Where they run out, one makes room for the
//! next: one that has shown no right key, an idle one of the owner of keys that has most of them, or one of such an owner whose
//! requests are at no upstream.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::access::client_network;
use crate::runtime::OwnerShare;

/// A refused connection is logged no more often than this.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The highest numbers of connections; `None`: no limit.
#[derive(Debug, Clone, Copy)]
pub(in crate::proxy) struct MaxConnections {
    pub(in crate::proxy) total: u64,
    pub(in crate::proxy) per_address: Option<u64>,
}

/// Counts the connections that are open.
#[derive(Debug, Default)]
pub(in crate::proxy) struct ConnectionLimits {
    open: Mutex<OpenConnections>,
    /// Counts the moments at which connections become idle or busy.
    moments: AtomicU64,
}

#[derive(Debug, Default)]
struct OpenConnections {
    total: u64,
    by_address: HashMap<IpAddr, u64>,
    last_number: u64,
    /// The connections that are served and have shown no right key, by their numbers.
    unknown: HashMap<u64, EvictionTurn>,
    /// The same in the order in which they make room.
    turns: BTreeMap<EvictionTurn, Arc<ClientConnection>>,
    turns_by_address: BTreeSet<(Option<IpAddr>, EvictionTurn)>,
    /// Those that have shown a right key, by their numbers.
    known: HashMap<u64, Arc<ClientConnection>>,
    refused: u64,
    logged_at: Option<Instant>,
}

/// The turn of a connection without a right key: those that wait for a request come first, and those before others that have
/// waited, or been served, for longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EvictionTurn {
    is_served: bool,
    since: u64,
}

/// A connection of a client.
#[derive(Debug)]
pub(in crate::proxy) struct ClientConnection {
    limits: Arc<ConnectionLimits>,
    address: Option<IpAddr>,
    number: u64,
    /// Whose key the first request had that had a right one.
    owner: OnceLock<Arc<OwnerShare>>,
    /// How many requests are served.
    requests: AtomicU64,
    /// How many of them are at an upstream.
    forwarded: AtomicU64,
    idle_since: AtomicU64,
    busy_since: AtomicU64,
    /// It has made room for another one, and does not count any more.
    is_evicted: AtomicBool,
    /// It has done so while requests were served.
    is_cut: AtomicBool,
    closing: Notify,
}

/// One open connection, counted until this is dropped.
#[derive(Debug)]
pub(in crate::proxy) struct ConnectionPermit(Arc<ClientConnection>);

/// A request, until whose end its connection is not idle.
pub(in crate::proxy) struct ActiveRequest(Arc<ClientConnection>);

/// A request at an upstream, until whose end its connection makes no room for another.
pub(in crate::proxy) struct ForwardedRequest(Arc<ClientConnection>);

impl ConnectionLimits {
    /// Counts a connection; `None`: it would be one too many.
    pub(in crate::proxy) fn admit(
        self: &Arc<Self>,
        peer: Option<SocketAddr>,
        max: MaxConnections,
    ) -> Option<ConnectionPermit> {
        let mut open = self.open();
        let address = peer.map(|peer| client_network(peer.ip()));
        let is_admitted = (!open.is_full_for(address, max) || open.evict_of(address))
            && (open.total < max.total || open.evict_any());
        if !is_admitted {
            open.refuse(address, max);
            return None;
        }
        open.total += 1;
        if let Some(address) = address {
            *open.by_address.entry(address).or_default() += 1;
        }
        Some(ConnectionPermit(Arc::new(ClientConnection {
            limits: self.clone(),
            address,
            number: open.next_number(),
            owner: OnceLock::new(),
            requests: AtomicU64::new(0),
            forwarded: AtomicU64::new(0),
            idle_since: AtomicU64::new(0),
            busy_since: AtomicU64::new(0),
            is_evicted: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            closing: Notify::new(),
        })))
    }

    fn next_moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::Relaxed)
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
    const fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn is_full_for(&self, address: Option<IpAddr>, max: MaxConnections) -> bool {
        let from_address = address.and_then(|address| self.by_address.get(&address));
        let from_address = from_address.copied().unwrap_or_default();
        max.per_address.is_some_and(|most| from_address >= most)
    }

    /// Ends a connection; `false`: all are those of requests with a right key that may not be ended.
    fn evict_any(&mut self) -> bool {
        let first = self.turns.first_key_value().map(|(turn, _)| *turn);
        self.evict_unknown(first) || self.evict_known(|_| true)
    }

    /// The same among those from an address.
    fn evict_of(&mut self, address: Option<IpAddr>) -> bool {
        let least = EvictionTurn {
            is_served: false,
            since: 0,
        };
        let mut of_address = self.turns_by_address.range((address, least)..);
        let first = of_address.next().filter(|(found, _)| *found == address);
        let first = first.map(|(_, turn)| *turn);
        self.evict_unknown(first) || self.evict_known(|connection| connection.address == address)
    }

    fn evict_unknown(&mut self, turn: Option<EvictionTurn>) -> bool {
        let Some(connection) = turn.and_then(|turn| self.turns.get(&turn).cloned()) else {
            return false;
        };
        self.evict(&connection);
        true
    }

    /// Ends the longest idle connection of the owner that has most. Where none is idle, the longest busy one does whose requests
    /// are at no upstream: a client decides by itself how long it sends a body, or reads an answer. An owner keeps its last one.
    fn evict_known(&mut self, is_meant: impl Fn(&ClientConnection) -> bool) -> bool {
        let idle = self.find_of_most(&is_meant, ClientConnection::idle_since);
        // A request that comes on the idle one at this moment is still answered.
        let is_cut = idle.is_none();
        let found = idle.or_else(|| {
            let busy = self.find_of_most(&is_meant, ClientConnection::busy_since);
            busy.filter(|(count, _)| *count > 1)
        });
        let Some((_, connection)) = found else {
            return false;
        };
        let connection = connection.clone();
        connection.is_cut.store(is_cut, Ordering::Release);
        self.evict(&connection);
        true
    }

    /// Finds the oldest of the connections with such a moment, of the owner that has most connections, and how many these are.
    /// All are looked at: it is done only where no place is left.
    fn find_of_most(
        &self,
        is_meant: impl Fn(&ClientConnection) -> bool,
        since: impl Fn(&ClientConnection) -> Option<u64>,
    ) -> Option<(u64, &Arc<ClientConnection>)> {
        type OwnConnections<'o> = (u64, Option<(u64, &'o Arc<ClientConnection>)>);
        let mut owners: HashMap<*const OwnerShare, OwnConnections<'_>> = HashMap::new();
        for connection in self.known.values().filter(|found| is_meant(found)) {
            let owner = connection.owner.get().map_or(std::ptr::null(), Arc::as_ptr);
            let (count, oldest) = owners.entry(owner).or_default();
            *count += 1;
            let since = since(connection);
            let since = since.filter(|since| oldest.is_none_or(|(before, _)| *since < before));
            if let Some(since) = since {
                *oldest = Some((since, connection));
            }
        }
        let owners = owners.into_values();
        let found = owners.filter_map(|(count, oldest)| Some((count, oldest?.1)));
        found.max_by_key(|(count, _)| *count)
    }

    fn evict(&mut self, connection: &ClientConnection) {
        self.forget(connection);
        connection.is_evicted.store(true, Ordering::Relaxed);
        self.discount(connection.address);
        connection.closing.notify_one();
    }

    /// Gives a connection without a right key the last turn among those that wait, or that are served.
    fn set_turn(&mut self, connection: &Arc<ClientConnection>) {
        let turn = EvictionTurn {
            is_served: connection.is_served(),
            since: self.next_number(),
        };
        let Some(before) = self.unknown.insert(connection.number, turn) else {
            // It has ended, or shown a key meanwhile.
            self.unknown.remove(&connection.number);
            return;
        };
        self.remove_turn(connection, before);
        self.turns.insert(turn, connection.clone());
        self.turns_by_address.insert((connection.address, turn));
    }

    fn remove_turn(&mut self, connection: &ClientConnection, turn: EvictionTurn) {
        self.turns.remove(&turn);
        self.turns_by_address.remove(&(connection.address, turn));
    }

    /// Forgets a connection that has shown a right key, or has ended.
    fn forget(&mut self, connection: &ClientConnection) {
        if let Some(turn) = self.unknown.remove(&connection.number) {
            self.remove_turn(connection, turn);
        }
        self.known.remove(&connection.number);
    }

    fn discount(&mut self, address: Option<IpAddr>) {
        self.total = self.total.saturating_sub(1);
        let Some(address) = address else { return };
        if let Some(count) = self.by_address.get_mut(&address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_address.remove(&address);
            }
        }
    }

    fn refuse(&mut self, address: Option<IpAddr>, max: MaxConnections) {
        self.refused += 1;
        let now = Instant::now();
        if self
            .logged_at
            .is_some_and(|logged| now - logged < LOG_INTERVAL)
        {
            return;
        }
        self.logged_at = Some(now);
        let (limit, most) = match self.total >= max.total {
            true => ("server.max_connections", max.total),
            false => (
                "server.max_connections_per_address",
                max.per_address.unwrap_or_default(),
            ),
        };
        let from = address.map_or_else(|| "?".to_owned(), |address| address.to_string());
        let refused = self.refused;
        log::warn!(
            "a connection from {from} is refused: {limit} is {most} ({refused} refused so far)"
        );
    }
}

impl ClientConnection {
    /// The connection is served from here on, and waits for its first request.
    pub(in crate::proxy) fn set_served(self: &Arc<Self>) {
        let mut open = self.limits.open();
        let turn = EvictionTurn {
            is_served: false,
            since: open.next_number(),
        };
        open.unknown.insert(self.number, turn);
        open.set_turn(self);
    }

    /// Notes that a request is served until what is returned is dropped.
    pub(in crate::proxy) fn serve_request(self: &Arc<Self>) -> ActiveRequest {
        let before = self.requests.fetch_add(1, Ordering::AcqRel);
        if before == 0 {
            self.busy_since
                .store(self.limits.next_moment(), Ordering::Relaxed);
        }
        if before == 0 && !self.has_key() {
            self.limits.open().set_turn(self);
        }
        ActiveRequest(self.clone())
    }

    /// Notes that a request is at an upstream until what is returned is dropped.
    pub(in crate::proxy) fn forward_request(self: &Arc<Self>) -> ForwardedRequest {
        self.forwarded.fetch_add(1, Ordering::AcqRel);
        ForwardedRequest(self.clone())
    }

    /// Tells whether a request is served.
    pub(in crate::proxy) fn is_served(&self) -> bool {
        self.requests.load(Ordering::Acquire) > 0
    }

    fn is_forwarded(&self) -> bool {
        self.forwarded.load(Ordering::Acquire) > 0
    }

    fn idle_since(&self) -> Option<u64> {
        (!self.is_served()).then(|| self.idle_since.load(Ordering::Relaxed))
    }

    /// Since when it serves requests, if none of them is at an upstream.
    fn busy_since(&self) -> Option<u64> {
        let is_local = self.is_served() && !self.is_forwarded();
        is_local.then(|| self.busy_since.load(Ordering::Relaxed))
    }

    /// Tells whether a connection that makes room may end now. A request with a right key that has come at this very moment, or
    /// is at an upstream by now, is answered first.
    pub(in crate::proxy) fn may_end(&self) -> bool {
        let is_cut = self.is_cut.load(Ordering::Acquire) && !self.is_forwarded();
        !self.has_key() || !self.is_served() || is_cut
    }

    /// Tells whether a request had a right key.
    pub(in crate::proxy) fn has_key(&self) -> bool {
        self.owner.get().is_some()
    }

    /// Notes that a request had a right key of this owner: the connection is not ended while an upstream answers one.
    pub(in crate::proxy) fn set_owner(self: &Arc<Self>, owner: &Arc<OwnerShare>) {
        if self.has_key() || self.owner.set(owner.clone()).is_err() {
            return;
        }
        let mut open = self.limits.open();
        open.forget(self);
        if !self.is_evicted.load(Ordering::Relaxed) {
            open.known.insert(self.number, self.clone());
        }
    }

    /// Waits until the connection has to make room for another one.
    pub(in crate::proxy) async fn evicted(&self) {
        self.closing.notified().await;
    }
}

impl ConnectionPermit {
    pub(in crate::proxy) const fn connection(&self) -> &Arc<ClientConnection> {
        &self.0
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let connection = &self.0;
        let moment = connection.limits.next_moment();
        connection.idle_since.store(moment, Ordering::Relaxed);
        let before = connection.requests.fetch_sub(1, Ordering::AcqRel);
        if before == 1 && !connection.has_key() {
            connection.limits.open().set_turn(connection);
        }
    }
}

impl Drop for ForwardedRequest {
    fn drop(&mut self) {
        self.0.forwarded.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.0.limits.open();
        open.forget(&self.0);
        if !self.0.is_evicted.load(Ordering::Relaxed) {
            open.discount(self.0.address);
        }
    }
}

#[cfg(test)]
mod tests;
