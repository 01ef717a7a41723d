//! Tries one page as its reader would: saves its configs, runs its commands, compares what they print.

use std::collections::HashMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use omniglot::config::{load, parse};
use regex::Regex;
use serde_json::Value;
use tempfile::TempDir;

use crate::blocks::{self, Block, Kind};
use crate::process::Demo;
use crate::{read, root};

/// Blocks that cannot be tried: a build, all tests, a process that runs until it is stopped, files of another machine.
const NOT_RUN: [(&str, &str); 21] = [
    ("README.md", "cargo install --path . --locked"),
    ("README.md", "omniglot run -c omniglot.yaml"),
    ("README.md", "scripts/test"),
    ("CONTRIBUTING.md", "scripts/demo"),
    ("CONTRIBUTING.md", "cargo test --lib formats::chat"),
    ("docs/benchmark.md", "cargo bench --bench gateway"),
    (
        "docs/console.md",
        "curl -sS -b cookies -H 'content-type: application/json' https://console.example.com/api/v1/accounts/research/members \\",
    ),
    ("docs/console.md", "console:"),
    ("docs/console.md", "console:"),
    (
        "docs/console.md",
        "curl -sS -c cookies -H 'content-type: application/json' https://console.example.com/api/v1/session \\",
    ),
    (
        "docs/cli.md",
        "OPENAI_API_KEY=sk-… omniglot --listen 127.0.0.1:9000",
    ),
    (
        "docs/cli.md",
        "omniglot account create ada --role admin --email ada@example.com -c omniglot.yaml",
    ),
    (
        "docs/cli.md",
        "omniglot score --print-config litellm --key sk-score > litellm.yaml",
    ),
    (
        "docs/benchmark.md",
        "cargo bench --bench gateway -- --only start,pairs",
    ),
    (
        "docs/benchmark.md",
        "cargo bench --bench receipts -- --postgres postgres://user@host/empty",
    ),
    (
        "docs/operations.md",
        "install -m 755 omniglot /usr/bin/omniglot              # a new file, not new content of the old one",
    ),
    ("docs/operations.md", "server:"),
    ("docs/installation.md", "packaging/release binary"),
    (
        "docs/installation.md",
        "sudo apt install ./dist/omniglot_0.1.0-1_amd64.deb",
    ),
    (
        "docs/installation.md",
        "podman build -f packaging/Containerfile -t omniglot .",
    ),
    (
        "docs/installation.md",
        "kubectl create secret generic omniglot-keys --from-literal=OPENAI_API_KEY=sk-… --from-literal=OMNIGLOT_KEY=…",
    ),
];

pub fn check(page: &str) {
    let blocks = blocks::of_page(&read(page));
    check_not_run(page, &blocks);
    let reader = Reader::new(&blocks);
    let mut demo = reader.demo(&blocks);
    let mut output = None;
    for block in &blocks {
        let place = format!("{page}:{}", block.line);
        match &block.kind {
            Kind::Command => output = Some(reader.run(&place, &block.text)),
            Kind::Config(name) => reader.load(&place, &block.text, name.as_deref()),
            Kind::JsonOutput => {
                let printed = output.as_deref().expect("a command before its output");
                compare_json(&place, &block.text, printed);
            }
            Kind::TextOutput => {
                let printed = output.as_deref().expect("a command before its output");
                assert_eq!(
                    without_line_ends(printed),
                    without_line_ends(&block.text),
                    "{place}"
                );
            }
            Kind::Start | Kind::NotRun | Kind::Drawing => {}
        }
    }
    if let Some(demo) = &mut demo {
        demo.stop();
    }
}

/// An example must load without a warning, and a page must name it.
pub fn check_example(example: &str) {
    let config = load(&root().join(example), &variable);
    let config = config.unwrap_or_else(|problems| panic!("{}", shown(&problems)));
    assert_eq!(config.warnings, [], "{example}");
    for page in ["README.md", "docs/quickstart.md"] {
        assert!(
            read(page).contains(example),
            "{page} does not name {example}"
        );
    }
}

fn check_not_run(page: &str, blocks: &[Block]) {
    let blocks = blocks.iter().filter(|block| block.kind == Kind::NotRun);
    let found: Vec<&str> = blocks
        .filter_map(|block| block.text.lines().next())
        .collect();
    let listed = NOT_RUN.iter().filter(|(of, _)| *of == page);
    let listed: Vec<&str> = listed.map(|(_, first)| *first).collect();
    assert_eq!(
        found, listed,
        "{page}: the blocks that are not run are listed in this test"
    );
}

/// Whoever follows a page: a folder of their own, with `omniglot` installed and the repository's configs.
struct Reader {
    folder: TempDir,
    /// Variables that the configs of the page, and those of the repository, want.
    variables: HashMap<String, String>,
}

impl Reader {
    fn new(blocks: &[Block]) -> Reader {
        let folder = tempfile::tempdir().expect("a folder");
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).expect("a folder");
        symlink(env!("CARGO_BIN_EXE_omniglot"), bin.join("omniglot")).expect("a link");
        let mut configs: Vec<String> = blocks
            .iter()
            .filter(|block| matches!(block.kind, Kind::Config(_)))
            .map(|block| block.text.clone())
            .collect();
        for (copied, below) in [("conf", "yaml"), ("examples", "yaml")] {
            std::fs::create_dir(folder.path().join(copied)).expect("a folder");
            for file in crate::files_in(copied, below) {
                let text = read(&file);
                std::fs::write(folder.path().join(&file), &text).expect("a copy");
                configs.push(text);
            }
        }
        let pattern = Regex::new(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}").expect("a pattern");
        let names = configs.iter().flat_map(|text| {
            let found = pattern.captures_iter(text);
            found.map(|found| found[1].to_owned()).collect::<Vec<_>>()
        });
        let variables = names.filter_map(|name| Some((name.clone(), variable(&name)?)));
        let variables = variables.collect();
        Reader { folder, variables }
    }

    /// The gateway that the page's commands talk to, where they do.
    fn demo(&self, blocks: &[Block]) -> Option<Demo> {
        let calls = |block: &Block| {
            block.kind == Kind::Command && block.text.contains("http://127.0.0.1:808")
        };
        if !blocks.iter().any(calls) {
            return None;
        }
        let started = blocks.iter().find(|block| block.kind == Kind::Start);
        let script = started.map(|block| root().join(&block.text));
        // A folder without conf/omniglot.yaml, which would be taken for the config.
        let folder = self.folder.path().join("bin");
        Some(Demo::start(script.as_deref(), &folder))
    }

    /// What the commands print; they must succeed and print something.
    fn run(&self, place: &str, commands: &str) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.folder.path().join("bin");
        let output = Command::new("sh")
            .args(["-ec", commands])
            .current_dir(self.folder.path())
            .env("PATH", format!("{}:{path}", bin.display()))
            .env("no_proxy", "127.0.0.1")
            .env_remove("RUST_LOG")
            .envs(&self.variables)
            .output()
            .expect("sh runs");
        let works = output.status.success() && !output.stdout.is_empty();
        assert!(works, "{place}: {commands}\n{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// A block of YAML must be a config without problems.
    fn load(&self, place: &str, text: &str, name: Option<&str>) {
        let parsed = parse(place, text, &variable);
        parsed.unwrap_or_else(|problems| panic!("{}", shown(&problems)));
        if let Some(name) = name {
            let path: PathBuf = Path::new(self.folder.path()).join(name);
            std::fs::write(path, text).expect("a file");
        }
    }
}

/// A value for every variable: different ones, since no two keys may be the same.
fn variable(name: &str) -> Option<String> {
    Some(match name {
        "OMNIGLOT_DEMO_MOCK" => "127.0.0.1:9".to_owned(),
        name if name.contains("STORE") || name.ends_with("_URL") => return None,
        name => format!("value-of-{name}"),
    })
}

fn shown(problems: &[omniglot::config::Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Header lines end in a carriage return.
fn without_line_ends(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(str::trim_end).collect()
}

#[track_caller]
fn compare_json(place: &str, shown: &str, printed: &str) {
    let shown: Value = serde_json::from_str(shown).expect("JSON in the page");
    let printed: Value = serde_json::from_str(printed).expect("JSON from the command");
    if let Err(path) = is_part_of(&shown, &printed) {
        panic!("{place}: {path} is not as shown in {printed:#}");
    }
}

/// Whether all that a page shows is in what was printed; `…` stands for any string.
fn is_part_of(shown: &Value, printed: &Value) -> Result<(), String> {
    match (shown, printed) {
        (Value::Object(shown), Value::Object(printed)) => {
            for (name, value) in shown {
                let there = printed.get(name).unwrap_or(&Value::Null);
                is_part_of(value, there).map_err(|path| format!(".{name}{path}"))?;
            }
            Ok(())
        }
        (Value::Array(shown), Value::Array(printed)) if shown.len() == printed.len() => {
            for (at, (value, there)) in shown.iter().zip(printed).enumerate() {
                is_part_of(value, there).map_err(|path| format!("[{at}]{path}"))?;
            }
            Ok(())
        }
        (Value::String(any), Value::String(_)) if any == "…" => Ok(()),
        _ if shown == printed => Ok(()),
        _ => Err(String::new()),
    }
}
