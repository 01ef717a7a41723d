//! Starts the mock and the gateway as processes, with keys, limits, a spending cap and prices.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::formats::{FORMATS, Format, KEY};
use crate::process::{Process, gateway_binary};

/// Limits so high that no run reaches them, although every request counts towards them.
const LIMITS: &str = ", limits: {requests_per_minute: 1000000000, \
    tokens_per_minute: 1000000000000000, concurrency: 1000000}";

const SPENDING_CAP: &str = ", spending_cap: 999999999";

const PRICING: &str = "pricing: {input: 1.25, output: 10, cached_input: 0.125}, ";

/// The addresses of a mock and of a proxy in front of it.
pub struct TestSetup {
    pub mock: SocketAddr,
    pub listen: SocketAddr,
    pub admin: SocketAddr,
}

/// The parts of a config that differ between runs.
#[derive(Clone, Copy)]
pub struct ConfigOptions {
    /// There is one model for each of these upstream formats.
    pub formats: &'static [Format],
    pub upstreams_per_model: usize,
    /// The number of further keys, and of further models.
    pub extra_models: usize,
    /// The number of further upstreams, to which the further models are assigned in turn.
    pub extra_upstreams: usize,
    pub stores_conversations: bool,
    /// Keys have limits of requests, tokens and concurrency.
    pub has_limits: bool,
    /// Keys have a spending cap, and models have prices.
    pub has_costs: bool,
}

impl ConfigOptions {
    /// Every model has two upstreams, so that a failure before the first content is retried on the other.
    /// Conversations are not stored, because their intended growth would hide a leak.
    pub const SOAK: Self = Self {
        formats: &FORMATS,
        upstreams_per_model: 2,
        extra_models: 0,
        extra_upstreams: 0,
        stores_conversations: false,
        has_limits: true,
        has_costs: true,
    };
}

impl TestSetup {
    /// Returns the model whose upstreams have this format.
    pub fn model(upstream: Format) -> String {
        format!("to-{}", upstream.name())
    }

    /// Encodes the config of the gateway.
    pub fn config(&self, options: &ConfigOptions) -> String {
        let (listen, admin, mock) = (self.listen, self.admin, self.mock);
        let conversations = if options.stores_conversations {
            ""
        } else {
            ", conversations: off"
        };
        let (cap, pricing) = if options.has_costs {
            (SPENDING_CAP, PRICING)
        } else {
            ("", "")
        };
        let limits = if options.has_limits { LIMITS } else { "" };
        let mut keys = format!("  - {{name: bench, secret: {KEY}{cap}{limits}}}\n");
        let (mut upstreams, mut models) = (String::new(), String::new());
        let mut add_upstream = |name: &str, format: Format| {
            let (format, base) = (format.name(), format.base_path());
            let url = format!("http://{mock}{base}");
            upstreams += &format!("  - {{name: {name}, format: {format}, base_url: \"{url}\"}}\n");
        };
        let mut add_model = |id: &str, upstreams: &[String]| {
            let upstreams: Vec<String> = upstreams
                .iter()
                .map(|name| format!("{{name: {name}}}"))
                .collect();
            let upstreams = upstreams.join(", ");
            models += &format!("  - {{id: {id}, {pricing}upstreams: [{upstreams}]}}\n");
        };
        for &format in options.formats {
            let id = Self::model(format);
            let name = |number| format!("{id}-{number}");
            let names: Vec<String> = (1..=options.upstreams_per_model).map(name).collect();
            names.iter().for_each(|name| add_upstream(name, format));
            add_model(&id, &names);
        }
        for number in 0..options.extra_upstreams {
            add_upstream(&extra_name(number), Format::Chat);
        }
        for number in 0..options.extra_models {
            let name = extra_name(number);
            keys += &format!("  - {{name: {name}, secret: key-of-{name}{cap}{limits}}}\n");
            add_model(&name, &[extra_name(number % options.extra_upstreams)]);
        }
        format!(
            "server: {{listen: \"{listen}\", admin: \"{admin}\"{conversations}}}\n\
             keys:\n{keys}upstreams:\n{upstreams}models:\n{models}"
        )
    }

    /// Returns the path of the config file in a directory.
    pub fn config_path(directory: &Path) -> PathBuf {
        directory.join("omniglot.yaml")
    }

    pub async fn start_mock(&self, directory: &Path) -> Result<Process> {
        let mut command = Command::new(gateway_binary());
        command.args(["mock", "--listen", &self.mock.to_string()]);
        let mut process = Process::start("mock", &mut command, directory)?;
        process.wait_until_ready(self.mock, None).await?;
        Ok(process)
    }

    pub async fn start_gateway(&self, directory: &Path, config: &str) -> Result<Process> {
        let file = Self::config_path(directory);
        fs::write(&file, config)?;
        let mut command = Command::new(gateway_binary());
        // Without this, every error that a run provokes would be a line in the log.
        command.env("RUST_LOG", "error");
        command.arg("run").arg("-c").arg(file);
        let mut process = Process::start("omniglot", &mut command, directory)?;
        process
            .wait_until_ready(self.admin, Some("/readyz"))
            .await?;
        Ok(process)
    }

    /// Starts this program as the bare proxy, which forwards everything to the mock.
    pub async fn start_bare(&self, directory: &Path) -> Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        let (listen, mock) = (self.listen.to_string(), self.mock.to_string());
        command.args(["--bare", &listen, &mock]);
        let mut process = Process::start("bare", &mut command, directory)?;
        process.wait_until_ready(self.listen, None).await?;
        Ok(process)
    }
}

/// Returns the name that a further upstream, model and key have; the key's secret is `key-of-` and the name.
pub fn extra_name(number: usize) -> String {
    format!("extra-{number}")
}
