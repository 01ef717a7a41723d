//! A gateway without a config: the providers whose keys are in the environment, and a config of them to keep.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use omniglot_test_support::{
    CertificateAuthority, ConnectProxy, Mock, Process, Stderr, TlsProxy, client, free_address,
    omniglot, request, send,
};
use serde_json::Value;

/// In a folder without a config, and without the keys that this machine may have.
fn command(folder: &tempfile::TempDir) -> Command {
    let mut command = omniglot();
    command.current_dir(folder.path());
    for (name, _) in std::env::vars() {
        if name.ends_with("_API_KEY") {
            command.env_remove(name);
        }
    }
    command
}

#[tokio::test]
async fn a_providers_key_is_all_that_is_needed() {
    let (mock, authority) = (Mock::start(), CertificateAuthority::new());
    let server = TlsProxy::start(&authority, "api.openai.com", mock.address).await;
    let proxy = ConnectProxy::start(server.address).await;
    let folder = tempfile::tempdir().expect("a folder");
    let address = free_address();
    let stderr = Stderr::new();
    let mut command = command(&folder);
    command.args(["--listen", &address.to_string()]);
    command.env("OPENAI_API_KEY", "canary-of-openai");
    command.env("https_proxy", proxy.address.to_string());
    command.env("SSL_CERT_FILE", authority.file());
    stderr.attach(&mut command);
    let mut process = Process::start(&mut command);
    let line = stderr.line_with("omniglot run --demo", &mut process);
    line.expect("the end of the greeting");
    let greeting = stderr.text();
    assert!(
        greeting.contains("  openai  OPENAI_API_KEY  https://api.openai.com/v1\n"),
        "{greeting}"
    );
    assert!(!greeting.contains("canary-of-openai"), "{greeting}");
    let key = greeting
        .lines()
        .find_map(|line| line.strip_prefix("  sk-omniglot-"));
    let key = format!("sk-omniglot-{}", key.expect("a key"));

    let url = |path: &str| format!("http://{address}{path}");
    let stranger = send(
        client()
            .get(url("/v1/models"))
            .bearer_auth("sk-omniglot-none"),
    )
    .await;
    assert_eq!(stranger.status, 401);
    let (path, body) = request("messages", "openai/any-model", "mock:echo", false);
    let answer = send(client().post(url(&path)).bearer_auth(&key).json(&body)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let requests = proxy.requests();
    assert!(
        requests[0].starts_with("CONNECT api.openai.com:443 "),
        "{requests:?}"
    );
    // The mock lists its models; they are read without waiting for them.
    let mut listed = Value::Null;
    let has_models = async {
        loop {
            let models = send(client().get(url("/v1/models")).bearer_auth(&key)).await;
            listed = serde_json::from_str(models.text()).expect("JSON");
            if listed["data"]
                .as_array()
                .is_some_and(|data| !data.is_empty())
            {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(omniglot_test_support::TIMEOUT, has_models)
        .await
        .expect("the models of the mock");
    let first = listed["data"][0]["id"].as_str().expect("an id");
    let (path, body) = request("chat", first, "Hello", false);
    let answer = send(client().post(url(&path)).bearer_auth(&key).json(&body)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    process.signal("TERM");
    assert_eq!(process.wait().code(), Some(0));
}

#[test]
fn init_writes_a_config_that_check_accepts_and_touches_no_file_that_is_there() {
    for (variables, expected) in [
        (
            vec!["ANTHROPIC_API_KEY", "MISTRAL_API_KEY"],
            vec!["anthropic", "mistral"],
        ),
        (vec![], vec!["openai"]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let with_keys = || {
            let mut command = command(&folder);
            for name in &variables {
                command.env(name, "canary-of-a-provider");
            }
            command
        };
        let output = with_keys().arg("init").output().expect("omniglot runs");
        assert!(output.status.success(), "{output:?}");
        let file = folder.path().join("conf/omniglot.yaml");
        let mode = file.metadata().expect("the config").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let text = std::fs::read_to_string(&file).expect("the config");
        assert!(!text.contains("canary-of-a-provider"), "{text}");
        let said = String::from_utf8(output.stdout).expect("text");
        let key = said
            .lines()
            .find_map(|line| line.strip_prefix("  sk-omniglot-"));
        assert!(text.contains(key.expect("a key")), "{said}");

        let mut check = with_keys();
        check.env("OPENAI_API_KEY", "canary-of-a-provider");
        let check = check.arg("check").output().expect("omniglot runs");
        assert!(
            check.status.success() && check.stderr.is_empty(),
            "{check:?}"
        );
        let routes = String::from_utf8(check.stdout).expect("text");
        for provider in expected {
            assert!(routes.contains(&format!("| {provider}/*")), "{routes}");
        }

        let again = with_keys().arg("init").output().expect("omniglot runs");
        assert_eq!(again.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&again.stderr).contains("cannot write conf/omniglot.yaml"));
        assert_eq!(std::fs::read_to_string(&file).expect("the config"), text);
    }
}

#[test]
fn options_that_do_not_fit_a_config_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("here.yaml"), "models: []\n").expect("a config");
    for (option, expected) in [
        (
            vec!["--listen", "127.0.0.1:9"],
            "set server.listen in here.yaml",
        ),
        (vec!["--demo"], "leave out -c or --demo"),
    ] {
        let mut command = command(&folder);
        let output = command
            .args(["run", "-c", "here.yaml"])
            .args(option)
            .output();
        let output = output.expect("omniglot runs");
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(expected), "{said}");
    }
}
