//! A lease: the part of a spending cap that one process may spend, as it is requested and granted.

use super::Money;

/// Whose spending a cap limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapKind {
    /// That of one key.
    Key,
    /// That of all keys of an account together.
    Account,
}

/// What a process needs of a cap, beside what the store has recorded as spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRequest {
    pub cap: Money,
    /// Spent and not yet recorded, or reserved for requests in flight: always granted.
    pub floor: Money,
    /// Less than this on top is of no use.
    pub minimum: Money,
    /// What is asked for on top.
    pub desired: Money,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseGrant {
    /// The floor, and what was granted on top.
    pub amount: Money,
    /// What is recorded as spent of the cap.
    pub spent: Money,
    /// What other processes have leased of the cap.
    pub leased_elsewhere: Money,
}

impl LeaseRequest {
    /// Decides the grant for a cap of which `spent` is spent and `leased_elsewhere` is leased to others.
    pub fn grant(&self, spent: Money, leased_elsewhere: Money) -> LeaseGrant {
        let available = self.cap.saturating_sub(spent + leased_elsewhere);
        let amount = if available < self.floor + self.minimum {
            self.floor
        } else {
            available.min(self.floor + self.desired)
        };
        LeaseGrant {
            amount,
            spent,
            leased_elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_granted_to_the_last_digit_and_nothing_below_the_minimum() {
        let money = |text: &str| Money::parse(text).expect("an amount");
        for (cap, spent, leased_elsewhere, floor, least, wanted, amount) in [
            ("10", "0", "0", "0", "0.1", "0.5", "0.5"),
            ("10", "9", "0.5", "0.1", "0.1", "2", "0.5"),
            ("10", "9", "0.8", "0.1", "0.1", "2", "0.2"),
            ("10", "9", "0.800000001", "0.1", "0.1", "2", "0.1"),
            // Released.
            ("10", "1", "0", "0.3", "0", "0", "0.3"),
            // A cap that was lowered below what is in use.
            ("1", "3", "2", "0.3", "0", "1", "0.3"),
        ] {
            let request = LeaseRequest {
                cap: money(cap),
                floor: money(floor),
                minimum: money(least),
                desired: money(wanted),
            };
            let grant = request.grant(money(spent), money(leased_elsewhere));
            assert_eq!(grant.amount, money(amount), "{request:?}");
        }
    }
}
