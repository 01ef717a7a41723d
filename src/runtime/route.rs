//! Orders the attempts of a request: the upstreams of the model, then those of its fallbacks.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Instant;

use http::HeaderMap;
use rand::RngExt as _;

use super::snapshot::Target;
use super::{AskedModel, Health, Key, Model, Snapshot, Upstream};
use crate::config::{Balance, UpstreamTimeouts};
use crate::formats::{Capabilities, Operation};
use crate::model::{Format, NamePattern};

/// One upstream to try, with its own name for the model.
#[derive(Clone)]
pub struct Attempt {
    pub upstream: Arc<Upstream>,
    pub model: Arc<str>,
    /// The configured model it stands for: the one asked for, or a fallback of it.
    pub settings: Arc<Model>,
    pub timeouts: UpstreamTimeouts,
    pub health: Arc<Health>,
    /// What the upstream's model accepts.
    pub capabilities: Arc<Capabilities>,
}

impl Attempt {
    pub fn is_same_as(&self, other: &Attempt) -> bool {
        Arc::ptr_eq(&self.health, &other.health) && Arc::ptr_eq(&self.settings, &other.settings)
    }

    /// Whether its upstream stores responses.
    pub fn stores_responses(&self) -> bool {
        self.upstream.format == Format::Responses && self.capabilities.responses_keeps_state
    }
}

/// What of a request decides among the upstreams of a model.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The headers, for conditions.
    pub headers: &'a HeaderMap,
    /// What ties the request to one of several upstreams.
    pub affinity: Option<&'a [u8]>,
    /// The key, which may not use every fallback.
    pub key: Option<&'a Key>,
}

/// Orders the upstreams of a model by priority and balance, then those of its fallbacks; unavailable ones come last.
/// The list repeats where the config asks for more attempts. Upstreams of several formats are asked in the client's.
/// It is empty where every upstream has a condition that the request does not meet.
pub fn attempts(
    snapshot: &Snapshot,
    asked: &AskedModel<'_, '_>,
    client: Format,
    operation: Operation,
    caller: &Caller<'_>,
) -> Vec<Attempt> {
    let model = asked.model;
    let mut order = Vec::with_capacity(model.targets.len());
    if model.settings.fallbacks.is_empty() {
        order_targets(asked, caller, &mut order);
    } else {
        follow_fallbacks(snapshot, asked.name, caller, &mut order);
    }
    for attempt in &mut order {
        let images_only = attempt.settings.settings.is_image_model();
        let suited = attempt.upstream.for_request(client, operation, images_only);
        if suited.format != attempt.upstream.format {
            attempt.upstream = suited.clone();
        }
    }
    if order.len() > 1 {
        let now = Instant::now();
        // Stable, so that both parts keep their order.
        order.sort_by_cached_key(|attempt| !is_available(attempt, now));
    }
    let count = model.settings.retries.attempts.unwrap_or(order.len());
    order.truncate(count);
    let once = order.len();
    while !order.is_empty() && order.len() < count {
        order.push(order[order.len() % once].clone());
    }
    order
}

/// Follows the fallbacks that the key may use, each model once.
fn follow_fallbacks(
    snapshot: &Snapshot,
    name: &str,
    caller: &Caller<'_>,
    order: &mut Vec<Attempt>,
) {
    let mut visited: Vec<Arc<Model>> = Vec::new();
    let mut waiting = vec![Cow::Borrowed(name)];
    while let Some(name) = waiting.pop() {
        let Some(asked) = snapshot.model(&name) else {
            continue;
        };
        let model = asked.model;
        if visited.iter().any(|seen| Arc::ptr_eq(seen, model)) {
            continue;
        }
        order_targets(&asked, caller, order);
        let fallbacks = model.settings.fallbacks.iter().rev();
        let fallbacks = fallbacks.map(|name| fallback_name(name, asked.matched));
        let may_use = |name: &Cow<'_, str>| caller.key.is_none_or(|key| key.allows(name));
        waiting.extend(fallbacks.filter(may_use));
        visited.push(model.clone());
    }
}

/// The name of a fallback, in which a `*` stands for the same text as that of the id.
fn fallback_name<'f>(name: &'f str, matched: Option<&str>) -> Cow<'f, str> {
    let pattern = NamePattern::parse(name).zip(matched);
    pattern.map_or(Cow::Borrowed(name), |(pattern, matched)| {
        Cow::Owned(pattern.fill(matched))
    })
}

fn is_available(attempt: &Attempt, now: Instant) -> bool {
    let is_breaker_open = attempt.upstream.breaker.is_some() && !attempt.health.is_available(now);
    !attempt.upstream.load.is_down() && !is_breaker_open
}

/// Orders the upstreams of one model: those whose condition the request meets, then those without one; of each, lower
/// priorities first, and within one by the model's balance.
fn order_targets(asked: &AskedModel<'_, '_>, caller: &Caller<'_>, order: &mut Vec<Attempt>) {
    let model = asked.model;
    let first = order.len();
    let attempt = |target: &Target| Attempt {
        upstream: target.upstream.clone(),
        model: target.model_for(asked),
        settings: model.clone(),
        timeouts: target.timeouts,
        health: target.health.clone(),
        capabilities: target.capabilities.clone(),
    };
    let mut rest = model.targets.as_slice();
    while let Some(head) = rest.first() {
        let tier = rest
            .iter()
            .take_while(|target| {
                target.priority == head.priority && target.when.is_some() == head.when.is_some()
            })
            .count();
        let (group, later) = rest.split_at(tier);
        rest = later;
        match group {
            _ if head.when.is_some() => {
                let group = group.iter().filter(|target| target.serves(caller.headers));
                let ranked = ranked(model, caller.affinity, group);
                order.extend(ranked.into_iter().map(attempt));
            }
            [only] => order.push(attempt(only)),
            _ => {
                let ranked = ranked(model, caller.affinity, group.iter());
                order.extend(ranked.into_iter().map(attempt));
            }
        }
    }
    if model.targets.iter().any(|target| target.when.is_some()) {
        remove_repeated(order, first);
    }
}

/// Keeps the first of the attempts at the same upstream: one may be listed with a condition and without.
fn remove_repeated(order: &mut Vec<Attempt>, first: usize) {
    let mut kept: Vec<Attempt> = Vec::new();
    for attempt in order.drain(first..) {
        if !kept.iter().any(|earlier| earlier.is_same_as(&attempt)) {
            kept.push(attempt);
        }
    }
    order.append(&mut kept);
}

fn ranked<'t>(
    model: &Model,
    affinity: Option<&[u8]>,
    group: impl Iterator<Item = &'t Target>,
) -> Vec<&'t Target> {
    let ranks = |target: &Target| match (&model.settings.balance, affinity) {
        (Balance::Key | Balance::Header(_), Some(value)) => {
            draw(target.weight, even(hash(value, target)))
        }
        (Balance::LeastInFlight, _) => {
            target.upstream.load.in_flight() as f64 / f64::from(target.weight)
        }
        _ => draw(target.weight, rand::rng().random()),
    };
    // Read once: the load changes while it is sorted.
    let is_full = |target: &Target| {
        !target
            .upstream
            .load
            .has_capacity(&target.upstream.concurrency)
    };
    let ranked = group.map(|target| (is_full(target), ranks(target), target));
    let mut ranked: Vec<_> = ranked.collect();
    if model.settings.balance == Balance::LeastInFlight && !ranked.is_empty() {
        // Else the first in the file would get every request while all are idle.
        let start = rand::rng().random_range(0..ranked.len());
        ranked.rotate_left(start);
    }
    // Full upstreams come behind those with capacity.
    ranked.sort_by(|(full, one, _), (other_full, other, _)| {
        full.cmp(other_full).then(one.total_cmp(other))
    });
    ranked.into_iter().map(|(_, _, target)| target).collect()
}

/// A weighted random rank (exponential distribution): the smallest is first with the probability of its share of the
/// weights, and so on among the rest.
fn draw(weight: u32, even: f64) -> f64 {
    -(1.0 - even).ln() / f64::from(weight)
}

/// From 0 up to, but not including, 1.
fn even(hash: u64) -> f64 {
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}

/// The same in every process of the same build: its keys are fixed.
fn hash(value: &[u8], target: &Target) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    target.upstream.name.hash(&mut hasher);
    target.model.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
