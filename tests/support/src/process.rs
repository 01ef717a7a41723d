//! Child processes of a test, and the command that starts the gateway's binary.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::wait::TIMEOUT;

/// A child process whose stdout is read line by line; killed when dropped.
pub struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// Starts a command without stdin.
    pub fn start(command: &mut Command) -> Process {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Process { child, lines }
    }

    /// Waits for the next line of stdout that contains the words.
    pub fn line_with(&self, words: &str) -> String {
        let line = self.line_if_any(words, TIMEOUT);
        line.unwrap_or_else(|| panic!("no line with {words:?} came"))
    }

    /// Waits for the next line of stdout that contains the words; `None`: stdout has ended without one.
    pub fn line_if_any(&self, words: &str, timeout: Duration) -> Option<String> {
        let until = Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(words) => return Some(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("no line with {words:?} in {timeout:?}"),
            }
        }
    }

    /// Reads every line up to the end of stdout.
    pub fn lines_to_the_end(&self) -> Vec<String> {
        self.lines.iter().collect()
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name, like `HUP`.
    pub fn signal(&self, name: &str) {
        let done = Command::new("kill")
            .args([format!("-{name}"), self.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(done.success(), "the process is there to be signalled");
    }

    /// Returns whether the process has not exited yet.
    pub fn is_running(&mut self) -> bool {
        let status = self.child.try_wait().expect("the child can be waited for");
        status.is_none()
    }

    /// Waits for the process to exit by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                return status;
            }
            assert!(Instant::now() < until, "the process does not exit");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when the process has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a command that runs the gateway's binary.
///
/// # Panics
///
/// Panics outside of `cargo test`, which builds the binary and sets its path.
pub fn omniglot() -> Command {
    let binary = std::env::var_os("CARGO_BIN_EXE_omniglot");
    Command::new(binary.expect("CARGO_BIN_EXE_omniglot is not set: run the tests with cargo test"))
}

/// Returns an address whose port was free a moment ago, from below the ports that outgoing connections take.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id() * 101 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + u16::try_from(number % 20_000).expect("a small number");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// A file that the stderr of a process goes to.
pub struct Stderr(tempfile::NamedTempFile);

impl Default for Stderr {
    fn default() -> Stderr {
        Stderr::new()
    }
}

impl Stderr {
    /// Creates an empty file.
    pub fn new() -> Stderr {
        Stderr(tempfile::NamedTempFile::new().expect("a file"))
    }

    /// Makes a command write its stderr to the file.
    pub fn attach(&self, command: &mut Command) {
        command.stderr(self.0.reopen().expect("the file is there"));
    }

    /// Waits for a line that contains the words, while the process runs.
    pub fn line_with(&self, words: &str, process: &mut Process) -> Option<String> {
        let until = Instant::now() + TIMEOUT;
        loop {
            let is_running = process.is_running();
            let text = self.text();
            if let Some(line) = text.lines().find(|line| line.contains(words)) {
                return Some(line.to_owned());
            }
            if !is_running {
                return None;
            }
            assert!(
                Instant::now() < until,
                "no line with {words:?} came: {text}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Reads what has been written so far.
    pub fn text(&self) -> String {
        std::fs::read_to_string(self.0.path()).expect("text")
    }
}
