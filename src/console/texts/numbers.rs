//! Numbers and amounts for people: digits in groups of three, as both languages write them.

use crate::model::Money;

/// From here on an amount is shown with two decimals.
const ROUNDED_FROM: f64 = 1.0;

/// How many digits of a smaller amount are shown.
const DIGITS: i32 = 3;

/// A count, such as `1,234,567`.
pub fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// An amount with all its digits, such as `1,234.5678`.
pub fn amount(money: Money) -> String {
    let text = money.to_string();
    match text.split_once('.') {
        Some((whole, decimals)) => format!("{}.{decimals}", grouped(whole)),
        None => grouped(&text),
    }
}

/// An amount for a glance: two decimals, or the first digits of a small one.
pub fn short_amount(money: Money) -> String {
    let value = money.to_f64();
    if money.is_zero() {
        return "0".to_owned();
    }
    if value >= ROUNDED_FROM {
        let text = format!("{value:.2}");
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, "00"));
        return format!("{}.{decimals}", grouped(whole));
    }
    let first_digit = value.log10().floor() as i32;
    let decimals = usize::try_from(DIGITS - 1 - first_digit).unwrap_or_default();
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').to_owned()
}

fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_amounts_are_grouped() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(count(number), text);
        }
        for (written, exact, short) in [
            ("0", "0", "0"),
            ("0.00000125", "0.00000125", "0.00000125"),
            ("0.000123456", "0.000123456", "0.000123"),
            ("0.5", "0.5", "0.5"),
            ("1", "1", "1.00"),
            ("12345.678", "12,345.678", "12,345.68"),
        ] {
            let money = Money::from_decimal(written).expect("an amount");
            assert_eq!(amount(money), exact);
            assert_eq!(short_amount(money), short);
        }
    }
}
