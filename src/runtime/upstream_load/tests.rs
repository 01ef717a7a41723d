//! Places are counted, queues are bounded, and nobody keeps a permit by going away.

use std::time::Duration;

use super::*;

fn concurrency(max_in_flight: u64, queue: u64, queue_timeout: Duration) -> ConcurrencyLimit {
    ConcurrencyLimit {
        max_in_flight: Some(max_in_flight),
        queue,
        queue_timeout,
    }
}

fn key(name: &str) -> Arc<str> {
    name.into()
}

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn without_a_limit_everyone_enters_and_is_counted() {
    let load = Arc::new(UpstreamLoad::default());
    let open = ConcurrencyLimit {
        max_in_flight: None,
        queue: 0,
        queue_timeout: LONG,
    };
    let mut permits = Vec::new();
    for _ in 0..100 {
        permits.push(load.acquire(&open, &key("a")).await.expect("no limit"));
    }
    assert_eq!(load.in_flight(), 100);
    drop(permits);
    assert_eq!(load.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn beyond_the_queue_is_refused_at_once_and_in_it_after_the_wait() {
    let load = Arc::new(UpstreamLoad::default());
    let concurrency = concurrency(1, 1, Duration::from_secs(5));
    let permit = load
        .acquire(&concurrency, &key("a"))
        .await
        .expect("the first");
    let waiting = {
        let load = load.clone();
        tokio::spawn(async move { load.acquire(&concurrency, &key("a")).await.err() })
    };
    while load.queued() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        load.acquire(&concurrency, &key("a")).await.err(),
        Some(QueueError::Full)
    );
    assert_eq!(waiting.await.expect("no panic"), Some(QueueError::TimedOut));
    assert_eq!((load.in_flight(), load.queued()), (1, 0));
    drop(permit);
}

#[tokio::test]
async fn a_place_given_back_goes_to_one_who_waits() {
    let load = Arc::new(UpstreamLoad::default());
    let concurrency = concurrency(1, 10, LONG);
    let mut permit = Some(
        load.acquire(&concurrency, &key("a"))
            .await
            .expect("the first"),
    );
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let load = load.clone();
        waiting.spawn(async move {
            let permit = load.acquire(&concurrency, &key("a")).await;
            tokio::task::yield_now().await;
            permit.is_ok()
        });
    }
    while load.queued() < 10 {
        tokio::task::yield_now().await;
    }
    permit.take();
    while let Some(served) = waiting.join_next().await {
        assert!(served.expect("no panic"));
    }
    assert_eq!((load.in_flight(), load.queued()), (0, 0));
}

#[tokio::test]
async fn one_who_leaves_the_queue_takes_nothing_along() {
    let load = Arc::new(UpstreamLoad::default());
    let concurrency = concurrency(1, 2, LONG);
    let permit = load
        .acquire(&concurrency, &key("a"))
        .await
        .expect("the first");
    let wait = |load: Arc<UpstreamLoad>| {
        tokio::spawn(async move { load.acquire(&concurrency, &key("a")).await.is_ok() })
    };
    let leaving = wait(load.clone());
    while load.queued() < 1 {
        tokio::task::yield_now().await;
    }
    let staying = wait(load.clone());
    while load.queued() < 2 {
        tokio::task::yield_now().await;
    }
    leaving.abort();
    assert!(leaving.await.is_err());
    drop(permit);
    assert!(staying.await.expect("no panic"));
    assert_eq!((load.in_flight(), load.queued()), (0, 0));
}

#[tokio::test]
async fn who_comes_later_does_not_overtake_who_waits() {
    let load = Arc::new(UpstreamLoad::default());
    let concurrency = concurrency(1, 2, LONG);
    let permit = load
        .acquire(&concurrency, &key("a"))
        .await
        .expect("the first");
    let key = key("a");
    let mut early = std::pin::pin!(load.acquire(&concurrency, &key));
    assert!(futures_util::poll!(&mut early).is_pending());
    drop(permit);
    // It has been called and has not come yet.
    let mut late = std::pin::pin!(load.acquire(&concurrency, &key));
    assert!(futures_util::poll!(&mut late).is_pending());
    let permit = early.await.expect("the second");
    assert!(futures_util::poll!(&mut late).is_pending());
    drop(permit);
    assert!(late.await.is_ok());
}

/// Waits in the queue; `None`: it is refused.
fn wait(
    load: &Arc<UpstreamLoad>,
    concurrency: ConcurrencyLimit,
    name: &'static str,
) -> tokio::task::JoinHandle<Option<(&'static str, UpstreamPermit)>> {
    let load = load.clone();
    tokio::spawn(async move {
        let permit = load.acquire(&concurrency, &key(name)).await;
        permit.ok().map(|permit| (name, permit))
    })
}

#[tokio::test]
async fn keys_take_turns_and_none_fills_the_queue_for_others() {
    let load = Arc::new(UpstreamLoad::default());
    let concurrency = concurrency(1, 4, LONG);
    let mut permit = load.acquire(&concurrency, &key("greedy")).await.ok();
    let mut waiting = Vec::new();
    for number in 1..=4 {
        waiting.push(wait(&load, concurrency, "greedy"));
        while load.queued() < number {
            tokio::task::yield_now().await;
        }
    }
    let refused = load.acquire(&concurrency, &key("greedy")).await.err();
    assert_eq!(refused, Some(QueueError::Full));
    // Another key gets the last two places of the first one, and then has as many.
    let others: Vec<_> = (0..2).map(|_| wait(&load, concurrency, "other")).collect();
    for evicted in waiting.split_off(2) {
        assert!(evicted.await.expect("no panic").is_none());
    }
    let refused = load.acquire(&concurrency, &key("other")).await.err();
    assert_eq!(refused, Some(QueueError::Full));
    assert_eq!(load.queued(), 4);
    waiting.extend(others);
    let mut served = Vec::new();
    for _ in 0..4 {
        drop(permit.take());
        let (first, _, rest) = futures_util::future::select_all(waiting).await;
        let (name, next) = first.expect("no panic").expect("a permit");
        served.push(name);
        (permit, waiting) = (Some(next), rest);
    }
    assert_eq!(served, ["greedy", "other", "greedy", "other"]);
    drop(permit);
    assert_eq!((load.in_flight(), load.queued()), (0, 0));
}

/// One key holds every place and waits for more; what it gives back goes to another until both have as many.
#[tokio::test]
async fn a_place_that_comes_free_goes_to_the_key_that_has_fewest() {
    let load = Arc::new(UpstreamLoad::default());
    let concurrency = concurrency(4, 100, LONG);
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(load.acquire(&concurrency, &key("greedy")).await.ok());
    }
    let mut waiting = Vec::new();
    for (number, name) in (1..).zip(["greedy"; 8].into_iter().chain(["other"; 3])) {
        waiting.push(wait(&load, concurrency, name));
        while load.queued() < number {
            tokio::task::yield_now().await;
        }
    }
    let mut served = Vec::new();
    for permit in held {
        drop(permit);
        let (first, _, rest) = futures_util::future::select_all(waiting).await;
        served.push(first.expect("no panic").expect("a permit"));
        waiting = rest;
    }
    let names: Vec<_> = served.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["other", "other", "greedy", "greedy"]);
    drop(served);
    drop(waiting);
    while load.queued() > 0 || load.in_flight() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        load.of_keys.look(|count| count("greedy") + count("other")),
        0
    );
}
