//! Processes that the tests start: the demo on its fixed ports, gateways and mocks on free ones.

use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use omniglot_test_support::DemoPorts;

/// Long enough that only a hang reaches it.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// What the demo prints when it takes requests.
const READY: &str = "omniglot listens on http://127.0.0.1:8080";

/// A child process whose output goes to a file; killed when dropped.
pub struct Process {
    child: Child,
    output: PathBuf,
}

impl Process {
    pub fn start(command: &mut Command, output: PathBuf) -> Process {
        let file = File::create(&output).expect("a file for the output");
        let again = file.try_clone().expect("the same file");
        let command = command.stdin(Stdio::null()).stdout(file).stderr(again);
        let child = command.spawn().expect("the command starts");
        Process { child, output }
    }

    pub fn output(&self) -> String {
        std::fs::read_to_string(&self.output).unwrap_or_default()
    }

    pub fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("a process id");
        kill(Pid::from_raw(id), signal).expect("the process is there");
    }

    pub fn has_ended(&mut self) -> bool {
        let status = self.child.try_wait().expect("the child can be waited for");
        status.is_some()
    }

    /// Drains it, and waits until it has exited with 0.
    pub fn stop(&mut self) {
        self.signal(Signal::SIGTERM);
        until(TIMEOUT, "the process exits", || self.has_ended());
        let status = self.child.wait().expect("its status");
        assert!(status.success(), "{status}: {}", self.output());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when the process has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn omniglot() -> Command {
    Command::new(env!("CARGO_BIN_EXE_omniglot"))
}

/// Waits until something holds.
#[track_caller]
pub fn until(timeout: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + timeout;
    while !holds() {
        assert!(Instant::now() < end, "after {timeout:?} still not: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// An address whose port was free a moment ago.
pub fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("its address")
}

pub fn is_open(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}

/// The gateway that the commands of a page talk to, on the ports that the pages name.
pub struct Demo {
    process: Process,
    _ports: DemoPorts,
}

impl Demo {
    /// Starts it in a folder without a config, by a script where one is given, and waits until it takes requests.
    pub fn start(script: Option<&Path>, folder: &Path) -> Demo {
        let ports = DemoPorts::lock();
        let end = Instant::now() + TIMEOUT;
        loop {
            let mut command = script.map_or_else(omniglot, Command::new);
            // The script would build one of its own.
            command.env("OMNIGLOT", env!("CARGO_BIN_EXE_omniglot"));
            let mut process = Process::start(command.current_dir(folder), folder.join("log"));
            while !process.has_ended() {
                let is_ready = process.output().contains(READY);
                if is_ready {
                    return Demo {
                        process,
                        _ports: ports,
                    };
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            // A process that had the ports may need a moment to release them.
            let output = process.output();
            let is_taken = output.contains("cannot listen on 127.0.0.1:808");
            assert!(is_taken && Instant::now() < end, "{output}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    pub fn stop(&mut self) {
        self.process.stop();
    }
}
