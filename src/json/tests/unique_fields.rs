//! Fields that may stand in an object once, in one spelling.

use super::*;

const NAMES: [&[&str]; 3] = [&["model"], &["maxTokens", "max_tokens"], &["n"]];

fn decode(text: &str) -> Result<[UniqueField<'_>; 3], String> {
    decode_unique(text, None, NAMES).map_err(|error| match error {
        UniqueFieldsError::Syntax(error) => error.to_string(),
        UniqueFieldsError::Refused(api_error) => api_error.message.clone(),
    })
}

#[test]
fn fields_are_found_in_every_spelling() {
    let [model, tokens, n] =
        decode(r#"{"x":{"n":1},"m\u006fdel":"a","max_tokens":5}"#).expect("it");
    assert_eq!(model.value().and_then(RawJson::text).as_deref(), Some("a"));
    assert_eq!(
        (tokens.path().as_str(), tokens.count()),
        ("max_tokens", Ok(Some(5)))
    );
    assert!(n.written().is_none() && n.count() == Ok(None));
}

#[test]
fn doubles_and_other_cases_are_refused() {
    for (text, message) in [
        (
            r#"{"n":1,"x":2,"n":1}"#,
            "`n` stands there twice: send it once",
        ),
        (
            r#"{"n":null,"\u006e":1}"#,
            "`n` stands there twice: send it once",
        ),
        (
            r#"{"maxTokens":1,"max_tokens":1}"#,
            "`maxTokens` and `max_tokens` are the same field: send one of them",
        ),
        (r#"{"n":1,"N":2}"#, "`N` must be spelled `n`"),
        (r#"{"MODEL":"a"}"#, "`MODEL` must be spelled `model`"),
        (
            r#"{"MaxToKenſ":1}"#,
            "`MaxToKenſ` must be spelled `maxTokens`",
        ),
        (
            r#"{"max_to\u212aens":1}"#,
            "`max_to\u{212a}ens` must be spelled `max_tokens`",
        ),
    ] {
        assert_eq!(decode(text).map(drop), Err(message.to_owned()), "{text}");
    }
    for text in [r#"{"x":{"N":1},"mode":1,"models":1,"\u00f1":1,"":0}"#, "{}"] {
        decode(text).expect(text);
    }
    for text in ["[]", "{", r#"{"n":1}{"n":2}"#, r#"{"n":NaN}"#] {
        assert!(decode(text).is_err(), "{text}");
    }
}

#[test]
fn counts_are_whole_and_not_negative() {
    for (value, count) in [
        ("null", None),
        ("0", Some(0)),
        ("-0", Some(0)),
        ("40.0", Some(40)),
        ("1e3", Some(1000)),
        ("18446744073709551615", Some(u64::MAX)),
        ("99999999999999999999999", Some(u64::MAX)),
    ] {
        let body = format!(r#"{{"n":{value}}}"#);
        let [.., n] = decode(&body).expect(value);
        assert_eq!(n.count(), Ok(count), "{value}");
        assert_eq!(n.count_or_text(), Ok(count), "{value}");
    }
    for (value, got) in [
        ("-1", "-1"),
        ("1.5", "1.5"),
        ("1e999", "1e999"),
        ("[5]", "an array"),
        ("{}", "an object"),
        ("true", "true"),
        (r#""many""#, "a string"),
    ] {
        let body = format!(r#"{{"n":{value}}}"#);
        let [.., n] = decode(&body).expect(value);
        let message = format!("`n` must be a non-negative integer, got {got}");
        for count in [n.count(), n.count_or_text()] {
            assert_eq!(count.expect_err(value).message, message);
        }
    }
    let [.., n] = decode(r#"{"n":"4\u0030"}"#).expect("a text");
    assert!(n.count().is_err() && n.count_or_text() == Ok(Some(40)));
}
