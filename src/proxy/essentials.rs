//! What is looked at of the header of an upstream's answer: the rest may name an account.

use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use pingora_http::ResponseHeader;

/// The four values, instead of a map of them: one is held for as long as the answer takes.
pub(super) struct Essentials {
    pub(super) status: StatusCode,
    pub(super) kind: Option<HeaderValue>,
    pub(super) coding: Option<HeaderValue>,
    pub(super) retry_after: Option<HeaderValue>,
    /// Nothing where that is not said.
    pub(super) length: usize,
}

impl Essentials {
    pub(super) fn of(header: &ResponseHeader) -> Essentials {
        let value = |name| header.headers.get(name);
        let length = value(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        Essentials {
            status: header.status,
            kind: value(CONTENT_TYPE).cloned(),
            coding: value(CONTENT_ENCODING).cloned(),
            retry_after: value(RETRY_AFTER).cloned(),
            length: length.unwrap_or_default(),
        }
    }

    /// The kind of its body, or nothing.
    pub(super) fn content_type(&self) -> &str {
        let kind = self.kind.as_ref();
        kind.and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// How long it wants not to be asked, in whole seconds: said in seconds, or as a date.
    pub(super) fn pause(&self) -> Option<Duration> {
        let text = self.retry_after.as_ref()?.to_str().ok()?.trim();
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(fields: &[(&'static str, &str)]) -> Essentials {
        let mut header = ResponseHeader::build(503, None).expect("a header");
        for (name, value) in fields {
            header.append_header(*name, *value).expect("a field");
        }
        Essentials::of(&header)
    }

    #[test]
    fn what_is_not_said_is_not_there() {
        let none = answer(&[("x-account", "acme")]);
        assert_eq!((none.status.as_u16(), none.length), (503, 0));
        assert_eq!((none.content_type(), none.pause()), ("", None));
        assert!(none.coding.is_none());
    }

    #[test]
    fn what_is_said_is_understood() {
        let all = answer(&[
            ("Content-Type", "application/json"),
            ("content-length", "123"),
            ("content-encoding", "br"),
            ("retry-after", " 7 "),
        ]);
        assert_eq!((all.content_type(), all.length), ("application/json", 123));
        assert_eq!(all.pause(), Some(Duration::from_secs(7)));
        assert_eq!(all.coding.expect("a coding"), "br");
    }

    #[test]
    fn a_pause_is_told_in_whole_seconds() {
        let pause = |value: &str| answer(&[("retry-after", value)]).pause();
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
