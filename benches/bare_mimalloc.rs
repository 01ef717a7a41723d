//! The bare proxy with the gateway's allocator, which shows the allocator's part in a difference to the bare proxy.

mod bare;

use std::env;
use std::net::SocketAddr;

use anyhow::{Result, bail};
use mimalloc::MiMalloc;

/// The same as in src/main.rs.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Listens on the first address, forwards to the second, and requires the API key that is the third argument.
fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [listen, upstream, key] = &arguments[..] else {
        bail!("usage: bare_mimalloc LISTEN UPSTREAM KEY");
    };
    let (listen, upstream): (SocketAddr, SocketAddr) = (listen.parse()?, upstream.parse()?);
    bare::run(listen, upstream, key)
}
