//! Requests for images, and requests that need no upstream, within the limits of one key over three gateways.

use std::time::Instant;

use futures_util::future::join_all;
use omniglot_test_support::{Gateway, Redis, Response, client, send, wait_for, wait_until};
use serde_json::json;

use crate::rate_limits::{KEY, ThreeGateways, any_alone, send_request, start_three};

fn image_request(gateway: &Gateway, prompt: &str) -> reqwest::RequestBuilder {
    let asked = client().post(gateway.url("/v1/images/generations"));
    let body = json!({"model": "art", "prompt": prompt});
    asked.bearer_auth(KEY).json(&body)
}

fn list_request(gateway: &Gateway) -> reqwest::RequestBuilder {
    client().get(gateway.url("/v1/models")).bearer_auth(KEY)
}

/// Sends 60 requests to all three, which may serve 30 a minute. `None`: some were not asked of Redis.
async fn crowd(
    setup: &ThreeGateways,
    request: impl Fn(&Gateway) -> reqwest::RequestBuilder,
) -> Option<()> {
    let since = Instant::now();
    let crowd = (0..60).map(|number| send(request(&setup.gateways[number % 3])));
    let crowd: Vec<Response> = join_all(crowd).await;
    // It fills up again meanwhile: one every two seconds.
    let earned = since.elapsed().as_secs() as usize / 2 + 1;
    // It is the same limit for requests of every kind.
    let other = send_request(&setup.gateways[0], "hello").await;
    let earned_after = since.elapsed().as_secs() as usize / 2 + 1;
    if any_alone(&setup.gateways).await {
        return None;
    }
    let served = crowd.iter().filter(|response| response.status == 200);
    let served = served.count();
    assert!((30..=30 + earned).contains(&served), "{served}");
    for response in crowd.iter().filter(|response| response.status != 200) {
        assert_eq!(response.status, 429, "{}", response.text());
        let message = "this API key has reached its limit of 30 requests per minute";
        assert_eq!(response.error("chat"), message);
        assert!(!response.header("retry-after").is_empty());
    }
    let is_refused = other.status == 429;
    assert!(is_refused || served < 30 + earned_after, "{}", other.text());
    Some(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis"]
async fn requests_that_need_no_upstream_are_counted_by_all_gateways() {
    let redis = Redis::shared();
    wait_for("Redis answers in time", async || {
        let setup = start_three(redis, "{requests_per_minute: 30, concurrency: 500}");
        crowd(&setup, list_request).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis"]
async fn requests_for_images_are_counted_by_all_gateways() {
    let redis = Redis::shared();
    wait_for("Redis answers in time", async || {
        let setup = start_three(redis, "{requests_per_minute: 30, concurrency: 500}");
        crowd(&setup, |gateway| image_request(gateway, "a cat")).await
    })
    .await;
}

/// `None`: some were not asked of Redis.
async fn images_at_once(redis: &Redis) -> Option<()> {
    let setup = start_three(redis, "{concurrency: 2}");
    let prompt = "a cat mock:wait=go mock:name=in";
    let mut asked: Vec<_> = (0..2)
        .map(|number| tokio::spawn(image_request(&setup.gateways[number], prompt).send()))
        .collect();
    setup.mock.until_seen("in", "started", 2).await;
    if any_alone(&setup.gateways).await {
        return None;
    }
    let last = &setup.gateways[2];
    let refused = [
        send(image_request(last, "a dog")).await,
        send_request(last, "hello").await,
    ];
    if any_alone(&setup.gateways).await {
        return None;
    }
    for refused in refused {
        assert_eq!(refused.status, 429, "{}", refused.text());
        let message = "this API key has reached its limit of 2 requests at once";
        assert_eq!(refused.error("chat"), message);
    }
    // A place that comes free at one is free at all of them, and only that one.
    asked.remove(0).abort();
    wait_until("there is a place", async || {
        send(image_request(last, "a dog")).await.status == 200
    })
    .await;
    asked.iter().for_each(tokio::task::JoinHandle::abort);
    Some(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis"]
async fn images_at_once_are_limited_over_all_gateways() {
    let redis = Redis::shared();
    wait_for("Redis answers in time", async || {
        images_at_once(redis).await
    })
    .await;
}
