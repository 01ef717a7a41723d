//! Rate limits of one key over three gateways and one Redis, which may go down.

use std::time::Instant;

use ::redis as redis_client;
use futures_util::future::join_all;
use omniglot_test_support::{
    Gateway, Mock, Redis, Response, Stderr, TcpProxy, client, request, send, wait_for, wait_until,
};

pub const KEY: &str = "key-of-many";

fn config(mock: &Mock, address: &str, limits: &str) -> String {
    format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nlimits_store: {address}\n\
         keys: [{{name: shared, secret: {KEY}, limits: {limits}}}, {{name: free, secret: key-free}}]\n\
         upstreams: [{{name: up, format: chat, base_url: \"{url}\"}}, \
           {{name: painter, format: images, base_url: \"{url}\"}}]\n\
         models: [{{id: m, upstreams: [{{name: up}}]}}, {{id: art, model_type: image, upstreams: [{{name: painter}}]}}]\n",
        url = mock.url("/v1")
    )
}

pub struct ThreeGateways {
    pub mock: Mock,
    address: String,
    pub gateways: Vec<Gateway>,
}

pub fn start_three(redis: &Redis, limits: &str) -> ThreeGateways {
    let mock = Mock::start();
    let address = format!("redis://127.0.0.1:{}/{}", redis.port(), redis.database());
    let config = config(&mock, &address, limits);
    ThreeGateways {
        gateways: (0..3).map(|_| Gateway::start(&config)).collect(),
        mock,
        address,
    }
}

fn limited_request(gateway: &Gateway, key: &str, words: &str) -> reqwest::RequestBuilder {
    let (path, body) = request("chat", "m", words, false);
    let asked = client().post(gateway.url(&path)).bearer_auth(key);
    asked.json(&body)
}

pub async fn send_request(gateway: &Gateway, words: &str) -> Response {
    send(limited_request(gateway, KEY, words)).await
}

/// How many requests it decided on alone: Redis may be too slow on a busy machine.
async fn decided_alone(gateway: &Gateway) -> u64 {
    let name = "omniglot_limited_alone_total{} ";
    let lines = gateway.metric(name).await;
    let number = lines.first().and_then(|line| line.strip_prefix(name));
    number.and_then(|text| text.parse().ok()).expect("a number")
}

pub async fn any_alone(gateways: &[Gateway]) -> bool {
    for gateway in gateways {
        if decided_alone(gateway).await > 0 {
            return true;
        }
    }
    false
}

async fn until_refused(gateway: &Gateway) -> Response {
    wait_for("it is refused", async || {
        let response = send_request(gateway, "hello").await;
        (response.status == 429).then_some(response)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis"]
async fn requests_per_minute_are_shared_by_all_gateways() {
    let redis = Redis::shared();
    wait_for("Redis answers in time", async || {
        requests_per_minute(redis).await
    })
    .await;
}

/// `None`: some were not asked of Redis.
async fn requests_per_minute(redis: &Redis) -> Option<()> {
    let setup = start_three(redis, "{requests_per_minute: 30}");
    let since = Instant::now();
    let mut answers = Vec::new();
    for gateway in &setup.gateways {
        answers.push(send_request(gateway, "hello").await);
    }
    let earned_at_first = since.elapsed().as_secs() / 2 + 1;
    let crowd = (0..60).map(|number| send_request(&setup.gateways[number % 3], "hello"));
    let crowd = join_all(crowd).await;
    // It fills up again meanwhile: one every two seconds.
    let earned = since.elapsed().as_secs() / 2 + 1;
    if any_alone(&setup.gateways).await {
        return None;
    }
    for (number, response) in answers.iter().enumerate() {
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(response.header("x-ratelimit-limit-requests"), "30");
        let remaining = response.header("x-ratelimit-remaining-requests");
        let remaining: u64 = remaining.parse().expect("a number");
        let left = 29 - number as u64;
        let most = left + earned_at_first;
        assert!((left..=most).contains(&remaining), "{remaining}");
    }
    let mut served = 3;
    for response in crowd {
        if response.status == 200 {
            served += 1;
            continue;
        }
        assert_eq!(response.status, 429, "{}", response.text());
        let message = "this API key has reached its limit of 30 requests per minute";
        assert_eq!(response.error("chat"), message);
        assert!(!response.header("retry-after").is_empty());
    }
    assert!((30..=30 + earned).contains(&served), "{served}");
    // Keys without limits have nothing to do with it.
    let free = send(limited_request(&setup.gateways[0], "key-free", "hello")).await;
    assert_eq!(free.status, 200);
    Some(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis"]
async fn concurrency_is_shared_by_all_gateways() {
    let redis = Redis::shared();
    wait_for("Redis answers in time", async || {
        requests_at_once(redis).await
    })
    .await;
}

/// `None`: some were not asked of Redis.
async fn requests_at_once(redis: &Redis) -> Option<()> {
    let ThreeGateways {
        mock,
        address,
        mut gateways,
    } = start_three(redis, "{concurrency: 4}");
    let words = "mock:wait=go mock:name=in";
    let mut asked: Vec<_> = (0..4)
        .map(|number| {
            let request = limited_request(&gateways[number % 3], KEY, words);
            tokio::spawn(async move {
                request
                    .send()
                    .await
                    .map(|response| response.status().as_u16())
            })
        })
        .collect();
    mock.until_seen("in", "started", 4).await;
    if any_alone(&gateways).await {
        return None;
    }
    for gateway in &gateways {
        let answer = until_refused(gateway).await;
        let message = "this API key has reached its limit of 4 requests at once";
        assert_eq!(answer.error("chat"), message);
    }
    // A place that comes free at one is free at all of them.
    asked.remove(1).abort();
    wait_until("there is a place", async || {
        send_request(&gateways[2], "hello").await.status == 200
    })
    .await;
    // One that is killed holds its two places until their time is over, within a minute.
    drop(gateways.remove(0));
    let client = redis_client::Client::open(address).expect("an address");
    let connection = client.get_multiplexed_async_connection().await;
    let mut connection = connection.expect("connected");
    let served = "omniglot:{shared}:served";
    wait_until("the third place is free", async || {
        let mut connection = connection.clone();
        let count = redis_client::cmd("ZCARD").arg(served).to_owned();
        count.query_async::<u64>(&mut connection).await == Ok(3)
    })
    .await;
    let (now, _): (u64, u64) = redis_client::cmd("TIME")
        .query_async(&mut connection)
        .await
        .expect("the time");
    let all: Vec<(String, f64)> = redis_client::cmd("ZRANGE")
        .arg(&[served, "0", "-1", "WITHSCORES"])
        .query_async(&mut connection)
        .await
        .expect("who is served");
    for (id, until) in all {
        assert!(until <= (now + 61) as f64 * 1000.0, "{id}: {until}");
        // As if that time had passed.
        let _: i64 = redis_client::cmd("ZADD")
            .arg(&[served, "1", &id])
            .query_async(&mut connection)
            .await
            .expect("set");
    }
    let words = "mock:wait=go mock:name=after";
    let again: Vec<_> = (0..4)
        .map(|_| tokio::spawn(limited_request(&gateways[0], KEY, words).send()))
        .collect();
    mock.until_seen("after", "started", 4).await;
    if decided_alone(&gateways[0]).await == 0 {
        until_refused(&gateways[1]).await;
    }
    asked.iter().for_each(tokio::task::JoinHandle::abort);
    again.iter().for_each(tokio::task::JoinHandle::abort);
    Some(())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis"]
async fn tokens_per_minute_are_shared_by_all_gateways() {
    let redis = Redis::shared();
    let setup = start_three(redis, "{tokens_per_minute: 1000}");
    // A debt of an hour.
    let response = send_request(&setup.gateways[0], "mock:usage=1000,0,60000,0").await;
    assert_eq!(response.status, 200, "{}", response.text());
    for gateway in &setup.gateways {
        let response = until_refused(gateway).await;
        let message = "this API key has reached its limit of 1000 tokens per minute";
        assert_eq!(response.error("chat"), message);
        let wait: u64 = response.header("retry-after").parse().expect("seconds");
        // What was asked before it was known of counts, too.
        assert!((3000..=3700).contains(&wait), "{wait}");
    }
}

/// An image that nobody waits for costs as much as any.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis"]
async fn tokens_of_an_image_task_are_shared_by_all_gateways() {
    let redis = Redis::shared();
    let setup = start_three(redis, "{tokens_per_minute: 1000}");
    let prompt = "a cat mock:usage=1000,0,60000,0";
    let body = serde_json::json!({"model": "art", "prompt": prompt, "async": true});
    let handed_in = client().post(setup.gateways[0].url("/v1/images/generations"));
    let handed_in = send(handed_in.bearer_auth(KEY).json(&body)).await;
    assert_eq!(handed_in.status, 202, "{}", handed_in.text());
    for gateway in &setup.gateways {
        let response = until_refused(gateway).await;
        let wait: u64 = response.header("retry-after").parse().expect("seconds");
        assert!((3000..=3700).contains(&wait), "{wait}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Redis"]
async fn requests_are_served_while_redis_is_down_and_it_is_used_again_later() {
    let redis = Redis::shared();
    let mock = Mock::start();
    let proxy = TcpProxy::to(redis.port()).await;
    proxy.open().await;
    let address = format!("redis://:hush@127.0.0.1:{}", proxy.address.port());
    // A password that is asked for and not wanted is refused: it is not up.
    let stderr = Stderr::new();
    let limits = "{requests_per_minute: 3000, concurrency: 50}";
    let refused = Gateway::start_with(&config(&mock, &address, limits), |command| {
        stderr.attach(command);
    });
    assert_eq!(send_request(&refused, "hello").await.status, 200);
    drop(refused);
    let message = stderr.text();
    assert!(message.contains("does not answer"), "{message}");
    assert!(!message.contains("hush"), "{message}");

    let database = redis.database();
    let address = format!("redis://127.0.0.1:{}/{database}", proxy.address.port());
    let stderr = Stderr::new();
    let gateway = Gateway::start_with(&config(&mock, &address, limits), |command| {
        stderr.attach(command);
    });
    let is = async |line: &str| {
        let name = line.split([' ', '{']).next().unwrap_or_default();
        gateway.metric(name).await == [line]
    };
    wait_until("it is up", async || {
        is("omniglot_limits_store_up{} 1").await
    })
    .await;
    assert_eq!(send_request(&gateway, "hello").await.status, 200);
    proxy.close();
    let before = decided_alone(&gateway).await;
    for _ in 0..20 {
        assert_eq!(send_request(&gateway, "hello").await.status, 200);
    }
    wait_until("it is told that it is away", async || {
        is("omniglot_limits_store_up{} 0").await
    })
    .await;
    assert_eq!(decided_alone(&gateway).await, before + 20);
    proxy.open().await;
    wait_until("it is in use again", async || {
        is("omniglot_limits_store_up{} 1").await
    })
    .await;
    wait_until("it is asked again", async || {
        let before = decided_alone(&gateway).await;
        send_request(&gateway, "hello").await.status == 200
            && decided_alone(&gateway).await == before
    })
    .await;
    let message = stderr.text();
    assert!(
        message.contains("limits of keys hold per process"),
        "{message}"
    );
    assert!(message.contains("is in use again"), "{message}");
}
