//! The page about operations lists the metrics and the fields of the access log that the program has.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use regex::Regex;
use serde_json::Value;

use crate::process::{Process, TIMEOUT, free_address, is_open, omniglot, until};
use crate::read;

const PAGE: &str = "docs/operations.md";

/// A key of the form that is looked up in the store.
const UNKNOWN_KEY: &str = "sk-omniglot-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// Lets every metric have a value, and compares their names, and the fields of a log line, with the page.
pub fn check() {
    let folder = tempfile::tempdir().expect("a folder");
    let (public, admin, mock) = (free_address(), free_address(), free_address());
    let mut command = omniglot();
    let command = command.args(["mock", "--listen", &mock.to_string()]);
    let _mock = Process::start(command, folder.path().join("mock.log"));
    let config = folder.path().join("omniglot.yaml");
    let nowhere = free_address();
    let text = format!(
        "
server: {{listen: '{public}', admin: '{admin}', access_log: json}}
store: sqlite:{folder}/omniglot.db
limits_store: redis://{nowhere}/0
journal: {{path: {folder}/journal}}
console: {{listen: '{console}'}}
telemetry: {{endpoint: 'http://{nowhere}'}}
keys: [{{name: test, secret: test-key, spending_cap: 100, limits: {{concurrency: 8}}}}]
upstreams:
  - {{name: mock, format: chat, base_url: 'http://{mock}/v1', health: {{path: /models}}, discover: on}}
  - {{name: away, format: chat, base_url: 'http://{nowhere}/v1'}}
models:
  - id: both
    pricing: {{input: 1, output: 1, per_second: 1}}
    upstreams: [{{name: away}}, {{name: mock, priority: 1}}]
",
        folder = folder.path().display(),
        console = free_address()
    );
    std::fs::write(&config, text).expect("a config");
    let mut command = omniglot();
    let command = command.args([Path::new("run"), Path::new("-c"), &config]);
    let log = folder.path().join("gateway.log");
    let mut gateway = Process::start(command, log);
    until(TIMEOUT, "gateway and mock listen", || {
        assert!(!gateway.has_ended(), "{}", gateway.output());
        is_open(public) && is_open(mock) && is_open(admin)
    });

    let url = format!("http://{public}/v1/chat/completions");
    let ask = |key: &str, text: &str, stream: bool| {
        let body = format!(
            r#"{{"model": "both", "stream": {stream}, "messages": [{{"role": "user", "content": "{text}"}}]}}"#
        );
        curl(&[
            "-H",
            &format!("authorization: Bearer {key}"),
            "-d",
            &body,
            &url,
        ])
    };
    ask("test-key", "Hello", false);
    ask("test-key", "Hello mock:events=9 mock:cut=5", true);
    ask(UNKNOWN_KEY, "Hello", false);
    gateway.signal(Signal::SIGHUP);

    let described = described();
    check_dashboards(&described);
    let url = format!("http://{admin}/metrics");
    let mut shown = BTreeSet::new();
    // Some appear only after a moment: a health check, a reload, a copied usage record.
    let end = std::time::Instant::now() + TIMEOUT;
    while shown != described && std::time::Instant::now() < end {
        shown = names(&curl(&[&url]));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let missing: Vec<_> = shown.difference(&described).collect();
    assert!(missing.is_empty(), "{PAGE} does not describe {missing:?}");
    let extra: Vec<_> = described.difference(&shown).collect();
    assert!(
        extra.is_empty(),
        "{PAGE} describes {extra:?}, which are not there"
    );
    gateway.stop();
    check_log_fields(&gateway.output());
}

fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["-sS", "-H", "content-type: application/json"])
        .args(arguments)
        .env("no_proxy", "127.0.0.1")
        .output();
    String::from_utf8(output.expect("curl runs").stdout).expect("text")
}

/// The names of a scrape; those of a histogram once.
fn names(scrape: &str) -> BTreeSet<String> {
    let types = scrape
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .filter_map(|line| {
            let (name, kind) = line.split_once(' ')?;
            Some(match kind {
                "counter" => format!("{name}_total"),
                "info" => format!("{name}_info"),
                _ => name.to_owned(),
            })
        })
        .collect()
}

/// The dashboard and the alert rules name metrics that are there.
fn check_dashboards(described: &BTreeSet<String>) {
    let pattern = Regex::new(r"omniglot_[a-z_]+").expect("a pattern");
    for file in [
        "packaging/grafana/omniglot.json",
        "packaging/prometheus/alerts.yaml",
    ] {
        let text = read(file);
        let names: BTreeSet<&str> = pattern
            .find_iter(&text)
            .map(|found| found.as_str())
            .collect();
        assert!(names.len() > 5, "{file} names {names:?}");
        for name in names {
            let name = name.strip_suffix("_bucket").unwrap_or(name);
            assert!(
                described.contains(name),
                "{file} names {name}, which is no metric"
            );
        }
    }
    let dashboard: Value =
        serde_json::from_str(&read("packaging/grafana/omniglot.json")).expect("JSON");
    assert_eq!(dashboard["title"], "Omniglot");
}

fn described() -> BTreeSet<String> {
    let pattern = Regex::new(r"(?m)^\| `(omniglot_[a-z_]+)` \|").expect("a pattern");
    let page = read(PAGE);
    let found = pattern.captures_iter(&page);
    found.map(|found| found[1].to_owned()).collect()
}

/// The table under "Access log" has every field of a line, and no other.
fn check_log_fields(output: &str) {
    let line = output.lines().find(|line| line.starts_with('{'));
    let line: Value = serde_json::from_str(line.expect("a line")).expect("JSON");
    let logged: BTreeSet<&str> = line
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    let page = read(PAGE);
    let (_, section) = page.split_once("## Access log").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("the next section");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let described: BTreeSet<&str> = cells
        .flat_map(|cell| cell.split(','))
        .map(|name| name.trim().trim_matches('`'))
        .collect();
    assert_eq!(logged, described, "{PAGE}");
}
