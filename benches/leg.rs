//! The legs: no proxy, the bare proxy, nginx and the gateway without and with a store, each in a process of its own.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;

use crate::ground::{Ground, Shape};
use crate::nginx;
use crate::process::{Process, free_addresses};
use crate::speech::FORMATS;

/// One upstream for each format, and conversations are kept as they are without a word in the config.
pub const SHAPE: Shape = Shape {
    formats: &FORMATS,
    places: 1,
    others: 0,
    other_places: 0,
    keeps_conversations: true,
    counts: true,
};

/// A leg that is up: where requests go, and whose CPU time counts.
pub struct Target {
    pub address: SocketAddr,
    pub process: Process,
}

/// The mock and the proxies in front of it.
pub struct Field {
    pub mock: Target,
    pub bare: Target,
    /// Where it is installed.
    pub nginx: Option<Target>,
    pub omniglot: Target,
}

impl Field {
    pub async fn start(directory: &Path) -> Result<Self> {
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
