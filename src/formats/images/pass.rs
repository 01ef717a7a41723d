//! What pass-through reads and touches: model and stream in requests, images and usage in replies.

use std::ops::Range;

use memchr::memrchr;

use super::form;
use super::reply::RawReply;
use super::stream::{RawEvent, Stage, plus};
use super::{error, form::Entry};
use crate::formats::chat::named;
use crate::formats::{
    Aside, Glance, Named, OutputLimit, Peek, Watch, no_answer, read_event, read_reply, read_request,
};
use crate::json::{Edit, RawJson, from_json};
use crate::model::ApiError;

from_json! {
    struct Request<'a> {
        "model" => model: Option<RawJson<'a>>,
        "stream" => stream: Option<bool>,
        "async" => later: Option<RawJson<'a>>,
        "n" => n: Option<RawJson<'a>>,
    }
}

pub(super) fn peek(body: &[u8]) -> Result<Peek<'_>, ApiError> {
    if form::is_form(body) {
        return peek_form(body);
    }
    let request: Request<'_> = read_request(body)?;
    let aside = request.later.map(|raw| {
        let later = match raw.get() {
            "true" => true,
            "false" => false,
            _ => return Err(wrong_later()),
        };
        let removal = without_member(body, raw.range_in(body));
        Ok(Aside { later, removal })
    });
    Ok(Peek {
        model: request.model.map(|raw| named(body, raw)).transpose()?,
        stream: request.stream.unwrap_or(false),
        ask_usage: None,
        most: Some(OutputLimit::of(None, request.n)),
        thread: None,
        aside: aside.transpose()?,
    })
}

fn wrong_later() -> ApiError {
    ApiError::invalid("async: expected true or false").at("async")
}

fn peek_form(body: &[u8]) -> Result<Peek<'_>, ApiError> {
    let entries = form::read(body)?;
    let find = |name: &str| entries.iter().find(|entry| entry.name == name);
    let model = find("model").map(|entry| {
        let name = std::str::from_utf8(entry.value);
        let wrong = |_| ApiError::invalid("model: expected text").at("model");
        let range = entry.at.clone();
        name.map_err(wrong).map(|name| Named {
            name: name.into(),
            range,
        })
    });
    let says = |entry: &Entry<'_>| matches!(entry.value, b"true" | b"True" | b"1");
    let aside = find("async").map(|entry| Aside {
        later: says(entry),
        removal: Edit {
            range: entry.whole.clone(),
            with: Vec::new(),
        },
    });
    let count = find("n").and_then(|entry| std::str::from_utf8(entry.value).ok());
    let count = count.and_then(|count| count.trim().parse().ok());
    Ok(Peek {
        model: model.transpose()?,
        stream: find("stream").is_some_and(says),
        ask_usage: None,
        most: Some(OutputLimit {
            output: None,
            choices: count.unwrap_or(1).max(1),
        }),
        thread: None,
        aside,
    })
}

/// Takes a member out of an object, given where its value stands.
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

pub(super) fn glance_reply(body: &[u8], watch: &mut Watch) -> Result<Glance, ApiError> {
    let reply: RawReply<'_> = read_reply(body)?;
    let pictures = reply.data.iter().flatten();
    watch.pictures = pictures.filter(|picture| picture.is_there()).count() as u64;
    if watch.pictures == 0 {
        return Err(match reply.error {
            Some(_) => error::decode(200, body),
            None => no_answer(),
        });
    }
    if let Some(usage) = &reply.usage {
        watch.meter(usage.read());
    }
    (watch.begun, watch.ended) = (true, true);
    Ok(Glance::default())
}

pub(super) fn glance_event(data: &str, watch: &mut Watch) -> Result<Glance, ApiError> {
    if data == "[DONE]" {
        return Ok(Glance::default());
    }
    let event: RawEvent<'_> = read_event(data)?;
    if let Some(usage) = &event.usage {
        watch.meter(plus(watch.usage, usage.read()));
    }
    match event.stage() {
        Stage::Other => {}
        Stage::Draft => watch.begun = true,
        Stage::Image => {
            watch.pictures += 1;
            (watch.begun, watch.ended) = (true, true);
        }
        Stage::Failure => {
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
    fn what_is_said_to_the_gateway_is_taken_out() {
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
    fn pictures_are_counted_and_their_usage_added_up() {
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
