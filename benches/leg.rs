//! The legs: no proxy, the bare proxy and the gateway without and with a store, each in a process of its own.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::connection::Connection;
use crate::process::{Process, free_addresses};
use crate::work::{KEY, MODEL, Request, Work};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Leg {
    Direct,
    Bare,
    Omniglot,
    Store,
}

impl Leg {
    pub fn title(self) -> &'static str {
        match self {
            Self::Direct => "direct (CPU of the mock)",
            Self::Bare => "bare pingora",
            Self::Omniglot => "omniglot",
            Self::Store => "omniglot, prices, cap and store",
        }
    }
}

/// A leg that is up: where requests go, and whose CPU time counts.
pub struct Target {
    pub leg: Leg,
    pub address: SocketAddr,
    pub process: Option<Process>,
}

impl Target {
    pub async fn start(leg: Leg, upstream: SocketAddr, directory: &Path) -> Result<Self> {
        let [address, admin] = free_addresses()?;
        let (name, mut command, ready) = match leg {
            Leg::Direct => ("mock", mock_command(address), (address, None)),
            Leg::Bare => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["--bare", &address.to_string(), &upstream.to_string()]);
                ("bare", command, (address, None))
            }
            Leg::Omniglot => {
                let file = directory.join("omniglot.yaml");
                fs::write(&file, gateway_config(address, admin, upstream, "", ""))?;
                ("omniglot", run_command(&file), (admin, Some("/readyz")))
            }
            Leg::Store => {
                let file = directory.join("store.yaml");
                let prices = "pricing: {input: 1.25, output: 10}, ";
                let cap = ", spending_cap: 1000000000";
                let config = gateway_config(address, admin, upstream, prices, cap);
                let (store, journal) = (directory.join("store.db"), directory.join("journal"));
                let kept = format!(
                    "store: \"sqlite:{}\"\njournal: {{path: {journal:?}}}\n",
                    store.display()
                );
                fs::write(&file, config + &kept)?;
                ("store", run_command(&file), (admin, Some("/readyz")))
            }
        };
        let mut process = Process::start(name, &mut command, directory)?;
        process.wait_until_ready(ready.0, ready.1).await?;
        Ok(Self {
            leg,
            address,
            process: Some(process),
        })
    }

    /// Asks once for each kind of work, so that nothing is measured that is not the right answer.
    pub async fn try_out(&self, works: &[Work]) -> Result<()> {
        for &work in works {
            let request = Request::new(work, self.address);
            let attempt = async {
                let mut connection = Connection::open(self.address).await?;
                let answer = connection.exchange(request.bytes()).await?;
                request.check_whole(answer)?;
                anyhow::Ok(answer.len())
            };
            let length = tokio::time::timeout(Duration::from_secs(10), attempt)
                .await
                .unwrap_or_else(|elapsed| Err(elapsed.into()))
                .with_context(|| format!("{}, {}", self.leg.title(), work.title()))?;
            if self.leg == Leg::Direct {
                let sent = request.bytes().len();
                println!(
                    "{}: request of {sent} bytes, answer body of {length}",
                    work.title()
                );
            }
        }
        Ok(())
    }

    pub fn cpu_time(&self) -> Result<Option<Duration>> {
        self.process.as_ref().map(Process::cpu_time).transpose()
    }
}

fn mock_command(address: SocketAddr) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_omniglot"));
    command.args(["mock", "--listen", &address.to_string()]);
    command
}

fn run_command(file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_omniglot"));
    command.arg("run").arg("-c").arg(file);
    command
}

fn gateway_config(
    listen: SocketAddr,
    admin: SocketAddr,
    upstream: SocketAddr,
    prices: &str,
    cap: &str,
) -> String {
    format!(
        "server: {{listen: \"{listen}\", admin: \"{admin}\"}}\n\
         keys: [{{name: bench, secret: {KEY}{cap}}}]\n\
         upstreams: [{{name: mock, format: chat, base_url: \"http://{upstream}/v1\"}}]\n\
         models: [{{id: {MODEL}, {prices}upstreams: [{{name: mock}}]}}]\n"
    )
}
