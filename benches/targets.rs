//! Starts the targets of a run, each as a process: no proxy, the bare proxies, nginx, and the gateway without and with a store.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::formats::{FORMATS, KEY};
use crate::nginx;
use crate::parts::RunOptions;
use crate::process::{Process, free_addresses};
use crate::setup::{ConfigOptions, TestSetup};

/// One upstream for each format; conversations are stored, as by default.
pub const CONFIG_OPTIONS: ConfigOptions = ConfigOptions {
    formats: &FORMATS,
    upstreams_per_model: 1,
    extra_models: 0,
    extra_upstreams: 0,
    stores_conversations: true,
    has_limits: true,
    has_costs: true,
};

/// The same with a key that has nothing to count.
const UNLIMITED: ConfigOptions = ConfigOptions {
    has_limits: false,
    has_costs: false,
    ..CONFIG_OPTIONS
};

/// The title of the bare proxy that has the gateway's allocator.
pub const BARE_MIMALLOC: &str = "bare pingora with mimalloc";

/// A running process: the address of its requests, and the process whose CPU time counts.
pub struct Target {
    pub address: SocketAddr,
    pub process: Process,
}

/// The mock and the proxies in front of it.
pub struct Targets {
    pub mock: Target,
    /// It has the system's allocator; the aims are judged against it.
    pub bare: Target,
    /// It has the gateway's allocator.
    pub bare_mimalloc: Target,
    /// `None` if it is not installed.
    pub nginx: Option<Target>,
    pub omniglot: Target,
    /// Its key has no limits and no spending cap, its models have no prices.
    pub omniglot_unlimited: Target,
}

impl Targets {
    /// Starts all of them, with their files in a new directory of this name.
    pub async fn start(options: &RunOptions, name: &str) -> Result<Self> {
        let directory = options.create_directory(name)?;
        let directory = directory.as_path();
        let unlimited = options.create_directory(&format!("{name}-unlimited"))?;
        let mock = start_mock(directory).await?;
        let upstream = mock.address;
        let nginx = match nginx::find_program() {
            None => None,
            Some(program) => {
                let [address] = free_addresses()?;
                let process = nginx::start(&program, address, upstream, directory).await?;
                Some(Target { address, process })
            }
        };
        Ok(Self {
            bare: start_bare(upstream, directory).await?,
            bare_mimalloc: start_bare_mimalloc(&options.bare_mimalloc, upstream, directory).await?,
            omniglot: start_omniglot(upstream, directory, &CONFIG_OPTIONS, "").await?,
            omniglot_unlimited: start_omniglot(upstream, &unlimited, &UNLIMITED, "").await?,
            nginx,
            mock,
        })
    }
}

pub async fn start_mock(directory: &Path) -> Result<Target> {
    let setup = choose_addresses(None)?;
    Ok(Target {
        address: setup.mock,
        process: setup.start_mock(directory).await?,
    })
}

pub async fn start_bare(upstream: SocketAddr, directory: &Path) -> Result<Target> {
    let setup = choose_addresses(Some(upstream))?;
    Ok(Target {
        address: setup.listen,
        process: setup.start_bare(directory).await?,
    })
}

/// Builds `benches/bare_mimalloc.rs` as this bench was built, and returns the path of the program.
///
/// A process has one global allocator, so the second bare proxy cannot be this program as the first one is. Cargo does
/// not build one bench for another; if nothing has changed, the build takes a moment.
pub fn build_bare_mimalloc() -> Result<PathBuf> {
    let command = if cfg!(debug_assertions) {
        "test"
    } else {
        "bench"
    };
    let mut cargo = Command::new(env!("CARGO"));
    // Cargo describes the package of this program in its environment. If the build inherited these variables, build
    // scripts that depend on them would run again, and everything that depends on those would be rebuilt.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(name);
        }
    }
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args([command, "--no-run", "--bench", "bare_mimalloc"]);
    cargo.args(["--quiet", "--message-format", "json"]);
    let output = cargo.stderr(Stdio::inherit()).output();
    let output = output.context("cannot start cargo")?;
    ensure!(output.status.success(), "{cargo:?}: {}", output.status);
    let messages = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    for message in messages {
        let message = message?;
        if message["target"]["name"] == "bare_mimalloc"
            && let Some(program) = message["executable"].as_str()
        {
            return Ok(program.into());
        }
    }
    bail!("{cargo:?} built no program")
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

/// Starts the gateway with a config of these options, followed by `more_config`.
pub async fn start_omniglot(
    upstream: SocketAddr,
    directory: &Path,
    options: &ConfigOptions,
    more_config: &str,
) -> Result<Target> {
    let setup = choose_addresses(Some(upstream))?;
    let config = setup.config(options) + more_config;
    Ok(Target {
        address: setup.listen,
        process: setup.start_gateway(directory, &config).await?,
    })
}

/// Returns a setup with free ports; without an upstream, the mock gets one too.
fn choose_addresses(upstream: Option<SocketAddr>) -> Result<TestSetup> {
    let [free, listen, admin] = free_addresses()?;
    Ok(TestSetup {
        mock: upstream.unwrap_or(free),
        listen,
        admin,
    })
}
