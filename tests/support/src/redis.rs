//! A Redis server for tests, on a free port of this machine.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Ends the server when stdin is closed, so that nothing is left behind however the tests end.
const SCRIPT: &str = r#"
trap 'kill $server 2>/dev/null; wait $server; rm -rf "$2"' EXIT
trap 'exit 1' HUP INT TERM
redis-server --port "$1" --bind 127.0.0.1 --dir "$2" --save '' --appendonly no --databases 64 \
  </dev/null >"$2/redis.log" 2>&1 &
server=$!
waited=0
until grep -q 'Ready to accept connections' "$2/redis.log"; do
  kill -0 $server && [ $((waited += 1)) -lt 1000 ] || exit 1
  sleep 0.02
done
echo ready
cat >/dev/null
"#;

const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running Redis server.
pub struct Redis {
    /// The script, which ends the server when its stdin is closed.
    _guard: Child,
    port: u16,
}

impl Redis {
    /// Returns the server that all tests of a binary share.
    ///
    /// # Panics
    ///
    /// Panics if Redis is not installed: tests that need it are ignored by default.
    pub fn shared() -> &'static Redis {
        static SHARED: OnceLock<Redis> = OnceLock::new();
        SHARED.get_or_init(Redis::start)
    }

    fn start() -> Redis {
        let version = Command::new("redis-server").arg("--version").output();
        assert!(
            version.is_ok(),
            "this test needs Redis, which is not installed: scripts/databases installs it"
        );
        let until = Instant::now() + START_TIMEOUT;
        loop {
            if let Some(started) = Redis::try_start() {
                return started;
            }
            // Another process may have taken the port.
            assert!(Instant::now() < until, "Redis does not start");
        }
    }

    fn try_start() -> Option<Redis> {
        let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("its address").port();
        drop(free);
        let directory = tempfile::tempdir().expect("a directory").keep();
        let mut guard = Command::new("sh")
            .args(["-c", SCRIPT, "sh", &port.to_string()])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh runs");
        let mut line = String::new();
        let mut stdout = BufReader::new(guard.stdout.take().expect("stdout is piped"));
        stdout.read_line(&mut line).expect("text");
        (line == "ready\n").then_some(Redis {
            _guard: guard,
            port,
        })
    }

    /// Returns the port of the server.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the number of a database that no other test uses.
    pub fn database(&self) -> u16 {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}
