//! placeholder

use super::*;
use crate::model::{Money, Usage};

pub(super) fn receipt(id: &str) -> Receipt {
    Receipt {
        id: id.to_owned(),
        at: 1_760_000_000_123,
        key: "dev".to_owned(),
        model: "acme-large".to_owned(),
        upstream: "acme".to_owned(),
        format: "chat".to_owned(),
        stream: false,
        status: 200,
        usage: Usage {
            input: 10,
            output: 7,
            ..Usage::default()
        },
        images: 0,
        estimated: false,
        cost: Money::parse("0.000082500").expect("an amount"),
    }
}
