//! Starts the mock and the gateway as processes, with keys, limits, a spending cap and prices.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::formats::{FORMATS, Format, KEY};
use crate::process::Process;

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
    /// So many further keys and models.
    pub others: usize,
    /// So many further upstreams, over which those models are spread.
    pub other_places: usize,
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
        other_places: 0,
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
        let mut add_upstream = |name: &str, format: Format| {
            let (format, base) = (format.name(), format.base());
            let url = format!("http://{mock}{base}");
            upstreams += &format!("  - {{name: {name}, format: {format}, base_url: \"{url}\"}}\n");
        };
        let mut add_model = |id: &str, places: &[String]| {
            let places: Vec<String> = places
                .iter()
                .map(|name| format!("{{name: {name}}}"))
                .collect();
            let places = places.join(", ");
            models += &format!("  - {{id: {id}, {prices}upstreams: [{places}]}}\n");
        };
        for &format in shape.formats {
            let id = Self::model(format);
            let place = |number| format!("{id}-{number}");
            let places: Vec<String> = (1..=shape.places).map(place).collect();
            places.iter().for_each(|name| add_upstream(name, format));
            add_model(&id, &places);
        }
        for number in 0..shape.other_places {
            add_upstream(&other(number), Format::Chat);
        }
        for number in 0..shape.others {
            let name = other(number);
            keys += &format!("  - {{name: {name}, secret: key-of-{name}, {cap}{LIMITS}}}\n");
            add_model(&name, &[other(number % shape.other_places)]);
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
        // Every error that is asked for would be a line.
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

/// The name of a further upstream, of a model and of a key, whose secret is `key-of-` and the name.
pub fn other(number: usize) -> String {
    format!("other-{number}")
}
