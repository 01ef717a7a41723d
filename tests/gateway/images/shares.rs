//! What one key may take of the queue of image tasks and of the slots of others.

use futures_util::future::join_all;
use omniglot_test_support::{Gateway, KEY, Mock, new_client};
use reqwest::Response;
use serde_json::json;

use super::tasks::{OTHER, get, hand_in, until};
use super::{ImageGateway, refusal};

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
