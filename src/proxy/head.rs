//! The header of a request to an upstream: a short list, written as its connection wants it.

use std::sync::Arc;

use bytes::{BufMut as _, BytesMut};
use http::header::{ACCEPT_ENCODING, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Uri, Version};
use pingora_core::{Error, ErrorType, Result};
use pingora_http::RequestHeader;

use super::attempt::OUR_NAME;
use crate::runtime::Upstream;

/// Room for all that upstreams are commonly told.
const FIELDS: usize = 10;

/// About how long that is, with the request line.
const LENGTH: usize = 512;

pub(super) struct Head {
    method: Method,
    target: String,
    upstream: Arc<Upstream>,
    fields: Vec<(HeaderName, HeaderValue)>,
}

impl Head {
    /// A request line, and what every request of ours says.
    pub(super) fn new(method: Method, upstream: Arc<Upstream>, target: String) -> Head {
        let mut head = Head {
            method,
            target,
            fields: Vec::with_capacity(FIELDS + upstream.headers.len()),
            upstream: upstream.clone(),
        };
        head.set(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        head.set(USER_AGENT, HeaderValue::from_static(OUR_NAME));
        for (name, value) in &upstream.headers {
            head.set(name.clone(), value.clone());
        }
        head
    }

    pub(super) fn has(&self, name: &HeaderName) -> bool {
        self.fields.iter().any(|(known, _)| known == name)
    }

    /// In the place of what the field said before, if it is there.
    pub(super) fn set(&mut self, name: HeaderName, value: HeaderValue) {
        match self.fields.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.add(name, value),
        }
    }

    /// Beside what the field says already.
    pub(super) fn add(&mut self, name: HeaderName, value: HeaderValue) {
        self.fields.push((name, value));
    }

    /// As HTTP/1.1 sends it. pingora's own header is a map, which is made, filled and taken apart
    /// again for the same bytes.
    pub(super) fn written(&self) -> Result<BytesMut> {
        let authority = &self.upstream.base.authority;
        // Whatever ends a line or a word would be read as something else.
        let is_sound = |text: &str| text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
        if !(is_sound(&self.target) && is_sound(authority)) {
            return Error::e_explain(ErrorType::InvalidHTTPHeader, "upstream address");
        }
        let mut text = BytesMut::with_capacity(LENGTH);
        let parts = [
            self.method.as_str(),
            " ",
            &self.target,
            " HTTP/1.1\r\nhost: ",
        ];
        for part in parts.into_iter().chain([authority.as_str(), "\r\n"]) {
            text.put_slice(part.as_bytes());
        }
        for (name, value) in &self.fields {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                text.put_slice(part);
            }
        }
        text.put_slice(b"\r\n");
        Ok(text)
    }

    /// As HTTP/2 is handed it.
    pub(super) fn into_map(self) -> Result<RequestHeader> {
        let base = &self.upstream.base;
        let uri = Uri::builder()
            .scheme(if base.tls { "https" } else { "http" })
            .authority(base.authority.as_str())
            .path_and_query(self.target)
            .build();
        let uri = uri.map_err(|error| {
            Error::because(ErrorType::InvalidHTTPHeader, "upstream address", error)
        })?;
        let (mut head, ()) = http::Request::new(()).into_parts();
        (head.method, head.uri, head.version) = (self.method, uri, Version::HTTP_2);
        head.headers.reserve(self.fields.len());
        for (name, value) in self.fields {
            head.headers.append(name, value);
        }
        Ok(head.into())
    }
}
