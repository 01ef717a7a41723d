//! A request as it arrived, and how it is told back to those who want to see it.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::request::Parts;
use serde::Serialize;

/// Larger bodies are not repeated, only measured.
const LARGEST_ECHO: usize = 64 * 1024;

pub(super) struct Received {
    pub head: Parts,
    pub body: Bytes,
}

#[derive(Serialize)]
struct Echo<'a> {
    method: &'a str,
    path: &'a str,
    headers: BTreeMap<&'a str, String>,
    body: Option<&'a str>,
    body_bytes: usize,
}

impl Received {
    /// Everything, keys too: what must not arrive here has to be seen when it does.
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
        let body = Some(&self.body).filter(|body| body.len() <= LARGEST_ECHO);
        let echo = Echo {
            method: self.head.method.as_str(),
            path: path.map_or("/", |path| path.as_str()),
            headers,
            body: body.and_then(|body| std::str::from_utf8(body).ok()),
            body_bytes: self.body.len(),
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

    fn received(body: Bytes) -> Received {
        let request = http::Request::post("/v1/x?key=1")
            .header("b", "2")
            .header("a", "1")
            .header("b", "3");
        let (head, ()) = request.body(()).unwrap().into_parts();
        Received { head, body }
    }

    #[test]
    fn an_echo_tells_everything_in_order() {
        assert_eq!(
            received(Bytes::from_static(b"{}")).echo(),
            r#"{"method":"POST","path":"/v1/x?key=1","headers":{"a":"1","b":"2, 3"},"body":"{}","body_bytes":2}"#
        );
    }

    #[test]
    fn large_bodies_are_measured_only() {
        let echo = received(Bytes::from(vec![b'x'; LARGEST_ECHO + 1])).echo();
        assert!(echo.ends_with(r#""body":null,"body_bytes":65537}"#));
    }
}
