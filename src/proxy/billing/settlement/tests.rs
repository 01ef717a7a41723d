//! When a usage record is written, and that it stays as it is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;

use super::*;
use crate::config::{self, Reset};
use crate::formats::{Framing, Operation, ResponseOptions, estimate_json_tokens};
use crate::journal::{Flusher, Journal, UsageSink};
use crate::metrics::Metrics;
use crate::model::{Format, Money, TranslationState};
use crate::proxy::billing::{before_header, reserve};
use crate::proxy::context::RESERVED_TIME;
use crate::proxy::request_filter::route;
use crate::proxy::timer::ReusableTimer;
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
        World::with_config(CONFIG)
    }

    fn with_config(config: &str) -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let config = config::parse("test.yaml", config, &|_| None);
        World {
            runtime: Runtime::new(config.expect("a good config")),
            metrics: Arc::default(),
            journal: Arc::new(Journal::open(folder.path(), 1 << 20).expect("a journal")),
            _folder: folder,
        }
    }

    /// The context of a streaming request whose upstream has sent this much.
    fn context(&self, received: &'static str) -> RequestContext {
        let snapshot = self.runtime.snapshot();
        let journal = Some(self.journal.clone());
        let (metrics, timer) = (self.metrics.clone(), ReusableTimer::default());
        let mut ctx = RequestContext::new(snapshot.clone(), metrics, journal, timer);
        let key = snapshot.key(&key_hash(b"s3cret")).cloned();
        ctx.client.set_key(key.expect("a key"));
        ctx.route.body = Bytes::from_static(BODY.as_bytes());
        let operation = Operation::Generate;
        let conversations = &self.runtime.conversations;
        let routed = route(conversations, &mut ctx, &HeaderMap::new(), operation, None);
        routed.expect("a model");
        let reserved = reserve(None, &mut ctx);
        reserved.map(drop).expect("enough money");
        ctx.start_attempt();
        ctx.attempt.set_sent();
        let options = ResponseOptions {
            model: "m".to_owned(),
            stream: true,
            framing: Framing::Sse,
            include_usage: true,
            request_id: ctx.client.request_id().to_owned(),
            created_at: 1,
            translation_state: TranslationState::default(),
        };
        let request = ctx.route.request().expect("a request");
        let (format, content_type) = (Format::Chat, "text/event-stream");
        let translator =
            ResponseTranslator::new(format, format, request, options, content_type, 1 << 20);
        let mut translator = translator.expect("a stream");
        let mut chunk = Some(Bytes::from_static(received.as_bytes()));
        translator
            .translate_chunk(&mut chunk, false)
            .expect("a good chunk");
        ctx.response.translator = Some(translator);
        ctx.response.set_status(200);
        ctx
    }

    fn spent(&self) -> Money {
        let snapshot = self.runtime.snapshot();
        let key = snapshot.key(&key_hash(b"s3cret")).expect("a key");
        key.account.spent(Reset::Never, jiff::Timestamp::now())
    }

    /// What has been written to the journal.
    async fn usage_records(&self) -> Vec<UsageRecord<'static>> {
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
    async fn record(&self, records: &[UsageRecord<'_>]) -> Result<usize, String> {
        let mut page = self.0.lock().expect("no panic");
        page.extend(records.iter().cloned().map(UsageRecord::into_owned));
        Ok(records.len())
    }
}

#[tokio::test]
async fn a_context_that_is_dropped_is_paid_and_recorded() {
    let world = World::new();
    let words = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"four\"}}]}\n\n";
    let ctx = world.context(words);
    let (id, input) = (
        ctx.client.request_id().to_owned(),
        estimate_json_tokens(BODY.as_bytes()),
    );
    drop(ctx);
    let records = world.usage_records().await;
    assert_eq!(records.len(), 1);
    let record = &records[0];
    assert_eq!(
        (&*record.id, &*record.key, &*record.model),
        (&*id, "dev", "m")
    );
    assert_eq!((record.usage.input, record.usage.output), (input, 1));
    assert!(record.estimated && record.stream && record.status == 499);
    assert_eq!(world.spent(), record.cost);
    assert!(!record.cost.is_zero());
    let metrics = world.metrics.render(Vec::new(), Vec::new());
    assert!(
        metrics.contains("omniglot_cost_total{key=\"dev\",model=\"m\"}"),
        "{metrics}"
    );
}

#[tokio::test]
async fn the_body_is_counted_before_it_is_freed() {
    let words = r#"data: {"choices":[{"index":0,"delta":{"content":"four"}}]}"#.to_owned() + "\n\n";
    let reported = words.replace("]}\n", "],\"usage\":{\"prompt_tokens\":10}}\n");
    for (received, is_unread) in [(words, false), (reported, true)] {
        let world = World::new();
        let mut ctx = world.context(received.leak());
        before_header(&mut ctx);
        ctx.route.body = Bytes::new();
        if is_unread {
            ctx.attempt.set_unread();
        }
        drop(ctx);
        let records = world.usage_records().await;
        assert_eq!(records.len(), 1);
        assert_eq!(
            records[0].usage.input,
            estimate_json_tokens(BODY.as_bytes())
        );
    }
}

#[tokio::test]
async fn a_recorded_cost_does_not_change() {
    let world = World::new();
    let usage = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"four\"},\
         \"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":5}}\n\n";
    let mut ctx = world.context(usage);
    // More may come.
    before_chunk(&mut ctx, false);
    assert!(!ctx.billing.is_recorded() && world.spent().is_zero());
    let mut push = |chunk: &'static str| {
        let translator = ctx.response.translator.as_mut().expect("a stream");
        let mut chunk = Some(Bytes::from_static(chunk.as_bytes()));
        translator
            .translate_chunk(&mut chunk, false)
            .expect("a good chunk");
        before_chunk(&mut ctx, false);
        // The store may hear of it from now on, and then the account must know.
        ctx.billing.is_recorded() && !world.spent().is_zero()
    };
    assert!(push("data: [DONE]\n\n"));
    assert!(push(
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":99}}\n\n"
    ));
    drop(ctx);
    let records = world.usage_records().await;
    assert_eq!(records.len(), 1);
    assert_eq!((records[0].usage.input, records[0].usage.output), (10, 5));
    assert_eq!(records[0].cost.to_string(), "0.00006");
    assert_eq!(world.spent(), records[0].cost);
}

#[tokio::test]
async fn a_request_that_was_not_sent_is_not_recorded() {
    let world = World::new();
    let mut ctx = world.context("");
    ctx.response.reset();
    ctx.attempt.clear_sent();
    drop(ctx);
    assert!(world.usage_records().await.is_empty() && world.spent().is_zero());
}

#[tokio::test]
async fn time_that_is_paid_for_ends_with_what_is_reserved() {
    let words = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"four\"}}]}\n\n";
    let free = World::new().context(words);
    assert_eq!(free.deadline(), None);
    let timed = CONFIG.replace("output: 10", "output: 10, per_second: 0.001");
    let timed = World::with_config(&timed).context(words);
    let latest = tokio::time::Instant::now() + RESERVED_TIME;
    assert!(timed.deadline().is_some_and(|deadline| deadline <= latest));
}

#[tokio::test(start_paused = true)]
async fn time_is_billed_until_the_last_byte_and_never_beyond_what_is_reserved() {
    let words = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"four\"}}]}\n\n";
    let timed = CONFIG.replace("input: 1, output: 10", "per_second: 0.001");
    for (until_read, after, cost) in [(10, 5, "0.01"), (10, 500, "0.01"), (95, 0, "0.06")] {
        let world = World::with_config(&timed);
        let mut ctx = world.context(words);
        tokio::time::advance(Duration::from_secs(until_read)).await;
        ctx.attempt.note_read();
        // The client reads on.
        tokio::time::advance(Duration::from_secs(after)).await;
        drop(ctx);
        let records = world.usage_records().await;
        assert_eq!(records[0].cost.to_string(), cost, "{until_read} {after}");
    }
}
