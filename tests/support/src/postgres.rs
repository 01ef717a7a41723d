//! A PostgreSQL server for tests, on a free port of this machine and in a directory of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Stops and starts the server on command, ends it and removes its files when stdin is closed,
/// so that nothing is left behind however the tests end. Its data need not survive a crash.
const SCRIPT: &str = r#"
trap 'kill -INT $server 2>/dev/null; wait $server; rm -rf "$2"' EXIT
trap 'exit 1' HUP INT TERM
"$1/initdb" -D "$2/data" -U omniglot -A trust -E UTF8 --no-sync >"$2/initdb.log" 2>&1 || exit 1
start() {
  "$1/postgres" -D "$2/data" -h 127.0.0.1 -p "$3" -k "$2" -c fsync=off -c full_page_writes=off \
    -c max_connections=300 </dev/null >>"$2/postgres.log" 2>&1 &
  server=$!
  waited=0
  until "$1/pg_isready" -q -h 127.0.0.1 -p "$3" -U omniglot; do
    kill -0 $server && [ $((waited += 1)) -lt 1000 ] || exit 1
    sleep 0.05
  done
  echo started
}
stop() {
  kill -INT $server
  wait $server
  echo stopped
}
start "$@"
while read -r word; do
  $word "$@"
done
"#;

const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A running PostgreSQL server.
pub struct Postgres {
    /// The script, which ends the server when its stdin is closed.
    script: Mutex<ServerScript>,
    programs: PathBuf,
    port: u16,
}

struct ServerScript {
    _process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl ServerScript {
    fn send(&mut self, word: &str) {
        writeln!(self.stdin, "{word}").expect("it listens");
    }

    fn receive(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("text");
        line
    }
}

impl Postgres {
    /// Returns the server that all tests of a binary share.
    ///
    /// # Panics
    ///
    /// Panics if PostgreSQL is not installed: tests that need it are ignored by default.
    pub fn shared() -> &'static Postgres {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Postgres::start)
    }

    /// Starts a server that no other test uses, and that may be stopped.
    ///
    /// # Panics
    ///
    /// Panics if PostgreSQL is not installed.
    pub fn start() -> Postgres {
        let programs = programs().expect(
            "this test needs PostgreSQL, which is not installed: scripts/databases installs it",
        );
        let until = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(started) = Postgres::try_start(&programs) {
                return started;
            }
            // Another process may have taken the port.
            assert!(Instant::now() < until, "PostgreSQL does not start");
        }
    }

    fn try_start(programs: &Path) -> Option<Postgres> {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let directory = tempfile::tempdir().expect("a directory").keep();
        let mut command = match user() {
            // The server refuses to run as root.
            Some(user) => {
                let owned = Command::new("chown").arg(user).arg(&directory).status();
                assert!(owned.expect("chown runs").success());
                let mut command = Command::new("runuser");
                command.args(["-u", user, "--", "sh"]);
                command
            }
            None => Command::new("sh"),
        };
        command.args(["-c", SCRIPT, "sh"]);
        command.arg(programs).arg(&directory).arg(port.to_string());
        command.current_dir(&directory);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let mut script = ServerScript {
            stdin: process.stdin.take().expect("stdin is piped"),
            stdout: BufReader::new(process.stdout.take().expect("stdout is piped")),
            _process: process,
        };
        (script.receive() == "started\n").then_some(Postgres {
            script: Mutex::new(script),
            programs: programs.to_owned(),
            port,
        })
    }

    /// Stops the server, which ends its connections and keeps what was committed.
    pub fn stop(&self) {
        let mut script = self.script.lock().expect("no panic");
        script.send("stop");
        assert_eq!(script.receive(), "stopped\n");
    }

    /// Starts the server again after [`Postgres::stop`].
    pub fn start_again(&self) {
        let mut script = self.script.lock().expect("no panic");
        script.send("start");
        assert_eq!(script.receive(), "started\n");
    }

    /// Returns the port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Creates an empty database and returns its name.
    pub fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let port = self.port.to_string();
        let made = Command::new(self.programs.join("createdb"))
            .args(["-h", "127.0.0.1", "-U", "omniglot", "-p", &port, &name])
            .status()
            .expect("createdb runs");
        assert!(made.success());
        name
    }

    /// Returns the URL of a database. Its password is not needed, and must appear in no output.
    pub fn url(&self, database: &str) -> String {
        postgres_url(self.port, database)
    }
}

/// Returns the URL of a database at a port, which may be the port of a proxy.
pub fn postgres_url(port: u16, database: &str) -> String {
    format!("postgres://omniglot:not-to-be-seen@127.0.0.1:{port}/{database}")
}

/// Finds the directory of the newest version's `initdb` and other programs.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let versions = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<PathBuf> = std::env::split_paths(&path)
        .chain(versions)
        .filter(|directory| {
            let mut needed = ["initdb", "postgres", "pg_isready", "createdb"].iter();
            needed.all(|program| directory.join(program).exists())
        })
        .collect();
    found.sort();
    found.pop()
}

/// Returns the user that runs the server if the tests run as root, which PostgreSQL refuses.
fn user() -> Option<&'static str> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let has = |name: &str| {
        users
            .lines()
            .any(|line| line.split(':').next() == Some(name))
    };
    Some(if has("postgres") {
        "postgres"
    } else {
        "nobody"
    })
}
