//! The rules of the architecture: which module imports which, where a crate is named, how a source file opens.

use std::fs;
use std::path::Path;

/// A module imports from floors below its own and from itself, never sideways.
const FLOORS: [(u8, &[&str]); 9] = [
    (0, &["model"]),
    (1, &["json"]),
    (2, &["sse", "event_stream"]),
    (3, &["formats"]),
    (4, &["translate", "config"]),
    (5, &["runtime", "store", "journal", "catalog", "metrics"]),
    (6, &["access", "credentials", "telemetry"]),
    (7, &["proxy", "images", "mock", "score", "admin", "console"]),
    (8, &["server", "cli", "main"]),
];

/// Who imports whom all the same.
const EXCEPTIONS: [(&str, &str); 2] = [
    // Image requests are handed over.
    ("proxy", "images"),
    // The command line starts what it has read the arguments of.
    ("cli", "server"),
];

/// Crates that are known in one place only, so that they can be replaced there.
const CRATES: [(&str, &[&str]); 25] = [
    ("pingora", &["server/"]),
    ("pingora_core", &["proxy/", "server/"]),
    ("pingora_http", &["proxy/", "server/"]),
    ("pingora_proxy", &["proxy/"]),
    ("pingora_timeout", &["proxy/", "server/"]),
    (
        "axum",
        &["admin.rs", "console/", "mock/", "score/", "server/"],
    ),
    ("axum_extra", &["console/"]),
    ("askama", &["console/"]),
    ("argon2", &["console/passwords.rs"]),
    ("jsonwebtoken", &["console/identity/"]),
    ("lettre", &["console/mail/"]),
    ("qrcode", &["console/totp.rs"]),
    ("totp_rs", &["console/totp.rs"]),
    (
        "tower_http",
        &["console/security.rs", "server/web_service.rs"],
    ),
    ("utoipa", &["console/"]),
    ("serde_saphyr", &["config/tree.rs"]),
    ("hickory_resolver", &["runtime/resolver.rs"]),
    ("prometheus_client", &["metrics/"]),
    ("clap", &["cli/"]),
    ("anyhow", &["server/", "cli/"]),
    ("env_logger", &["cli/"]),
    ("sqlx", &["store/"]),
    ("redis", &["access/shared_limits/"]),
    ("tokio_rustls", &["credentials/", "server/"]),
    ("prost", &["telemetry/"]),
];

/// Names that say nothing.
const EMPTY_NAMES: [&str; 7] = [
    "utils", "helpers", "common", "types", "manager", "service", "handler",
];

pub struct Source {
    /// Below src, as in `proxy/mod.rs`.
    pub path: String,
    text: String,
}

pub fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut waiting = vec![root.clone()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(&root).expect("it is below src");
                found.push(Source {
                    path: below.to_str().expect("text").to_owned(),
                    text: fs::read_to_string(&path).expect("text"),
                });
            }
        }
    }
    assert!(found.len() > 50, "the sources were found");
    found
}

impl Source {
    /// `proxy` of `proxy/mod.rs`, `admin` of `admin.rs`.
    fn module(&self) -> &str {
        let first = self.path.split('/').next().expect("a first part");
        first.trim_end_matches(".rs")
    }

    /// Each line of code with its number; comments are none.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
            .map(|(number, line)| (number, line.split(" // ").next().unwrap_or(line)))
    }

    /// The code that is not compiled for tests alone.
    pub fn shipped_code(&self) -> impl Iterator<Item = (usize, &str)> {
        let length = self.shipped_length();
        self.code().take_while(move |(number, _)| *number <= length)
    }

    /// How many lines it has before its tests, comments included.
    pub fn shipped_length(&self) -> usize {
        let is_test = self.path.contains("/tests/") || self.path.ends_with("/tests.rs");
        match is_test {
            true => 0,
            false => self
                .text
                .lines()
                .count()
                .min(self.first_line_of_tests() - 1),
        }
    }

    /// Tests stand at the end of a file.
    fn first_line_of_tests(&self) -> usize {
        let lines: Vec<&str> = self.text.lines().collect();
        let module = lines
            .windows(2)
            .position(|pair| pair[0] == "#[cfg(test)]" && pair[1].ends_with('{'));
        let Some(at) = module else {
            return usize::MAX;
        };
        let end = lines[at..].iter().position(|line| *line == "}");
        let end = at + end.expect("the end of the tests");
        assert_eq!(end + 1, lines.len(), "{}: tests are its end", self.path);
        at + 1
    }
}

fn floor(module: &str) -> Option<u8> {
    FLOORS
        .iter()
        .find(|(_, modules)| modules.contains(&module))
        .map(|(floor, _)| *floor)
}

/// The words after every `name::` in a line.
fn named_after<'l>(line: &'l str, name: &str) -> Vec<&'l str> {
    let mark = format!("{name}::");
    line.match_indices(&mark)
        .filter(|(at, _)| !line[..*at].ends_with(is_part_of_a_name))
        .map(|(at, _)| {
            let rest = &line[at + mark.len()..];
            rest.split(|letter| !is_part_of_a_name(letter))
                .next()
                .unwrap_or_default()
        })
        .collect()
}

fn is_part_of_a_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == ':'
}

#[test]
fn modules_import_only_from_lower_floors() {
    let mut breaches = Vec::new();
    for source in sources() {
        let module = source.module();
        if module == "lib" {
            continue;
        }
        let own = floor(module).unwrap_or_else(|| panic!("{module} has no floor"));
        for (number, line) in source.shipped_code() {
            for imported in named_after(line, "crate") {
                let imported = imported.split("::").next().unwrap_or_default();
                let Some(theirs) = floor(imported) else {
                    let place = format!("src/{}:{number}", source.path);
                    panic!("{place}: write crate::MODULE::…, a module of the table: {line}");
                };
                let allowed =
                    imported == module || theirs < own || EXCEPTIONS.contains(&(module, imported));
                if !allowed {
                    breaches.push(format!("src/{}:{number}: {line}", source.path));
                }
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn every_module_has_its_floor() {
    let modules = sources();
    let mut modules: Vec<&str> = modules.iter().map(Source::module).collect();
    modules.sort_unstable();
    modules.dedup();
    modules.retain(|module| *module != "lib");
    let mut named: Vec<&str> = FLOORS
        .iter()
        .flat_map(|(_, names)| *names)
        .copied()
        .collect();
    named.sort_unstable();
    assert_eq!(modules, named);
}

#[test]
fn crates_are_used_only_in_their_modules() {
    let mut breaches = Vec::new();
    for source in sources() {
        for (name, places) in CRATES {
            if places.iter().any(|place| source.path.starts_with(place)) {
                continue;
            }
            for (number, line) in source.code() {
                let used = !named_after(line, name).is_empty()
                    || line.contains(&format!("use {name};"))
                    || line.contains(&format!("use {name} as"));
                if used {
                    breaches.push(format!("src/{}:{number}: {line}", source.path));
                }
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn every_file_has_a_module_comment_and_a_meaningful_name() {
    for source in sources() {
        let path = &source.path;
        assert!(
            source.text.starts_with("//! "),
            "src/{path} has no //! line"
        );
        for part in path.split('/') {
            let name = part.trim_end_matches(".rs");
            assert!(!EMPTY_NAMES.contains(&name), "src/{path}: {name}");
        }
    }
}

#[test]
fn no_unwrap_outside_of_tests() {
    let mut breaches = Vec::new();
    for source in sources() {
        for (number, line) in source.shipped_code() {
            if line.contains(".unwrap()") || line.contains("::unwrap)") {
                breaches.push(format!("src/{}:{number}: {line}", source.path));
            }
        }
    }
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}
