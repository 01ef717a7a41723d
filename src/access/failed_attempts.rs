//! Throttles wrong API keys by the address of the client, so that keys cannot be guessed at the speed of the machine.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ahash::RandomState;

use super::errors::retry_after;
use crate::model::{ApiError, ApiErrorKind};

/// How many wrong keys an address may send at once; as many more come free in a minute.
const BURST: u64 = 100;
const INTERVAL: u64 = 60_000 / BURST;

/// Addresses share this many buckets. Two that meet in one only slow down each other's wrong keys.
const BUCKETS: usize = 1 << 13;

/// An IPv6 client has a whole network of this size.
const IPV6_NETWORK_BITS: u32 = 64;

/// Token buckets of wrong keys. They need no lock, and their memory does not depend on who sends how much.
pub struct FailedAttempts {
    started: Instant,
    hasher: RandomState,
    /// When each bucket is full again, in milliseconds since `started`.
    full_at: Box<[AtomicU64]>,
}

impl Default for FailedAttempts {
    fn default() -> FailedAttempts {
        FailedAttempts {
            started: Instant::now(),
            hasher: RandomState::new(),
            full_at: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl FailedAttempts {
    /// Returns an error if this address has sent too many wrong keys. Called only for a key that is not known.
    pub fn check(&self, address: Option<IpAddr>) -> Result<(), ApiError> {
        match address.and_then(|address| self.wait(address, Instant::now())) {
            None => Ok(()),
            Some(wait) => {
                let message =
                    "too many wrong API keys came from this address; check the key, then try again";
                let api_error = ApiError::new(ApiErrorKind::RateLimited, message);
                Err(retry_after(api_error, wait))
            }
        }
    }

    /// Counts a wrong key of this address.
    pub fn count(&self, address: Option<IpAddr>) {
        if let Some(address) = address {
            self.count_at(address, Instant::now());
        }
    }

    /// The time until this address may send another wrong key; `None`: it may now.
    fn wait(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let full_at = self.bucket(address).load(Ordering::Relaxed);
        let taken = full_at.saturating_sub(self.milliseconds(now));
        let wait = (taken + INTERVAL).saturating_sub(BURST * INTERVAL);
        (wait > 0).then(|| Duration::from_millis(wait))
    }

    fn count_at(&self, address: IpAddr, now: Instant) {
        let now = self.milliseconds(now);
        let later = |full_at: u64| Some(full_at.max(now) + INTERVAL);
        // It always has a next value.
        let _ = self
            .bucket(address)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
    }

    fn bucket(&self, address: IpAddr) -> &AtomicU64 {
        let hash = self.hasher.hash_one(client_network(address));
        &self.full_at[hash as usize % BUCKETS]
    }

    fn milliseconds(&self, now: Instant) -> u64 {
        let since = now.saturating_duration_since(self.started);
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// The address under which a client is counted.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> IPV6_NETWORK_BITS << IPV6_NETWORK_BITS;
            Ipv6Addr::from_bits(network).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_has_a_minutes_worth_of_wrong_keys_and_earns_more_evenly() {
        let attempts = FailedAttempts::default();
        let (client, now) = (address("10.0.0.1"), Instant::now());
        for _ in 0..BURST {
            assert_eq!(attempts.wait(client, now), None);
            attempts.count_at(client, now);
        }
        let wait = Duration::from_millis(INTERVAL);
        assert_eq!(attempts.wait(client, now), Some(wait));
        assert_eq!(attempts.wait(client, now + wait), None);
        attempts.count_at(client, now + wait);
        assert_eq!(attempts.wait(client, now + wait), Some(wait));
        let error = attempts.check(Some(client)).expect_err("too many");
        assert_eq!((error.status, error.retry_after.is_some()), (429, true));
        assert_eq!(attempts.wait(client, now + Duration::from_secs(61)), None);
    }

    #[test]
    fn many_addresses_need_no_more_memory() {
        let attempts = FailedAttempts::default();
        for number in 0..100_000 {
            attempts.count(Some(
                Ipv6Addr::from_bits(number << IPV6_NETWORK_BITS).into(),
            ));
        }
        assert_eq!(attempts.full_at.len(), BUCKETS);
        assert!(attempts.check(None).is_ok());
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_count_as_one() {
        let network_of = |text: &str| client_network(address(text));
        assert_eq!(
            network_of("2001:db8:1:2:3::4"),
            network_of("2001:db8:1:2:9::")
        );
        assert_ne!(network_of("2001:db8:1:2::"), network_of("2001:db8:1:3::"));
        assert_eq!(network_of("::ffff:10.0.0.1"), network_of("10.0.0.1"));
    }
}
