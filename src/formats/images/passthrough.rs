//! Passthrough: finds the model, the images and the usage in bodies that are forwarded unchanged.

use std::ops::Range;

use memchr::memrchr;

use super::error;
use super::multipart::{self, MultipartField};
use super::response::RawImageResponse;
use super::stream::{ImageEventType, RawImageEvent};
use super::usage::{add_usage, decode_usage};
use crate::formats::chat::decode_model_name;
use crate::formats::{
    Aside, Glance, Named, OutputLimit, Peek, Watch, no_answer, read_event, read_reply, read_request,
};
use crate::json::{Edit, RawJson, from_json};
use crate::model::ApiError;

from_json! {
    struct ImageRequestFields<'a> {
        "model" => model: Option<RawJson<'a>>,
        "stream" => stream: Option<bool>,
        "async" => r#async: Option<RawJson<'a>>,
        "n" => n: Option<RawJson<'a>>,
    }
}

/// Reads the fields of a request that routing needs.
pub(super) fn peek(body: &[u8]) -> Result<Peek<'_>, ApiError> {
    if multipart::is_multipart(body) {
        return peek_multipart(body);
    }
    let request: ImageRequestFields<'_> = read_request(body)?;
    let aside = request.r#async.map(|raw| {
        let later = match raw.get() {
            "true" => true,
            "false" => false,
            _ => return Err(invalid_async()),
        };
        let removal = without_member(body, raw.range_in(body));
        Ok(Aside { later, removal })
    });
    Ok(Peek {
        model: request
            .model
            .map(|raw| decode_model_name(body, raw))
            .transpose()?,
        stream: request.stream.unwrap_or(false),
        ask_usage: None,
        most: Some(OutputLimit::of(None, request.n)),
        thread: None,
        aside: aside.transpose()?,
    })
}

fn invalid_async() -> ApiError {
    ApiError::invalid("async: expected true or false").at("async")
}

fn peek_multipart(body: &[u8]) -> Result<Peek<'_>, ApiError> {
    let fields = multipart::decode(body)?;
    let find = |name: &str| fields.iter().find(|field| field.name == name);
    let model = find("model").map(|field| {
        let name = std::str::from_utf8(field.value);
        let wrong = |_| ApiError::invalid("model: expected text").at("model");
        let range = field.value_range.clone();
        name.map_err(wrong).map(|name| Named {
            name: name.into(),
            range,
        })
    });
    let is_true = |field: &MultipartField<'_>| matches!(field.value, b"true" | b"True" | b"1");
    let aside = find("async").map(|field| Aside {
        later: is_true(field),
        removal: Edit {
            range: field.range.clone(),
            with: Vec::new(),
        },
    });
    let count = find("n").and_then(|field| std::str::from_utf8(field.value).ok());
    let count = count.and_then(|count| count.trim().parse().ok());
    Ok(Peek {
        model: model.transpose()?,
        stream: find("stream").is_some_and(is_true),
        ask_usage: None,
        most: Some(OutputLimit {
            output: None,
            choices: count.unwrap_or(1).max(1),
        }),
        thread: None,
        aside,
    })
}

/// The edit that removes the member of an object with this value.
fn without_member(body: &[u8], value: Range<usize>) -> Edit {
    let before = body[..value.start].trim_ascii_end();
    let before = before.strip_suffix(b":").unwrap_or(before).trim_ascii_end();
    let name = before.strip_suffix(b"\"").unwrap_or(before);
    let start = memrchr(b'"', name).unwrap_or(value.start);
    let outside = body[..start].trim_ascii_end();
    let range = if outside.ends_with(b",") {
        outside.len() - 1..value.end
    } else {
        let rest = body[value.end..].trim_ascii_start();
        let end = match rest.strip_prefix(b",") {
            Some(rest) => body.len() - rest.len(),
            None => value.end,
        };
        start..end
    };
    Edit {
        range,
        with: Vec::new(),
    }
}

/// Observes a JSON response.
pub(super) fn glance_reply(body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
    let response: RawImageResponse<'_> = read_reply(body)?;
    let images = response.data.iter().flatten();
    watch.pictures = images.filter(|image| image.is_present()).count() as u64;
    if watch.pictures == 0 {
        return Err(match response.error {
            Some(_) => error::decode(200, body),
            None => no_answer(),
        });
    }
    if let Some(usage) = &response.usage {
        watch.meter(decode_usage(usage));
    }
    (watch.begun, watch.ended) = (true, true);
    Ok(Glance::default())
}

/// Observes one event of a stream.
pub(super) fn glance_event(data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
    if data == "[DONE]" {
        return Ok(Glance::default());
    }
    let event: RawImageEvent<'_> = read_event(data)?;
    if let Some(usage) = &event.usage {
        watch.meter(add_usage(watch.usage, decode_usage(usage)));
    }
    match event.event_type() {
        ImageEventType::Other => {}
        ImageEventType::PartialImage => watch.begun = true,
        ImageEventType::Completed => {
            watch.pictures += 1;
            (watch.begun, watch.ended) = (true, true);
        }
        ImageEventType::Error => {
            watch.api_error = Some(error::decode_in_stream(data));
            watch.ended = true;
        }
    }
    Ok(Glance::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::replace;

    #[test]
    fn async_is_removed_from_the_body() {
        for (body, rest, later) in [
            (r#"{"async":true}"#, "{}", true),
            (r#"{"async": true, "n":1}"#, r#"{ "n":1}"#, true),
            (r#"{"n":1 , "async" :false }"#, r#"{"n":1  }"#, false),
            (r#"{"n":1,"async":true,"m":2}"#, r#"{"n":1,"m":2}"#, true),
        ] {
            let aside = peek(body.as_bytes()).expect(body).aside.expect(body);
            assert_eq!(replace(body.as_bytes(), &[aside.removal]), rest);
            assert_eq!(aside.later, later);
        }
        assert!(peek(br#"{"async":"yes"}"#).is_err());
        assert_eq!(
            peek(br#"{"n":1,"async":null}"#).expect("a body").aside,
            None
        );
        let part = |name: &str, value: &str| {
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let [model, later] = [part("model", "m"), part("async", "true")];
        let body = format!("{model}{later}--b--\r\n");
        let peek = peek(body.as_bytes()).expect("a form");
        assert_eq!(&body[peek.model.expect("a model").range], "m");
        let aside = peek.aside.expect("a word");
        assert!(aside.later);
        let rest = replace(body.as_bytes(), &[aside.removal]);
        assert_eq!(rest, format!("{model}--b--\r\n"));
    }

    #[test]
    fn images_are_counted_and_their_usage_is_added_up() {
        let usage = r#""usage":{"input_tokens":5,"output_tokens":7,"total_tokens":12}"#;
        let event = format!(r#"{{"type":"image_generation.completed","b64_json":"AA==",{usage}}}"#);
        let mut watch = Watch::default();
        glance_event(&event, &mut watch).expect("an event");
        glance_event(&event, &mut watch).expect("an event");
        let counted = watch.usage.expect("usage");
        assert_eq!((counted.input, counted.output, watch.pictures), (10, 14, 2));
        assert!(watch.begun && watch.ended);
        let mut watch = Watch::default();
        let body = format!(r#"{{"created":1,"data":[{{"b64_json":"AA=="}}],{usage}}}"#);
        glance_reply(body.as_bytes(), &mut watch).expect("a reply");
        assert_eq!((watch.pictures, watch.ended), (1, true));
        for empty in [r#"{"data":[]}"#, r#"{"data":[{}]}"#, "{}"] {
            let mut watch = Watch::default();
            assert!(
                glance_reply(empty.as_bytes(), &mut watch).is_err(),
                "{empty}"
            );
        }
    }
}
