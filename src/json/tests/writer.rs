//! Held against serde_json: what is written is the same to the last byte.

use std::borrow::Cow;
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::write_json;

#[derive(Serialize)]
struct Everything<'a> {
    text: &'a str,
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<u8>,
    nothing: Option<u8>,
    unit: (),
    some: Option<&'a str>,
    flag: bool,
    letter: char,
    whole: (i8, i16, i32, i64, i128),
    counts: (u8, u16, u32, u64, u128),
    fractions: (f32, f64),
    list: Vec<&'a str>,
    raw: &'a RawValue,
    map: BTreeMap<&'a str, i64>,
    kinds: Vec<Kind<'a>>,
    wrapped: Wrapped<'a>,
    #[serde(serialize_with = "in_pieces")]
    pieces: &'a str,
    #[serde(flatten)]
    more: More<'a>,
}

#[derive(Serialize)]
struct More<'a> {
    flattened: &'a str,
}

#[derive(Serialize)]
struct Wrapped<'a>(&'a str);

#[derive(Serialize)]
struct Pair<'a>(&'a str, u8);

#[derive(Serialize)]
struct Unit;

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind<'a> {
    Unit,
    One(&'a str),
    Two(&'a str, Pair<'a>),
    Fields { text: &'a str, unit: Unit },
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Tagged<'a> {
    Text { text: &'a str },
}

fn in_pieces<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{text}: {text}"))
}

fn same(value: &impl Serialize) {
    let mut written = b"before ".to_vec();
    write_json(value, &mut written).expect("it can be written");
    let expected = serde_json::to_string(value).expect("it can be written");
    let written = str::from_utf8(&written).expect("it is text");
    assert_eq!(written, format!("before {expected}"));
}

fn everything(text: &str, number: i64, fraction: f64, raw: &RawValue) {
    same(&Everything {
        text,
        name: text.into(),
        absent: None,
        nothing: None,
        unit: (),
        some: Some(text),
        flag: number % 2 == 0,
        letter: text.chars().next().unwrap_or('\n'),
        whole: (
            number as i8,
            number as i16,
            number as i32,
            number,
            i128::from(number),
        ),
        counts: (
            number as u8,
            number as u16,
            number as u32,
            number as u64,
            u128::MAX,
        ),
        fractions: (fraction as f32, fraction),
        list: vec![text; (number % 3).unsigned_abs() as usize],
        raw,
        map: [(text, number), ("", 0)].into(),
        kinds: vec![
            Kind::Unit,
            Kind::One(text),
            Kind::Two(text, Pair(text, 1)),
            Kind::Fields { text, unit: Unit },
        ],
        wrapped: Wrapped(text),
        pieces: text,
        more: More { flattened: text },
    });
    same(&Tagged::Text { text });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn what_is_written_is_what_serde_json_writes(
        text in "([ -~]{0,40}|[\\x00-\\x7f]{0,40}|.{0,20}|[\"\\\\\\n ]{0,70})",
        number in any::<i64>(),
        fraction in any::<f64>(),
    ) {
        let raw = serde_json::to_string(&[&text]).expect("a list of text");
        let raw = RawValue::from_string(format!(" {raw}")).or_else(|_| RawValue::from_string(raw));
        everything(&text, number, fraction, &raw.expect("JSON"));
    }
}

#[test]
fn every_byte_is_escaped_wherever_it_stands() {
    for byte in 0..128_u8 {
        for before in 0..40 {
            let text = format!("{}{}ö…", "a".repeat(before), char::from(byte));
            same(&text);
        }
    }
}

#[test]
fn trees_are_written_as_they_are() {
    let tree = r#"{"a":[1,-2,3.5,1e300,null,true,{"b":"\"\\\n\u0001ü"}],"":{}}"#;
    same(&serde_json::from_str::<serde_json::Value>(tree).expect("JSON"));
    same(&serde_json::from_str::<crate::model::Json<'_>>(tree).expect("JSON"));
    same(&[f64::NAN, f64::INFINITY, -0.0]);
    same(&(Vec::<u8>::new(), BTreeMap::<String, u8>::new()));
}

#[test]
fn keys_are_texts() {
    let numbers = BTreeMap::from([(1, 2)]);
    assert!(write_json(&numbers, &mut Vec::new()).is_err());
}
