//! When a receipt is written, and what stays in it.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;

use super::*;
use crate::config::{self, Reset};
use crate::formats::{Framing, Operation, ResponseOptions};
use crate::journal::{Flusher, Journal, UsageSink};
use crate::metrics::Metrics;
use crate::model::{Format, Money, TranslationState};
use crate::proxy::route;
use crate::runtime::{Runtime, key_hash};
use crate::translate::ResponseTranslator;

const CONFIG: &str = "{keys: [{name: dev, secret: s3cret, spending_cap: 1}], \
    upstreams: [{name: up, format: chat, base_url: 'http://127.0.0.1:1/v1'}], \
    models: [{id: m, pricing: {input: 1, output: 10}, upstreams: [{name: up}]}]}";
const BODY: &str = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"Hi"}]}"#;

struct World {
    runtime: Runtime,
    metrics: Arc<Metrics>,
    journal: Arc<Journal>,
    _folder: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let config = config::parse("test.yaml", CONFIG, &|_| None);
        World {
            runtime: Runtime::new(config.expect("a good config")),
            metrics: Arc::default(),
            journal: Arc::new(Journal::open(folder.path(), 1 << 20).expect("a journal")),
            _folder: folder,
        }
    }

    /// A stream that has been asked for and of which this has come.
    fn exchange(&self, came: &'static str) -> RequestContext {
        let snapshot = self.runtime.snapshot();
        let journal = Some(self.journal.clone());
        let mut exchange = RequestContext::new(snapshot.clone(), self.metrics.clone(), journal);
        exchange.key = snapshot.key(&key_hash(b"s3cret")).cloned();
        exchange.body = Bytes::from_static(BODY.as_bytes());
        let operation = Operation::Generate;
        let conversations = &self.runtime.conversations;
        route::route(
            conversations,
            &mut exchange,
            &HeaderMap::new(),
            operation,
            None,
        )
        .expect("a model");
        bill::reserve(None, &mut exchange)
            .map(drop)
            .expect("enough money");
        exchange.begin_attempt();
        exchange.asked_at = Some(Instant::now());
        let asked = ResponseOptions {
            model: "m".to_owned(),
            stream: true,
            framing: Framing::Sse,
            include_usage: true,
            request_id: exchange.request_id.clone(),
            at: 1,
            memory: TranslationState::default(),
        };
        let wanted = exchange.wanted.as_ref().expect("a request");
        let (format, kind) = (Format::Chat, "text/event-stream");
        let reply = ResponseTranslator::choose(format, format, wanted, asked, kind, 1 << 20);
        let mut reply = reply.expect("a stream");
        let pushed = reply.push(&mut Some(Bytes::from_static(came.as_bytes())), false);
        pushed.expect("a good piece");
        exchange.reply = Some(reply);
        exchange.status = 200;
        exchange
    }

    fn spent(&self) -> Money {
        let snapshot = self.runtime.snapshot();
        let key = snapshot.key(&key_hash(b"s3cret")).expect("a key");
        key.account.spent(Reset::Never, jiff::Timestamp::now())
    }

    /// What has been written down.
    async fn receipts(&self) -> Vec<UsageRecord<'static>> {
        let books = Arc::new(Page::default());
        let mut carrier = Flusher::new(self.journal.clone(), books.clone());
        while carrier.step().await.expect("the page takes all") > 0 {}
        std::mem::take(&mut *books.0.lock().expect("no panic"))
    }
}

#[derive(Default)]
struct Page(std::sync::Mutex<Vec<UsageRecord<'static>>>);

#[async_trait]
impl UsageSink for Page {
    async fn record(&self, receipts: &[UsageRecord<'_>]) -> Result<usize, String> {
        let mut page = self.0.lock().expect("no panic");
        page.extend(receipts.iter().cloned().map(UsageRecord::into_owned));
        Ok(receipts.len())
    }
}

#[tokio::test]
async fn a_request_that_is_dropped_is_paid_and_has_its_receipt() {
    let world = World::new();
    let words = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"four\"}}]}\n\n";
    let exchange = world.exchange(words);
    let (id, input) = (exchange.request_id.clone(), BODY.len().div_ceil(4) as u64);
    drop(exchange);
    let receipts = world.receipts().await;
    assert_eq!(receipts.len(), 1);
    let receipt = &receipts[0];
    assert_eq!(
        (&*receipt.id, &*receipt.key, &*receipt.model),
        (&*id, "dev", "m")
    );
    assert_eq!((receipt.usage.input, receipt.usage.output), (input, 1));
    assert!(receipt.estimated && receipt.stream && receipt.status == 499);
    assert_eq!(world.spent(), receipt.cost);
    assert!(!receipt.cost.is_zero());
    let metrics = world.metrics.render(Vec::new());
    assert!(
        metrics.contains("omniglot_cost_total{key=\"dev\",model=\"m\"}"),
        "{metrics}"
    );
}

#[tokio::test]
async fn a_bill_that_is_written_down_stays_as_it_is() {
    let world = World::new();
    let usage = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"four\"},\
         \"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\n";
    let mut exchange = world.exchange(usage);
    // More may come.
    before_piece(&mut exchange, false);
    assert!(!exchange.receipted && world.spent().is_zero());
    let mut push = |piece: &'static str| {
        let reply = exchange.reply.as_mut().expect("a reply");
        let pushed = reply.push(&mut Some(Bytes::from_static(piece.as_bytes())), false);
        pushed.expect("a good piece");
        before_piece(&mut exchange, false);
        // The store may hear of it from now on, and then the account must know.
        exchange.receipted && !world.spent().is_zero()
    };
    assert!(push("data: [DONE]\n\n"));
    assert!(push(
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":99}}\n\n"
    ));
    drop(exchange);
    let receipts = world.receipts().await;
    assert_eq!(receipts.len(), 1);
    assert_eq!((receipts[0].usage.input, receipts[0].usage.output), (10, 5));
    assert_eq!(receipts[0].cost.to_string(), "0.00006");
    assert_eq!(world.spent(), receipts[0].cost);
}

#[tokio::test]
async fn a_request_that_asked_nobody_has_none() {
    let world = World::new();
    let mut exchange = world.exchange("");
    exchange.delete_response();
    drop(exchange);
    assert!(world.receipts().await.is_empty() && world.spent().is_zero());
}
