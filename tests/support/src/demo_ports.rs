//! The ports of the demo, which tests of several processes use in turn.

use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

/// Whoever listens here may use the ports 8080 to 8082 of this machine. No file is seen by all: a test may run in another root.
const TURN: u16 = 18_080;

/// Held while a test uses the ports of the demo.
pub struct DemoPorts(#[expect(dead_code, reason = "it is held")] TcpListener);

impl DemoPorts {
    /// Waits until no other test uses them.
    pub fn lock() -> DemoPorts {
        loop {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, TURN)) {
                Ok(listener) => return DemoPorts(listener),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}
