//! Tells systemd that the process is ready, which process it is, since a successor takes the place of another, and how a reload went.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

pub(super) fn notify_ready() {
    notify(&format!("READY=1\nMAINPID={}", std::process::id()));
}

/// Shows a line in `systemctl status`.
pub(super) fn notify_status(line: &str) {
    notify(&format!("STATUS={}", line.replace('\n', " ")));
}

/// Sends the state where `NOTIFY_SOCKET` says, as units with `Type=notify` want it.
fn notify(state: &str) {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&address, state) {
        log::warn!("NOTIFY_SOCKET cannot be told the state of the gateway: {error}");
    }
}

fn send(address: &OsStr, state: &str) -> io::Result<()> {
    let address = match address.as_bytes() {
        // A name without a file.
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(address)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(state.as_bytes(), &address)?;
    Ok(())
}
