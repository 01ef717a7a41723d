//! Fields by which a router chooses among the hosts of a model, which have prices of their own.

use super::multipart::MultipartField;
use crate::json::JsonReader;
use crate::model::truncated;

/// Such fields of a body, in small letters and without `_` and `-`.
const HOST_FIELDS: [&str; 5] = [
    PREFERENCES,
    "providers",
    "provideroptions",
    "providerpreferences",
    "customllmprovider",
];

/// The field with the preferences of one request.
const PREFERENCES: &str = "provider";

/// Of these preferences, those that leave the choice of the host to the router.
const NEUTRAL: [&str; 4] = [
    "data_collection",
    "require_parameters",
    "allow_fallbacks",
    "zdr",
];

/// Returns the path of what chooses a host in a field of a body with this value. `null` is as good as no field.
pub(super) fn chosen_host(key: &str, mut value: JsonReader<'_>) -> Option<String> {
    let name = folded(key);
    if !HOST_FIELDS.contains(&name.as_str()) {
        return None;
    }
    let (mut found, field) = (None, truncated(key));
    match value.peek() {
        Some(b'n') => return None,
        Some(b'{') => {}
        _ => return Some(field.into_owned()),
    }
    let read = value.object(|reader, key| {
        let is_neutral = name == PREFERENCES && NEUTRAL.contains(&key);
        if found.is_none() && !is_neutral && reader.peek() != Some(b'n') {
            found = Some(format!("{field}.{}", truncated(key)));
        }
        reader.skip()
    });
    match read {
        Ok(()) => found,
        Err(_) => Some(field.into_owned()),
    }
}

/// Returns the name of a field of a form that does the same.
pub(super) fn chosen_host_in_form(fields: &[MultipartField<'_>]) -> Option<String> {
    fields.iter().find_map(|field| {
        let name = field.names().next().unwrap_or_default();
        match field.name == name {
            true => chosen_host(
                name,
                JsonReader::new(str::from_utf8(field.value).unwrap_or("\"")),
            ),
            false if !HOST_FIELDS.contains(&folded(name).as_str()) => None,
            false => Some(truncated(field.name).into_owned()),
        }
    })
}

/// A name as the most lenient parsers read it: to some, these two are a `k` and an `s`.
fn folded(key: &str) -> String {
    let key = key.replace('\u{212a}', "k").replace('\u{17f}', "s");
    key.to_ascii_lowercase().replace(['_', '-'], "")
}

#[cfg(test)]
mod tests {
    use crate::model::Format;

    #[test]
    fn a_chosen_host_is_found_in_every_format() {
        for (field, found) in [
            (r#""provider":{"sort":"throughput"}"#, Some("provider.sort")),
            (r#""provider":{"order":["dear"]}"#, Some("provider.order")),
            (
                r#""provider":{"zdr":true,"only":["dear"]}"#,
                Some("provider.only"),
            ),
            (
                r#""provider":{"max_price":{"prompt":9}}"#,
                Some("provider.max_price"),
            ),
            (r#""provider":{"a":1,"sort":null}"#, Some("provider.a")),
            (r#""provider":{"Sort":"price"}"#, Some("provider.Sort")),
            (r#""Provider":{"sort":"price"}"#, Some("Provider.sort")),
            (r#""provider":"dear""#, Some("provider")),
            (r#""provider":["dear"]"#, Some("provider")),
            (
                r#""providerOptions":{"gateway":{"only":["dear"]}}"#,
                Some("providerOptions.gateway"),
            ),
            (
                r#""provider":{"data_collection":"deny","require_parameters":true}"#,
                None,
            ),
            (r#""provider":{"allow_fallbacks":false,"sort":null}"#, None),
            (r#""provider":null"#, None),
            (r#""provider":{}"#, None),
            (r#""metadata":{"provider":{"sort":"price"}}"#, None),
        ] {
            let body = format!(r#"{{"model":"m",{field}}}"#);
            for format in Format::EVERY {
                let findings = format.codec().findings(body.as_bytes());
                assert_eq!(
                    findings.chosen_host.as_deref(),
                    found,
                    "{format:?}: {field}"
                );
            }
        }
    }

    #[test]
    fn a_chosen_host_is_found_in_forms() {
        for (name, value, is_found) in [
            ("provider", r#"{"sort":"price"}"#, true),
            ("provider", "dear", true),
            ("provider[sort]", "price", true),
            ("Provider.order", "dear", true),
            ("provider", r#"{"zdr":true}"#, false),
            ("prompt", "provider", false),
        ] {
            let form = format!(
                "--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n--b--\r\n"
            );
            let findings = Format::Images.codec().findings(form.as_bytes());
            assert_eq!(findings.chosen_host.is_some(), is_found, "{name}={value}");
        }
    }
}
