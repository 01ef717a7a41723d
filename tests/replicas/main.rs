//! Several gateways whose shared limits and caps hold as if they were one gateway.

mod account_caps;
mod alerts;
mod concurrency;
mod other_requests;
mod rate_limits;
mod spending_caps;

use std::path::PathBuf;

use omniglot::config;
use omniglot::model::Money;
use omniglot::store::{Store, UsageGrouping};
use omniglot_test_support::{
    Database, FORMATS, Gateway, Mock, Response, client, request, send, wait_until,
};
use serde_json::json;

/// The key that all of them share, with a cap of 1.
const SHARED_KEY: &str = "key-of-many";

/// Gateways on one store, each with a journal of its own.
pub struct Replicas {
    pub mock: Mock,
    store: String,
    folder: tempfile::TempDir,
}

impl Replicas {
    pub fn on(store: String) -> Replicas {
        Replicas {
            mock: Mock::start(),
            store,
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    /// Creates an empty store.
    pub fn new(database: Database) -> Replicas {
        let folder = tempfile::tempdir().expect("a folder");
        let store = database.new_store(&folder.path().join("gate.db"));
        Replicas {
            mock: Mock::start(),
            store,
            folder,
        }
    }

    fn journal(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("journal-{number}"))
    }

    /// A thousandth for every token of an answer.
    pub fn config(&self, number: usize) -> String {
        let mut text = format!(
            "server: {{listen: LISTEN, admin: ADMIN}}\nstore: \"{}\"\njournal: {{path: {:?}}}\n\
             keys: [{{name: shared, secret: {SHARED_KEY}, spending_cap: 1}}]\nupstreams:\n",
            self.store,
            self.journal(number)
        );
        for (format, prefix) in FORMATS {
            let base = self.mock.url(prefix);
            text += &format!("  - {{name: {format}, format: {format}, base_url: \"{base}\"}}\n");
        }
        text += "models:\n";
        for (format, _) in FORMATS {
            text += &format!(
                "  - {{id: {format}, pricing: {{output: 1000}}, upstreams: [{{name: {format}}}]}}\n"
            );
        }
        text
    }

    pub fn start(&self, number: usize) -> Gateway {
        Gateway::start(&self.config(number))
    }

    pub async fn open(&self) -> Store {
        let text = format!("store: \"{}\"", self.store);
        let config = config::parse("test.yaml", &text, &|_| None).expect("a good config");
        let settings = config.store.expect("a store");
        Store::open(&settings).await.expect("it opens")
    }
}

/// What is written down as spent.
pub async fn total_cost(store: &Store) -> Money {
    let sums = store
        .usage_sums(UsageGrouping::Key, None)
        .await
        .expect("sums");
    sums.iter().map(|(_, sum)| sum.cost).sum()
}

pub fn money(text: &str) -> Money {
    Money::parse(text).expect("an amount")
}

/// A request for an answer of at most so many tokens, which does what the words say.
pub fn capped_request(
    gateway: &Gateway,
    format: &str,
    words: &str,
    most: u64,
    stream: bool,
) -> reqwest::RequestBuilder {
    let (path, mut body) = request(format, format, words, stream);
    match format {
        "chat" => body["max_completion_tokens"] = most.into(),
        "messages" => body["max_tokens"] = most.into(),
        "responses" => body["max_output_tokens"] = most.into(),
        _ => body["generationConfig"] = json!({"maxOutputTokens": most}),
    }
    let asked = client().post(gateway.url(&path)).bearer_auth(SHARED_KEY);
    asked.json(&body)
}

/// An answer of so many tokens.
pub async fn send_request(gateway: &Gateway, tokens: u64) -> Response {
    let words = format!("mock:usage=5,0,{tokens},0 mock:text=hi");
    send(capped_request(gateway, "chat", &words, tokens, false)).await
}

/// Everything that is left of the cap is used, by whoever has it, in answers of these sizes.
pub async fn spend_rest(gateways: &[Gateway], sizes: &[u64]) {
    for &tokens in sizes {
        for gateway in gateways {
            wait_until("there is not so much left", async || {
                let response = send_request(gateway, tokens).await;
                // Else it was spent, or others had it and will give it back.
                response.status == 429 && response.json()["error"]["code"] == "insufficient_quota"
            })
            .await;
        }
    }
}

pub async fn wait_until_flushed(gateways: &[Gateway]) {
    for gateway in gateways {
        gateway.until_idle().await;
        wait_until("everything is carried", async || {
            gateway.metric("omniglot_journal_waiting").await == ["omniglot_journal_waiting 0"]
        })
        .await;
    }
}
