//! How many client connections may be open at once, in all and from one address. Where they run out, a connection that has shown
//! no right key makes room for the next one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use crate::access::client_network;

/// A refused connection is logged no more often than this.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The highest numbers of connections; `None`: no limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct MaxConnections {
    pub(super) total: u64,
    pub(super) per_address: Option<u64>,
}

/// Counts the connections that are open.
#[derive(Debug, Default)]
pub(super) struct ConnectionLimits {
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    total: u64,
    by_address: HashMap<IpAddr, u64>,
    /// Numbers are given out in order: those of connections, and those of the moments at which they become idle.
    last_number: u64,
    /// The connections that are served and have shown no right key, by their numbers.
    unknown: HashMap<u64, UnknownClient>,
    /// Those of them that wait for a request, from the one that has waited for longest.
    idle: BTreeMap<u64, Arc<ClientConnection>>,
    idle_by_address: BTreeSet<(Option<IpAddr>, u64)>,
    refused: u64,
    logged_at: Option<Instant>,
}

/// A connection that has shown no right key.
#[derive(Debug, Default)]
struct UnknownClient {
    /// How many requests are served.
    requests: u64,
    /// Its place among those that wait for one.
    idle_since: Option<u64>,
}

/// A connection of a client.
#[derive(Debug)]
pub(super) struct ClientConnection {
    limits: Arc<ConnectionLimits>,
    address: Option<IpAddr>,
    number: u64,
    /// A request had a right key.
    has_key: AtomicBool,
    /// It has made room for another one, and does not count any more.
    is_evicted: AtomicBool,
    closing: Notify,
}

/// One open connection, counted until this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit(Arc<ClientConnection>);

/// A request, until whose end its connection is not idle.
pub(super) struct ActiveRequest(Arc<ClientConnection>);

impl ConnectionLimits {
    /// Counts a connection; `None`: it would be one too many.
    pub(super) fn admit(
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
            has_key: AtomicBool::new(false),
            is_evicted: AtomicBool::new(false),
            closing: Notify::new(),
        })))
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

    /// Ends the connection that has waited for longest; `false`: none without a right key waits.
    fn evict_any(&mut self) -> bool {
        let oldest = self.idle.first_key_value().map(|(since, _)| *since);
        self.evict(oldest)
    }

    /// The same among those from an address.
    fn evict_of(&mut self, address: Option<IpAddr>) -> bool {
        let mut of_address = self.idle_by_address.range((address, 0)..);
        let oldest = of_address.next().filter(|(found, _)| *found == address);
        let oldest = oldest.map(|(_, since)| *since);
        self.evict(oldest)
    }

    fn evict(&mut self, idle_since: Option<u64>) -> bool {
        let evicted = idle_since.and_then(|since| self.idle.remove(&since));
        let (Some(connection), Some(since)) = (evicted, idle_since) else {
            return false;
        };
        self.idle_by_address.remove(&(connection.address, since));
        self.unknown.remove(&connection.number);
        connection.is_evicted.store(true, Ordering::Relaxed);
        self.discount(connection.address);
        connection.closing.notify_one();
        true
    }

    /// A connection waits for its next request.
    fn set_idle(&mut self, connection: &Arc<ClientConnection>) {
        let since = self.next_number();
        let client = self.unknown.get_mut(&connection.number);
        if let Some(client) = client.filter(|client| client.requests == 0) {
            client.idle_since = Some(since);
            self.idle.insert(since, connection.clone());
            self.idle_by_address.insert((connection.address, since));
        }
    }

    fn set_busy(&mut self, connection: &ClientConnection) {
        let client = self.unknown.get_mut(&connection.number);
        let since = client.and_then(|client| client.idle_since.take());
        if let Some(since) = since {
            self.idle.remove(&since);
            self.idle_by_address.remove(&(connection.address, since));
        }
    }

    /// Forgets a connection that has shown a right key, or has ended.
    fn forget(&mut self, connection: &ClientConnection) {
        self.set_busy(connection);
        self.unknown.remove(&connection.number);
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
    pub(super) fn set_served(self: &Arc<Self>) {
        let mut open = self.limits.open();
        open.unknown.insert(self.number, UnknownClient::default());
        open.set_idle(self);
    }

    /// Notes that a request is served until what is returned is dropped.
    pub(super) fn serve_request(self: &Arc<Self>) -> Option<ActiveRequest> {
        if self.has_key() {
            return None;
        }
        let mut open = self.limits.open();
        open.set_busy(self);
        let client = open.unknown.get_mut(&self.number)?;
        client.requests += 1;
        Some(ActiveRequest(self.clone()))
    }

    /// Tells whether a request had a right key.
    pub(super) fn has_key(&self) -> bool {
        self.has_key.load(Ordering::Relaxed)
    }

    /// Notes that a request had a right key: the connection is not ended for others.
    pub(super) fn set_has_key(&self) {
        if !self.has_key.swap(true, Ordering::Relaxed) {
            self.limits.open().forget(self);
        }
    }

    /// Waits until the connection has to make room for another one.
    pub(super) async fn evicted(&self) {
        self.closing.notified().await;
    }
}

impl ConnectionPermit {
    pub(super) const fn connection(&self) -> &Arc<ClientConnection> {
        &self.0
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        let mut open = self.0.limits.open();
        if let Some(client) = open.unknown.get_mut(&self.0.number) {
            client.requests = client.requests.saturating_sub(1);
        }
        open.set_idle(&self.0);
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
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn peer(address: &str) -> Option<SocketAddr> {
        Some(SocketAddr::new(address.parse().expect("an address"), 1))
    }

    const MAX: MaxConnections = MaxConnections {
        total: 3,
        per_address: Some(2),
    };

    #[test]
    fn a_connection_counts_until_it_ends() {
        let limits = Arc::new(ConnectionLimits::default());
        let first = limits.admit(peer("10.0.0.1"), MAX).expect("the first");
        let second = limits.admit(peer("::ffff:10.0.0.1"), MAX);
        assert!(second.is_some());
        assert!(limits.admit(peer("10.0.0.1"), MAX).is_none());
        let third = limits.admit(peer("2001:db8::1"), MAX);
        assert!(third.is_some() && limits.admit(peer("10.0.0.2"), MAX).is_none());
        drop(first);
        assert!(limits.admit(peer("10.0.0.1"), MAX).is_some());
        drop((second, third));
        assert_eq!(limits.open().total, 0);
        assert!(limits.open().by_address.is_empty());
    }

    fn is_evicted(permit: &ConnectionPermit) -> bool {
        permit.connection().evicted().now_or_never().is_some()
    }

    #[test]
    fn the_longest_idle_connection_without_a_right_key_makes_room() {
        let limits = Arc::new(ConnectionLimits::default());
        let admit = |address| {
            let permit = limits.admit(peer(address), MAX)?;
            permit.connection().set_served();
            Some(permit)
        };
        let [first, second, third] =
            ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|address| admit(address).expect("room"));
        // The first one asks again, and waits for a shorter time than the second.
        drop(first.connection().serve_request());
        let fourth = admit("10.0.0.4").expect("room");
        assert!(is_evicted(&second) && !is_evicted(&first) && !is_evicted(&third));
        // One that has a key, and one that is served, stay.
        third.connection().set_has_key();
        let served = fourth.connection().serve_request();
        let fifth = admit("10.0.0.5").expect("room");
        assert!(is_evicted(&first));
        fifth.connection().set_has_key();
        assert!(admit("10.0.0.6").is_none());
        drop(served);
        let sixth = admit("10.0.0.6").expect("room");
        assert!(is_evicted(&fourth) && !is_evicted(&third) && !is_evicted(&fifth));
        assert!(third.connection().serve_request().is_none());
        drop((first, second, third, fourth, fifth, sixth));
        let open = limits.open();
        assert_eq!((open.total, open.by_address.len()), (0, 0));
        assert!(open.unknown.is_empty() && open.idle.is_empty());
        assert!(open.idle_by_address.is_empty());
    }

    #[test]
    fn an_address_makes_room_for_itself() {
        let limits = Arc::new(ConnectionLimits::default());
        let admit = |address| {
            let permit = limits.admit(peer(address), MAX)?;
            permit.connection().set_served();
            Some(permit)
        };
        let [other, first, second] =
            ["10.0.0.9", "10.0.0.1", "10.0.0.1"].map(|address| admit(address).expect("room"));
        let third = admit("10.0.0.1").expect("room");
        assert!(is_evicted(&first) && !is_evicted(&other) && !is_evicted(&second));
        assert_eq!(limits.open().total, 3);
        second.connection().set_has_key();
        third.connection().set_has_key();
        assert!(admit("10.0.0.1").is_none());
    }
}
