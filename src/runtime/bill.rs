//! The bill of a request: its usage at the prices that were in force.

use super::prices::{BillLine, PriceUnit, Prices};
use crate::config::Pricing;
use crate::formats::PassthroughEndpoint;
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
        let mut lines = lines.unwrap_or_default();
        let mut sum: Money = lines.iter().map(|line| line.amount).sum();
        let request = lines
            .iter_mut()
            .find(|line| line.unit == PriceUnit::Request);
        let is_ranking = record.format == PassthroughEndpoint::Rerank.label();
        if let Some(line) = request.filter(|_| is_ranking) {
            // An upstream may bill a long ranking as several requests.
            let further = record.cost.saturating_sub(sum);
            let further = further.whole_times(line.price).unwrap_or_default();
            line.count = line.count.saturating_add(further);
            line.amount = line.price.times(line.count);
            sum = lines.iter().map(|line| line.amount).sum();
        }
        Bill {
            lines,
            added: record.cost.saturating_sub(sum),
            taken_off: sum.saturating_sub(record.cost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Usage, UsageDetails};

    #[test]
    fn a_ranking_that_is_billed_as_several_requests_is_one_line() {
        for (format, cost, count, added) in [
            ("rerank", "2", 1, "0"),
            ("rerank", "6", 3, "0"),
            ("rerank", "7", 1, "5"),
            ("rerank", "1", 1, "0"),
            // A response that cannot be read costs what was reserved.
            ("chat", "6", 1, "4"),
        ] {
            let record = UsageRecord {
                id: "r".into(),
                at: 0,
                key_id: "k".into(),
                key: "k".into(),
                model: "m".into(),
                upstream: "u".into(),
                format: format.into(),
                stream: false,
                status: 200,
                usage: Usage::default(),
                images: 0,
                estimated: false,
                cost: Money::parse(cost).expect("an amount"),
                details: UsageDetails {
                    prices: "per_request=2".into(),
                    ..UsageDetails::default()
                },
            };
            let bill = Bill::of(&record);
            let [line] = &*bill.lines else {
                panic!("{:?}", bill.lines);
            };
            assert_eq!(
                (line.count, bill.added.to_string().as_str()),
                (count, added),
                "{format} {cost}"
            );
        }
    }
}
