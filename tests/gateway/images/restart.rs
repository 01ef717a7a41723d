//! Image tasks in a store survive the process, however it ends, and are billed once.

use omniglot_test_support::{Gateway, KEY, Mock, new_client, omniglot, wait_for};
use reqwest::Method;
use serde_json::{Value, json};

use super::tasks::{get, hand_in, send, until};
use super::{ImageGateway, PIXEL, header};
use crate::drain::until_refused;

struct Replicas {
    mock: Mock,
    config: String,
    directory: tempfile::TempDir,
}

impl Replicas {
    fn new(server: &str, images: &str) -> Replicas {
        let mock = Mock::start();
        let directory = tempfile::tempdir().expect("a directory");
        let store = directory.path().join("store.db");
        let config = super::config(&mock).replace("server: {", &format!("server: {{{server} "));
        let config = format!("store: \"sqlite:{}\"\n{config}{images}", store.display());
        Replicas {
            mock,
            config,
            directory,
        }
    }

    /// Each with a journal of its own; the one of a process that is gone is taken up by the next.
    fn start(&self, journal: &str) -> Gateway {
        let journal = self.directory.path().join(journal);
        let journal = format!("journal: {{path: \"{}\"}}\n", journal.display());
        Gateway::start(&format!("{}{journal}", self.config))
    }
}

async fn send_request(gateway: &Gateway, model: &str, prompt: &str) -> String {
    let body = json!({"model": model, "prompt": prompt, "async": true});
    let request = new_client().post(gateway.url("/v1/images/generations"));
    let response = request
        .bearer_auth(KEY)
        .json(&body)
        .send()
        .await
        .expect("an answer");
    assert_eq!(response.status(), 202);
    header(&response, "location").to_owned()
}

#[tokio::test]
async fn a_task_whose_process_is_killed_is_finished_by_the_next_and_billed_once() {
    let replicas = Replicas::new("", "");
    let mut first = replicas.start("one");
    let path = send_request(
        &first,
        "priced",
        "mock:wait=go mock:name=die mock:usage=3,0,100,0",
    )
    .await;
    replicas.mock.until_seen("die", "waiting", 1).await;
    first.process.signal("KILL");
    first.process.wait();
    replicas.mock.until_seen("die", "cancelled", 1).await;
    let second = replicas.start("one");
    assert_eq!(get(&second, &path).await["status"], "running");
    // Whoever worked on it is not heard of any more.
    replicas.mock.until_seen("die", "started", 2).await;
    replicas.mock.signal("go", 1).await;
    let task = until(&second, &path, "succeeded").await;
    assert_eq!(task["result"]["data"][0]["b64_json"], PIXEL);
    let used = used(&second, "priced").await;
    assert_eq!(
        (&used["requests"], &used["images"]),
        (&json!(1), &json!(1)),
        "{used}"
    );
    assert_eq!(used["cost"].to_string().trim_matches('"'), "208", "{used}");
}

/// What the store knows of the requests for a model, once that is there.
async fn used(gateway: &Gateway, model: &str) -> Value {
    wait_for("its receipt is in the store", async || {
        let mut command = omniglot();
        command.args(["usage", "--by", "model", "--json", "-c"]);
        let message = command.arg(gateway.file()).output().expect("it runs");
        let rows: Value = serde_json::from_slice(&message.stdout).ok()?;
        let found = rows.as_array()?.iter().find(|row| row["model"] == model);
        found.cloned()
    })
    .await
}

#[tokio::test]
async fn a_draining_process_finishes_running_tasks_and_keeps_queued_ones() {
    let replicas = Replicas::new("", "images: {tasks: {at_once: 1}}\n");
    let mut first = replicas.start("one");
    let running = send_request(&first, "art", "mock:wait=go mock:name=runs").await;
    replicas.mock.until_seen("runs", "waiting", 1).await;
    let waiting = send_request(&first, "art", "mock:name=waits").await;
    first.process.signal("TERM");
    until_refused(&first).await;
    replicas.mock.signal("go", 1).await;
    assert_eq!(first.process.wait().code(), Some(0));
    assert_eq!(replicas.mock.seen("waits", "started").await, 0);
    let second = replicas.start("one");
    assert_eq!(get(&second, &running).await["status"], "succeeded");
    until(&second, &waiting, "succeeded").await;
    assert_eq!(replicas.mock.seen("runs", "started").await, 1);
}

#[tokio::test]
async fn a_task_that_a_draining_process_cannot_finish_is_restarted() {
    let replicas = Replicas::new("drain_timeout: 0s,", "");
    let mut first = replicas.start("one");
    let path = send_request(&first, "art", "mock:wait=go mock:name=again").await;
    replicas.mock.until_seen("again", "waiting", 1).await;
    first.process.signal("TERM");
    assert_eq!(first.process.wait().code(), Some(0));
    let second = replicas.start("one");
    replicas.mock.until_seen("again", "started", 2).await;
    replicas.mock.signal("go", 1).await;
    until(&second, &path, "succeeded").await;
}

#[tokio::test]
async fn another_process_can_show_and_cancel_a_task() {
    let replicas = Replicas::new("", "");
    let (first, second) = (replicas.start("one"), replicas.start("two"));
    let path = send_request(&first, "art", "mock:wait=never mock:name=far").await;
    replicas.mock.until_seen("far", "waiting", 1).await;
    let response = send(&second, Method::DELETE, &path, KEY).await;
    assert_eq!(response.status(), 200);
    let task: Value = response.json().await.expect("JSON");
    assert_eq!(task["status"], "cancelled");
    // Whoever works on it hears of it with the next beat of its heart.
    replicas.mock.until_seen("far", "cancelled", 1).await;
    assert_eq!(get(&first, &path).await["status"], "cancelled");
    let setup = ImageGateway {
        mock: Mock::start(),
        gateway: second,
    };
    let path = hand_in(&setup, "a cat").await;
    until(&first, &path, "succeeded").await;
    let list = get(&first, "/v1/images/tasks").await;
    assert_eq!(list["data"].as_array().map(Vec::len), Some(2));
}
