//! The mock upstream as a process.

use std::net::SocketAddr;

use crate::process::{Process, omniglot};
use crate::requests::new_client;
use crate::wait::wait_for;

/// The mock (`omniglot mock`) as a process of its own; killed when dropped.
pub struct Mock {
    _process: Process,
    /// The address that it listens on.
    pub address: SocketAddr,
}

impl Mock {
    /// Starts the mock on a free port and waits until it listens.
    pub fn start() -> Mock {
        let process = Process::start(omniglot().args(["mock", "--listen", "127.0.0.1:0"]));
        let line = process.line_with("listens on http://");
        let (_, address) = line.rsplit_once("http://").expect("an address");
        let address = address.parse().expect("an address");
        Mock {
            _process: process,
            address,
        }
    }

    /// Returns the URL of a path at the mock.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Releases `times` events of streams that wait for the name.
    pub async fn signal(&self, name: &str, times: usize) {
        for _ in 0..times {
            let path = format!("/mock/signal/{name}");
            let sent = new_client().post(self.url(&path)).send().await;
            assert_eq!(sent.expect("the mock answers").status(), 204);
        }
    }

    /// Returns a count, like `cancelled`, of the requests that carried a name.
    pub async fn seen(&self, name: &str, count: &str) -> u64 {
        let url = self.url(&format!("/mock/seen/{name}"));
        let seen = new_client().get(url).send().await.expect("an answer");
        let seen: serde_json::Value = seen.json().await.expect("JSON");
        seen[count].as_u64().expect("a count")
    }

    /// Waits until a count of the requests that carried a name has reached a number.
    pub async fn until_seen(&self, name: &str, count: &str, number: u64) {
        let what = format!("{number} {count} of {name}");
        wait_for(&what, async || {
            let seen = new_client().get(self.url(&format!("/mock/seen/{name}")));
            let seen = seen.send().await.expect("the mock answers");
            let seen: serde_json::Value = seen.json().await.expect("counts");
            (seen[count] == number).then_some(())
        })
        .await;
    }
}
