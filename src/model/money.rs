//! Amounts of money, exact to the last digit.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

/// Prices are written with at most so many digits on either side of the point.
pub const MAX_DIGITS: usize = 9;

/// Of a million tokens, and of a second in milliseconds, as powers of ten.
const TOKENS: u128 = 1_000_000;
const MILLISECONDS: u128 = 1_000;

/// How many digits stand behind the point of an amount: nine of a price, six of its million tokens.
const DECIMALS: usize = 15;
const ONE: u128 = 10u128.pow(DECIMALS as u32);

/// Of the largest amount, with its point: in bytes.
pub const MAX_AMOUNT_LEN: usize = 40;

/// An amount that is not negative, in units of 10^-15.
///
/// A fixed point in an integer, because with it no product ever rounds: the dearest price times the
/// largest count of tokens has 37 digits, where decimal crates of 28 would round without a word.
/// Sums that no integer holds stay at the largest.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(u128);

impl Money {
    pub const ZERO: Money = Money(0);

    /// `1.25`: digits, and perhaps a point with digits behind it.
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

    /// Reads what `Display` has written, of any amount there is.
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

    /// One of a million tokens that have this price. It has nine decimals at most, so that nothing
    /// is left of the division.
    #[must_use]
    pub const fn per_token(self) -> Money {
        Money(self.0 / TOKENS)
    }

    /// The same for one of the milliseconds of a second.
    #[must_use]
    pub const fn per_millisecond(self) -> Money {
        Money(self.0 / MILLISECONDS)
    }

    #[must_use]
    pub const fn times(self, count: u64) -> Money {
        Money(self.0.saturating_mul(count as u128))
    }

    #[must_use]
    pub const fn saturating_sub(self, other: Money) -> Money {
        Money(self.0.saturating_sub(other.0))
    }

    /// One of so many equal parts; what cannot be divided is left out.
    #[must_use]
    pub const fn divided_by(self, parts: u32) -> Money {
        Money(match self.0.checked_div(parts as u128) {
            Some(part) => part,
            None => 0,
        })
    }

    /// As `Display` writes it. Every request has it said several times, so that it is put together
    /// here, and not by the formatter.
    pub fn format_into(self, room: &mut [u8; MAX_AMOUNT_LEN]) -> &[u8] {
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
                room[start] = b'0' + (decimals % 10) as u8;
                decimals /= 10;
            }
            start -= 1;
            room[start] = b'.';
        }
        while start == MAX_AMOUNT_LEN || whole > 0 || room[start] == b'.' {
            start -= 1;
            room[start] = b'0' + (whole % 10) as u8;
            whole /= 10;
        }
        &room[start..]
    }

    /// What stands before the point, and what behind it.
    fn parts(self) -> (u128, u64) {
        const ONE_OF_64: u64 = ONE as u64;
        // Mostly it is small, and numbers of twice the size are slow to divide.
        match u64::try_from(self.0) {
            Ok(small) => (u128::from(small / ONE_OF_64), small % ONE_OF_64),
            Err(_) => (self.0 / ONE, (self.0 % ONE) as u64),
        }
    }

    /// For readers that know nothing but floats.
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
        let mut room = [0; MAX_AMOUNT_LEN];
        let digits = std::str::from_utf8(self.format_into(&mut room));
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
