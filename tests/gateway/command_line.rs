//! The command line: its output on stdout and stderr, and its exit codes.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use omniglot_test_support::{
    Gateway, Process, Stderr, client_builder, free_address, new_client, omniglot,
};

const SECRET: &str = "canary-of-the-key";
const UPSTREAM_SECRET: &str = "canary-of-the-upstream";

const GOOD: &str = "
server: {listen: LISTEN, admin: ADMIN}
keys:
  - {name: dev, secret: \"${OMNIGLOT_TEST_KEY}\", spending_cap: 5, limits: {concurrency: 2}}
upstreams:
  - {name: acme, format: chat, base_url: \"http://127.0.0.1:1/v1\", auth: {bearer: canary-of-the-upstream}}
  - {name: acme-eu, format: chat, base_url: \"http://127.0.0.1:1/v1\"}
models:
  - {id: large, upstreams: [{name: acme, model: theirs, weight: 3}, {name: acme-eu, priority: 2}], fallbacks: [small]}
  - {id: small, upstreams: [{name: acme-eu}]}
";

const BAD: &str = "\
server: {listen: nonsense}
keys:
  - {name: dev, secret: canary-of-the-key, modles: [\"*\"]}
upstreams:
  - {name: acme, format: chatty, base_url: \"http://127.0.0.1:1/v1\"}
models:
  - {id: large, upstreams: [{name: acmee}]}
";

/// A directory with a config in it.
struct ConfigFile {
    _directory: tempfile::TempDir,
    file: PathBuf,
}

fn write_config(config: &str) -> ConfigFile {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("here.yaml");
    let config = config
        .replace("LISTEN", &free_address().to_string())
        .replace("ADMIN", &free_address().to_string());
    std::fs::write(&file, config).expect("the config is written");
    ConfigFile {
        _directory: directory,
        file,
    }
}

struct CommandOutput {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn run_command(command: &mut Command) -> CommandOutput {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("the command runs");
    let message = CommandOutput {
        code: status.code(),
        stdout: String::from_utf8(stdout).expect("text"),
        stderr: String::from_utf8(stderr).expect("text"),
    };
    for text in [&message.stdout, &message.stderr] {
        assert!(!text.contains(SECRET), "{text}");
        assert!(!text.contains(UPSTREAM_SECRET), "{text}");
        assert!(!text.contains("panicked"), "{text}");
    }
    message
}

fn with_file<'a>(command: &'a mut Command, verb: &str, file: &Path) -> &'a mut Command {
    let command = command.args([verb, "-c"]).arg(file);
    command.env("OMNIGLOT_TEST_KEY", SECRET)
}

#[test]
fn the_version_is_that_of_the_crate() {
    let message = run_command(omniglot().arg("--version"));
    assert_eq!(message.code, Some(0));
    assert_eq!(
        message.stdout,
        format!("omniglot {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn help_names_every_command_and_the_directives_of_the_mock() {
    let help = run_command(omniglot().arg("--help"));
    assert_eq!(help.code, Some(0));
    for word in ["run", "check", "mock", "--config"] {
        assert!(help.stdout.contains(word), "{word} in {}", help.stdout);
    }
    let help = run_command(omniglot().args(["mock", "--help"]));
    assert_eq!(help.code, Some(0));
    for word in [
        "--listen",
        "/mock/signal/",
        "wait=NAME",
        "stream_error",
        "usage=",
    ] {
        assert!(help.stdout.contains(word), "{word} in {}", help.stdout);
    }
}

#[test]
fn check_prints_the_routes_on_stdout_and_notices_on_stderr() {
    let good = write_config(GOOD);
    let message = run_command(with_file(&mut omniglot(), "check", &good.file));
    assert_eq!(message.code, Some(0), "{}", message.stderr);
    let rows: Vec<Vec<&str>> = message
        .stdout
        .lines()
        .map(|row| row.split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 5, "{}", message.stdout);
    assert_eq!(
        rows[0][1..6],
        ["model", "format", "upstream", "priority", "weight"]
    );
    assert_eq!(
        rows[2][1..7],
        ["large", "chat", "acme (theirs)", "0", "3", "small"]
    );
    assert_eq!(
        rows[3][1..7],
        ["large", "chat", "acme-eu", "2", "1", "small"]
    );
    assert_eq!(rows[4][1..6], ["small", "chat", "acme-eu", "0", "1"]);
    assert_eq!(message.stderr, warning_of(&good.file));
}

/// What `GOOD` is warned of.
fn warning_of(file: &Path) -> String {
    format!(
        "{}:4:12: warning: keys.dev: its spending_cap does not see models without pricing: large, small\n",
        file.display()
    )
}

#[test]
fn a_bad_config_exits_2_with_every_problem_and_its_line() {
    let bad = write_config(BAD);
    let file = bad.file.display().to_string();
    for verb in ["check", "run"] {
        let message = run_command(with_file(&mut omniglot(), verb, &bad.file));
        assert_eq!(message.code, Some(2), "{verb}");
        assert_eq!(message.stdout, "", "{verb}");
        let mut places = Vec::new();
        for line in message.stderr.lines() {
            let rest = line.strip_prefix(&file).expect("each begins with the file");
            let parts: Vec<&str> = rest.splitn(4, ':').collect();
            let place: (u64, u64) = (
                parts[1].parse().expect("a line"),
                parts[2].parse().expect("a column"),
            );
            assert!(parts[3].starts_with(' ') && parts[3].len() > 10, "{line}");
            places.push(place);
        }
        // Of `nonsense`, `modles`, `chatty` and `acmee`.
        assert_eq!(places, [(1, 18), (3, 44), (5, 26), (7, 36)], "{verb}");
        assert!(message.stderr.contains("\"models\""), "{}", message.stderr);
    }
}

#[test]
fn a_missing_file_exits_2_and_is_named() {
    let missing = Path::new("/nowhere/omniglot.yaml");
    for verb in ["check", "run"] {
        let message = run_command(with_file(&mut omniglot(), verb, missing));
        assert_eq!(message.code, Some(2), "{verb}");
        let expected = "/nowhere/omniglot.yaml:1:1: cannot read this file";
        assert!(message.stderr.starts_with(expected), "{}", message.stderr);
    }
}

#[test]
fn an_unset_variable_is_reported_with_its_line() {
    let good = write_config(GOOD);
    let message = run_command(omniglot().args(["check", "-c"]).arg(&good.file).env_clear());
    assert_eq!(message.code, Some(2));
    let expected = format!("{}:4:", good.file.display());
    assert!(message.stderr.starts_with(&expected), "{}", message.stderr);
    assert!(
        message.stderr.contains("OMNIGLOT_TEST_KEY"),
        "{}",
        message.stderr
    );
}

#[test]
fn check_prints_what_a_name_resolves_to() {
    let config = format!(
        "{GOOD}  - {{id: \"acme/*\", upstreams: [{{name: acme, model: \"*\"}}], fallbacks: [large]}}\n  \
         - {{id: pro, aliases: [best], upstreams: [{{name: globex}}]}}\n"
    );
    let config = config.replace(
        "models:",
        "  - {name: globex, format: native, base_url: \"http://127.0.0.1:1\"}\nmodels:",
    );
    let config = config.replace(
        "ADMIN}",
        "ADMIN, upstream_prefixes: on, default_upstream: globex}",
    );
    let good = write_config(&config);
    let resolve = |name: &str| {
        let mut command = omniglot();
        let command = with_file(&mut command, "check", &good.file);
        run_command(
            command
                .env("OMNIGLOT_TEST_KEY", SECRET)
                .args(["--model", name]),
        )
    };
    let found = resolve("acme/vendor/x");
    assert_eq!(found.code, Some(0), "{}", found.stderr);
    let expected = "\
acme/vendor/x matches the id acme/*
| upstream | sent as  | format | path                 | priority | weight | fallback |
|----------|----------|--------|----------------------|----------|--------|----------|
| acme     | vendor/x | chat   | /v1/chat/completions | 0        | 1      |          |
| acme     | theirs   | chat   | /v1/chat/completions | 0        | 3      | large    |
| acme-eu  | large    | chat   | /v1/chat/completions | 2        | 1      | large    |
| acme-eu  | small    | chat   | /v1/chat/completions | 0        | 1      | small    |
";
    assert_eq!(found.stdout, expected);
    for (name, entry, row) in [
        ("large", "large is an id", "| acme     | theirs  |"),
        (
            "best",
            "best is an alias of pro",
            "| globex   | pro     | native | /v1beta/models/pro:generateContent |",
        ),
        (
            "acme-eu/x",
            "acme-eu/x begins with the name of the upstream acme-eu",
            "| acme-eu  | x       |",
        ),
        (
            "x-y",
            "x-y matches nothing else and goes to the upstream globex",
            "| x-y     | native | /v1beta/models/x-y:generateContent |",
        ),
    ] {
        let found = resolve(name);
        assert_eq!(found.code, Some(0), "{}", found.stderr);
        assert_eq!(found.stdout.lines().next(), Some(entry));
        assert!(found.stdout.contains(row), "{}", found.stdout);
    }
}

#[test]
fn check_suggests_names_for_one_that_nothing_serves() {
    let good = write_config(GOOD);
    for (name, advice) in [
        ("larg", "no model serves \"larg\"; did you mean large?"),
        (
            "something else",
            "no model serves \"something else\"; check without --model lists all of them",
        ),
    ] {
        let mut command = omniglot();
        let command = with_file(&mut command, "check", &good.file);
        let found = run_command(
            command
                .env("OMNIGLOT_TEST_KEY", SECRET)
                .args(["--model", name]),
        );
        assert_eq!(found.code, Some(1));
        assert_eq!(found.stdout, "");
        assert!(found.stderr.contains(advice), "{}", found.stderr);
    }
}

#[test]
fn check_without_a_config_says_which_argument_is_missing() {
    let empty = tempfile::tempdir().expect("a directory");
    let message = run_command(omniglot().arg("check").current_dir(empty.path()));
    assert_eq!(message.code, Some(1));
    assert!(
        message.stderr.contains("conf/omniglot.yaml"),
        "{}",
        message.stderr
    );
    assert!(message.stderr.contains("-c FILE"), "{}", message.stderr);
}

#[test]
fn the_sample_config_checks_in_an_empty_environment() {
    let root = env!("CARGO_MANIFEST_DIR");
    let named = ["check", "-c", "conf/omniglot.yaml"];
    let named = run_command(omniglot().args(named).current_dir(root).env_clear());
    assert_eq!(named.code, Some(0), "{}", named.stderr);
    assert!(named.stdout.contains("acme (large-2026-01)"));
    let found = run_command(omniglot().arg("check").current_dir(root).env_clear());
    assert_eq!((found.code, found.stdout), (Some(0), named.stdout));
}

#[test]
fn a_port_in_use_exits_1_and_says_which_setting_to_change() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    for (mark, setting) in [("LISTEN", "server.listen"), ("ADMIN", "server.admin")] {
        let config = write_config(&GOOD.replace(mark, &address));
        let message = run_command(with_file(&mut omniglot(), "run", &config.file));
        assert_eq!(message.code, Some(1), "{setting}: {}", message.stderr);
        let expected = format!("cannot listen on {address}");
        assert!(message.stderr.contains(&expected), "{}", message.stderr);
        let advice = format!("change {setting}");
        assert!(message.stderr.contains(&advice), "{}", message.stderr);
        assert_eq!(message.stdout, "");
    }
    let message = run_command(omniglot().args(["mock", "--listen", &address]));
    assert_eq!(message.code, Some(1));
    assert!(message.stderr.contains("--listen"), "{}", message.stderr);
}

/// pingora reads them for the certificates of upstreams, and would panic.
#[test]
fn certificates_of_the_environment_that_cannot_be_read_exit_1_and_are_named() {
    let config = write_config(GOOD);
    for name in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
        let mut command = omniglot();
        let command = with_file(&mut command, "run", &config.file);
        let output = run_command(command.env(name, "/nowhere/certificates"));
        assert_eq!(output.code, Some(1), "{}", output.stderr);
        let message = format!("{name} is /nowhere/certificates, which cannot be read; set it to ");
        assert!(output.stderr.contains(&message), "{}", output.stderr);
        assert!(output.stderr.contains("or unset it"), "{}", output.stderr);
    }
}

#[test]
fn invalid_tls_files_exit_2_and_are_named() {
    let pair = || rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a pair");
    let (one, other) = (pair(), pair());
    let (cert, key) = (one.cert.pem(), one.signing_key.serialize_pem());
    let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    for (what, cert, key) in [
        ("no PEM at all", "hello\n", "hello\n"),
        ("nothing", "", ""),
        ("the two swapped", key.as_str(), cert.as_str()),
        ("no key", cert.as_str(), cert.as_str()),
        ("no certificate inside", broken, key.as_str()),
        ("not a pair", &cert, &other.signing_key.serialize_pem()),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let (cert_file, key_file) = (
            directory.path().join("c.pem"),
            directory.path().join("k.pem"),
        );
        std::fs::write(&cert_file, cert).expect("written");
        std::fs::write(&key_file, key).expect("written");
        let (cert_name, key_name) = (cert_file.display(), key_file.display());
        let listen = format!("{{addr: LISTEN, tls: {{cert: {cert_name}, key: {key_name}}}}}");
        let config = write_config(&GOOD.replace("LISTEN", &listen));
        let file = config.file.display();
        let expected =
            format!("{file}:2:47: cannot use \"{cert_name}\" and \"{key_name}\" for TLS: ");
        for verb in ["check", "run"] {
            let message = run_command(with_file(&mut omniglot(), verb, &config.file));
            assert_eq!(message.code, Some(2), "{what}: {}", message.stderr);
            // The column depends on the digits of the port.
            let column = message.stderr.split(':').nth(2).unwrap_or_default();
            let expected = expected.replace(":47:", &format!(":{column}:"));
            assert!(
                message.stderr.starts_with(&expected),
                "{what}: {}",
                message.stderr
            );
            assert!(
                !message.stderr.contains("PRIVATE KEY"),
                "{}",
                message.stderr
            );
        }
    }
}

#[tokio::test]
async fn valid_tls_files_are_used() {
    let pair = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a pair");
    let directory = tempfile::tempdir().expect("a directory");
    let (cert, key) = (
        directory.path().join("c.pem"),
        directory.path().join("k.pem"),
    );
    std::fs::write(&cert, pair.cert.pem()).expect("written");
    std::fs::write(&key, pair.signing_key.serialize_pem()).expect("written");
    let (cert, key) = (cert.display(), key.display());
    let listen = format!("{{addr: LISTEN, tls: {{cert: {cert}, key: {key}}}}}");
    let gateway = Gateway::start_with(&GOOD.replace("LISTEN", &listen), |command| {
        command.env("OMNIGLOT_TEST_KEY", SECRET);
    });
    let root = reqwest::Certificate::from_der(pair.cert.der()).expect("a certificate");
    let client = client_builder().tls_certs_only([root]).build();
    let url = gateway.url("/v1/models").replace("http://", "https://");
    let models = client.expect("a client").get(url).bearer_auth(SECRET);
    let models = models.send().await.expect("an answer over TLS");
    assert_eq!(models.status(), 200);
    assert_eq!(models.version(), reqwest::Version::HTTP_2);
}

#[tokio::test]
async fn a_config_without_a_command_runs_the_gateway_and_notices_go_to_stderr() {
    let good = write_config(GOOD);
    let stderr = Stderr::new();
    let mut command = omniglot();
    command.arg("-c").arg(&good.file);
    command.env("OMNIGLOT_TEST_KEY", SECRET);
    stderr.attach(&mut command);
    let mut process = Process::start(&mut command);
    let line = stderr.line_with("omniglot listens on http://", &mut process);
    let line = line.expect("it says where");
    let (_, address) = line.rsplit_once("http://").expect("an address");
    let models = new_client()
        .get(format!("http://{address}/v1/models"))
        .bearer_auth(SECRET);
    let models = models.send().await.expect("an answer");
    assert_eq!(models.status(), 200);
    let notices = stderr.text();
    assert!(notices.starts_with(&warning_of(&good.file)), "{notices}");
}

#[tokio::test]
async fn no_secret_is_printed_while_serving_and_failing() {
    let stderr = Stderr::new();
    let gateway = Gateway::start_with(GOOD, |command| {
        command.env("OMNIGLOT_TEST_KEY", SECRET);
        command.env("RUST_LOG", "warn,omniglot=trace");
        stderr.attach(command);
    });
    let body = serde_json::json!({"model": "large", "messages": []});
    for key in [SECRET, "canary-of-a-stranger"] {
        let request = new_client().post(gateway.url("/v1/chat/completions"));
        let response = request.bearer_auth(key).json(&body).send().await;
        let expected = if key == SECRET { 502 } else { 401 };
        assert_eq!(response.expect("an answer").status(), expected);
    }
    let text = stderr.text();
    assert!(text.contains("upstream acme"), "{text}");
    for canary in [SECRET, UPSTREAM_SECRET, "canary-of-a-stranger"] {
        assert!(!text.contains(canary), "{canary} in {text}");
    }
}

#[test]
fn bash_completes_commands_and_flags() {
    let completions = omniglot().args(["completions", "bash"]).output();
    let completions = completions.expect("omniglot runs");
    assert!(completions.status.success(), "{completions:?}");
    // As bash does it for `omniglot key create --c<Tab>`.
    let script = format!(
        "{}\nCOMP_WORDS=(omniglot \"$@\")\nCOMP_CWORD=$#\n_omniglot omniglot \"${{@: -1}}\" x\necho \"${{COMPREPLY[@]}}\"",
        String::from_utf8(completions.stdout).expect("text")
    );
    for (words, expected) in [
        (vec!["transl"], "translate"),
        (vec!["key", "create", "--c"], "--cap --config --concurrency"),
    ] {
        let mut bash = Command::new("bash");
        let output = bash.args(["-c", &script, "omniglot"]).args(&words).output();
        let output = String::from_utf8(output.expect("bash runs").stdout).expect("text");
        let found: std::collections::BTreeSet<_> = output.split_whitespace().collect();
        assert_eq!(found, expected.split(' ').collect(), "{words:?}");
    }
}

#[test]
fn every_command_has_its_manual_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let pages = directory.path().join("man1");
    let written = omniglot().args(["man", "--directory"]).arg(&pages).output();
    assert!(
        written.as_ref().expect("omniglot runs").status.success(),
        "{written:?}"
    );
    for (page, words) in [
        ("omniglot.1", vec!["omniglot\\-key", "\\-\\-config"]),
        ("omniglot-key-create.1", vec!["\\-\\-cap", "spending cap"]),
        ("omniglot-mock.1", vec!["\\-\\-listen"]),
    ] {
        let text = std::fs::read_to_string(pages.join(page)).expect(page);
        assert!(text.contains(".TH"), "{page}: {text}");
        for word in words {
            assert!(
                text.to_lowercase().contains(word),
                "{page} lacks {word}: {text}"
            );
        }
    }
    let first = omniglot().arg("man").output().expect("omniglot runs");
    let first = String::from_utf8(first.stdout).expect("text");
    assert!(first.contains(".TH omniglot 1"), "{first}");
}
