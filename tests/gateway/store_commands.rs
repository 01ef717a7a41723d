//! The commands on the store: `key` and `usage`, without a gateway.

use std::process::{Command, Output, Stdio};

use omniglot_test_support::omniglot;
use serde_json::Value;

/// A config that a gateway cannot run with: its variables are not set here, and one of its settings is unknown.
const CONFIG: &str = "
server: {listen: \"${UNSET_ADDRESS}\", unknown: 1}
store: \"sqlite:STORE\"
keys:
  - {name: fixed, secret: \"${UNSET_SECRET}\", spending_cap: 7.50, reset: daily, models: [\"a-*\"]}
upstreams:
  - {name: acme, format: chat, base_url: \"${UNSET_URL}\"}
";

struct StoreCommands {
    folder: tempfile::TempDir,
}

impl StoreCommands {
    fn new() -> StoreCommands {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("store.db");
        let config = CONFIG.replace("STORE", &store.display().to_string());
        std::fs::write(folder.path().join("config.yaml"), config).expect("written");
        StoreCommands { folder }
    }

    fn file(&self) -> String {
        self.folder.path().join("config.yaml").display().to_string()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = omniglot();
        command.args(arguments).args(["-c", &self.file()]);
        command
    }

    #[track_caller]
    fn succeeds(&self, arguments: &[&str]) -> String {
        succeeds(&mut self.command(arguments))
    }

    #[track_caller]
    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.succeeds(arguments)).expect("JSON")
    }

    #[track_caller]
    fn fails(&self, arguments: &[&str], code: i32) -> String {
        let output = self.command(arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        String::from_utf8(output.stderr).expect("text")
    }
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("it runs");
    let stderr = String::from_utf8(stderr).expect("text");
    assert!(status.success(), "{command:?}: {stderr}");
    assert_eq!(stderr, "", "{command:?}");
    String::from_utf8(stdout).expect("text")
}

#[test]
fn only_the_part_about_the_store_is_read() {
    let commands = StoreCommands::new();
    assert!(commands.succeeds(&["key", "create", "dev"]).contains("sk-"));
    assert!(commands.succeeds(&["key", "list"]).contains("dev"));
    assert!(commands.succeeds(&["usage"]).contains("requests"));
    let broken = commands.folder.path().join("config.yaml");
    std::fs::write(broken, "store: nonsense\nserver: 1\n").expect("written");
    let stderr = commands.fails(&["key", "list"], 2);
    assert!(
        stderr.contains("config.yaml:1:8: store must be"),
        "{stderr}"
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn the_config_may_be_named_before_or_after_the_subcommand() {
    let commands = StoreCommands::new();
    let file = commands.file();
    for arguments in [
        ["-c", &file, "key", "list"],
        ["key", "-c", &file, "list"],
        ["key", "list", "-c", &file],
        ["--config", &file, "key", "list"],
    ] {
        let listed = succeeds(omniglot().args(arguments));
        assert!(listed.contains("fixed"), "{arguments:?}: {listed}");
    }
    for verb in ["translate", "mock"] {
        let output = omniglot().args(["-c", &file, verb]).output();
        let output = output.expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{verb}");
    }
}

#[test]
fn a_key_is_created_as_json_and_listed_beside_those_of_the_config() {
    let commands = StoreCommands::new();
    let create = ["key", "create", "dev", "--cap", "1.50", "--json"];
    let created = commands.json(&create);
    let secret = created["secret"].as_str().expect("a secret");
    assert!(secret.starts_with("sk-omniglot-"), "{created}");
    assert_eq!(created["name"], "dev");
    assert_eq!(created["spending_cap"], 1.5);
    assert_eq!(created["spent"], 0);
    let listed = commands.json(&["key", "list", "--json"]);
    assert_eq!(listed[0]["name"], "dev");
    assert_eq!(listed[0]["source"], "store");
    assert_eq!(listed[0]["spending_cap"], 1.5);
    assert_eq!(listed[0].get("secret"), None);
    assert_eq!(listed[1]["name"], "fixed");
    assert_eq!(listed[1]["source"], "config");
    assert_eq!(listed[1]["spending_cap"], 7.5);
    assert_eq!(listed[1]["reset"], "daily");
    assert_eq!(listed[1]["models"], serde_json::json!(["a-*"]));
    assert_eq!(listed[1]["prefix"], Value::Null);
    let table = commands.succeeds(&["key", "list"]);
    let row = table.lines().find(|line| line.contains("fixed"));
    assert!(row.is_some_and(|row| row.contains("(config)")), "{table}");
}

#[test]
fn a_key_without_a_cap_has_no_reset() {
    let commands = StoreCommands::new();
    commands.succeeds(&["key", "create", "dev", "--cap", "5", "--reset", "monthly"]);
    commands.succeeds(&["key", "set", "dev", "--cap", "unlimited"]);
    let listed = commands.json(&["key", "list", "--json"]);
    assert_eq!(listed[0]["spending_cap"], Value::Null);
    assert_eq!(listed[0]["reset"], "none");
    for arguments in [
        &["key", "set", "dev", "--reset", "daily"][..],
        &[
            "key",
            "set",
            "dev",
            "--cap",
            "unlimited",
            "--reset",
            "daily",
        ],
        &["key", "create", "two", "--reset", "daily"],
    ] {
        let stderr = commands.fails(arguments, 1);
        assert!(stderr.contains("--cap"), "{stderr}");
    }
    commands.succeeds(&["key", "set", "dev", "--cap", "5", "--reset", "daily"]);
    commands.succeeds(&["key", "set", "dev", "--reset", "monthly"]);
    assert_eq!(
        commands.json(&["key", "list", "--json"])[0]["reset"],
        "monthly"
    );
}

/// Output that cannot be written is a failure, and says so. A secret that was not shown is lost.
#[test]
fn output_that_cannot_be_written_fails_the_command() {
    let commands = StoreCommands::new();
    for arguments in [
        &["key", "create", "dev"][..],
        &["key", "create", "other", "--json"],
        &["key", "list"],
        &["key", "list", "--json"],
        &["key", "set", "dev", "--rpm", "5"],
        &["usage"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let full = commands
            .command(arguments)
            .stdout(full.expect("Linux has it"))
            .output();
        assert_not_written(arguments, &full.expect("it runs"));
    }
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let closed = commands.command(&["usage"]).stdout(writer).output();
    assert_not_written(&["usage"], &closed.expect("it runs"));
    let lost = commands.fails_to_write(&["key", "create", "third"]);
    assert!(lost.contains("omniglot key revoke third"), "{lost}");
    // A closed stderr is no reason to fail.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut silent = commands.command(&["key", "revoke", "nobody"]);
    let status = silent.stdout(Stdio::null()).stderr(writer).status();
    assert_eq!(status.expect("it runs").code(), Some(1));
}

impl StoreCommands {
    fn fails_to_write(&self, arguments: &[&str]) -> String {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let mut command = self.command(arguments);
        let output = command.stdout(full.expect("Linux has it")).output();
        String::from_utf8(output.expect("it runs").stderr).expect("text")
    }
}

fn assert_not_written(arguments: &[&str], output: &Output) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
    assert!(stderr.contains("cannot write to stdout"), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
}
