//! What a key has spent: in total, in the current month and on the current day of UTC.

use std::ops::AddAssign;

use super::Money;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spending {
    pub total: Money,
    pub month: Money,
    pub day: Money,
}

impl AddAssign for Spending {
    fn add_assign(&mut self, other: Spending) {
        self.total += other.total;
        self.month += other.month;
        self.day += other.day;
    }
}
