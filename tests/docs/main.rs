//! Holds the documents true: every command, config and output in them is tried, and what they list is complete.
//!
//! Each page is a test of its own: `cargo test --test docs quickstart` tries one page.

mod blocks;
mod command_line;
mod config_keys;
mod links;
mod metrics;
mod modules;
mod page;
mod process;
mod providers;
mod schema;
mod settings_table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

/// Files at the root of the repository that are documents too.
const ROOT_PAGES: [&str; 4] = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for page in pages() {
        trials.push(trial(format!("page {page}"), move || page::check(&page)));
    }
    for example in files_in("examples", "yaml") {
        let name = format!("example {example}");
        trials.push(trial(name, move || page::check_example(&example)));
    }
    let complete: [(&str, fn()); 9] = [
        ("links resolve", links::check),
        ("every page is in the index", links::check_index),
        ("every key of the config is described", config_keys::check),
        ("every command and flag is described", command_line::check),
        ("every preset of a provider is described", providers::check),
        ("every metric and log field is described", metrics::check),
        ("every module is described", modules::check),
        ("the schema takes every config", schema::check),
        (
            "the table of settings is that of the code",
            settings_table::check,
        ),
    ];
    for (name, check) in complete {
        trials.push(trial(name.to_owned(), check));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(name: String, check: impl FnOnce() + Send + 'static) -> Trial {
    Trial::test(name, move || {
        check();
        Ok::<(), Failed>(())
    })
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every document, as a path below the root of the repository.
fn pages() -> Vec<String> {
    let root_pages = ROOT_PAGES.into_iter().map(str::to_owned);
    root_pages.chain(files_in("docs", "md")).collect()
}

fn files_in(folder: &str, extension: &str) -> Vec<String> {
    let entries = std::fs::read_dir(root().join(folder)).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let named = paths.filter(|path| path.extension().is_some_and(|end| end == extension));
    let mut files: Vec<String> = named
        .filter_map(|path| Some(format!("{folder}/{}", path.file_name()?.to_str()?)))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{folder} has no .{extension} file");
    files
}

fn read(path: &str) -> String {
    let path: PathBuf = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
