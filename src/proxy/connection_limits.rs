//! How many client connections may be open at once, in all and from one address.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
    refused: u64,
    logged_at: Option<Instant>,
}

/// One open connection, counted until this is dropped.
#[derive(Debug)]
pub(super) struct ConnectionPermit {
    limits: Arc<ConnectionLimits>,
    address: Option<IpAddr>,
}

impl ConnectionLimits {
    /// Counts a connection; `None`: it would be one too many.
    pub(super) fn admit(
        self: &Arc<Self>,
        peer: Option<SocketAddr>,
        max: MaxConnections,
    ) -> Option<ConnectionPermit> {
        let mut open = self.open();
        let address = peer.map(|peer| client_network(peer.ip()));
        let from_address = address.and_then(|address| open.by_address.get(&address));
        let from_address = from_address.copied().unwrap_or_default();
        if open.total >= max.total || max.per_address.is_some_and(|most| from_address >= most) {
            open.refuse(address, max);
            return None;
        }
        open.total += 1;
        if let Some(address) = address {
            open.by_address.insert(address, from_address + 1);
        }
        Some(ConnectionPermit {
            limits: self.clone(),
            address,
        })
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnections {
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

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limits.open();
        open.total = open.total.saturating_sub(1);
        let Some(address) = self.address else { return };
        if let Some(count) = open.by_address.get_mut(&address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.by_address.remove(&address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Option<SocketAddr> {
        Some(SocketAddr::new(address.parse().expect("an address"), 1))
    }

    #[test]
    fn a_connection_counts_until_it_ends() {
        let limits = Arc::new(ConnectionLimits::default());
        let max = MaxConnections {
            total: 3,
            per_address: Some(2),
        };
        let first = limits.admit(peer("10.0.0.1"), max).expect("the first");
        let second = limits.admit(peer("::ffff:10.0.0.1"), max);
        assert!(second.is_some());
        assert!(limits.admit(peer("10.0.0.1"), max).is_none());
        let third = limits.admit(peer("2001:db8::1"), max);
        assert!(third.is_some() && limits.admit(peer("10.0.0.2"), max).is_none());
        drop(first);
        assert!(limits.admit(peer("10.0.0.1"), max).is_some());
        drop((second, third));
        assert_eq!(limits.open().total, 0);
        assert!(limits.open().by_address.is_empty());
    }
}
