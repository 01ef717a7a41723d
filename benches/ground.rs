//! What a run stands on: the mock and the gateway as processes of their own, with keys, limits, a cap and prices.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::process::Process;
use crate::speech::{FORMATS, Format, KEY};

/// So generous that no run reaches them, but every request is counted.
const LIMITS: &str = "limits: {requests_per_minute: 1000000000, \
    tokens_per_minute: 1000000000000000, concurrency: 1000000}";

const CAP: &str = "spending_cap: 999999999, ";

const PRICES: &str = "pricing: {input: 1.25, output: 10, cached_input: 0.125}, ";

pub struct Ground {
    pub mock: SocketAddr,
    pub listen: SocketAddr,
    pub admin: SocketAddr,
}

/// What of a config differs from run to run.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Each has a model of its own.
    pub formats: &'static [Format],
    /// Upstreams of each of those models.
    pub places: usize,
    /// So many further keys, upstreams and models, each model on an upstream of its own.
    pub others: usize,
    pub keeps_conversations: bool,
    /// With a cap and prices.
    pub counts: bool,
}

impl Shape {
    /// Every model has two upstreams, so that a failure before the content meets another attempt.
    /// Nothing is kept of conversations: what grows on purpose would hide what should not.
    pub const SOAK: Self = Self {
        formats: &FORMATS,
        places: 2,
        others: 0,
        keeps_conversations: false,
        counts: true,
    };
}

impl Ground {
    /// The model whose upstreams speak a format.
    pub fn model(upstream: Format) -> String {
        format!("to-{}", upstream.name())
    }

    pub fn config(&self, shape: &Shape) -> String {
        let (listen, admin, mock) = (self.listen, self.admin, self.mock);
        let conversations = if shape.keeps_conversations {
            ""
        } else {
            ", conversations: off"
        };
        let (cap, prices) = if shape.counts {
            (CAP, PRICES)
        } else {
            ("", "")
        };
        let mut keys = format!("  - {{name: bench, secret: {KEY}, {cap}{LIMITS}}}\n");
        let (mut upstreams, mut models) = (String::new(), String::new());
        let mut add = |id: &str, format: Format, places: usize| {
            let (name, base) = (format.name(), format.base());
            let mut listed = Vec::with_capacity(places);
            for place in 1..=places {
                upstreams += &format!(
                    "  - {{name: {id}-{place}, format: {name}, base_url: \"http://{mock}{base}\"}}\n"
                );
                listed.push(format!("{{name: {id}-{place}}}"));
            }
            let listed = listed.join(", ");
            models += &format!("  - {{id: {id}, {prices}upstreams: [{listed}]}}\n");
        };
        for &format in shape.formats {
            add(&Self::model(format), format, shape.places);
        }
        for number in 0..shape.others {
            let name = other(number);
            keys += &format!("  - {{name: {name}, secret: key-of-{name}, {cap}{LIMITS}}}\n");
            add(&name, Format::Chat, 1);
        }
        format!(
            "server: {{listen: \"{listen}\", admin: \"{admin}\"{conversations}}}\n\
             keys:\n{keys}upstreams:\n{upstreams}models:\n{models}"
        )
    }

    pub fn file(directory: &Path) -> PathBuf {
        directory.join("omniglot.yaml")
    }

    pub async fn start_mock(&self, directory: &Path) -> Result<Process> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_omniglot"));
        command.args(["mock", "--listen", &self.mock.to_string()]);
        let mut process = Process::start("mock", &mut command, directory)?;
        process.wait_until_ready(self.mock, None).await?;
        Ok(process)
    }

    pub async fn start_gateway(&self, directory: &Path, config: &str) -> Result<Process> {
        let file = Self::file(directory);
        fs::write(&file, config)?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_omniglot"));
        // Every fault that is asked for would be a line.
        command.env("RUST_LOG", "error");
        command.arg("run").arg("-c").arg(file);
        let mut process = Process::start("omniglot", &mut command, directory)?;
        process
            .wait_until_ready(self.admin, Some("/readyz"))
            .await?;
        Ok(process)
    }

    /// The bare proxy knows one upstream only, and speaks what that speaks. It is this very program.
    pub async fn start_bare(&self, directory: &Path) -> Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        let (listen, mock) = (self.listen.to_string(), self.mock.to_string());
        command.args(["--bare", &listen, &mock]);
        let mut process = Process::start("bare", &mut command, directory)?;
        process.wait_until_ready(self.listen, None).await?;
        Ok(process)
    }
}

/// The name of a further upstream, of the model on it and of a key, whose secret is `key-of-` and the name.
pub fn other(number: usize) -> String {
    format!("other-{number}")
}
