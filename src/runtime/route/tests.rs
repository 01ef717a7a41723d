//! The order of attempts: priorities, weights, affinity, load, and what is out of order last.

use std::collections::HashMap;

use super::*;
use crate::config;
use crate::runtime::Runtime;

/// Upstreams `a` to `d`; the model `m` is given, `spare` is its fallback on `d`.
fn runtime(model: &str) -> Runtime {
    let upstreams: String = ["a", "b", "c", "d"]
        .iter()
        .map(|name| format!("  - {{name: {name}, format: chat, base_url: http://127.0.0.1:1}}\n"))
        .collect();
    let text = format!(
        "upstreams:\n{upstreams}models:\n  - {{id: m, {model}}}\n  - {{id: spare, upstreams: [{{name: d}}]}}\n"
    );
    let config = config::parse("test.yaml", &text, &|_| None);
    Runtime::new(config.unwrap_or_else(|problems| panic!("{problems:?}")))
}

fn names(runtime: &Runtime, affinity: Option<&[u8]>) -> String {
    names_for(runtime, affinity, &[])
}

fn names_for(runtime: &Runtime, affinity: Option<&[u8]>, headers: &[(&str, &str)]) -> String {
    let snapshot = runtime.snapshot();
    let asked = snapshot.model("m").expect("a model");
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let name: http::HeaderName = name.parse().expect("a name");
        map.append(name, value.parse().expect("a value"));
    }
    let caller = Caller {
        headers: &map,
        affinity,
        key: None,
    };
    let order = attempts(
        &snapshot,
        &asked,
        Format::Chat,
        Operation::Generate,
        &caller,
    );
    order
        .iter()
        .map(|attempt| &*attempt.upstream.name)
        .collect()
}

fn health(runtime: &Runtime, name: &str) -> Arc<Health> {
    let snapshot = runtime.snapshot();
    let asked = snapshot.model("m").expect("a model");
    let targets = asked.model.targets.iter();
    let mut targets = targets.filter(|target| *target.upstream.name == *name);
    targets.next().expect("a target").health.clone()
}

#[test]
fn weights_are_shares_of_the_first_attempts() {
    let runtime = runtime("upstreams: [{name: a, weight: 3}, {name: b}]");
    let first: usize = (0..4000)
        .filter(|_| names(&runtime, None).starts_with('a'))
        .count();
    // 3000 expected; five standard deviations are 137.
    assert!((2860..3140).contains(&first), "{first}");
}

#[test]
fn priorities_come_before_weights_and_fallbacks_last() {
    let runtime = runtime(
        "upstreams: [{name: a, priority: 1, weight: 1000}, {name: b}, {name: c, priority: 2}], fallbacks: [spare]",
    );
    for _ in 0..50 {
        assert_eq!(names(&runtime, None), "bacd");
    }
}

#[test]
fn attempts_are_cut_short_or_begin_again() {
    let model = "upstreams: [{name: a}, {name: b, priority: 1}]";
    assert_eq!(
        names(
            &runtime(&format!("{model}, retries: {{attempts: 1}}")),
            None
        ),
        "a"
    );
    assert_eq!(
        names(
            &runtime(&format!("{model}, retries: {{attempts: 5}}")),
            None
        ),
        "ababa"
    );
}

#[test]
fn an_affinity_always_leads_to_the_same_order_and_spreads_by_weight() {
    let runtime = runtime("balance: key, upstreams: [{name: a, weight: 3}, {name: b}, {name: c}]");
    let mut shares: HashMap<char, usize> = HashMap::new();
    for number in 0..5000 {
        let value = format!("key-{number}");
        let order = names(&runtime, Some(value.as_bytes()));
        assert_eq!(names(&runtime, Some(value.as_bytes())), order);
        *shares
            .entry(order.chars().next().expect("some"))
            .or_default() += 1;
    }
    // 3000, 1000 and 1000 expected; these are more than five standard deviations.
    assert!((2820..3180).contains(&shares[&'a']), "{shares:?}");
    assert!((850..1150).contains(&shares[&'b']), "{shares:?}");
}

#[test]
fn those_of_an_upstream_that_is_gone_move_and_the_others_stay() {
    let before = runtime("balance: key, upstreams: [{name: a}, {name: b}, {name: c}]");
    let after = runtime("balance: key, upstreams: [{name: a}, {name: c}]");
    for number in 0..500 {
        let value = format!("key-{number}");
        let order = names(&before, Some(value.as_bytes()));
        let kept: String = order.chars().filter(|name| *name != 'b').collect();
        assert_eq!(names(&after, Some(value.as_bytes())), kept);
    }
}

#[tokio::test]
async fn the_least_loaded_for_its_weight_comes_first() {
    let runtime = runtime("balance: least_in_flight, upstreams: [{name: a, weight: 2}, {name: b}]");
    let snapshot = runtime.snapshot();
    let upstream = |name: &str| {
        let mut all = snapshot.upstreams.iter();
        all.find(|upstream| &*upstream.name == name)
            .expect("one")
            .clone()
    };
    let (a, b) = (upstream("a"), upstream("b"));
    let _b = b.load.acquire(&b.concurrency, &"k".into()).await;
    assert_eq!(names(&runtime, None), "ab");
    let _one = a.load.acquire(&a.concurrency, &"k".into()).await;
    assert_eq!(names(&runtime, None), "ab");
    let _two = a.load.acquire(&a.concurrency, &"k".into()).await;
    let _three = a.load.acquire(&a.concurrency, &"k".into()).await;
    assert_eq!(names(&runtime, None), "ba");
}

#[test]
fn what_fails_comes_after_everything_else_even_fallbacks() {
    let runtime = runtime("upstreams: [{name: a}, {name: b, priority: 1}], fallbacks: [spare]");
    assert_eq!(names(&runtime, None), "abd");
    health(&runtime, "a").cool_down(std::time::Duration::from_secs(60), Instant::now());
    assert_eq!(names(&runtime, None), "bda");
    let snapshot = runtime.snapshot();
    for upstream in &snapshot.upstreams {
        upstream.load.set_down(&*upstream.name == "b");
    }
    assert_eq!(names(&runtime, None), "dab");
}

#[test]
fn a_reload_forgets_nothing_that_is_still_configured() {
    let runtime = runtime("upstreams: [{name: a}, {name: b, priority: 1}]");
    health(&runtime, "a").cool_down(std::time::Duration::from_secs(60), Instant::now());
    let text = "upstreams: [{name: a, format: chat, base_url: http://127.0.0.1:2}, \
                {name: b, format: chat, base_url: http://127.0.0.1:2}]\n\
                models: [{id: m, upstreams: [{name: a}, {name: b, priority: 1}]}]\n";
    let config = config::parse("test.yaml", text, &|_| None).expect("a good config");
    runtime.reload(config);
    assert_eq!(names(&runtime, None), "ba");
}

#[test]
fn a_condition_chooses_its_upstreams_before_all_others() {
    let batch = "when: {header: {name: x-tier, value: 'batch-*'}}";
    let runtime = runtime(&format!(
        "upstreams: [{{name: a}}, {{name: b, priority: 7, {batch}}}, {{name: c, priority: 2, {batch}}}], fallbacks: [spare]"
    ));
    for (headers, expected) in [
        (&[][..], "ad"),
        (&[("x-tier", "batch")], "ad"),
        (&[("x-tier", "Batch-1")], "ad"),
        (&[("x-tier", "a batch-1")], "ad"),
        (&[("x-tier", "batch-1")], "cbad"),
        (&[("X-Tier", "batch-1/night")], "cbad"),
        (&[("x-tier", "gold"), ("x-tier", "batch-")], "cbad"),
        (&[("x-tier", "batch-\u{e9}")], "ad"),
    ] {
        assert_eq!(names_for(&runtime, None, headers), expected, "{headers:?}");
    }
}

#[test]
fn an_upstream_with_and_without_a_condition_is_tried_once() {
    let runtime = runtime(
        "upstreams: [{name: a, weight: 1000}, {name: b}, {name: b, when: {header: {name: x-tier, value: '*'}}}], retries: {attempts: 3}",
    );
    let order = names_for(&runtime, None, &[("x-tier", "")]);
    assert_eq!(order, "bab", "the round begins again after both");
}

#[test]
fn without_a_suitable_upstream_there_are_only_fallbacks_or_none() {
    let only = "upstreams: [{name: a, when: {header: {name: x-tier, value: gold}}}]";
    assert_eq!(names(&runtime(only), None), "");
    let with_spare = format!("{only}, fallbacks: [spare], balance: least_in_flight");
    assert_eq!(names(&runtime(&with_spare), None), "d");
}
