//! What one key may take of the queue of image tasks and of the slots of others.

use futures_util::future::join_all;
use omniglot_test_support::{Gateway, KEY, Mock, new_client};
use reqwest::Response;
use serde_json::json;

use super::tasks::{OTHER, get, hand_in, until};
use super::{ImageGateway, header, refusal};

async fn submit(gateway: &Gateway, key: &str, prompt: &str) -> Response {
    let body = json!({"model": "art", "prompt": prompt, "async": true});
    let request = new_client().post(gateway.url("/v1/images/generations"));
    let request = request.bearer_auth(key).json(&body);
    request.send().await.expect("an answer")
}

#[tokio::test]
async fn a_key_with_many_tasks_leaves_room_and_turns_to_others() {
    let mock = Mock::start();
    let config = super::config(&mock) + "images: {tasks: {at_once: 1, waiting: 8}}\n";
    let gateway = Gateway::start(&config);
    let prompt = "mock:wait=go mock:name=many";
    assert_eq!(submit(&gateway, KEY, prompt).await.status(), 202);
    mock.until_seen("many", "waiting", 1).await;
    let flood = (0..30).map(|_| submit(&gateway, KEY, prompt));
    let mut accepted = 0;
    for response in join_all(flood).await {
        if response.status() == 202 {
            accepted += 1;
            continue;
        }
        assert_eq!(response.headers()["retry-after"], "5");
        let (status, _, message) = refusal(response).await;
        assert_eq!(status, 429, "{message}");
        assert!(
            message.contains("images.tasks.waiting_per_key"),
            "{message}"
        );
    }
    // Half of the queue.
    assert!((1..=4).contains(&accepted), "{accepted}");
    let other = "mock:wait=stay mock:name=other";
    assert_eq!(submit(&gateway, OTHER, other).await.status(), 202);
    // Whoever had no turn yet is next, though others came before.
    mock.signal("go", 1).await;
    mock.until_seen("other", "waiting", 1).await;
    assert_eq!(mock.seen("many", "started").await, 1);
    mock.signal("stay", 1).await;
    mock.signal("go", 4).await;
    mock.until_seen("many", "finished", 1 + accepted).await;
}

#[tokio::test]
async fn the_concurrency_of_a_key_holds_for_its_tasks_too() {
    let mock = Mock::start();
    let limited = format!("secret: {KEY}, limits: {{concurrency: 1}}");
    let config = super::config(&mock).replace(&format!("secret: {KEY}"), &limited);
    let setup = ImageGateway {
        gateway: Gateway::start(&config),
        mock,
    };
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(hand_in(&setup, "mock:wait=go mock:name=slot").await);
    }
    setup.mock.until_seen("slot", "waiting", 1).await;
    let body = json!({"model": "art", "prompt": "a cat"});
    let (status, _, message) = setup.refused("/v1/images/generations", &body).await;
    assert_eq!(status, 429, "{message}");
    assert!(message.contains("1 requests at once"), "{message}");
    // Its other tasks wait, and those of others pass by them.
    let other = submit(&setup.gateway, OTHER, "mock:name=other").await;
    assert_eq!(other.status(), 202);
    setup.mock.until_seen("other", "finished", 1).await;
    assert_eq!(setup.mock.seen("slot", "started").await, 1);
    let mut statuses = Vec::new();
    for path in &tasks {
        statuses.push(get(&setup.gateway, path).await["status"].clone());
    }
    statuses.sort_by_key(ToString::to_string);
    assert_eq!(statuses[2], "running", "{statuses:?}");
    setup.mock.signal("go", 1).await;
    setup.mock.until_seen("slot", "started", 2).await;
    setup.mock.signal("go", 2).await;
    for path in &tasks {
        until(&setup.gateway, path, "succeeded").await;
    }
    setup.gateway.until_idle().await;
    assert_eq!(setup.generate(&body).await.status(), 200);
}

#[tokio::test]
async fn the_tasks_of_a_key_have_a_quota_of_bytes() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (store, journal) = (path("store.db"), path("journal"));
    let stored = format!("store: \"sqlite:{store}\"\njournal: {{path: \"{journal}\"}}\n");
    for store in ["", &*stored] {
        let mock = Mock::start();
        let tasks = "images: {tasks: {at_once: 1, max_bytes_per_key: 20KiB}}\n";
        let config = format!("{store}{}{tasks}", super::config(&mock));
        let gateway = Gateway::start(&config);
        let words = |words: &str, size: usize| format!("{words} {}", "x".repeat(size));
        let held = words("mock:wait=go mock:name=held", 15_000);
        let first = submit(&gateway, KEY, &held).await;
        assert_eq!(first.status(), 202);
        let first = header(&first, "location").to_owned();
        mock.until_seen("held", "waiting", 1).await;
        // What waits and runs is not given up for what comes.
        let refused = refusal(submit(&gateway, KEY, &held).await).await;
        assert_eq!(refused.0, 429, "{}", refused.2);
        assert!(
            refused.2.contains("images.tasks.max_bytes_per_key"),
            "{}",
            refused.2
        );
        let refused = refusal(submit(&gateway, KEY, &words("", 30_000)).await).await;
        assert_eq!(refused.0, 413, "{}", refused.2);
        assert_eq!(
            submit(&gateway, OTHER, &words("", 15_000)).await.status(),
            202
        );
        mock.signal("go", 1).await;
        until(&gateway, &first, "succeeded").await;
        assert_eq!(
            submit(&gateway, KEY, &words("", 15_000)).await.status(),
            202
        );
    }
}
