//! Starts the targets of a run, each as a process: no proxy, the bare proxies, nginx, and the gateway without and with a store.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::formats::{FORMATS, KEY};
use crate::nginx;
use crate::parts::Terms;
use crate::process::{Process, free_addresses};
use crate::setup::{Ground, Shape};

/// One upstream for each format, and conversations are kept as they are without a word in the config.
pub const SHAPE: Shape = Shape {
    formats: &FORMATS,
    places: 1,
    others: 0,
    other_places: 0,
    keeps_conversations: true,
    counts: true,
};

/// The title of the bare proxy that has the gateway's allocator.
pub const BARE_MIMALLOC: &str = "bare pingora with mimalloc";

/// A leg that is up: where requests go, and whose CPU time counts.
pub struct Target {
    pub address: SocketAddr,
    pub process: Process,
}

/// The mock and the proxies in front of it.
pub struct Field {
    pub mock: Target,
    /// With the system's allocator: the aims are judged against it.
    pub bare: Target,
    /// With the gateway's allocator.
    pub bare_mimalloc: Target,
    /// Where it is installed.
    pub nginx: Option<Target>,
    pub omniglot: Target,
}

impl Field {
    /// Starts all of them, with their files in a room of this name.
    pub async fn start(terms: &Terms, room: &str) -> Result<Self> {
        let room = terms.room(room)?;
        let directory = room.as_path();
        let mock = start_mock(directory).await?;
        let upstream = mock.address;
        let nginx = match nginx::find() {
            None => None,
            Some(program) => {
                let [address] = free_addresses()?;
                let process = nginx::start(&program, address, upstream, directory).await?;
                Some(Target { address, process })
            }
        };
        Ok(Self {
            bare: start_bare(upstream, directory).await?,
            bare_mimalloc: start_bare_mimalloc(&terms.bare_mimalloc, upstream, directory).await?,
            omniglot: start_omniglot(upstream, directory, &SHAPE, "").await?,
            nginx,
            mock,
        })
    }
}

pub async fn start_mock(directory: &Path) -> Result<Target> {
    let ground = ground(None)?;
    Ok(Target {
        address: ground.mock,
        process: ground.start_mock(directory).await?,
    })
}

pub async fn start_bare(upstream: SocketAddr, directory: &Path) -> Result<Target> {
    let ground = ground(Some(upstream))?;
    Ok(Target {
        address: ground.listen,
        process: ground.start_bare(directory).await?,
    })
}

/// Builds `benches/bare_mimalloc.rs` as this bench was built, and returns the path of the program.
///
/// A process has one global allocator, so the second bare proxy cannot be this program as the first one is. Cargo does
/// not build one bench for another; where nothing has changed, asking for it takes a moment.
pub fn build_bare_mimalloc() -> Result<PathBuf> {
    let command = if cfg!(debug_assertions) {
        "test"
    } else {
        "bench"
    };
    let mut cargo = Command::new(env!("CARGO"));
    // Cargo tells this program which package it belongs to. Passed on, that would make build scripts run again that ask
    // for it, and all that depends on them would be built anew.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args([command, "--no-run", "--bench", "bare_mimalloc"]);
    cargo.args(["--quiet", "--message-format", "json"]);
    let built = cargo.stderr(Stdio::inherit()).output();
    let built = built.context("cannot start cargo")?;
    ensure!(built.status.success(), "{cargo:?}: {}", built.status);
    let messages = serde_json::Deserializer::from_slice(&built.stdout).into_iter::<Value>();
    for message in messages {
        let message = message?;
        if message["target"]["name"] == "bare_mimalloc"
            && let Some(program) = message["executable"].as_str()
        {
            return Ok(program.into());
        }
    }
    bail!("{cargo:?} has built no program")
}

async fn start_bare_mimalloc(
    program: &Path,
    upstream: SocketAddr,
    directory: &Path,
) -> Result<Target> {
    let [address] = free_addresses()?;
    let mut command = Command::new(program);
    command.args([&address.to_string(), &upstream.to_string(), KEY]);
    let mut process = Process::start("bare-mimalloc", &mut command, directory)?;
    process.wait_until_ready(address, None).await?;
    Ok(Target { address, process })
}

/// What is added to the config stands behind it.
pub async fn start_omniglot(
    upstream: SocketAddr,
    directory: &Path,
    shape: &Shape,
    added: &str,
) -> Result<Target> {
    let ground = ground(Some(upstream))?;
    let config = ground.config(shape) + added;
    Ok(Target {
        address: ground.listen,
        process: ground.start_gateway(directory, &config).await?,
    })
}

fn ground(upstream: Option<SocketAddr>) -> Result<Ground> {
    let [free, listen, admin] = free_addresses()?;
    Ok(Ground {
        mock: upstream.unwrap_or(free),
        listen,
        admin,
    })
}
