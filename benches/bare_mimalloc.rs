//! The bare proxy with the gateway's allocator: shows how much of a difference to the bare proxy is the allocator's.

mod bare;

use std::env;
use std::net::SocketAddr;

use anyhow::{Result, bail};
use mimalloc::MiMalloc;

/// The same as in src/main.rs.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Listens on the first address, forwards to the second, and asks for the API key that comes third.
fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [listen, upstream, key] = &arguments[..] else {
        bail!("usage: bare_mimalloc LISTEN UPSTREAM KEY");
    };
    let (listen, upstream): (SocketAddr, SocketAddr) = (listen.parse()?, upstream.parse()?);
    bare::run(listen, upstream, key)
}
