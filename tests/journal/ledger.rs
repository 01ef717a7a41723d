//! Books for tests, and a gateway that keeps them: a process of its own, which can be killed.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use nix::sys::resource::{Resource, setrlimit};
use omniglot::app::{self, Start};
use omniglot::config;
use omniglot::journal::{Books, Carrier, Journal};
use omniglot::model::Receipt;

use crate::stage::{FORMATS, KEY, Mock, Process, Stderr, free_address};

/// The config of the gateway that this process is to be.
const CONFIG: &str = "JOURNAL_TEST_CONFIG";
/// The file that its books are; absent: they are closed.
const BOOKS: &str = "JOURNAL_TEST_BOOKS";
/// The longest file that it may write.
const LONGEST_FILE: &str = "JOURNAL_TEST_LONGEST_FILE";

pub const ROOM: u64 = 1 << 30;

/// Books that are never well.
struct Closed;

#[async_trait]
impl Books for Closed {
    async fn record(&self, _: &[Receipt]) -> Result<usize, String> {
        Err("closed".to_owned())
    }
}

/// A line for every receipt that was not there before.
struct FileBooks(PathBuf);

#[async_trait]
impl Books for FileBooks {
    async fn record(&self, receipts: &[Receipt]) -> Result<usize, String> {
        let known = entries(&self.0);
        let is_new = |receipt: &&Receipt| known.iter().all(|entry| entry.id != receipt.id);
        let new: Vec<&Receipt> = receipts.iter().filter(is_new).collect();
        let lines: Vec<String> = new.iter().map(|receipt| Entry::line(receipt)).collect();
        let mut options = OpenOptions::new();
        let mut file = options.append(true).create(true).open(&self.0);
        let file = file.as_mut().map_err(|error| error.to_string())?;
        let written = file.write_all(lines.concat().as_bytes());
        written.map_err(|error| error.to_string())?;
        Ok(new.len())
    }
}

/// What the tests want to know of a receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: String,
    pub status: u16,
    pub estimated: bool,
    pub output: u64,
    pub cost: String,
}

impl Entry {
    fn line(receipt: &Receipt) -> String {
        let Receipt {
            id,
            status,
            estimated,
            usage,
            cost,
            ..
        } = receipt;
        format!("{id} {status} {estimated} {} {cost}\n", usage.output)
    }
}

/// What is in books that are a file.
pub fn entries(file: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let entry = |line: &str| {
        let fields: Vec<&str> = line.split(' ').collect();
        Entry {
            id: fields[0].to_owned(),
            status: fields[1].parse().expect("a status"),
            estimated: fields[2].parse().expect("yes or no"),
            output: fields[3].parse().expect("a count"),
            cost: fields[4].to_owned(),
        }
    };
    text.lines().map(entry).collect()
}

/// Every line of a journal that nobody uses any more.
pub async fn left_in(folder: &Path) -> Vec<Receipt> {
    struct Everything(Mutex<Vec<Receipt>>);
    #[async_trait]
    impl Books for Everything {
        async fn record(&self, receipts: &[Receipt]) -> Result<usize, String> {
            let mut all = self.0.lock().expect("no panic");
            all.extend_from_slice(receipts);
            Ok(receipts.len())
        }
    }
    let journal = Arc::new(Journal::open(folder, ROOM).expect("a journal"));
    let books = Arc::new(Everything(Mutex::default()));
    let mut carrier = Carrier::new(journal.clone(), books.clone());
    while carrier.step().await.expect("these books take all") > 0 {}
    assert_eq!(journal.standing().damaged, 0);
    std::mem::take(&mut *books.0.lock().expect("no panic"))
}

/// No test: what the others start as a process.
#[test]
#[ignore = "serves until it is ended"]
fn gateway() {
    let variable = |name| std::env::var(name).ok();
    let file = PathBuf::from(variable(CONFIG).expect("the tests beside this one start it"));
    if let Some(longest) = variable(LONGEST_FILE) {
        let longest = longest.parse().expect("a count of bytes");
        setrlimit(Resource::RLIMIT_FSIZE, longest, longest).expect("a lower limit");
    }
    let books: Arc<dyn Books> = match variable(BOOKS) {
        Some(books) => Arc::new(FileBooks(books.into())),
        None => Arc::new(Closed),
    };
    let config = config::load(&file, &config::process_env).expect("a good config");
    app::run(Start {
        config,
        file: None,
        mock: None,
        books: Some(books),
        greeting: "ready".to_owned(),
    })
    .expect("it runs");
}

pub struct Gateway {
    pub process: Process,
    pub address: SocketAddr,
    pub admin: SocketAddr,
    _directory: tempfile::TempDir,
}

#[derive(Default)]
pub struct Options<'a> {
    pub books: Option<&'a Path>,
    pub longest_file: Option<u64>,
    pub stderr: Option<&'a Stderr>,
}

impl Gateway {
    pub fn start(upstreams: &[Upstream], journal: &Path, options: &Options<'_>) -> Gateway {
        let gateway = Gateway::begin(upstreams, journal, options);
        gateway.process.line_with("ready");
        gateway
    }

    /// The same without waiting for it to be ready.
    pub fn begin(upstreams: &[Upstream], journal: &Path, options: &Options<'_>) -> Gateway {
        let (address, admin) = (free_address(), free_address());
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("gateway.yaml");
        let text = settings(upstreams, journal, address, admin);
        fs::write(&file, text).expect("a config");
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["ledger::gateway", "--exact", "--ignored", "--nocapture"]);
        command.env(CONFIG, file);
        if let Some(books) = options.books {
            command.env(BOOKS, books);
        }
        if let Some(longest) = options.longest_file {
            command.env(LONGEST_FILE, longest.to_string());
        }
        if let Some(stderr) = options.stderr {
            stderr.attach(&mut command);
        }
        Gateway {
            process: Process::start(&mut command),
            address,
            admin,
            _directory: directory,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Asks it to leave, and waits until it has.
    pub fn leave(mut self) {
        self.process.signal("TERM");
        assert_eq!(self.process.wait().code(), Some(0));
    }

    /// The value of a metric without labels.
    pub async fn metric(&self, name: &str) -> Option<f64> {
        let url = format!("http://{}/metrics", self.admin);
        let scrape = crate::asking::client().get(url).send().await;
        let text = scrape.expect("an answer").text().await.expect("a body");
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let (_, value) = lines.find(|(found, _)| *found == name)?;
        Some(value.parse().expect("a number"))
    }
}

/// A format, and where it is spoken.
pub type Upstream = (&'static str, String);

/// Every format at a mock.
pub fn upstreams(mock: &Mock) -> Vec<Upstream> {
    let upstreams = FORMATS.map(|(format, prefix)| (format, mock.url(prefix)));
    upstreams.into()
}

fn settings(
    upstreams: &[Upstream],
    journal: &Path,
    address: SocketAddr,
    admin: SocketAddr,
) -> String {
    let mut text = format!(
        "server: {{listen: \"{address}\", admin: \"{admin}\"}}\n\
         journal: {{path: {journal:?}}}\n\
         keys: [{{name: all, secret: {KEY}}}]\nupstreams:\n"
    );
    for (format, base) in upstreams {
        text += &format!("  - {{name: {format}, format: {format}, base_url: \"{base}\"}}\n");
    }
    text += "models:\n";
    for (format, _) in upstreams {
        text += &format!(
            "  - {{id: priced-{format}, pricing: {{input: 1.25, output: 10}}, upstreams: [{{name: {format}}}]}}\n"
        );
    }
    text
}
