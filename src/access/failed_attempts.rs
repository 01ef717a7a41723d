//! Throttles wrong API keys by the address of the client, so that keys cannot be guessed at the speed of the machine.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Instant;

use super::attempt_buckets::AttemptBuckets;
use super::errors::retry_after;
use crate::model::{ApiError, ApiErrorKind};

/// How many wrong keys an address may send at once; as many more come free in a minute.
const BURST: u64 = 100;

/// An IPv6 client has a whole network of this size.
const IPV6_NETWORK_BITS: u32 = 64;

/// Counts wrong keys by network.
pub struct FailedAttempts(AttemptBuckets);

impl Default for FailedAttempts {
    fn default() -> FailedAttempts {
        FailedAttempts(AttemptBuckets::new(BURST))
    }
}

impl FailedAttempts {
    /// Returns an error if this address has sent too many wrong keys. Called only for a key that is not known.
    pub fn check(&self, address: Option<IpAddr>) -> Result<(), ApiError> {
        let wait = |address| self.0.wait(client_network(address), Instant::now());
        match address.and_then(wait) {
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
            self.0.count(client_network(address), Instant::now());
        }
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
    use std::time::Duration;

    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_has_a_minutes_worth_of_wrong_keys_and_earns_more_evenly() {
        let attempts = FailedAttempts::default();
        let (client, now) = (address("10.0.0.1"), Instant::now());
        let wait = |at| attempts.0.wait(client_network(client), at);
        let count = |at| attempts.0.count(client_network(client), at);
        for _ in 0..BURST {
            assert_eq!(wait(now), None);
            count(now);
        }
        let interval = Duration::from_millis(60_000 / BURST);
        assert_eq!(wait(now), Some(interval));
        assert_eq!(wait(now + interval), None);
        count(now + interval);
        assert_eq!(wait(now + interval), Some(interval));
        let error = attempts.check(Some(client)).expect_err("too many");
        assert_eq!((error.status, error.retry_after.is_some()), (429, true));
        assert_eq!(wait(now + Duration::from_secs(61)), None);
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
