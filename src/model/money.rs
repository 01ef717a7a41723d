//! Amounts of money, exact to the last digit.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// The maximum number of digits of a price on either side of the point.
pub const MAX_DIGITS: usize = 9;

/// Prices are for a million tokens, and for a second of 1000 milliseconds.
const TOKENS: u128 = 1_000_000;
const MILLISECONDS: u128 = 1_000;

/// Digits behind the point of an amount: nine of a price, six of its million tokens.
const DECIMALS: usize = 15;
const ONE: u128 = 10u128.pow(DECIMALS as u32);

/// The length of the longest formatted amount, in bytes.
pub const MAX_AMOUNT_LEN: usize = 40;

/// An amount that is not negative, in units of 10^-15.
///
/// A fixed-point integer, so that no product rounds: the highest price times the largest token count has 37
/// digits, and decimal crates with 28 digits would round silently. Sums saturate.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(u128);

impl Money {
    pub const ZERO: Money = Money(0);

    /// Parses a price such as `1.25`.
    pub fn parse(text: &str) -> Option<Money> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let fits = |part: &str| {
            (1..=MAX_DIGITS).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !(fits(whole) && fits(decimals)) {
            return None;
        }
        let whole: u128 = whole.parse().ok()?;
        let scale = 10u128.pow(u32::try_from(DECIMALS - decimals.len()).ok()?);
        let decimals: u128 = decimals.parse().ok()?;
        Some(Money(whole * ONE + decimals * scale))
    }

    /// Parses what `Display` writes, for any amount.
    pub fn from_decimal(text: &str) -> Option<Money> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty()
            || decimals.len() > DECIMALS
            || !is_number(whole)
            || !is_number(decimals)
        {
            return None;
        }
        let whole: u128 = whole.parse().ok()?;
        let scale = 10u128.pow(u32::try_from(DECIMALS - decimals.len()).ok()?);
        let decimals: u128 = match decimals {
            "" => 0,
            digits => digits.parse().ok()?,
        };
        whole
            .checked_mul(ONE)?
            .checked_add(decimals * scale)
            .map(Money)
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The price of one token, of a price for a million. Prices have at most nine decimals, so that the division
    /// is exact.
    #[must_use]
    pub const fn per_token(self) -> Money {
        Money(self.0 / TOKENS)
    }

    /// The price of one millisecond, of a price for a second.
    #[must_use]
    pub const fn per_millisecond(self) -> Money {
        Money(self.0 / MILLISECONDS)
    }

    /// So many milliseconds at a price for a minute. What has no last digit is rounded up to one.
    #[must_use]
    pub const fn for_part_of_minute(self, milliseconds: u64) -> Money {
        let product = self.0.saturating_mul(milliseconds as u128);
        Money(product.div_ceil(60 * MILLISECONDS))
    }

    #[must_use]
    pub const fn times(self, count: u64) -> Money {
        Money(self.0.saturating_mul(count as u128))
    }

    #[must_use]
    pub const fn saturating_sub(self, other: Money) -> Money {
        Money(self.0.saturating_sub(other.0))
    }

    /// How many times another amount this is, if that is a whole number.
    pub fn whole_times(self, other: Money) -> Option<u64> {
        let count = self.0.checked_div(other.0)?;
        let count = u64::try_from(count).ok()?;
        (other.times(count) == self).then_some(count)
    }

    /// One of so many equal parts, rounded down.
    #[must_use]
    pub const fn divided_by(self, parts: u32) -> Money {
        Money(match self.0.checked_div(parts as u128) {
            Some(part) => part,
            None => 0,
        })
    }

    /// Formats the amount as `Display` does, without the formatter: every request does it several times.
    pub fn format_into(self, buffer: &mut [u8; MAX_AMOUNT_LEN]) -> &[u8] {
        let (mut whole, mut decimals) = self.parts();
        let mut start = MAX_AMOUNT_LEN;
        if decimals > 0 {
            let mut digits = DECIMALS;
            while decimals.is_multiple_of(100_000) {
                (decimals, digits) = (decimals / 100_000, digits - 5);
            }
            while decimals.is_multiple_of(10) {
                (decimals, digits) = (decimals / 10, digits - 1);
            }
            for _ in 0..digits {
                start -= 1;
                buffer[start] = b'0' + (decimals % 10) as u8;
                decimals /= 10;
            }
            start -= 1;
            buffer[start] = b'.';
        }
        while start == MAX_AMOUNT_LEN || whole > 0 || buffer[start] == b'.' {
            start -= 1;
            buffer[start] = b'0' + (whole % 10) as u8;
            whole /= 10;
        }
        &buffer[start..]
    }

    /// The integer part, and the decimals.
    fn parts(self) -> (u128, u64) {
        const ONE_OF_64: u64 = ONE as u64;
        // Most amounts fit u64, whose division is much faster.
        match u64::try_from(self.0) {
            Ok(small) => (u128::from(small / ONE_OF_64), small % ONE_OF_64),
            Err(_) => (self.0 / ONE, (self.0 % ONE) as u64),
        }
    }

    /// The nearest float, for metrics.
    pub fn to_f64(self) -> f64 {
        self.to_string().parse().unwrap_or(f64::MAX)
    }
}

impl Add for Money {
    type Output = Money;

    fn add(self, other: Money) -> Money {
        Money(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Money) {
        *self = *self + other;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Money>>(amounts: I) -> Money {
        amounts.fold(Money::ZERO, Add::add)
    }
}

/// `0.00125`: no exponent, no zeros at the end.
impl fmt::Display for Money {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut buffer = [0; MAX_AMOUNT_LEN];
        let digits = std::str::from_utf8(self.format_into(&mut buffer));
        out.write_str(digits.unwrap_or_default())
    }
}

impl fmt::Debug for Money {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::Money;

    fn money(text: &str) -> Money {
        Money::parse(text).expect("an amount")
    }

    #[test]
    fn amounts_are_read_and_written_to_the_last_digit() {
        for (text, shown) in [
            ("0", "0"),
            ("0.0", "0"),
            ("007", "7"),
            ("25.00", "25"),
            ("1.25", "1.25"),
            ("0.000000001", "0.000000001"),
            ("999999999.999999999", "999999999.999999999"),
        ] {
            assert_eq!(money(text).to_string(), shown, "{text}");
        }
        let wrong = [
            "",
            ".",
            ".5",
            "5.",
            "-1",
            "+1",
            "1e3",
            "1,5",
            "0.0000000001",
            "1234567890",
            "1.2.3",
            " 1",
            "١",
        ];
        for wrong in wrong {
            assert_eq!(Money::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nothing_rounds() {
        for (price, tokens, cost) in [
            ("1.25", 1_000_000, "1.25"),
            ("1.25", 1, "0.00000125"),
            ("0.000000001", 1, "0.000000000000001"),
            (
                "999999999.999999999",
                u64::MAX,
                "18446744073709551596553.255926290448385",
            ),
        ] {
            assert_eq!(money(price).per_token().times(tokens).to_string(), cost);
        }
        let of_time = |price: &str, count| money(price).per_millisecond().times(count);
        assert_eq!(of_time("0.000000003", 1).to_string(), "0.000000000003");
        assert_eq!(of_time("0.5", 1500).to_string(), "0.75");
    }

    #[test]
    fn what_was_written_is_read_again() {
        let dear = money("999999999.999999999").per_token().times(u64::MAX);
        let most = money("999999999").per_millisecond().times(u64::MAX);
        let least = money("0.000000001").per_token();
        for amount in [Money::ZERO, least, money("25"), dear, most + most] {
            assert_eq!(Money::from_decimal(&amount.to_string()), Some(amount));
        }
        for wrong in ["", ".5", "-1", "1e3", "0.0000000000000001", "1.2.3", " 1"] {
            assert_eq!(Money::from_decimal(wrong), None, "{wrong}");
        }
        assert_eq!(Money::from_decimal(&u128::MAX.to_string()), None);
    }

    #[test]
    fn what_no_integer_holds_stays_at_the_largest() {
        let most = money("999999999").per_millisecond().times(u64::MAX);
        assert_eq!(most + most, most + most + most);
        assert_eq!(money("1").saturating_sub(money("2")), Money::ZERO);
    }
}
