//! Passthrough: finds the model, the images and the usage in bodies that are forwarded unchanged.

use std::ops::Range;

use super::Images;
use super::error;
use super::form;
use super::parameters::decode_parameters;
use super::response::RawImageResponse;
use super::stream::{ImageEventType, RawImageEvent};
use super::usage::{RawImageUsage, decode_usage};
use crate::formats::multipart::{self, MultipartField};
use crate::formats::reported_usage::ReportedUsage;
use crate::formats::{
    AsyncOption, Observation, OutputLimit, Passthrough, RequestHead, ResponseObserver,
    RoutingFields, chat, decode_event_data, decode_model_name, decode_response_body,
    decode_unique_fields, missing_content,
};
use crate::json::{Edit, RawJson, from_json, remove_member};
use crate::model::{ApiError, ImageSize, Losses, Usage};

impl Passthrough for Images {
    fn decode_routing_fields<'a>(&self, body: &'a [u8]) -> Result<RoutingFields<'a>, ApiError> {
        if multipart::is_multipart(body) {
            return peek_multipart(body);
        }
        let [model, stream, asynchronous, n, size, ..] = decode_unique_fields(
            body,
            [
                &["model"],
                &["stream"],
                &["async"],
                &["n"],
                &["size"],
                // An upstream may have its own prices for it.
                &["quality"],
            ],
        )?;
        let is_async = asynchronous.flag()?;
        let async_option = asynchronous.value().map(|raw| AsyncOption {
            is_async: is_async.unwrap_or(false),
            removal: remove_member(body, raw.range_in(body)),
        });
        Ok(RoutingFields {
            model: decode_model_name(body, &model)?,
            stream: stream.flag()?.unwrap_or(false),
            output_limit: limit_of(n.count()?, size.value().and_then(RawJson::text).as_deref()),
            async_option,
            ..RoutingFields::default()
        })
    }

    fn observe_response(
        &self,
        body: &[u8],
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        let response: RawImageResponse<'_> = decode_response_body(body)?;
        let images = response.data.iter().flatten();
        observer.images = images.filter(|image| image.is_present()).count() as u64;
        if observer.images == 0 {
            return Err(match response.error {
                Some(_) => chat::decode_error(200, body),
                None => missing_content(),
            });
        }
        if let Some(usage) = &response.usage {
            observer.record_usage(ReportedUsage::of_whole(decode_usage(usage)));
        }
        (observer.has_content, observer.ended) = (true, true);
        Ok(Observation::default())
    }

    fn observe_event(
        &self,
        data: &str,
        observer: &mut ResponseObserver,
    ) -> Result<Observation, ApiError> {
        if data == "[DONE]" {
            return Ok(Observation::default());
        }
        let event: RawImageEvent<'_> = decode_event_data(data)?;
        match event.event_type() {
            ImageEventType::Other => {}
            ImageEventType::PartialImage => {
                observer.has_content = true;
                observer.uncounted.add_image();
            }
            ImageEventType::Completed => {
                observer.complete_choice(u32::try_from(observer.images).unwrap_or(u32::MAX));
                observer.images += 1;
                observer.uncounted.add_image();
                (observer.has_content, observer.ended) = (true, true);
            }
            ImageEventType::Error => {
                observer.api_error = Some(error::decode_in_stream(data));
                observer.ended = true;
            }
        }
        if let Some(usage) = &event.usage {
            observer.record_usage(usage.report(observer.usage));
        }
        Ok(Observation::default())
    }

    /// Checks the parameters and the input images, so that the upstream does not charge for a bad request.
    fn check_passthrough(
        &self,
        head: &RequestHead<'_>,
        body: &[u8],
        _strict: bool,
    ) -> Result<Vec<Range<usize>>, ApiError> {
        decode_parameters(head, body, &mut Losses::default())?;
        Ok(Vec::new())
    }

    fn reported_usage(&self, body: &[u8]) -> Option<Usage> {
        let response: CountedImageResponse = decode_response_body(body).ok()?;
        response.usage.as_ref().map(decode_usage)
    }
}

fn peek_multipart(body: &[u8]) -> Result<RoutingFields<'_>, ApiError> {
    let fields = form::decode(body)?;
    let find = |name: &str| fields.iter().find(|field| field.name == name);
    let async_field = find("async");
    let is_async = async_field.map(MultipartField::flag).transpose()?;
    let async_option = async_field.map(|field| AsyncOption {
        is_async: is_async.unwrap_or(false),
        removal: Edit {
            range: field.range.clone(),
            with: Vec::new(),
        },
    });
    let stream = find("stream").map(MultipartField::flag).transpose()?;
    let count = find("n").map(MultipartField::count).transpose()?;
    let size = find("size").and_then(|field| str::from_utf8(field.value).ok());
    Ok(RoutingFields {
        model: multipart::model_of(&fields)?,
        stream: stream.unwrap_or(false),
        output_limit: limit_of(count, size),
        async_option,
        ..RoutingFields::default()
    })
}

/// So many images of a size.
fn limit_of(count: Option<u64>, size: Option<&str>) -> OutputLimit {
    OutputLimit {
        pixels: size
            .and_then(ImageSize::of_pixels)
            .and_then(ImageSize::pixels),
        ..OutputLimit::of(None, count)
    }
}

from_json! {
    /// A response of which only the counts are read.
    struct CountedImageResponse {
        "usage" => usage: Option<RawImageUsage>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::replace;

    #[test]
    fn async_is_removed_from_the_body() {
        for (body, rest, is_async) in [
            (r#"{"async":true}"#, "{}", true),
            (r#"{"async": true, "n":1}"#, r#"{ "n":1}"#, true),
            (r#"{"n":1 , "async" :false }"#, r#"{"n":1  }"#, false),
            (r#"{"n":1,"async":true,"m":2}"#, r#"{"n":1,"m":2}"#, true),
        ] {
            let async_option = Images
                .decode_routing_fields(body.as_bytes())
                .expect(body)
                .async_option
                .expect(body);
            assert_eq!(replace(body.as_bytes(), &[async_option.removal]), rest);
            assert_eq!(async_option.is_async, is_async);
        }
        assert!(Images.decode_routing_fields(br#"{"async":"yes"}"#).is_err());
        assert_eq!(
            Images
                .decode_routing_fields(br#"{"n":1,"async":null}"#)
                .expect("a body")
                .async_option,
            None
        );
        let part = |name: &str, value: &str| {
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let [model, is_async] = [part("model", "m"), part("async", "true")];
        let body = format!("{model}{is_async}--b--\r\n");
        let fields = Images
            .decode_routing_fields(body.as_bytes())
            .expect("a form");
        assert_eq!(&body[fields.model.expect("a model").range], "m");
        let async_option = fields.async_option.expect("a word");
        assert!(async_option.is_async);
        let rest = replace(body.as_bytes(), &[async_option.removal]);
        assert_eq!(rest, format!("{model}--b--\r\n"));
    }

    #[test]
    fn images_are_counted_and_their_usage_is_added_up() {
        let usage = r#""usage":{"input_tokens":5,"output_tokens":7,"total_tokens":12}"#;
        let event = format!(r#"{{"type":"image_generation.completed","b64_json":"AA==",{usage}}}"#);
        let mut observer = ResponseObserver::default();
        Images
            .observe_event(&event, &mut observer)
            .expect("an event");
        Images
            .observe_event(&event, &mut observer)
            .expect("an event");
        let counted = observer.usage.expect("usage");
        assert_eq!(
            (counted.input, counted.output, observer.images),
            (10, 14, 2)
        );
        assert!(observer.has_content && observer.ended);
        let mut observer = ResponseObserver::default();
        let body = format!(r#"{{"created":1,"data":[{{"b64_json":"AA=="}}],{usage}}}"#);
        Images
            .observe_response(body.as_bytes(), &mut observer)
            .expect("a reply");
        assert_eq!((observer.images, observer.ended), (1, true));
        for empty in [r#"{"data":[]}"#, r#"{"data":[{}]}"#, "{}"] {
            let mut observer = ResponseObserver::default();
            assert!(
                Images
                    .observe_response(empty.as_bytes(), &mut observer)
                    .is_err(),
                "{empty}"
            );
        }
    }
}
