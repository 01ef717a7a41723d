//! The bill of a request: its usage at the prices that were in force.

use super::prices::{BillLine, Prices};
use crate::config::Pricing;
use crate::model::{Money, UsageRecord};

/// The bill of a request. Its lines, with what is added and without what is taken off, are its cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bill {
    pub lines: Vec<BillLine>,
    /// What the lines do not explain: attempts before the last one at other prices, or a usage that could not be read and
    /// costs what was reserved.
    pub added: Money,
    pub taken_off: Money,
}

impl Bill {
    pub fn of(record: &UsageRecord<'_>) -> Bill {
        let details = &record.details;
        let pricing = Pricing::from_text(&details.prices);
        let prices = pricing.as_ref().and_then(Prices::from_pricing);
        let lines = prices.map(|prices| prices.bill(&record.usage, details.priced, details.audio));
        let lines = lines.unwrap_or_default();
        let sum: Money = lines.iter().map(|line| line.amount).sum();
        Bill {
            lines,
            added: record.cost.saturating_sub(sum),
            taken_off: sum.saturating_sub(record.cost),
        }
    }
}
