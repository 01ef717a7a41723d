//! Values of the other gateway's config as they stand in ours.

use serde_json::Value;

use super::config_text::scalar;

/// A text with `os.environ/NAME` as `${NAME}`.
pub(super) fn text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => return None,
    };
    Some(match text.strip_prefix("os.environ/") {
        Some(name) => format!("${{{name}}}"),
        None => text,
    })
}

/// The same, as YAML.
pub(super) fn yaml_text(value: &Value) -> Option<String> {
    text(value).map(|text| scalar(&text))
}

/// A number of seconds as a duration.
pub(super) fn seconds(value: &Value) -> Option<String> {
    let seconds = value.as_f64().filter(|seconds| *seconds > 0.0)?;
    Some(match seconds.fract() == 0.0 {
        true => format!("{seconds}s"),
        false => format!("{}ms", (seconds * 1000.0).round()),
    })
}

/// A price for a second as that of a minute, times a factor.
pub(super) fn per_minute(value: &Value, factor: f64) -> Option<String> {
    let price = value.as_f64().filter(|price| *price >= 0.0)?;
    Some(rounded(price * 60.0 * factor))
}

/// A product with the digits that a price may have.
fn rounded(price: f64) -> String {
    let digits = format!("{price:.9}");
    let digits = digits.trim_end_matches('0').trim_end_matches('.');
    digits.to_owned()
}

/// A price for one token as the price of a million, exactly: the point moves six places. A factor makes it a product.
pub(super) fn per_million(value: &Value, factor: f64) -> Option<String> {
    let price = value.as_f64().filter(|price| *price >= 0.0)?;
    if factor != 1.0 {
        return Some(rounded(price * 1e6 * factor));
    }
    // The shortest digits that stand for the number, without an exponent.
    let digits = format!("{price}");
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let fraction = format!("{fraction:0<6}");
    let (moved, rest) = fraction.split_at(6);
    let whole = format!("{whole}{moved}");
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    Some(match rest.trim_end_matches('0') {
        "" => whole.to_owned(),
        rest => format!("{whole}.{rest}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prices_are_exact() {
        for (price, expected) in [
            (json!(0.0000025), "2.5"),
            (json!(2.5e-6), "2.5"),
            (json!(0.00000015), "0.15"),
            (json!(1.25e-7), "0.125"),
            (json!(0), "0"),
            (json!(0.00006), "60"),
            (json!(1), "1000000"),
        ] {
            assert_eq!(
                per_million(&price, 1.0).as_deref(),
                Some(expected),
                "{price}"
            );
        }
        assert_eq!(per_million(&json!(-1), 1.0), None);
        assert_eq!(per_million(&json!(2.5e-6), 0.95).as_deref(), Some("2.375"));
    }

    #[test]
    fn prices_of_seconds_are_those_of_minutes() {
        for (price, expected) in [
            (json!(0.0001), "0.006"),
            (json!(0.00003), "0.0018"),
            (json!(1), "60"),
            (json!(0), "0"),
        ] {
            assert_eq!(
                per_minute(&price, 1.0).as_deref(),
                Some(expected),
                "{price}"
            );
        }
    }

    #[test]
    fn variables_and_durations_are_rewritten() {
        assert_eq!(text(&json!("os.environ/KEY")).as_deref(), Some("${KEY}"));
        assert_eq!(
            yaml_text(&json!("os.environ/KEY")).as_deref(),
            Some("\"${KEY}\"")
        );
        assert_eq!(seconds(&json!(30)).as_deref(), Some("30s"));
        assert_eq!(seconds(&json!(0.5)).as_deref(), Some("500ms"));
        assert_eq!(seconds(&json!(0)), None);
    }
}
