//! The connections of clients that are open, and the order in which they make room for others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connection_state::ConnectionState;
use crate::runtime::OwnerShare;

/// A refused connection is logged no more often than this.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// How many connections may be in their TLS handshake while all places are those of right keys; one more ends the oldest.
const WAITING_HANDSHAKES: usize = 16;

/// The highest numbers of connections; `None`: no limit.
#[derive(Debug, Clone, Copy)]
pub(in crate::proxy) struct MaxConnections {
    pub(in crate::proxy) total: u64,
    pub(in crate::proxy) per_address: Option<u64>,
}

/// The connections that are open, under one lock.
#[derive(Debug, Default)]
pub(super) struct OpenConnections {
    total: u64,
    by_address: HashMap<IpAddr, u64>,
    last_number: u64,
    /// The connections that have shown no right key, by their numbers.
    unknown: HashMap<u64, EvictionTurn>,
    /// The same in the order in which they make room.
    turns: BTreeMap<EvictionTurn, Arc<ConnectionState>>,
    turns_by_address: BTreeSet<(Option<IpAddr>, EvictionTurn)>,
    /// Those that have shown a right key, by their numbers.
    known: HashMap<u64, Arc<ConnectionState>>,
    /// Those that are in their TLS handshake and have no place, by their numbers.
    waiting: BTreeMap<u64, Arc<ConnectionState>>,
    refused: u64,
    logged_at: Option<Instant>,
}

/// The turn of a connection without a right key: those that wait for a request, or are in their handshake, come first, and those
/// before others that have waited, or been served, for longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EvictionTurn {
    is_served: bool,
    since: u64,
}

impl OpenConnections {
    pub(super) const fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Gives a connection a place, for which another one may end; `false`: it would be one too many.
    pub(super) fn admit(&mut self, connection: &Arc<ConnectionState>, max: MaxConnections) -> bool {
        let address = connection.address;
        let is_admitted = (!self.is_full_for(address, max) || self.evict_of(address))
            && (self.total < max.total || self.evict_any());
        match is_admitted {
            true => self.count(connection),
            false => self.refuse(address, max),
        }
        is_admitted
    }

    /// Lets a connection begin its TLS handshake. None with a right key ends for it: where all others have one, it gets its place
    /// when it has finished.
    pub(super) fn admit_handshake(
        &mut self,
        connection: &Arc<ConnectionState>,
        max: MaxConnections,
    ) {
        let address = connection.address;
        let has_place = (!self.is_full_for(address, max) || self.evict_unknown_of(address))
            && (self.total < max.total || self.evict_any_unknown());
        if has_place {
            return self.count(connection);
        }
        if self.waiting.len() >= WAITING_HANDSHAKES
            && let Some((_, oldest)) = self.waiting.pop_first()
        {
            oldest.close();
        }
        self.waiting.insert(connection.number, connection.clone());
    }

    /// Gives a connection a place whose handshake has finished; `false`: it has ended meanwhile, or would be one too many.
    pub(super) fn finish_handshake(
        &mut self,
        connection: &Arc<ConnectionState>,
        max: MaxConnections,
    ) -> bool {
        connection.is_counted()
            || (self.waiting.remove(&connection.number).is_some() && self.admit(connection, max))
    }

    /// Counts a connection, which makes room after all that wait for a request.
    fn count(&mut self, connection: &Arc<ConnectionState>) {
        connection.set_counted(true);
        self.total += 1;
        if let Some(address) = connection.address {
            *self.by_address.entry(address).or_default() += 1;
        }
        self.add_turn(connection);
    }

    fn is_full_for(&self, address: Option<IpAddr>, max: MaxConnections) -> bool {
        let from_address = address.and_then(|address| self.by_address.get(&address));
        let from_address = from_address.copied().unwrap_or_default();
        max.per_address.is_some_and(|most| from_address >= most)
    }

    /// Ends a connection; `false`: all are those of requests with a right key that may not be ended.
    fn evict_any(&mut self) -> bool {
        self.evict_any_unknown() || self.evict_known(|_| true)
    }

    /// The same among those from an address.
    fn evict_of(&mut self, address: Option<IpAddr>) -> bool {
        self.evict_unknown_of(address) || self.evict_known(|found| found.address == address)
    }

    /// Ends a connection without a right key; `false`: there is none.
    fn evict_any_unknown(&mut self) -> bool {
        let first = self.turns.first_key_value().map(|(turn, _)| *turn);
        self.evict_unknown(first)
    }

    /// The same among those from an address.
    fn evict_unknown_of(&mut self, address: Option<IpAddr>) -> bool {
        let least = EvictionTurn {
            is_served: false,
            since: 0,
        };
        let mut of_address = self.turns_by_address.range((address, least)..);
        let first = of_address.next().filter(|(found, _)| *found == address);
        let first = first.map(|(_, turn)| *turn);
        self.evict_unknown(first)
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
    fn evict_known(&mut self, is_meant: impl Fn(&ConnectionState) -> bool) -> bool {
        let idle = self.find_of_most(&is_meant, ConnectionState::idle_since);
        // A request that comes on the idle one at this moment is still answered.
        let is_cut = idle.is_none();
        let found = idle.or_else(|| {
            let busy = self.find_of_most(&is_meant, ConnectionState::busy_since);
            busy.filter(|(count, _)| *count > 1)
        });
        let Some((_, connection)) = found else {
            return false;
        };
        let connection = connection.clone();
        if is_cut {
            connection.cut();
        }
        self.evict(&connection);
        true
    }

    /// Finds the oldest of the connections with such a moment, of the owner that has most connections, and how many these are.
    /// All are looked at: it is done only where no place is left.
    fn find_of_most(
        &self,
        is_meant: impl Fn(&ConnectionState) -> bool,
        since: impl Fn(&ConnectionState) -> Option<u64>,
    ) -> Option<(u64, &Arc<ConnectionState>)> {
        type OwnConnections<'o> = (u64, Option<(u64, &'o Arc<ConnectionState>)>);
        let mut owners: HashMap<*const OwnerShare, OwnConnections<'_>> = HashMap::new();
        for connection in self.known.values().filter(|found| is_meant(found)) {
            let owner = connection.owner().map_or(std::ptr::null(), Arc::as_ptr);
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

    fn evict(&mut self, connection: &ConnectionState) {
        self.remove(connection);
        connection.close();
    }

    /// Gives a connection without a right key the last turn among those that wait, or that are served.
    pub(super) fn set_turn(&mut self, connection: &Arc<ConnectionState>) {
        // It may have ended, or shown a key meanwhile.
        if let Some(before) = self.unknown.remove(&connection.number) {
            self.remove_turn(connection, before);
            self.add_turn(connection);
        }
    }

    fn add_turn(&mut self, connection: &Arc<ConnectionState>) {
        let turn = EvictionTurn {
            is_served: connection.is_served(),
            since: self.next_number(),
        };
        self.unknown.insert(connection.number, turn);
        self.turns.insert(turn, connection.clone());
        self.turns_by_address.insert((connection.address, turn));
    }

    fn remove_turn(&mut self, connection: &ConnectionState, turn: EvictionTurn) {
        self.turns.remove(&turn);
        self.turns_by_address.remove(&(connection.address, turn));
    }

    /// Notes that a connection has shown a right key.
    pub(super) fn set_known(&mut self, connection: &Arc<ConnectionState>) {
        self.forget(connection);
        if connection.is_counted() {
            self.known.insert(connection.number, connection.clone());
        }
    }

    fn forget(&mut self, connection: &ConnectionState) {
        if let Some(turn) = self.unknown.remove(&connection.number) {
            self.remove_turn(connection, turn);
        }
        self.known.remove(&connection.number);
        self.waiting.remove(&connection.number);
    }

    /// Takes the place of a connection that ends, if it has one.
    pub(super) fn remove(&mut self, connection: &ConnectionState) {
        self.forget(connection);
        if !connection.set_counted(false) {
            return;
        }
        self.total = self.total.saturating_sub(1);
        let Some(address) = connection.address else {
            return;
        };
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

    /// How many connections there are in each of the tables.
    #[cfg(test)]
    pub(super) fn counts(&self) -> [usize; 7] {
        [
            usize::try_from(self.total).expect("few"),
            self.by_address.len(),
            self.unknown.len(),
            self.turns.len(),
            self.turns_by_address.len(),
            self.known.len(),
            self.waiting.len(),
        ]
    }
}
