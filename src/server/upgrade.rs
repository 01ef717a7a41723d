//! Upgrades without a lost request: a successor, which may be a new version, takes over the listeners of this process,
//! and this process finishes what it has begun.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

/// Tells a successor where the listeners are handed over.
const SOCKET_VARIABLE: &str = "OMNIGLOT_UPGRADE_SOCKET";

/// How long a successor may take until it asks for the listeners: it opens the store before.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What Linux adds to the path of a program whose file has been replaced.
const REPLACED: &str = " (deleted)";

/// How listeners go from a process to its successor.
#[derive(Clone)]
pub(super) struct Handover {
    /// The socket that the successor waits at. It is the same for all successors of a process.
    socket: PathBuf,
    /// Whether this process is such a successor.
    has_predecessor: bool,
    /// Becomes true when a successor takes over.
    is_handed_over: watch::Sender<bool>,
}

impl Handover {
    /// Finds out whether a predecessor has started this process.
    pub(super) fn from_environment() -> Handover {
        let given = std::env::var_os(SOCKET_VARIABLE).map(PathBuf::from);
        let own = || {
            let folder = format!("omniglot-{}", Uuid::now_v7().simple());
            std::env::temp_dir().join(folder).join("upgrade")
        };
        Handover {
            has_predecessor: given.is_some(),
            socket: given.unwrap_or_else(own),
            is_handed_over: watch::Sender::new(false),
        }
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(super) const fn has_predecessor(&self) -> bool {
        self.has_predecessor
    }

    /// Waits until a successor takes over.
    pub(super) async fn handed_over(&self) {
        let mut watch = self.is_handed_over.subscribe();
        // The sender lives as long as this.
        let _ = watch.wait_for(|is_handed_over| *is_handed_over).await;
    }

    /// Removes the folder of the socket, once the listeners are taken over.
    pub(super) fn finish(&self) {
        if let Some(folder) = self.socket.parent().filter(|_| self.has_predecessor) {
            // It is one of the temporary files, which the system removes as well.
            let _ = fs::remove_dir(folder);
        }
    }

    /// Starts a successor and waits until it asks for the listeners. On an error this process goes on alone.
    pub(super) async fn start_successor(&self) -> Result<()> {
        let folder = self.socket.parent().context("the socket has a folder")?;
        let made = DirBuilder::new().mode(0o700).create(folder);
        made.with_context(|| format!("cannot create {}", folder.display()))?;
        let started = async {
            let program = program()?;
            let mut successor = Command::new(&program)
                .args(std::env::args_os().skip(1))
                .env(SOCKET_VARIABLE, &self.socket)
                .stdin(Stdio::null())
                .spawn()
                .with_context(|| format!("cannot start {}", program.display()))?;
            log::info!("process {} is starting, to take over", successor.id());
            self.until_asked(&mut successor).await
        };
        let started = started.await;
        match &started {
            Ok(()) => {
                self.is_handed_over.send_replace(true);
            }
            Err(_) => {
                // Both may be there or not.
                let _ = fs::remove_file(&self.socket);
                let _ = fs::remove_dir(folder);
            }
        }
        started
    }

    async fn until_asked(&self, successor: &mut Child) -> Result<()> {
        let until = Instant::now() + START_TIMEOUT;
        while !self.socket.exists() {
            if let Some(status) = successor.try_wait().context("cannot wait for it")? {
                bail!("the new process has ended: {status}");
            }
            if Instant::now() > until {
                // It may have ended just now.
                let _ = successor.kill();
                let _ = successor.wait();
                bail!("the new process does not become ready within {START_TIMEOUT:?}");
            }
            sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

/// The file of this program, or the one that has replaced it.
fn program() -> Result<PathBuf> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let replaced = program
        .to_str()
        .and_then(|path| path.strip_suffix(REPLACED));
    Ok(replaced.map_or(program.clone(), PathBuf::from))
}
