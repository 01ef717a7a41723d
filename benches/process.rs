//! Starts processes under test with their output in a file, measures them through the kernel, and kills them when they are dropped.

use std::fmt;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

use crate::connection::Connection;

const START_TIMEOUT: Duration = Duration::from_secs(60);

pub struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    pub fn start(name: &'static str, command: &mut Command, directory: &Path) -> Result<Self> {
        let log = directory.join(name).with_extension("log");
        let output = File::create(&log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name, child, log })
    }

    /// Waits until the process accepts connections and, if a path is given, answers a GET of it with 200.
    pub async fn wait_until_ready(
        &mut self,
        address: SocketAddr,
        path: Option<&str>,
    ) -> Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let attempt = tokio::time::timeout(START_TIMEOUT, probe(address, path)).await;
            let Err(failure) = attempt.unwrap_or_else(|elapsed| Err(elapsed.into())) else {
                return Ok(());
            };
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}\n{}", self.name, self.output());
            }
            if Instant::now() > deadline {
                let output = self.output();
                return Err(failure.context(format!("{} is not ready\n{output}", self.name)));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns what the process has written to stdout and stderr.
    pub fn output(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_else(|failure| failure.to_string())
    }

    /// Returns the CPU time, user and system, of the process and its children, threads that have ended included.
    /// The CPU clock of a process counts nanoseconds; /proc/PID/stat counts hundredths of a second, too coarse for the
    /// paced streams.
    pub fn cpu_time(&self) -> Result<Duration> {
        let mut sum = Duration::ZERO;
        for id in self.process_ids()? {
            sum += Duration::from(clock_gettime(clock_getcpuclockid(id)?)?);
        }
        Ok(sum)
    }

    /// Returns the ids of the process and of the workers it has started, its own first.
    fn process_ids(&self) -> Result<Vec<Pid>> {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
        let mut ids = vec![self.id()?];
        for child in children.split_whitespace() {
            ids.push(Pid::from_raw(child.parse()?));
        }
        Ok(ids)
    }

    pub fn id(&self) -> Result<Pid> {
        Ok(Pid::from_raw(i32::try_from(self.child.id())?))
    }

    /// Reads the current resource usage of the process and its children from /proc.
    pub fn resource_usage(&self) -> Result<ResourceUsage> {
        let mut sum = ResourceUsage::default();
        for id in self.process_ids()? {
            let directory = PathBuf::from(format!("/proc/{id}"));
            let status = fs::read_to_string(directory.join("status"))?;
            let number = |field: &str| -> Result<u64> {
                let line = status.lines().find_map(|line| line.strip_prefix(field));
                let value = line.map(|line| line.trim().trim_end_matches(" kB"));
                Ok(value.with_context(|| format!("no {field}"))?.parse()?)
            };
            sum.resident += number("VmRSS:")?;
            sum.peak += number("VmHWM:")?;
            sum.threads += number("Threads:")?;
            sum.descriptors += fs::read_dir(directory.join("fd"))?.count();
        }
        Ok(sum)
    }
}

/// Memory in KiB, file descriptors and threads of a process and its children.
#[derive(Default)]
pub struct ResourceUsage {
    pub resident: u64,
    pub peak: u64,
    pub descriptors: usize,
    pub threads: u64,
}

impl fmt::Display for ResourceUsage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "resident {:.1} MiB, at most {:.1} MiB, {} descriptors, {} threads",
            mebibytes(self.resident),
            mebibytes(self.peak),
            self.descriptors,
            self.threads
        )
    }
}

/// Returns the program under test: the one that cargo built for this bench, or that of `OMNIGLOT`, such as a released one.
pub fn gateway_binary() -> PathBuf {
    let named = std::env::var_os("OMNIGLOT");
    named.map_or_else(|| env!("CARGO_BIN_EXE_omniglot").into(), PathBuf::from)
}

pub fn mebibytes(kibibytes: u64) -> f64 {
    kibibytes as f64 / 1024.0
}

impl Drop for Process {
    fn drop(&mut self) {
        // Each call fails only if the process has ended. Workers outlive a parent that is killed, and a parent would
        // replace workers that are, so the parent is killed first.
        let workers: Vec<Pid> = self.process_ids().into_iter().flatten().skip(1).collect();
        let _ = self.child.kill();
        let _ = self.child.wait();
        for worker in workers {
            let _ = kill(worker, Signal::SIGKILL);
        }
    }
}

async fn probe(address: SocketAddr, path: Option<&str>) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    if let Some(path) = path {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
        connection.exchange(request.as_bytes()).await?;
    }
    Ok(())
}

/// Returns loopback addresses with ports that nothing listens on. All ports stay bound until the last is chosen, so that they differ.
pub fn free_addresses<const COUNT: usize>() -> Result<[SocketAddr; COUNT]> {
    let mut addresses = [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); COUNT];
    let mut listeners = Vec::with_capacity(COUNT);
    for address in &mut addresses {
        let listener = TcpListener::bind(*address)?;
        *address = listener.local_addr()?;
        listeners.push(listener);
    }
    Ok(addresses)
}

/// Returns the three load averages as text.
pub fn load_average() -> Result<String> {
    let line = fs::read_to_string("/proc/loadavg")?;
    Ok(line.split(' ').take(3).collect::<Vec<_>>().join(" "))
}

/// Raises the limit of file descriptors to its maximum, for this process and the children it starts.
pub fn raise_descriptor_limit(needed: u64) -> Result<()> {
    let (_, maximum) = getrlimit(Resource::RLIMIT_NOFILE)?;
    ensure!(
        maximum >= needed,
        "the limit of file descriptors is {maximum}, {needed} are needed"
    );
    setrlimit(Resource::RLIMIT_NOFILE, maximum, maximum)?;
    Ok(())
}
