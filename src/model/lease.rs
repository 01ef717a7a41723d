//! A slice of a key's spending cap that one process may use, as it is asked for and given.

use super::Money;

/// What a process needs of a key's cap. All of it is beside what the store has written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseRequest {
    pub cap: Money,
    /// Spent and not yet written down, or held for requests in flight: this is covered in any case.
    pub floor: Money,
    /// With less than this on top, nothing on top is of use.
    pub least: Money,
    /// What it would like to have on top.
    pub wanted: Money,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseGrant {
    /// The floor, and what was given on top.
    pub amount: Money,
    /// Of the cap, what is written down as spent.
    pub spent: Money,
    /// Of the cap, what other processes have leased.
    pub elsewhere: Money,
}

impl LeaseRequest {
    /// Of a cap that so much is spent of and leased to others.
    pub fn meet(&self, spent: Money, elsewhere: Money) -> LeaseGrant {
        let room = self.cap.saturating_sub(spent + elsewhere);
        let amount = if room < self.floor + self.least {
            self.floor
        } else {
            room.min(self.floor + self.wanted)
        };
        LeaseGrant {
            amount,
            spent,
            elsewhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_given_to_the_last_digit_and_nothing_that_is_of_no_use() {
        let money = |text: &str| Money::parse(text).expect("an amount");
        for (cap, spent, elsewhere, floor, least, wanted, amount) in [
            ("10", "0", "0", "0", "0.1", "0.5", "0.5"),
            ("10", "9", "0.5", "0.1", "0.1", "2", "0.5"),
            ("10", "9", "0.8", "0.1", "0.1", "2", "0.2"),
            ("10", "9", "0.800000001", "0.1", "0.1", "2", "0.1"),
            // Given back.
            ("10", "1", "0", "0.3", "0", "0", "0.3"),
            // A cap that was lowered below what is in use.
            ("1", "3", "2", "0.3", "0", "1", "0.3"),
        ] {
            let need = LeaseRequest {
                cap: money(cap),
                floor: money(floor),
                least: money(least),
                wanted: money(wanted),
            };
            let given = need.meet(money(spent), money(elsewhere));
            assert_eq!(given.amount, money(amount), "{need:?}");
        }
    }
}
