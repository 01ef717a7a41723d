//! `check --live` asks each upstream once, `health` asks the gateway, and systemd's credentials are variables.

use std::process::Command;

use omniglot_test_support::{Gateway, RecordingServer, free_address, omniglot};
use serde_json::json;

fn printed(command: &mut Command) -> (Option<i32>, String) {
    let output = command.output().expect("the command runs");
    let text = [output.stdout, output.stderr].concat();
    (
        output.status.code(),
        String::from_utf8(text).expect("a text"),
    )
}

fn list() -> RecordingServer {
    RecordingServer::start(|request, _| {
        if request.line != "GET /v1/models" {
            return (404, "application/json", "{}".to_owned());
        }
        let body = match request.header("authorization") {
            "Bearer right-canary" => {
                json!({"object": "list", "data": [{"id": "one"}, {"id": "two"}]})
            }
            _ => return (401, "application/json", json!({"error": {}}).to_string()),
        };
        (200, "application/json", body.to_string())
    })
}

#[test]
fn check_asks_each_upstream_once() {
    let (server, nobody) = (list(), free_address());
    let url = server.url("");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("here.yaml");
    let config = format!(
        "keys: [{{name: dev, secret: some-secret-of-a-key, limits: {{concurrency: 2}}}}]\n\
         upstreams:\n\
         - {{name: good, format: chat, base_url: '{url}/v1', auth: {{bearer: right-canary}}}}\n\
         - {{name: refused, format: chat, base_url: '{url}/v1', auth: {{bearer: wrong-canary}}}}\n\
         - {{name: elsewhere, format: chat, base_url: '{url}/other', auth: {{bearer: right-canary}}}}\n\
         - {{name: away, format: chat, base_url: 'http://{nobody}/v1'}}\n\
         models:\n\
         - {{id: one, upstreams: [{{name: good}}, {{name: refused}}]}}\n\
         - {{id: three, upstreams: [{{name: good}}, {{name: elsewhere}}, {{name: away}}]}}\n"
    );
    std::fs::write(&file, config).expect("a file");
    let (code, text) = printed(omniglot().args(["check", "--live", "-c"]).arg(&file));
    assert_eq!(code, Some(1), "{text}");
    for answer in [
        format!("| good      | {url}/v1/models    | 200: 2 models, but not three"),
        format!("| refused   | {url}/v1/models    | 401: look at auth"),
        format!(
            "| elsewhere | {url}/other/models | 404: it was reached, and has no list of models there"
        ),
    ] {
        assert!(text.contains(&answer), "{answer}\n{text}");
    }
    let away = text.lines().find(|line| line.starts_with("| away"));
    let away = away.expect("a line");
    assert!(away.to_lowercase().contains("connect"), "{away}");
    assert!(!text.contains("canary"), "{text}");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn check_is_content_with_upstreams_that_answer() {
    let server = list();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("here.yaml");
    // The credential is a file of systemd's, with the line end that editors leave.
    std::fs::write(folder.path().join("UPSTREAM_KEY"), "right-canary\n").expect("a file");
    let config = format!(
        "keys: [{{name: dev, secret: some-secret-of-a-key, limits: {{concurrency: 2}}}}]\n\
         upstreams: [{{name: good, format: chat, base_url: '{}', auth: {{bearer: \"${{UPSTREAM_KEY}}\"}}}}]\n\
         models: [{{id: one, upstreams: [{{name: good}}]}}]\n",
        server.url("/v1")
    );
    std::fs::write(&file, config).expect("a file");
    let mut command = omniglot();
    command.args(["check", "--live", "-c"]).arg(&file);
    let (code, text) = printed(&mut command);
    assert_eq!(code, Some(2), "{text}");
    let (code, text) = printed(command.env("CREDENTIALS_DIRECTORY", folder.path()));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("200: 2 models"), "{text}");
}

#[tokio::test]
async fn health_asks_the_admin_port() {
    let gateway = Gateway::start(
        "server: {listen: LISTEN, admin: ADMIN}\nkeys: [{name: dev, secret: some-secret-of-a-key}]\n\
         upstreams: [{name: u, format: chat, base_url: 'http://127.0.0.1:1/v1'}]\n\
         models: [{id: m, upstreams: [{name: u}]}]\n",
    );
    let admin = gateway.admin.to_string();
    let (code, text) = printed(omniglot().args(["health", "--admin", &admin]));
    assert_eq!((code, text.trim()), (Some(0), "ready"));
    let nobody = free_address().to_string();
    let (code, text) = printed(omniglot().args(["health", "--admin", &nobody]));
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("no connection"), "{text}");
}
