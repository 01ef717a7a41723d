//! Rate limits of keys that several gateways share, counted in Redis; without it each gateway counts alone.

mod redis_link;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use redis::Script;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use redis_link::{REQUEST_TIMEOUT, RedisLink};

use crate::config::{Limits, LimitsStore};
use crate::metrics::Metrics;
use crate::runtime::{Key, KeyPermit, LimitReached};

/// Time after which a request that is not renewed counts as ended, and the interval of renewals.
const REQUEST_TTL: Duration = Duration::from_secs(60);
const RENEW_INTERVAL: Duration = Duration::from_secs(15);

/// Maximum number of ended requests that are reported at the same time.
const MAX_CONCURRENT_REPORTS: usize = 64;

pub struct SharedLimits {
    link: RedisLink,
    admit: Script,
    ended: UnboundedSender<EndedRequest>,
    in_flight: InFlightRequests,
    metrics: Arc<Metrics>,
}

/// The ids of requests in flight, each with its key.
type InFlightRequests = Arc<Mutex<HashMap<Uuid, Arc<str>>>>;

/// A request that counts in Redis; its end is reported when this is dropped.
pub(super) struct SharedPermit {
    id: Uuid,
    key: Arc<str>,
    limits: Limits,
    tokens: AtomicU64,
    /// Redis may have counted it.
    is_counted: bool,
    in_flight: InFlightRequests,
    ended: UnboundedSender<EndedRequest>,
}

struct EndedRequest {
    id: Uuid,
    key: Arc<str>,
    limits: Limits,
    tokens: u64,
}

impl Drop for SharedPermit {
    fn drop(&mut self) {
        locked(&self.in_flight).remove(&self.id);
        if !self.is_counted {
            return;
        }
        // The receiver is gone only when the process ends.
        let _ = self.ended.send(EndedRequest {
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
    /// Returns the limits and the future that keeps them up, to be polled for as long as there are requests.
    pub fn new(
        settings: &LimitsStore,
        metrics: &Arc<Metrics>,
    ) -> Result<(SharedLimits, impl Future<Output = ()> + Send + use<>), String> {
        let link = RedisLink::new(settings, metrics.clone())?;
        let (ended, ends) = unbounded_channel();
        let in_flight = InFlightRequests::default();
        let shared = SharedLimits {
            link: link.clone(),
            admit: Script::new(include_str!("admit.lua")),
            ended,
            in_flight: in_flight.clone(),
            metrics: metrics.clone(),
        };
        let (settling, renewing) = (settle(link.clone(), ends), renew(link.clone(), in_flight));
        let running = async move {
            tokio::join!(link.run(), settling, renewing);
        };
        Ok((shared, running))
    }

    /// Waits until Redis is connected, or until `limit` has passed.
    pub async fn ready(&self, limit: Duration) {
        let _ = timeout(limit, self.link.wait_connected()).await;
    }

    /// Admits one request of a key, or returns the limit that is reached. Where Redis does not answer, this
    /// process decides alone from the last known state.
    pub(super) async fn admit(&self, key: &Key) -> Result<(KeyPermit, SharedPermit), LimitReached> {
        let mut permit = self.permit_unchecked(key);
        locked(&self.in_flight).insert(permit.id, key.name.clone());
        let Some((word, wait, requests, tokens)) = self.query(&permit).await else {
            self.metrics.record_local_decision();
            let local = key.limiter.admit(&key.limits, Instant::now())?;
            // Redis may have counted it all the same: its end is reported too.
            return Ok((local, permit));
        };
        let (requests, tokens) = (number(&requests), number(&tokens));
        key.limiter.set_taken(requests, tokens, Instant::now());
        let wait = Duration::from_millis(wait);
        let reached = match word.as_str() {
            "concurrency" => LimitReached::Concurrency,
            "tokens" => LimitReached::Tokens(wait),
            "requests" => LimitReached::Requests(wait),
            _ => return Ok((key.limiter.admit_unchecked(), permit)),
        };
        permit.is_counted = false;
        Err(reached)
    }

    /// Counts one request that is answered without an upstream, or returns that too many came in this minute.
    pub(super) async fn count_request(&self, key: &Key) -> Result<(), LimitReached> {
        let mut permit = self.permit_unchecked(key);
        permit.limits = Limits {
            requests_per_minute: key.limits.requests_per_minute,
            ..Limits::default()
        };
        // It is not in flight, so that there is no end to report.
        permit.is_counted = false;
        let Some((word, wait, requests, _)) = self.query(&permit).await else {
            self.metrics.record_local_decision();
            return key.limiter.count_request(&key.limits, Instant::now());
        };
        let taken = number(&requests);
        key.limiter.set_taken_requests(taken, Instant::now());
        match word.as_str() {
            "requests" => Err(LimitReached::Requests(Duration::from_millis(wait))),
            _ => Ok(()),
        }
    }

    /// Takes one of the requests that a key may have at once.
    pub(super) async fn acquire_slot(
        &self,
        key: &Key,
        concurrency: Limits,
    ) -> Result<(KeyPermit, SharedPermit), LimitReached> {
        let mut permit = self.permit_unchecked(key);
        permit.limits = concurrency;
        locked(&self.in_flight).insert(permit.id, key.name.clone());
        match self.query(&permit).await {
            None => {
                self.metrics.record_local_decision();
                let local = key.limiter.admit(&concurrency, Instant::now())?;
                Ok((local, permit))
            }
            Some((word, ..)) if word == "concurrency" => {
                permit.is_counted = false;
                Err(LimitReached::Concurrency)
            }
            Some(_) => Ok((key.limiter.admit_unchecked(), permit)),
        }
    }

    /// Admits one request of a key by its limits per minute.
    pub(super) async fn admit_rates(
        &self,
        key: &Key,
        rates: Limits,
    ) -> Result<SharedPermit, LimitReached> {
        let mut permit = self.permit_unchecked(key);
        permit.limits = rates;
        let Some((word, wait, requests, tokens)) = self.query(&permit).await else {
            self.metrics.record_local_decision();
            key.limiter.admit_rates(&rates, Instant::now())?;
            return Ok(permit);
        };
        let (requests, tokens) = (number(&requests), number(&tokens));
        key.limiter.set_taken(requests, tokens, Instant::now());
        let wait = Duration::from_millis(wait);
        let reached = match word.as_str() {
            "tokens" => LimitReached::Tokens(wait),
            "requests" => LimitReached::Requests(wait),
            _ => return Ok(permit),
        };
        permit.is_counted = false;
        Err(reached)
    }

    /// A permit for a request that was counted already; only its usage is reported.
    pub(super) fn permit_unchecked(&self, key: &Key) -> SharedPermit {
        SharedPermit {
            id: Uuid::now_v7(),
            key: key.name.clone(),
            limits: key.limits,
            tokens: AtomicU64::new(0),
            is_counted: true,
            in_flight: self.in_flight.clone(),
            ended: self.ended.clone(),
        }
    }

    async fn query(&self, permit: &SharedPermit) -> Option<(String, u64, String, String)> {
        let Limits {
            requests_per_minute,
            tokens_per_minute,
            concurrency,
        } = permit.limits;
        let mut invocation = self.admit.prepare_invoke();
        for name in redis_keys(&permit.key) {
            invocation.key(name);
        }
        invocation
            .arg(optional_limit(requests_per_minute))
            .arg(optional_limit(tokens_per_minute))
            .arg(optional_limit(concurrency))
            .arg(permit.id.to_string())
            .arg(milliseconds(REQUEST_TTL));
        self.link
            .query(REQUEST_TIMEOUT, async |connection| {
                invocation.invoke_async(connection).await
            })
            .await
    }
}

/// Reports ended requests to Redis, several at a time.
async fn settle(link: RedisLink, ends: UnboundedReceiver<EndedRequest>) {
    let script = Script::new(include_str!("settle.lua"));
    let next = async |mut ends: UnboundedReceiver<EndedRequest>| Some((ends.recv().await?, ends));
    let report = async |end: EndedRequest| {
        let mut invocation = script.prepare_invoke();
        for name in redis_keys(&end.key) {
            invocation.key(name);
        }
        invocation
            .arg(end.id.to_string())
            .arg(end.tokens)
            .arg(optional_limit(end.limits.tokens_per_minute));
        // An end that cannot be reported expires by itself.
        let _: Option<i64> = link
            .query(REQUEST_TIMEOUT * 10, async |connection| {
                invocation.invoke_async(connection).await
            })
            .await;
    };
    let ends = futures_util::stream::unfold(ends, next);
    ends.for_each_concurrent(MAX_CONCURRENT_REPORTS, report)
        .await;
}

/// Renews requests that take long.
async fn renew(link: RedisLink, in_flight: InFlightRequests) {
    let script = Script::new(include_str!("renew.lua"));
    loop {
        sleep(RENEW_INTERVAL).await;
        let mut keys: HashMap<Arc<str>, Vec<Uuid>> = HashMap::new();
        for (id, key) in locked(&in_flight).iter() {
            keys.entry(key.clone()).or_default().push(*id);
        }
        for (key, ids) in keys {
            let [_, at_once] = redis_keys(&key);
            let mut renewing = script.prepare_invoke();
            renewing.key(at_once).arg(milliseconds(REQUEST_TTL));
            for id in ids {
                renewing.arg(id.to_string());
            }
            let _: Option<i64> = link
                .query(REQUEST_TIMEOUT * 10, async |connection| {
                    renewing.invoke_async(connection).await
                })
                .await;
        }
    }
}

/// The Redis keys for what an API key has taken and for its requests in flight; the braces keep both in one slot of
/// a cluster.
fn redis_keys(key: &str) -> [String; 2] {
    [
        format!("omniglot:{{{key}}}:taken"),
        format!("omniglot:{{{key}}}:served"),
    ]
}

fn optional_limit(limit: Option<u64>) -> String {
    limit.map(|limit| limit.to_string()).unwrap_or_default()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_default()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn locked(in_flight: &InFlightRequests) -> MutexGuard<'_, HashMap<Uuid, Arc<str>>> {
    in_flight.lock().unwrap_or_else(PoisonError::into_inner)
}
