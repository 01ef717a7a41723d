//! Tells systemd that the process is ready, and which process it is: a successor takes the place of another.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Sends the state where `NOTIFY_SOCKET` says, as units with `Type=notify` want it.
pub(super) fn notify_ready() {
    let Some(address) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    let state = format!("READY=1\nMAINPID={}", std::process::id());
    if let Err(error) = send(&address, &state) {
        log::warn!("NOTIFY_SOCKET cannot be told that the gateway is ready: {error}");
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
