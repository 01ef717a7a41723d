//! Moments and amounts, as JSON and for people.

use std::fmt;

use jiff::Timestamp;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::model::Money;

/// A moment, in milliseconds since 1970: RFC 3339 in JSON, short for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub i64);

impl Moment {
    fn timestamp(self) -> Timestamp {
        let timestamp = Timestamp::from_millisecond(self.0 - self.0.rem_euclid(1000));
        timestamp.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The time of the day, in UTC.
    pub fn clock(self, has_seconds: bool) -> String {
        let length = if has_seconds { 8 } else { 5 };
        let text = self.timestamp().to_string();
        text.chars().skip(11).take(length).collect()
    }

    /// The day, as a form takes it.
    pub fn day(self) -> String {
        self.timestamp().to_string().chars().take(10).collect()
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.timestamp().to_string();
        let minutes = text.get(..16).unwrap_or(&text);
        write!(out, "{} UTC", minutes.replace('T', " "))
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(&self.timestamp())
    }
}

/// An amount of money: in JSON a number with all its digits, which no float has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decimal(pub Money);

impl fmt::Display for Decimal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        let number = RawValue::from_string(self.0.to_string()).map_err(S::Error::custom)?;
        number.serialize(out)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Decimal, D::Error> {
        let number = Box::<RawValue>::deserialize(input)?;
        let money = Money::from_decimal(number.get());
        money
            .map(Decimal)
            .ok_or_else(|| D::Error::custom("no amount"))
    }
}
