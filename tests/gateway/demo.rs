//! The embedded demo, started in an empty directory and tried with the command that it prints.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

use omniglot_test_support::{
    DemoPorts, FORMATS, Process, Stderr, TIMEOUT, new_client, omniglot, request,
};
use serde_json::Value;

const DEMO: &str = "http://127.0.0.1:8080";
const ADMIN: &str = "http://127.0.0.1:8081";
const DEMO_KEY: &str = "omniglot-demo-key";

/// Starts the demo. Its ports are fixed, and another test may need a moment to release them.
fn start(command: impl Fn() -> Command) -> (Process, Stderr) {
    let until = Instant::now() + TIMEOUT;
    loop {
        let stderr = Stderr::new();
        let mut command = command();
        stderr.attach(&mut command);
        let mut process = Process::start(&mut command);
        match stderr.line_with("omniglot listens on", &mut process) {
            Some(line) => {
                assert_eq!(line, format!("omniglot listens on {DEMO}"));
                return (process, stderr);
            }
            None => {
                let (code, reason) = (process.wait().code(), stderr.text());
                let is_taken = reason.contains("cannot listen on 127.0.0.1:808");
                assert!(code == Some(1) && is_taken, "{code:?}: {reason}");
                assert!(Instant::now() < until, "it is taken all the time: {reason}");
                std::thread::sleep(Duration::from_millis(200));
            }
        }
    }
}

/// The command as it is printed, over several lines.
fn printed_curl(process: &mut Process, stderr: &Stderr) -> String {
    stderr
        .line_with("  -d '", process)
        .expect("the last line of the command");
    let text = stderr.text();
    let start = text.find("curl ").expect("the command");
    let lines = text[start..].lines();
    let is_last = |line: &&str| !line.ends_with('\\');
    let count = lines.clone().position(|line| is_last(&line));
    let lines: Vec<&str> = lines.take(count.expect("its end") + 1).collect();
    lines.join("\n")
}

#[tokio::test]
async fn the_demo_serves_the_curl_it_prints_and_every_format() {
    let _ports = DemoPorts::lock();
    let directory = tempfile::tempdir().expect("an empty directory");
    let command = || {
        let mut command = omniglot();
        command.current_dir(directory.path());
        // With the key of a provider it would be that provider's gateway.
        for (name, _) in std::env::vars() {
            if name.ends_with("_API_KEY") {
                command.env_remove(name);
            }
        }
        command
    };
    let (mut process, stderr) = start(command);

    let curl = printed_curl(&mut process, &stderr);
    let Output { status, stdout, .. } = Command::new("sh")
        .args(["-c", &curl])
        .env("no_proxy", "127.0.0.1")
        .output()
        .expect("sh runs");
    assert!(status.success(), "{curl}");
    let response: Value = serde_json::from_slice(&stdout).expect("JSON");
    assert_eq!(response["object"], "chat.completion", "{response}");
    assert_eq!(response["model"], "demo-chat");
    let text = &response["choices"][0]["message"]["content"];
    assert_eq!(text, "You said: Hello");

    for (format, _) in FORMATS {
        for stream in [false, true] {
            answers(format, stream).await;
        }
    }
    let ready = new_client().get(format!("{ADMIN}/readyz")).send().await;
    assert_eq!(ready.expect("an answer").status(), 200);

    let text = stderr.text();
    let link = text
        .split_whitespace()
        .find(|word| word.contains("/setup/"));
    let page = new_client()
        .get(link.expect("a link to the console"))
        .send()
        .await;
    let page = page.expect("an answer").text().await.expect("a page");
    assert!(page.contains("Choose a password"), "{page}");

    process.signal("HUP");
    process.signal("TERM");
    assert_eq!(process.wait().code(), Some(0));
    // That is the access log's, which is off.
    assert_eq!(process.lines_to_the_end(), [""; 0]);
}

async fn answers(format: &str, stream: bool) {
    let (path, body) = request(format, &format!("demo-{format}"), "salve", stream);
    let asked = new_client()
        .post(format!("{DEMO}{path}"))
        .bearer_auth(DEMO_KEY);
    let response = asked.json(&body).send().await.expect("an answer");
    assert_eq!(response.status(), 200, "{format}");
    assert_eq!(
        response.headers()["x-omniglot-upstream"],
        format!("mock-{format}")
    );
    let text = response.text().await.expect("a body");
    let mark = match (format, stream) {
        ("chat", false) => "\"object\":\"chat.completion\"",
        ("chat", true) => "data: [DONE]",
        ("messages", false) => "\"type\":\"message\"",
        ("messages", true) => "event: message_stop",
        ("responses", false) => "\"object\":\"response\"",
        ("responses", true) => "event: response.completed",
        _ => "\"finishReason\":\"STOP\"",
    };
    assert!(text.contains(mark), "{format}: {text}");
    assert!(text.contains("salve"), "{format}: {text}");
}
