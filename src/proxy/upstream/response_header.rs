//! The response header of an upstream: the few fields of it that are looked at.

use std::time::Duration;

use http::HeaderValue;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use pingora_http::ResponseHeader;

use crate::formats::AWS_ERROR_TYPE;

/// Room for these, and for the headers that the gateway adds for the client.
const HEADERS: usize = 24;

/// A header with the fields that may be looked at: the others may name an account.
pub(in crate::proxy) fn allowed(header: &ResponseHeader) -> ResponseHeader {
    let (mut parts, ()) = http::Response::new(()).into_parts();
    parts.status = header.status;
    parts.headers.reserve(HEADERS);
    for name in [
        CONTENT_TYPE,
        CONTENT_ENCODING,
        CONTENT_LENGTH,
        RETRY_AFTER,
        AWS_ERROR_TYPE,
    ] {
        if let Some(value) = header.headers.get(&name) {
            parts.headers.insert(name, value.clone());
        }
    }
    parts.into()
}

pub(in crate::proxy) fn content_encoding(header: &ResponseHeader) -> Option<&HeaderValue> {
    header.headers.get(CONTENT_ENCODING)
}

/// The content type, or an empty text.
pub(in crate::proxy) fn content_type(header: &ResponseHeader) -> &str {
    let value = header.headers.get(CONTENT_TYPE);
    value.and_then(|value| value.to_str().ok()).unwrap_or("")
}

/// The name of an error of AWS.
pub(in crate::proxy) fn aws_error_type(header: &ResponseHeader) -> Option<&str> {
    header.headers.get(AWS_ERROR_TYPE)?.to_str().ok()
}

/// The announced length of the body, or nothing.
pub(in crate::proxy) fn content_length(header: &ResponseHeader) -> usize {
    let value = header.headers.get(CONTENT_LENGTH);
    let length = value.and_then(|value| value.to_str().ok()?.parse().ok());
    length.unwrap_or_default()
}

/// How long the upstream wants not to be asked, in whole seconds; it says so in seconds or as a date.
pub(in crate::proxy) fn retry_after(header: &ResponseHeader) -> Option<Duration> {
    let text = header.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => {
            let date = rfc2822::parse(text).ok()?.timestamp();
            let left = date.duration_since(Timestamp::now()).as_secs_f64();
            left.max(0.0)
        }
    };
    Duration::try_from_secs_f64(seconds.ceil()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(fields: &[(&'static str, &str)]) -> ResponseHeader {
        let mut header = ResponseHeader::build(503, None).expect("a header");
        for (name, value) in fields {
            header.append_header(*name, *value).expect("a field");
        }
        allowed(&header)
    }

    #[test]
    fn headers_that_are_not_allowed_are_dropped() {
        let none = header(&[("x-account", "acme")]);
        assert_eq!((none.status.as_u16(), content_length(&none)), (503, 0));
        assert_eq!((content_type(&none), retry_after(&none)), ("", None));
        assert!(content_encoding(&none).is_none());
    }

    #[test]
    fn allowed_headers_are_read() {
        let all = header(&[
            ("Content-Type", "application/json"),
            ("content-length", "123"),
            ("content-encoding", "br"),
            ("retry-after", " 7 "),
        ]);
        let of_body = (content_type(&all), content_length(&all));
        assert_eq!(of_body, ("application/json", 123));
        assert_eq!(retry_after(&all), Some(Duration::from_secs(7)));
        assert_eq!(content_encoding(&all).expect("an encoding"), "br");
    }

    #[test]
    fn retry_after_is_rounded_up_to_whole_seconds() {
        let pause = |value: &str| retry_after(&header(&[("retry-after", value)]));
        let of = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!((pause("1.5"), pause("0")), (of(2), of(0)));
        assert_eq!(pause("Wed, 21 Oct 2015 07:28:00 GMT"), of(0));
        let soon = Timestamp::now() + Duration::from_secs(100);
        let soon = rfc2822::to_string(&soon.to_zoned(jiff::tz::TimeZone::UTC));
        let soon = pause(&soon.expect("a date")).expect("a pause");
        assert!((90..=100).contains(&soon.as_secs()), "{soon:?}");
        for nonsense in ["-1", "soon", "NaN", "inf", ""] {
            assert_eq!(pause(nonsense), None, "{nonsense}");
        }
    }
}
