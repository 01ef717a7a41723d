//! A thousand concurrent requests against a spending cap that ten of them exhaust.

use std::collections::HashMap;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, request, send, wait_until,
};
use serde_json::Value;

use super::{config, lines};

const REQUESTS: usize = 1000;

/// A thousandth for every token of the answer: a limit of 100 may cost 0.1, a tenth of the cap.
const MODELS: &str = "  - {id: m-chat, pricing: {output: 1000}, upstreams: [{name: chat}]}\n  \
                      - {id: m-messages, pricing: {output: 1000}, upstreams: [{name: messages}]}\n";
const KEYS: &str = ", {name: crowd, secret: key-crowd, spending_cap: 1}";

/// In units of a thousandth; what is finer than that is none of these costs.
fn thousandths(cost: &str) -> u64 {
    let (whole, decimals) = cost.split_once('.').unwrap_or((cost, "0"));
    assert!(decimals.len() <= 3, "{cost}");
    let decimals: u64 = format!("{decimals:0<3}").parse().expect("digits");
    whole.parse::<u64>().expect("digits") * 1000 + decimals
}

fn capped_request(
    gateway: &Gateway,
    number: usize,
    words: &str,
    stream: bool,
) -> reqwest::RequestBuilder {
    let (format, _) = FORMATS[number % 4];
    let model = ["m-chat", "m-messages"][number / 4 % 2];
    let (path, mut body) = request(format, model, words, stream);
    match format {
        "chat" => body["max_completion_tokens"] = 100.into(),
        "messages" => body["max_tokens"] = 100.into(),
        "responses" => body["max_output_tokens"] = 100.into(),
        _ => body["generationConfig"]["maxOutputTokens"] = 100.into(),
    }
    client()
        .post(gateway.url(&path))
        .bearer_auth("key-crowd")
        .json(&body)
}

#[tokio::test]
async fn a_thousand_concurrent_requests_spend_no_more_than_the_cap() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, KEYS, MODELS));
    let words = "mock:usage=5,0,100,0 mock:text=hi mock:wait=go mock:name=in";
    let request: Vec<_> = (0..REQUESTS)
        .map(|number| {
            tokio::spawn(send(capped_request(
                &gateway,
                number,
                words,
                number % 3 == 0,
            )))
        })
        .collect();
    // Those that were let in wait at the upstream until all others have been refused.
    wait_until("ten are in and the others out", async || {
        let refused = gateway.metric("omniglot_requests_total").await;
        let refused: usize = refused
            .iter()
            .filter(|line| line.contains("status=\"429\""))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok())
            .sum();
        refused == REQUESTS - 10 && mock.seen("in", "started").await == 10
    })
    .await;
    let done = tokio::spawn(async move {
        let mut statuses: HashMap<u16, usize> = HashMap::new();
        let mut refused = Vec::new();
        for response in request {
            let response: Response = response.await.expect("no panic");
            *statuses.entry(response.status).or_default() += 1;
            refused.extend((response.status == 429).then_some(response));
        }
        (statuses, refused)
    });
    while !done.is_finished() {
        mock.signal("go", 10).await;
    }
    let (statuses, refused) = done.await.expect("no panic");
    assert_eq!(statuses, HashMap::from([(200, 10), (429, REQUESTS - 10)]));
    for response in refused {
        assert_eq!(response.header("retry-after"), "1", "{}", response.text());
        assert!(response.text().contains("is held for requests in flight"));
    }
    gateway.until_idle().await;
    let response = send(capped_request(&gateway, 0, "hello", false)).await;
    let message = response.error("chat");
    assert_eq!(
        message,
        "the API key `crowd` has reached its spending cap of 1; it does not reset"
    );
    let spent = lines(gateway);
    let spent = spent.iter().map(|line| line.field("cost"));
    let spent: u64 = spent.filter(|cost| *cost != "null").map(thousandths).sum();
    assert_eq!(spent, 1000);
}

/// However a request ends.
const ENDS: [(&str, bool); 8] = [
    ("mock:usage=5,0,100,0 mock:text=hi", false),
    ("mock:usage=5,0,100,0 mock:text=hi", true),
    ("mock:usage=5,0,40,0 mock:text=hi", true),
    ("mock:error=500", false),
    ("mock:error=400", true),
    ("mock:events=9 mock:stream_error=4", true),
    ("mock:events=9 mock:cut=7", true),
    ("mock:garbage", false),
];

#[tokio::test]
async fn no_reservation_stays_however_requests_end() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, KEYS, MODELS));
    let mut asked = Vec::new();
    let mut leaving = Vec::new();
    for number in 0..REQUESTS {
        // Every ninth client leaves: at once, or when its stream has begun.
        if number % 9 == 0 {
            let words = "mock:usage=5,0,40,0 mock:text=hi mock:wait=go";
            let asked = capped_request(&gateway, number, words, number % 2 == 0);
            leaving.push(tokio::spawn(async move {
                let begun = asked.send().await.expect("an answer");
                begun.status().as_u16()
            }));
            continue;
        }
        let (words, stream) = ENDS[number % 8];
        asked.push(tokio::spawn(send(capped_request(
            &gateway, number, words, stream,
        ))));
    }
    for response in asked {
        let status = response.await.expect("no panic").status;
        assert!(matches!(status, 200 | 400 | 429 | 500 | 502), "{status}");
    }
    leaving.iter().for_each(tokio::task::JoinHandle::abort);
    // Their responses are paid for all the same: those of ten clients at most, each with fewer than 20 events.
    mock.signal("go", 200).await;
    gateway.until_idle().await;
    // What is left now can be spent to the last thousandth, because nothing is held any more.
    let mut left = 1000;
    while left > 0 {
        let response = send(capped_request(&gateway, 0, "mock:usage=5,0,100,0", false)).await;
        if response.status == 200 {
            // Its client has it all a moment before it is paid.
            gateway.until_idle().await;
            continue;
        }
        let message = response.error("chat");
        assert_eq!(
            response.json()["error"]["code"],
            "insufficient_quota",
            "{message}"
        );
        left = match message
            .split_once("has ")
            .and_then(|(_, rest)| rest.split_once(" left"))
        {
            Some((amount, _)) => thousandths(amount),
            None => 0,
        };
        assert!(left < 100, "{message}");
        if left > 0 {
            let (path, mut body) = request("chat", "m-chat", "", false);
            body["max_tokens"] = left.into();
            body["messages"][0]["content"] = Value::from(format!("mock:usage=5,0,{left},0"));
            let last = client().post(gateway.url(&path)).bearer_auth("key-crowd");
            let last = send(last.json(&body)).await;
            assert_eq!(last.status, 200, "{}", last.text());
        }
        gateway.until_idle().await;
    }
    // Other keys have nothing to do with it.
    let (path, body) = request("chat", "m-chat", "hello", false);
    let other = client().post(gateway.url(&path)).bearer_auth(KEY);
    assert_eq!(send(other.json(&body)).await.status, 200);
    let crowd = lines(gateway);
    let crowd = crowd.iter().filter(|line| line.field("key") == "\"crowd\"");
    let costs = crowd.map(|line| line.field("cost"));
    let spent: u64 = costs.filter(|cost| *cost != "null").map(thousandths).sum();
    assert_eq!(spent, 1000, "the cap, and not a thousandth more");
}
