//! A gateway as a process, started with a config of the test.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::process::{Process, free_address, omniglot};
use crate::requests::new_client;
use crate::wait::{TIMEOUT, wait_until};

/// A gateway as a process of its own; killed when dropped.
pub struct Gateway {
    /// The process, for signals and its output.
    pub process: Process,
    /// The address of the API.
    pub address: SocketAddr,
    /// The address of the admin endpoints.
    pub admin: SocketAddr,
    directory: tempfile::TempDir,
}

impl Gateway {
    /// Starts a gateway with a config; `LISTEN` and `ADMIN` in it stand for free addresses.
    pub fn start(config: &str) -> Gateway {
        Gateway::start_with(config, |_| {})
    }

    /// Starts a gateway with a command that the test prepares: environment, log level.
    pub fn start_with(config: &str, prepare: impl FnOnce(&mut Command)) -> Gateway {
        let (address, admin) = (free_address(), free_address());
        let directory = tempfile::tempdir().expect("a directory");
        let gateway_file = directory.path().join("gateway.yaml");
        std::fs::write(&gateway_file, fill_addresses(config, address, admin))
            .expect("the config is written");
        let mut command = omniglot();
        command.args(["run", "-c"]).arg(&gateway_file);
        prepare(&mut command);
        let mut process = Process::start(&mut command);
        let has_admin = config.contains("ADMIN");
        let until = Instant::now() + TIMEOUT;
        while !(if has_admin {
            is_ready(admin)
        } else {
            is_open(address)
        }) {
            assert!(
                process.is_running(),
                "the gateway has ended: {:?}",
                process.wait()
            );
            assert!(Instant::now() < until, "the gateway does not become ready");
            std::thread::sleep(Duration::from_millis(5));
        }
        Gateway {
            process,
            address,
            admin,
            directory,
        }
    }

    /// Returns the path of the config.
    pub fn file(&self) -> PathBuf {
        self.directory.path().join("gateway.yaml")
    }

    /// Writes a new config in place of the old one; the signal HUP loads it.
    pub fn rewrite(&self, config: &str) {
        let next = self.directory.path().join("next.yaml");
        std::fs::write(&next, fill_addresses(config, self.address, self.admin))
            .expect("it is written");
        std::fs::rename(next, self.file()).expect("it is put in place");
    }

    /// Returns the URL of a path of the API.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the URL of an admin endpoint.
    pub fn admin_url(&self, path: &str) -> String {
        format!("http://{}{path}", self.admin)
    }

    /// Scrapes the metrics and returns the lines that start with a name.
    pub async fn metric(&self, name: &str) -> Vec<String> {
        let scrape = new_client().get(self.admin_url("/metrics")).send().await;
        let text = scrape.expect("an answer").text().await.expect("a body");
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines.map(str::to_owned).collect()
    }

    /// Waits until no request is in flight.
    pub async fn until_idle(&self) {
        wait_until("no request is in flight", async || {
            let lines = self.metric("omniglot_requests_in_flight").await;
            lines == ["omniglot_requests_in_flight 0"]
        })
        .await;
    }

    /// Counts the files and connections that the process has open.
    pub fn descriptors(&self) -> usize {
        let directory = format!("/proc/{}/fd", self.process.id());
        let open = std::fs::read_dir(directory).expect("the process is there");
        open.count()
    }

    /// Returns the resident memory of the process in KiB.
    pub fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Returns a line of `/proc/PID/status` in KiB: `VmHWM:` is the peak of the resident memory.
    pub fn memory(&self, name: &str) -> u64 {
        let file = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(file).expect("the process is there");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
        number.and_then(|text| text.parse().ok()).expect("a number")
    }
}

fn is_open(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}

/// Returns whether a gateway says on its admin port that it takes requests.
fn is_ready(admin: SocketAddr) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect(admin)?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: admin\r\nconnection: close\r\n\r\n")?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        Ok::<_, std::io::Error>(response)
    };
    ask().is_ok_and(|response| response.starts_with("HTTP/1.1 200"))
}

/// Puts the addresses in place of `LISTEN` and `ADMIN`.
fn fill_addresses(config: &str, address: SocketAddr, admin: SocketAddr) -> String {
    config
        .replace("LISTEN", &address.to_string())
        .replace("ADMIN", &admin.to_string())
}
