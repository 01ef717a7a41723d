//! The listener of the admin port or the console. pingora hands over only its own: a successor opens these when its
//! predecessor has closed them.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::time::{Instant, sleep};

use super::upgrade::Handover;

const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// A predecessor closes its listeners sooner.
const USUAL_WAIT: Duration = Duration::from_secs(10);

/// A listener until its service takes it.
pub(super) struct ServiceListener {
    addr: SocketAddr,
    /// `None`: it is not open yet, or taken.
    open: Mutex<Option<TcpListener>>,
    handover: Handover,
}

impl ServiceListener {
    /// Listens at once, unless a predecessor does so still. `setting` is what the config calls the address.
    pub(super) fn new(
        addr: SocketAddr,
        setting: &str,
        handover: &Handover,
    ) -> Result<ServiceListener> {
        let open = match handover.has_predecessor() {
            true => None,
            false => {
                let listener =
                    TcpListener::bind(addr).with_context(|| cannot_listen(addr, setting))?;
                listener.set_nonblocking(true)?;
                Some(listener)
            }
        };
        Ok(ServiceListener {
            addr,
            open: Mutex::new(open),
            handover: handover.clone(),
        })
    }

    /// Waits until a successor needs the address.
    pub(super) async fn handed_over(&self) {
        self.handover.handed_over().await;
    }

    /// The listener, for the runtime of the service; waits until a predecessor has closed its own.
    pub(super) async fn take(&self) -> std::io::Result<tokio::net::TcpListener> {
        let open = self.open.lock();
        let open = open.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(listener) = open {
            return tokio::net::TcpListener::from_std(listener);
        }
        let (since, mut is_logged) = (Instant::now(), false);
        loop {
            match tokio::net::TcpListener::bind(self.addr).await {
                Err(error) if error.kind() == ErrorKind::AddrInUse => {
                    if since.elapsed() > USUAL_WAIT && !std::mem::replace(&mut is_logged, true) {
                        log::error!(
                            "{} is still in use; it is opened once it is free",
                            self.addr
                        );
                    }
                    sleep(POLL_INTERVAL).await;
                }
                bound => return bound,
            }
        }
    }
}

pub(super) fn cannot_listen(addr: SocketAddr, setting: &str) -> String {
    format!("cannot listen on {addr}: stop what uses it, or change {setting} in a config (-c FILE)")
}
