//! The request of an image task, as it is stored until a worker runs it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A request for images, and who sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageJob {
    pub path: String,
    /// The hash of the secret that the client sent. The key goes by its id, since its secret may be another by now; a task of
    /// an earlier version may know nothing else.
    pub key: [u8; 32],
    /// The origin under which the client reached the gateway, like `https://gateway.example`.
    pub origin: String,
    /// The headers of the client that decide which upstream serves it.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

/// The first line of an encoded job; the body follows it.
#[derive(Serialize, Deserialize)]
struct ImageJobHead {
    path: String,
    key: [u8; 32],
    origin: String,
    /// Jobs of earlier versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
}

impl ImageJob {
    /// Encodes the job for the store.
    pub fn encode(&self) -> Bytes {
        let head = ImageJobHead {
            path: self.path.clone(),
            key: self.key,
            origin: self.origin.clone(),
            headers: self.headers.clone(),
        };
        let mut bytes = serde_json::to_vec(&head).expect("plain fields always serialise");
        bytes.reserve(self.body.len() + 1);
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.body);
        bytes.into()
    }

    /// Decodes a stored job. `None`: it is not one of this program.
    pub fn decode(bytes: &Bytes) -> Option<ImageJob> {
        let end = memchr::memchr(b'\n', bytes)?;
        let ImageJobHead {
            path,
            key,
            origin,
            headers,
        } = serde_json::from_slice(&bytes[..end]).ok()?;
        let body = bytes.slice(end + 1..);
        Some(ImageJob {
            path,
            key,
            origin,
            headers,
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_round_trips_through_its_encoding() {
        let job = ImageJob {
            path: "/v1/images/edits".to_owned(),
            key: [7; 32],
            origin: "http://gateway.example:8080".to_owned(),
            headers: vec![("x-tier".to_owned(), "batch".to_owned())],
            body: Bytes::from_static(b"--b\r\n\n\x00\xff"),
        };
        assert_eq!(ImageJob::decode(&job.encode()), Some(job));
        assert_eq!(ImageJob::decode(&Bytes::from_static(b"{}\nx")), None);
    }
}
