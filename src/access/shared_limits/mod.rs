//! Limits of keys that several gateways keep together, counted in a Redis; without it each keeps them alone.

mod link;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use redis::Script;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use link::Link;

use crate::config::{Limits, LimitsStore};
use crate::metrics::Metrics;
use crate::runtime::{Key, KeyPermit, LimitReached};

/// A request does not wait longer than this for it.
const PATIENCE: Duration = Duration::from_millis(50);

/// How long a request counts as being served by a process that gives no sign of life, and how often a living one does.
const SERVED_FOR: Duration = Duration::from_secs(60);
const RENEWED: Duration = Duration::from_secs(15);

/// How many ends of requests are on their way to it.
const TOLD_AT_ONCE: usize = 64;

pub struct SharedLimits {
    link: Link,
    admit: Script,
    ended: UnboundedSender<Ended>,
    serving: Serving,
    metrics: Arc<Metrics>,
}

/// The ids of requests in flight, each with its key.
type Serving = Arc<Mutex<HashMap<Uuid, Arc<str>>>>;

/// A request that the others know of; they hear of its end when this is dropped.
pub(super) struct SharedPermit {
    id: Uuid,
    key: Arc<str>,
    limits: Limits,
    tokens: AtomicU64,
    /// Redis may count it.
    is_known: bool,
    serving: Serving,
    ended: UnboundedSender<Ended>,
}

struct Ended {
    id: Uuid,
    key: Arc<str>,
    limits: Limits,
    tokens: u64,
}

impl Drop for SharedPermit {
    fn drop(&mut self) {
        locked(&self.serving).remove(&self.id);
        if !self.is_known {
            return;
        }
        // Nobody listens only when the process ends.
        let _ = self.ended.send(Ended {
            id: self.id,
            key: self.key.clone(),
            limits: self.limits,
            tokens: self.tokens.load(Ordering::Relaxed),
        });
    }
}

impl SharedPermit {
    pub(super) fn charge(&self, tokens: u64) {
        self.tokens.store(tokens, Ordering::Relaxed);
    }
}

impl SharedLimits {
    /// With what keeps it going, which is to be polled where tokio runs for as long as there are requests.
    pub fn new(
        settings: &LimitsStore,
        metrics: &Arc<Metrics>,
    ) -> Result<(SharedLimits, impl Future<Output = ()> + Send + use<>), String> {
        let link = Link::new(settings, metrics.clone())?;
        let (ended, ends) = unbounded_channel();
        let serving = Serving::default();
        let shared = SharedLimits {
            link: link.clone(),
            admit: Script::new(include_str!("admit.lua")),
            ended,
            serving: serving.clone(),
            metrics: metrics.clone(),
        };
        let (settling, renewing) = (settle(link.clone(), ends), renew(link.clone(), serving));
        let running = async move {
            tokio::join!(link.run(), settling, renewing);
        };
        Ok((shared, running))
    }

    /// Returns when it can be used, or after so long.
    pub async fn ready(&self, limit: Duration) {
        let _ = timeout(limit, self.link.until_up()).await;
    }

    /// Admits one request of a key, or says what stands against it. Where Redis cannot be asked,
    /// this process decides alone, from what it last knew.
    pub(super) async fn admit(&self, key: &Key) -> Result<(KeyPermit, SharedPermit), LimitReached> {
        let mut permit = self.unasked(key);
        locked(&self.serving).insert(permit.id, key.name.clone());
        let Some((word, wait, requests, tokens)) = self.ask(&permit).await else {
            self.metrics.limited_alone();
            let alone = key.limiter.admit(&key.limits, Instant::now())?;
            // It may have been counted all the same: its end is told too.
            return Ok((alone, permit));
        };
        let (requests, tokens) = (number(&requests), number(&tokens));
        key.limiter.adopt(requests, tokens, Instant::now());
        let wait = Duration::from_millis(wait);
        let reached = match word.as_str() {
            "concurrency" => LimitReached::Concurrency,
            "tokens" => LimitReached::Tokens(wait),
            "requests" => LimitReached::Requests(wait),
            _ => return Ok((key.limiter.enter(), permit)),
        };
        permit.is_known = false;
        Err(reached)
    }

    /// For a request that has been counted already; the others hear what it has used.
    pub(super) fn unasked(&self, key: &Key) -> SharedPermit {
        SharedPermit {
            id: Uuid::now_v7(),
            key: key.name.clone(),
            limits: key.limits,
            tokens: AtomicU64::new(0),
            is_known: true,
            serving: self.serving.clone(),
            ended: self.ended.clone(),
        }
    }

    async fn ask(&self, permit: &SharedPermit) -> Option<(String, u64, String, String)> {
        let Limits {
            requests_per_minute,
            tokens_per_minute,
            concurrency,
        } = permit.limits;
        let mut asking = self.admit.prepare_invoke();
        for name in names(&permit.key) {
            asking.key(name);
        }
        asking
            .arg(written(requests_per_minute))
            .arg(written(tokens_per_minute))
            .arg(written(concurrency))
            .arg(permit.id.to_string())
            .arg(milliseconds(SERVED_FOR));
        self.link
            .ask(PATIENCE, async |connection| {
                asking.invoke_async(connection).await
            })
            .await
    }
}

/// Tells of requests that have ended, several at once: one after the other they would end faster than can be told.
async fn settle(link: Link, ends: UnboundedReceiver<Ended>) {
    let script = Script::new(include_str!("settle.lua"));
    let next = async |mut ends: UnboundedReceiver<Ended>| Some((ends.recv().await?, ends));
    let tell = async |end: Ended| {
        let mut telling = script.prepare_invoke();
        for name in names(&end.key) {
            telling.key(name);
        }
        telling
            .arg(end.id.to_string())
            .arg(end.tokens)
            .arg(written(end.limits.tokens_per_minute));
        // What cannot be told is over by itself after a while.
        let _: Option<i64> = link
            .ask(PATIENCE * 10, async |connection| {
                telling.invoke_async(connection).await
            })
            .await;
    };
    let ends = futures_util::stream::unfold(ends, next);
    ends.for_each_concurrent(TOLD_AT_ONCE, tell).await;
}

/// Gives a sign of life for requests that take long.
async fn renew(link: Link, serving: Serving) {
    let script = Script::new(include_str!("renew.lua"));
    loop {
        sleep(RENEWED).await;
        let mut keys: HashMap<Arc<str>, Vec<Uuid>> = HashMap::new();
        for (id, key) in locked(&serving).iter() {
            keys.entry(key.clone()).or_default().push(*id);
        }
        for (key, ids) in keys {
            let [_, at_once] = names(&key);
            let mut renewing = script.prepare_invoke();
            renewing.key(at_once).arg(milliseconds(SERVED_FOR));
            for id in ids {
                renewing.arg(id.to_string());
            }
            let _: Option<i64> = link
                .ask(PATIENCE * 10, async |connection| {
                    renewing.invoke_async(connection).await
                })
                .await;
        }
    }
}

/// What a key has taken, and which of its requests are being served. A cluster keeps both in one place.
fn names(key: &str) -> [String; 2] {
    [
        format!("omniglot:{{{key}}}:taken"),
        format!("omniglot:{{{key}}}:served"),
    ]
}

fn written(limit: Option<u64>) -> String {
    limit.map(|limit| limit.to_string()).unwrap_or_default()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_default()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn locked(serving: &Serving) -> MutexGuard<'_, HashMap<Uuid, Arc<str>>> {
    serving.lock().unwrap_or_else(PoisonError::into_inner)
}
