//! Forms: what is decoded, what is refused, and what an upstream gets.

use super::*;

const RULES: FormRules = FormRules {
    lists: &["image", "image[]", "images"],
    single: &["model", "n", "size", "stream", "mask", "response_format"],
    files: &["mask"],
};

fn decode(body: &[u8]) -> Result<Vec<MultipartField<'_>>, ApiError> {
    super::decode(body, &RULES)
}

fn rewrite(body: &[u8], own: &str) -> Result<Vec<u8>, ApiError> {
    super::rewrite(body, own, &RULES)
}

const FORM: &[u8] = b"--b-1\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n\
    --b-1\r\ncontent-disposition: form-data; name=\"image[]\"; filename=\"a;b.png\"\r\n\
    Content-Type: image/png\r\n\r\n\x89P\r\n--b-\r\nG\r\n\
    --b-1\r\nContent-Disposition: form-data; name=n\r\n\r\n\r\n--b-1--\r\n";

/// A form of parts that are written as they stand here.
fn form(parts: &[&str]) -> Vec<u8> {
    let parts: String = parts
        .iter()
        .map(|part| format!("--b\r\n{part}\r\n"))
        .collect();
    format!("{parts}--b--\r\n").into_bytes()
}

fn field(name: &str, value: &str) -> String {
    format!("Content-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}")
}

#[test]
fn fields_are_located_in_the_body() {
    assert!(is_multipart(FORM) && !is_multipart(b"{}") && !is_multipart(b""));
    assert_eq!(boundary(FORM), Some("b-1"));
    let fields = decode(FORM).expect("a form");
    let decoded: Vec<_> = fields
        .iter()
        .map(|field| (field.name, field.value))
        .collect();
    let expected: [(&str, &[u8]); 3] = [
        ("model", b"m"),
        ("image[]", b"\x89P\r\n--b-\r\nG"),
        ("n", b""),
    ];
    assert_eq!(decoded, expected);
    for field in &fields {
        assert_eq!(&FORM[field.value_range.clone()], field.value);
        assert!(FORM[field.range.clone()].starts_with(b"--b-1\r\n"));
        assert!(FORM[field.range.end..].starts_with(b"--b-1"));
    }
}

#[test]
fn broken_and_truncated_forms_are_refused() {
    for broken in [
        &b"--"[..],
        b"--b",
        b"--b\r\n",
        b"--b\r\n\r\n",
        b"--b\nContent-Disposition: form-data; name=\"n\"\n\nx\n--b--\n",
        b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--",
        b"--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nx\r\n--c--",
        b"--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nx\r\n--bc",
        b"--b\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\nx\r\n--b--\r\nmore",
    ] {
        assert!(
            decode(broken).is_err(),
            "{}",
            String::from_utf8_lossy(broken)
        );
    }
    for end in 0..FORM.len() - 4 {
        assert!(decode(&FORM[..end]).is_err(), "{end}");
    }
}

#[test]
fn a_form_that_parsers_read_in_two_ways_is_refused() {
    let disposition = "Content-Disposition: form-data; name=\"model\"";
    for (parts, message) in [
        (
            vec![field("model", "a"), field("model", "b")],
            "`model` stands in the form twice",
        ),
        (
            vec![field("n", "1"), field("N", "9")],
            "`N` must be spelled `n`",
        ),
        (
            vec![field("model[]", "b")],
            "`model[]` must be spelled `model`",
        ),
        (
            vec![field("size[0]", "b")],
            "`size[0]` must be spelled `size`",
        ),
        (
            vec![field("model.a", "b")],
            "`model.a` must be spelled `model`",
        ),
        (
            vec![field("response.format", "url")],
            "must be spelled `response_format`",
        ),
        (vec![field("MODEL]", "b")], "must be spelled `model`"),
        (vec![field("mod%65l", "a")], "no plain name"),
        (vec![field("model;n", "a")], "no plain name"),
        (vec![field("'model'", "a")], "no plain name"),
        (
            vec![format!("{disposition}; filename=\"a.txt\"\r\n\r\na")],
            "`model` must be a value, not a file",
        ),
        (
            vec![format!("{disposition}; filename*=utf-8''a\r\n\r\na")],
            "`model` must be a value, not a file",
        ),
        (
            vec!["Content-Disposition: form-data; name=\"n\"; filename=\"\"\r\n\r\n9".to_owned()],
            "`n` must be a value, not a file",
        ),
        (
            vec!["Content-Disposition: form-data; name*=utf-8''model\r\n\r\na".to_owned()],
            "unknown parameter",
        ),
        (
            vec![format!("{disposition}\r\n{disposition}\r\n\r\na")],
            "two dispositions",
        ),
        (
            vec![format!("{disposition}; name=\"n\"\r\n\r\na")],
            "two names",
        ),
        (
            vec![format!("{disposition}; name*=utf-8''n\r\n\r\na")],
            "unknown parameter",
        ),
        (
            vec![format!("{disposition}\nX: y\r\n\r\na")],
            "does not end with CR and LF",
        ),
        (vec![field("mo\\\"del", "a")], "the form is not readable"),
        (vec![field("m\u{f6}del", "a")], "no plain name"),
        (
            vec![format!(
                "{disposition}\r\nContent-Transfer-Encoding: base64\r\n\r\na"
            )],
            "is encoded",
        ),
        (
            vec!["Content-Disposition: attachment; name=\"n\"\r\n\r\na".to_owned()],
            "no form-data",
        ),
    ] {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let api_error = decode(&form(&parts)).expect_err(message);
        assert!(api_error.message.contains(message), "{}", api_error.message);
    }
    let images = [
        field("image", "a"),
        field("image", "b"),
        field("image[]", "c"),
    ];
    let images: Vec<&str> = images.iter().map(String::as_str).collect();
    assert_eq!(decode(&form(&images)).expect("a list").len(), 3);
}

#[test]
fn a_form_is_written_anew() {
    let inner = "x\n--b\nContent-Disposition: form-data; name=\"model\"\n\ndear\n--b--\n";
    let odd = "content-disposition:form-data;name=prompt\r\nX-More: 1\r\nContent-Type: text/plain\r\n\r\nhi";
    let file = "Content-Disposition: form-data; name=\"image\"; filename=\"\u{fc}.png\"\r\n\
                Content-Type: image/png; a=b\r\n\r\n\u{0}";
    let body = form(&[&field("user", inner), odd, file]);
    let written = rewrite(&body, "own").expect("a form");
    let expected = format!(
        "--own\r\n{}\r\n--own\r\n{}\r\n\
         --own\r\nContent-Disposition: form-data; name=\"image\"; filename=\"file.png\"\r\n\
         Content-Type: image/png\r\n\r\n\u{0}\r\n--own--\r\n",
        field("user", inner),
        field("prompt", "hi")
    );
    assert_eq!(String::from_utf8_lossy(&written), expected);
    assert_eq!(rewrite(&written, "own").expect("the same"), written);
    assert!(rewrite(&form(&[&field("user", "my own words")]), "own").is_err());
    let own = own_boundary();
    assert!(own.len() > 32 && own == own_boundary(), "{own}");
}
