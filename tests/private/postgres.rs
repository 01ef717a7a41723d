//! A PostgreSQL of the tests' own, on a free port of this machine and in a directory of its own.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Stops and starts the server when told so, ends it and takes its files away when stdin is closed,
/// so that nothing is left behind however the tests end. Nothing in it need outlive the machine.
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

const PATIENCE: Duration = Duration::from_secs(60);

pub struct Postgres {
    /// It ends with this: its stdin is closed then.
    guard: Mutex<Guard>,
    programs: PathBuf,
    port: u16,
}

struct Guard {
    _process: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Guard {
    fn tell(&mut self, word: &str) {
        writeln!(self.stdin, "{word}").expect("it listens");
    }

    fn hear(&mut self) -> String {
        let mut said = String::new();
        self.stdout.read_line(&mut said).expect("text");
        said
    }
}

impl Postgres {
    /// The one of this test binary; `None`, and told so, where PostgreSQL is not installed.
    pub fn shared() -> Option<&'static Postgres> {
        static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
        SHARED.get_or_init(Postgres::start).as_ref()
    }

    /// One that nobody else uses, and that can be stopped.
    pub fn start() -> Option<Postgres> {
        let Some(programs) = programs() else {
            // Past the capture of the test's output: a test that did not run is told.
            let note = "PostgreSQL is not installed: its tests are skipped\n";
            let _ = std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes());
            return None;
        };
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(started) = Postgres::try_start(&programs) {
                return Some(started);
            }
            // Somebody else may have taken the port.
            assert!(Instant::now() < until, "PostgreSQL does not start");
        }
    }

    fn try_start(programs: &Path) -> Option<Postgres> {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let directory = tempfile::tempdir().expect("a directory").keep();
        let mut command = match user() {
            // It does not run as root.
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
        let mut guard = Guard {
            stdin: process.stdin.take().expect("stdin is piped"),
            stdout: BufReader::new(process.stdout.take().expect("stdout is piped")),
            _process: process,
        };
        (guard.hear() == "started\n").then_some(Postgres {
            guard: Mutex::new(guard),
            programs: programs.to_owned(),
            port,
        })
    }

    /// It ends its connections, and what was committed stays.
    pub fn stop(&self) {
        let mut guard = self.guard.lock().expect("no panic");
        guard.tell("stop");
        assert_eq!(guard.hear(), "stopped\n");
    }

    pub fn start_again(&self) {
        let mut guard = self.guard.lock().expect("no panic");
        guard.tell("start");
        assert_eq!(guard.hear(), "started\n");
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// A new, empty database, by its name.
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

    /// Where a database is. The password is none, and should be seen nowhere.
    pub fn url(&self, database: &str) -> String {
        url(self.port, database)
    }
}

pub fn url(port: u16, database: &str) -> String {
    format!("postgres://omniglot:not-to-be-seen@127.0.0.1:{port}/{database}")
}

/// Where `initdb` and its like are: the newest that there is.
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

/// Whom it runs as where the tests run as root.
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
