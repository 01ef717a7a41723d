//! What a task has to be done with: the request as it came, and who sent it.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub path: String,
    /// What its key is known by.
    pub key: [u8; 32],
    /// How the client called the gateway, as `https://gateway.example`.
    pub origin: String,
    pub body: Bytes,
}

/// Stands in front of the body, on a line of its own.
#[derive(Serialize, Deserialize)]
struct Head {
    path: String,
    key: [u8; 32],
    origin: String,
}

impl Job {
    pub fn to_bytes(&self) -> Bytes {
        let head = Head {
            path: self.path.clone(),
            key: self.key,
            origin: self.origin.clone(),
        };
        let mut bytes = serde_json::to_vec(&head).expect("plain fields always serialise");
        bytes.reserve(self.body.len() + 1);
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.body);
        bytes.into()
    }

    /// `None`: it was not written by this program.
    pub fn of_bytes(bytes: &Bytes) -> Option<Job> {
        let end = memchr::memchr(b'\n', bytes)?;
        let Head { path, key, origin } = serde_json::from_slice(&bytes[..end]).ok()?;
        let body = bytes.slice(end + 1..);
        Some(Job {
            path,
            key,
            origin,
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_survives_being_written_down() {
        let job = Job {
            path: "/v1/images/edits".to_owned(),
            key: [7; 32],
            origin: "http://gateway.example:8080".to_owned(),
            body: Bytes::from_static(b"--b\r\n\n\x00\xff"),
        };
        assert_eq!(Job::of_bytes(&job.to_bytes()), Some(job));
        assert_eq!(Job::of_bytes(&Bytes::from_static(b"{}\nx")), None);
    }
}
