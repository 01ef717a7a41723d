//! The reader against another one: what both take, what both refuse, and what each field gets.

use proptest::prelude::*;
use serde_json::Value;

use super::super::{Present, RawJson, decode_json, from_json};
use super::*;
use crate::model::Json;

/// What both read must be the same, and both must refuse the same.
fn agrees(text: &str) {
    let ours = decode_json::<RawJson<'_>>(text).map(RawJson::get);
    let theirs: Result<Value, _> = serde_json::from_str(text);
    match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => {
            let again: Value = serde_json::from_str(ours).expect("what was read before");
            assert_eq!(again, *theirs, "{text}");
        }
        // A lone half of a character is found only by who asks for the characters, and a number
        // beyond all numbers by who asks for the number.
        (Ok(_), Err(error)) => {
            let why = error.to_string();
            let later = ["surrogate", "hex escape", "number out of range"];
            assert!(later.iter().any(|word| why.contains(word)), "{text}: {why}");
        }
        (Err(_), Err(_)) => {}
        (Err(error), Ok(_)) => panic!("{text}: {error}"),
    }
    let tree: Option<Json<'_>> = decode_json(text).ok();
    assert_eq!(tree, serde_json::from_str(text).ok(), "{text}");
    let text_of = |text: &str| decode_json::<Cow<'_, str>>(text).ok().map(Cow::into_owned);
    assert_eq!(text_of(text), serde_json::from_str(text).ok(), "{text}");
    let number = decode_json::<f64>(text).is_ok();
    assert_eq!(number, serde_json::from_str::<f64>(text).is_ok(), "{text}");
    let whole = decode_json::<u64>(text).ok();
    assert_eq!(whole, serde_json::from_str(text).ok(), "{text}");
}

#[test]
fn the_edges_of_the_grammar_are_where_they_are_elsewhere() {
    for text in [
        "",
        " ",
        "nul",
        "null",
        "nulll",
        "true",
        "tru",
        "false ",
        "\t1\n",
        "0",
        "-0",
        "01",
        "-",
        "1.",
        "1.5",
        ".5",
        "1e",
        "1e+",
        "1e5",
        "1E-5",
        "-1.5e+10",
        "1e400",
        "+1",
        "0x1",
        "1 2",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "-0.0",
        "0.30000000000000004",
        "18446744073750915615",
        r#"{"\u0061":18446744073750915615}"#,
        "123456789012345678901234567890",
        "\"",
        "\"a\"",
        "\"a",
        r#""\""#,
        r#""\"""#,
        r#""\n\t\\\/\b\f\r""#,
        r#""\x""#,
        r#""\u00e9""#,
        r#""\u00g9""#,
        r#""\ud83d\ude00""#,
        r#""\ud83d""#,
        r#""\ud83d\n""#,
        r#""\u12""#,
        "\"\u{1}\"",
        "\"\u{7f}\"",
        "\"é😀 12345678\"",
        "[]",
        "[ ]",
        "[1]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1,2",
        "{}",
        "{ }",
        r#"{"a":1}"#,
        r#"{"a":1,}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"\u0061":1,"b":[{"\n":"c"}]}"#,
        r#"{"b":[{"\n":"c"}],"c":1e400}"#,
        r#"{"b":[{"\n":"c"}]"#,
        r#"{"a"}"#,
        r#"{"a" 1}"#,
        r#"{a:1}"#,
        r#"{1:1}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":{"b":[1,{"c":null}]}}"#,
        r#"{"a":[}"#,
        r#"[{"a":1]"#,
        "[[]]]",
    ] {
        agrees(text);
    }
}

#[test]
fn nesting_ends_where_it_ends_elsewhere() {
    for depth in [1, 127, 128, 100_000] {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        let theirs = serde_json::from_str::<Value>(&text).is_ok();
        assert_eq!(decode_json::<Present>(&text).is_ok(), theirs, "{depth}");
    }
}

#[test]
fn a_special_byte_is_found_wherever_it_stands() {
    for special in [b'"', b'\\', 0, 0x1f] {
        for before in (0..20).chain(60..80).chain(90..100).chain(120..140) {
            for after in 0..10 {
                // Bytes around it that borrow from each other when words are subtracted.
                for around in [b'a', b' ', b'!', b'#', b'[', b']', 0x80, 0xff] {
                    let mut bytes = vec![around; before];
                    bytes.push(special);
                    bytes.extend(vec![around; after]);
                    assert_eq!(plain(&bytes), before, "{bytes:?}");
                    assert_eq!(plain(&bytes[..before]), before, "{bytes:?}");
                }
            }
        }
    }
}

from_json! {
    struct Called<'a> {
        "name" | "title" required => name: Cow<'a, str>,
        "count" => count: Option<u32>,
        "inner" => inner: Option<Box<Called<'a>>>,
        "list" => list: Vec<bool>,
        "any" => any: RawJson<'a>,
    }
}

#[test]
fn fields_are_found_by_their_keys() {
    let text = r#" {"inner":{"title":"in\"side"},"more":[1,{"name":2}],"n\u0061me":"a","list":
        [true,false],"count":7,"any": null } "#;
    let read: Called<'_> = decode_json(text).expect("an object");
    assert_eq!((&*read.name, read.count), ("a", Some(7)));
    assert!(matches!(read.name, Cow::Borrowed(_)));
    assert_eq!(read.inner.expect("an inner one").name, "in\"side");
    assert_eq!(read.list, [true, false]);
    let range = read.any.range_in(text.as_bytes());
    assert_eq!(&text[range], "null");
    assert!(read.any.written().is_some());
    let bare: Called<'_> = decode_json(r#"{"name":"","count":null}"#).expect("an object");
    assert_eq!((bare.count, bare.any.written()), (None, None));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (text, problem) in [
        ("[1]", "expected an object at line 1 column 1"),
        (r#"{"name":7}"#, "expected a string at line 1 column 9"),
        (
            "{\"name\":\"a\",\n \"count\":-1}",
            "expected a small non-negative integer at line 2 column 12",
        ),
        (
            r#"{"name":"a","title":"b"}"#,
            "expected name only once at line 1 column 21",
        ),
        (
            r#"{"count":1}"#,
            "expected name in the object before at line 1 column 12",
        ),
        (r#"{"name":"a"} x"#, "expected the end at line 1 column 14"),
        (
            r#"{"name":"a","inner":{"name":"b"}"#,
            "expected a comma or the end of the object at line 1 column 33",
        ),
    ] {
        let error = decode_json::<Called<'_>>(text).err().expect(text);
        assert_eq!(error.to_string(), problem);
    }
}

/// JSON, and what is nearly JSON.
fn nearly_json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        any::<String>().prop_map(|text| Value::from(text).to_string()),
        r#""[\\\\u0-9a-fnd"x]{0,12}""#.prop_map(|text| text),
    ];
    let tree = leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((any::<String>(), inner), 0..4).prop_map(|fields| {
                let fields = fields
                    .into_iter()
                    .map(|(key, value)| format!("{} : {value}", Value::from(key)));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(" ,"))
            }),
        ]
    });
    let cut = (tree, any::<prop::sample::Index>(), 0..4u8, any::<char>());
    cut.prop_map(|(text, at, what, other)| {
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let at = places
            .get(at.index(places.len().max(1)))
            .copied()
            .unwrap_or(0);
        match what {
            0 => text[..at].to_owned(),
            1 => format!("{}{other}{}", &text[..at], &text[at..]),
            _ => text,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn whatever_is_read_is_read_as_elsewhere(text in nearly_json()) {
        agrees(&text);
    }
}
