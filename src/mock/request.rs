//! A request as the mock received it, and its echo.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::request::Parts;
use serde::Serialize;

/// The largest body that an echo repeats; of larger ones it tells only the size.
const MAX_ECHO_BYTES: usize = 64 * 1024;

/// A request as it was received.
pub(super) struct MockRequest {
    pub head: Parts,
    pub body: Bytes,
    /// The body on the wire, where `body` is what it means.
    pub sent: Option<Bytes>,
}

#[derive(Serialize)]
struct RequestEcho<'a> {
    method: &'a str,
    path: &'a str,
    headers: BTreeMap<&'a str, String>,
    body: Option<&'a str>,
    body_bytes: usize,
}

impl MockRequest {
    /// Encodes the request as JSON, keys too: tests look for what must not arrive here.
    pub(super) fn echo(&self) -> String {
        let mut headers = BTreeMap::<&str, String>::new();
        for (name, value) in &self.head.headers {
            let value = String::from_utf8_lossy(value.as_bytes());
            headers
                .entry(name.as_str())
                .and_modify(|before| {
                    before.push_str(", ");
                    before.push_str(&value);
                })
                .or_insert_with(|| value.to_string());
        }
        let path = self.head.uri.path_and_query();
        let sent = self.sent.as_ref().unwrap_or(&self.body);
        let body = Some(sent).filter(|body| body.len() <= MAX_ECHO_BYTES);
        let echo = RequestEcho {
            method: self.head.method.as_str(),
            path: path.map_or("/", |path| path.as_str()),
            headers,
            body: body.and_then(|body| std::str::from_utf8(body).ok()),
            body_bytes: sent.len(),
        };
        serde_json::to_string(&echo).expect("a struct of strings always serialises")
    }

    pub(super) fn content_type(&self) -> &str {
        let value = self.head.headers.get(http::header::CONTENT_TYPE);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(body: Bytes) -> MockRequest {
        let request = http::Request::post("/v1/x?key=1")
            .header("b", "2")
            .header("a", "1")
            .header("b", "3");
        let (head, ()) = request.body(()).unwrap().into_parts();
        MockRequest {
            head,
            body,
            sent: None,
        }
    }

    #[test]
    fn an_echo_has_everything_in_order() {
        assert_eq!(
            received(Bytes::from_static(b"{}")).echo(),
            r#"{"method":"POST","path":"/v1/x?key=1","headers":{"a":"1","b":"2, 3"},"body":"{}","body_bytes":2}"#
        );
    }

    #[test]
    fn only_the_size_of_a_large_body_is_echoed() {
        let echo = received(Bytes::from(vec![b'x'; MAX_ECHO_BYTES + 1])).echo();
        assert!(echo.ends_with(r#""body":null,"body_bytes":65537}"#));
    }
}
