//! A Redis of the tests' own, on a free port of this machine.

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

const PATIENCE: Duration = Duration::from_secs(30);

pub struct Redis {
    /// Its stdin is open as long as this is there.
    _guard: Child,
    port: u16,
}

impl Redis {
    /// The one of this test binary; `None`, and told so, where Redis is not installed.
    pub fn shared() -> Option<&'static Redis> {
        static SHARED: OnceLock<Option<Redis>> = OnceLock::new();
        SHARED.get_or_init(Redis::start).as_ref()
    }

    fn start() -> Option<Redis> {
        let found = Command::new("redis-server").arg("--version").output();
        if found.is_err() {
            // Past the capture of the test's output: a test that did not run is told.
            let note = "Redis is not installed: its tests are skipped\n";
            let _ = std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes());
            return None;
        }
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(started) = Redis::try_start() {
                return Some(started);
            }
            // Somebody else may have taken the port.
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
        let mut said = String::new();
        let mut stdout = BufReader::new(guard.stdout.take().expect("stdout is piped"));
        stdout.read_line(&mut said).expect("text");
        (said == "ready\n").then_some(Redis {
            _guard: guard,
            port,
        })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The number of a database that nobody else has.
    pub fn database(&self) -> u16 {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}
