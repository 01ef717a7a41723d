//! Clients that send requests without pause, in every format, for JSON and for streams.

use std::sync::{Arc, Mutex};

use omniglot_test_support::{FORMATS, KEY, request};

use crate::last_event::{contains, last_event};

pub const CLIENTS: usize = 8;

/// The name of these requests at the mock.
pub const NAME: &str = "load";

/// What every reply costs: 1000 × 1.25 + 50 × 10 for a million.
pub const COST: &str = "0.00175";

/// The ids of requests whose replies were read to the end.
#[derive(Default)]
pub struct CompletedRequests(Mutex<Vec<String>>);

impl CompletedRequests {
    /// How many there are with this one.
    pub fn add(&self, id: String) -> usize {
        let mut ids = self.0.lock().expect("no panic");
        ids.push(id);
        ids.len()
    }

    pub fn count(&self) -> usize {
        self.0.lock().expect("no panic").len()
    }

    pub fn sorted(&self) -> Vec<String> {
        let mut ids = self.0.lock().expect("no panic").clone();
        ids.sort();
        ids
    }
}

/// One request to its end, by its id. `None`: the gateway went away before.
pub async fn send_request(client: &reqwest::Client, base: &str, number: usize) -> Option<String> {
    let (format, _) = FORMATS[number % FORMATS.len()];
    let (upstream, _) = FORMATS[number / FORMATS.len() % FORMATS.len()];
    let stream = (number / 16).is_multiple_of(2);
    let words = format!("mock:usage=1000,400,50,20 mock:events=4 mock:name={NAME}");
    let (path, body) = request(format, &format!("priced-{upstream}"), &words, stream);
    let asked = client
        .post(format!("{base}{path}"))
        .bearer_auth(KEY)
        .json(&body);
    let mut response = asked.send().await.ok()?;
    assert_eq!(response.status(), 200);
    let header = |name: &str| {
        let value = response.headers().get(name)?;
        Some(value.to_str().expect("text").to_owned())
    };
    let id = header("x-request-id").expect("an id");
    assert_eq!(
        header("x-omniglot-cost").as_deref(),
        (!stream).then_some(COST)
    );
    let last = last_event(format).filter(|_| stream);
    let mut body = Vec::new();
    loop {
        match response.chunk().await.ok()? {
            Some(chunk) => body.extend_from_slice(&chunk),
            None => return Some(id),
        }
        if last.is_some_and(|words| contains(&body, words)) {
            return Some(id);
        }
    }
}

/// All clients ask until the gateway is gone, or until there is enough, by the count of all replies.
/// The answer is how many of them were cut off.
pub async fn send_requests(
    base: &str,
    first: usize,
    whole: &Arc<CompletedRequests>,
    is_enough: impl Fn(usize) -> bool + Clone + Send + 'static,
) -> usize {
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (base, whole) = (base.to_owned(), whole.clone());
            let is_enough = is_enough.clone();
            tokio::spawn(async move {
                let client = omniglot_test_support::client_builder()
                    .build()
                    .expect("a client");
                for number in first + number * 5.. {
                    let Some(id) = send_request(&client, &base, number).await else {
                        return true;
                    };
                    if is_enough(whole.add(id)) {
                        return false;
                    }
                }
                unreachable!("there are numbers enough")
            })
        })
        .collect();
    let mut cut_off = 0;
    for client in clients {
        cut_off += usize::from(client.await.expect("no panic"));
    }
    cut_off
}
