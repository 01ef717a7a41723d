//! Places are counted, queues are bounded, and nobody keeps a place by going away.

use std::time::Duration;

use super::*;

fn room(max_in_flight: u64, queue: u64, queue_timeout: Duration) -> ConcurrencyLimit {
    ConcurrencyLimit {
        max_in_flight: Some(max_in_flight),
        queue,
        queue_timeout,
    }
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
    let mut places = Vec::new();
    for _ in 0..100 {
        places.push(load.acquire(&open).await.expect("no limit"));
    }
    assert_eq!(load.in_flight(), 100);
    drop(places);
    assert_eq!(load.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn beyond_the_queue_is_refused_at_once_and_in_it_after_the_wait() {
    let load = Arc::new(UpstreamLoad::default());
    let room = room(1, 1, Duration::from_secs(5));
    let place = load.acquire(&room).await.expect("the first");
    let waiting = {
        let load = load.clone();
        tokio::spawn(async move { load.acquire(&room).await.err() })
    };
    while load.waiting() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(load.acquire(&room).await.err(), Some(QueueError::Full));
    assert_eq!(waiting.await.expect("no panic"), Some(QueueError::TimedOut));
    assert_eq!((load.in_flight(), load.waiting()), (1, 0));
    drop(place);
}

#[tokio::test]
async fn a_place_given_back_goes_to_one_who_waits() {
    let load = Arc::new(UpstreamLoad::default());
    let room = room(1, 10, LONG);
    let mut place = Some(load.acquire(&room).await.expect("the first"));
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let load = load.clone();
        waiting.spawn(async move {
            let place = load.acquire(&room).await;
            tokio::task::yield_now().await;
            place.is_ok()
        });
    }
    while load.waiting() < 10 {
        tokio::task::yield_now().await;
    }
    place.take();
    while let Some(served) = waiting.join_next().await {
        assert!(served.expect("no panic"));
    }
    assert_eq!((load.in_flight(), load.waiting()), (0, 0));
}

#[tokio::test]
async fn one_who_leaves_the_queue_takes_nothing_along() {
    let load = Arc::new(UpstreamLoad::default());
    let room = room(1, 2, LONG);
    let place = load.acquire(&room).await.expect("the first");
    let wait =
        |load: Arc<UpstreamLoad>| tokio::spawn(async move { load.acquire(&room).await.is_ok() });
    let leaving = wait(load.clone());
    while load.waiting() < 1 {
        tokio::task::yield_now().await;
    }
    let staying = wait(load.clone());
    while load.waiting() < 2 {
        tokio::task::yield_now().await;
    }
    leaving.abort();
    assert!(leaving.await.is_err());
    drop(place);
    assert!(staying.await.expect("no panic"));
    assert_eq!((load.in_flight(), load.waiting()), (0, 0));
}

#[tokio::test]
async fn who_comes_later_does_not_overtake_who_waits() {
    let load = Arc::new(UpstreamLoad::default());
    let room = room(1, 2, LONG);
    let place = load.acquire(&room).await.expect("the first");
    let mut early = std::pin::pin!(load.acquire(&room));
    assert!(futures_util::poll!(&mut early).is_pending());
    drop(place);
    // It has been called and has not come yet.
    let mut late = std::pin::pin!(load.acquire(&room));
    assert!(futures_util::poll!(&mut late).is_pending());
    let place = early.await.expect("the second");
    assert!(futures_util::poll!(&mut late).is_pending());
    drop(place);
    assert!(late.await.is_ok());
}
