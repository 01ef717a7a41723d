//! Upgrades: SIGUSR2 starts a successor that takes over the listeners, and no request is lost.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use omniglot_test_support::{
    Gateway, KEY, Mock, Stderr, every_format_config, free_address, new_client, omniglot, request,
    wait_until,
};

/// How many clients ask at the same time, each on a new connection for each request.
const CLIENTS: usize = 4;
/// Requests in each phase of an upgrade.
const REQUESTS: usize = 150;

/// Requests that are asked until they are stopped.
struct Load {
    served: Arc<AtomicUsize>,
    is_stopped: Arc<AtomicBool>,
    clients: Vec<tokio::task::JoinHandle<Vec<String>>>,
}

impl Load {
    fn start(gateway: &Gateway) -> Load {
        let (served, is_stopped) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (path, body) = request("chat", "same-chat", "hello", false);
        let url = gateway.url(&path);
        let clients = (0..CLIENTS).map(|_| {
            let (served, is_stopped) = (served.clone(), is_stopped.clone());
            let (url, body) = (url.clone(), body.to_string());
            tokio::spawn(async move {
                let mut failures = Vec::new();
                while !is_stopped.load(Ordering::Relaxed) {
                    let asked = new_client().post(&url).bearer_auth(KEY);
                    let asked = asked.header("content-type", "application/json");
                    match asked.body(body.clone()).send().await {
                        Ok(response) if response.status() == 200 => {
                            if let Err(error) = response.bytes().await {
                                failures.push(error.to_string());
                            }
                        }
                        Ok(response) => failures.push(response.status().to_string()),
                        Err(error) => failures.push(format!("{error:?}")),
                    }
                    served.fetch_add(1, Ordering::Relaxed);
                }
                failures
            })
        });
        Load {
            clients: clients.collect(),
            served,
            is_stopped,
        }
    }

    /// Waits until more requests have been answered.
    async fn more(&self) {
        let until = self.served.load(Ordering::Relaxed) + REQUESTS;
        wait_until("more requests are answered", async || {
            self.served.load(Ordering::Relaxed) >= until
        })
        .await;
    }

    /// Ends the load; returns how many requests there were, and the failures.
    async fn stop(self) -> (usize, Vec<String>) {
        self.is_stopped.store(true, Ordering::Relaxed);
        let mut failures = Vec::new();
        for client in self.clients {
            failures.extend(client.await.expect("it ends"));
        }
        (self.served.load(Ordering::Relaxed), failures)
    }
}

/// A successor, which is no child of the test; ended when dropped.
struct Successor(u32);

impl Successor {
    /// Finds the successor that the log names.
    fn of(stderr: &Stderr, gateway: &mut Gateway) -> Successor {
        let line = stderr.line_with("to take over", &mut gateway.process);
        let line = line.expect("the log names it");
        let (_, id) = line.split_once("process ").expect("its id");
        let id = id.split(' ').next().and_then(|id| id.parse().ok());
        Successor(id.expect("a number"))
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        // It may have ended.
        let _ = Command::new("kill").arg(self.0.to_string()).status();
    }
}

fn config(mock: &Mock, folder: &tempfile::TempDir) -> String {
    let config = every_format_config(mock.address);
    let config = config.replace("admin: ADMIN", "admin: ADMIN, drain_timeout: 10m");
    let (folder, console) = (folder.path().display(), free_address());
    format!(
        "{config}store: \"sqlite:{folder}/store.db\"\njournal: {{path: \"{folder}/journal\"}}\nconsole: {{listen: \"{console}\"}}\n"
    )
}

/// How many requests the store has records of.
fn recorded(gateway: &Gateway) -> u64 {
    let output = omniglot()
        .args(["usage", "--json", "-c"])
        .arg(gateway.file())
        .output()
        .expect("it runs");
    let usage: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = usage.as_array().or_else(|| usage["rows"].as_array());
    let rows = rows.unwrap_or_else(|| panic!("{usage}"));
    rows.iter().filter_map(|row| row["requests"].as_u64()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_takes_over_without_a_lost_request() {
    let (mock, folder, stderr) = (Mock::start(), tempfile::tempdir().unwrap(), Stderr::new());
    let mut gateway =
        Gateway::start_with(&config(&mock, &folder), |command| stderr.attach(command));
    let words = "one two three mock:wait=go mock:name=stream";
    let (path, body) = request("messages", "same-messages", words, true);
    let stream = new_client().post(gateway.url(&path)).bearer_auth(KEY);
    let stream = stream.json(&body).send().await.expect("a stream begins");
    mock.until_seen("stream", "waiting", 1).await;
    let load = Load::start(&gateway);
    load.more().await;
    gateway.process.signal("USR2");
    let _successor = Successor::of(&stderr, &mut gateway);
    load.more().await;
    // Now the old process accepts nothing more.
    let line = stderr.line_with("draining", &mut gateway.process);
    line.expect("the old process drains");
    load.more().await;
    assert!(gateway.process.is_running(), "its stream is not over");
    let ready = new_client().get(gateway.admin_url("/readyz")).send().await;
    assert_eq!(ready.expect("the successor answers").status(), 200);
    mock.signal("go", 64).await;
    let text = stream.text().await.expect("the stream ends well");
    assert!(
        text.contains("message_stop") && text.contains("three"),
        "{text}"
    );
    let ended = tokio::task::block_in_place(|| gateway.process.wait());
    assert_eq!(ended.code(), Some(0));
    load.more().await;
    let (served, failures) = load.stop().await;
    assert!(
        failures.is_empty(),
        "{} of {served}: {failures:?}",
        failures.len()
    );
    // Usage records of both, also those that the old process has left.
    wait_until("all usage is recorded", async || {
        recorded(&gateway) == served as u64 + 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_successor_that_cannot_start_changes_nothing() {
    let (mock, folder, stderr) = (Mock::start(), tempfile::tempdir().unwrap(), Stderr::new());
    let mut gateway =
        Gateway::start_with(&config(&mock, &folder), |command| stderr.attach(command));
    gateway.rewrite("server: {lisen: LISTEN}\n");
    let load = Load::start(&gateway);
    load.more().await;
    gateway.process.signal("USR2");
    let line = stderr.line_with("no upgrade", &mut gateway.process);
    assert!(line.is_some_and(|line| line.contains("exit status: 2")));
    load.more().await;
    let (_, failures) = load.stop().await;
    assert!(failures.is_empty(), "{failures:?}");
    assert!(gateway.process.is_running());
    let ready = new_client().get(gateway.admin_url("/readyz")).send().await;
    assert_eq!(ready.expect("the admin port stays open").status(), 200);
}
