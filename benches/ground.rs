//! What a soak stands on: the mock and the gateway as processes of their own, and the gateway's own gauges.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::connection::Connection;
use crate::process::Process;
use crate::speech::{FORMATS, Format, KEY};

pub struct Ground {
    pub mock: SocketAddr,
    pub listen: SocketAddr,
    pub admin: SocketAddr,
}

impl Ground {
    /// The model whose upstreams speak a format.
    pub fn model(upstream: Format) -> String {
        format!("to-{}", upstream.name())
    }

    /// Every model has two upstreams, so that a failure before the content meets another attempt.
    /// Nothing is kept of conversations: what grows on purpose would hide what should not.
    pub fn config(&self) -> String {
        let mut text = format!(
            "server: {{listen: \"{}\", admin: \"{}\", conversations: off}}\nkeys: [{{name: soak, secret: {KEY}}}]\nupstreams:\n",
            self.listen, self.admin
        );
        for format in FORMATS {
            let (name, base, mock) = (format.name(), format.base(), self.mock);
            for place in ["one", "two"] {
                text += &format!(
                    "  - {{name: {name}-{place}, format: {name}, base_url: \"http://{mock}{base}\"}}\n"
                );
            }
        }
        text += "models:\n";
        for format in FORMATS {
            let (id, name) = (Self::model(format), format.name());
            text += &format!(
                "  - {{id: {id}, upstreams: [{{name: {name}-one}}, {{name: {name}-two}}]}}\n"
            );
        }
        text
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

    pub async fn start_gateway(&self, directory: &Path) -> Result<Process> {
        let file = Self::file(directory);
        fs::write(&file, self.config())?;
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

    /// The sum of the samples of a metric.
    pub async fn gauge(&self, name: &str) -> Result<u64> {
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {}\r\n\r\n", self.admin);
        let mut connection = Connection::open(self.admin).await?;
        let text = connection.exchange(request.as_bytes()).await?;
        let mut sum = 0;
        for line in str::from_utf8(text)?.lines() {
            let Some(rest) = line.strip_prefix(name) else {
                continue;
            };
            if rest.starts_with([' ', '{']) {
                let value = rest.rsplit(' ').next().context("a sample has a value")?;
                sum += value.parse::<u64>()?;
            }
        }
        Ok(sum)
    }
}
