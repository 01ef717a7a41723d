//! Credentials over hours, with a clock that the tests move.

use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;

use super::*;
use crate::config::{CommandSource, CredentialSource};

const HOUR: Duration = Duration::from_secs(3600);

/// Gives tokens `t1`, `t2`, …; those of these numbers fail.
struct Script {
    asked: AtomicU64,
    life: Duration,
    failing: fn(u64) -> bool,
}

#[async_trait]
impl CredentialFetcher for Script {
    async fn fetch(&self, _source: &CredentialSource) -> Result<NewCredential, String> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        sleep(Duration::from_millis(10)).await;
        match (self.failing)(number) {
            true => Err(format!("failure {number} with secret-argument")),
            false => NewCredential::bearer(&format!("token-{number}"), self.life),
        }
    }
}

fn script(life: Duration, failing: fn(u64) -> bool) -> (Arc<FetchedCredential>, Arc<Script>) {
    let source = CredentialSource::Command(CommandSource {
        program: "none".to_owned(),
        arguments: vec!["secret-argument".to_owned()],
        ttl: HOUR,
    });
    let credential = Arc::new(FetchedCredential::new(source));
    let script = Arc::new(Script {
        asked: AtomicU64::new(0),
        life,
        failing,
    });
    tokio::spawn(keep_fresh("up".into(), credential.clone(), script.clone()));
    (credential, script)
}

fn token(credential: &Credential) -> String {
    let secret = credential.value.secrets()[0].to_vec();
    String::from_utf8(secret).expect("text")
}

/// Lets time pass: a paused clock moves from timer to timer, and each rings at its own time.
async fn pass(time: Duration) {
    sleep(time).await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_first_requests_cause_one_fetch() {
    let (credential, script) = script(HOUR, |_| false);
    let waiting = (0..1000).map(|_| {
        let credential = credential.clone();
        tokio::spawn(async move { token(&credential.get().await.expect("a credential")) })
    });
    for waiting in waiting.collect::<Vec<_>>() {
        assert_eq!(waiting.await.expect("no panic"), "token-1");
    }
    assert_eq!(script.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_credential_is_replaced_before_it_expires_and_without_a_request() {
    let (credential, script) = script(HOUR, |_| false);
    credential.get().await.expect("a credential");
    // No sooner than after nine tenths of fifty-five minutes, and no later than after all of them.
    pass(Duration::from_secs(49 * 60)).await;
    assert_eq!(script.asked.load(Ordering::SeqCst), 1);
    pass(Duration::from_secs(6 * 60 + 1)).await;
    assert_eq!(script.asked.load(Ordering::SeqCst), 2);
    assert_eq!(token(&credential.current().expect("one")), "token-2");
    let known: Vec<String> = credential.recent().map(|one| token(&one)).collect();
    assert_eq!(known, ["token-2", "token-1"]);
}

#[tokio::test(start_paused = true)]
async fn the_old_credential_is_used_while_it_lives() {
    let (credential, script) = script(HOUR, |number| (2..1000).contains(&number));
    credential.get().await.expect("a credential");
    pass(Duration::from_secs(56 * 60)).await;
    assert!(script.asked.load(Ordering::SeqCst) >= 2);
    assert_eq!(
        token(&credential.get().await.expect("the old one")),
        "token-1"
    );
    pass(Duration::from_secs(5 * 60)).await;
    let failure = credential.get().await.expect_err("it has expired");
    assert!(
        failure.contains("failure") && failure.contains("***"),
        "{failure}"
    );
    assert!(!failure.contains("secret-argument"), "{failure}");
    // The source is asked once a minute at most when it has failed often.
    let before = script.asked.load(Ordering::SeqCst);
    pass(Duration::from_secs(10 * 60)).await;
    let asked = script.asked.load(Ordering::SeqCst) - before;
    assert!((9..=21).contains(&asked), "asked {asked} times");
}

#[tokio::test(start_paused = true)]
async fn a_source_that_works_again_is_noticed() {
    let (credential, _) = script(HOUR, |number| number == 1);
    let failure = credential.get().await.expect_err("the first fetch fails");
    assert!(failure.contains("failure 1"), "{failure}");
    pass(Duration::from_secs(2)).await;
    assert_eq!(token(&credential.get().await.expect("one")), "token-2");
}

#[tokio::test(start_paused = true)]
async fn a_refused_credential_is_fetched_again_once() {
    let (credential, script) = script(HOUR, |_| false);
    let first = credential.get().await.expect("a credential");
    assert!(credential.reject(&first));
    // Others were refused the same one; it is replaced once.
    assert!(credential.reject(&first));
    let second = credential.get().await.expect("another");
    assert_eq!(token(&second), "token-2");
    assert!(credential.reject(&first), "a newer one is there");
    assert!(!credential.reject(&second), "too soon");
    assert_eq!(token(&credential.get().await.expect("still")), "token-2");
    pass(Duration::from_secs(11)).await;
    assert!(credential.reject(&second));
    assert_eq!(token(&credential.get().await.expect("another")), "token-3");
    assert_eq!(script.asked.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn short_lives_are_halved() {
    let now = Instant::now();
    let times = |life: u64, wish: Option<u64>, jitter: f64| {
        let new = NewCredential {
            refresh_in: wish.map(Duration::from_secs),
            ..NewCredential::bearer("t", Duration::from_secs(life)).expect("a token")
        };
        let timed = timed(new, now, jitter);
        let after = |at: Instant| at.duration_since(now).as_secs();
        (after(timed.refresh_at), after(timed.expires_at))
    };
    assert_eq!(times(3600, None, 0.0), (3300, 3600));
    assert_eq!(times(3600, None, 1.0), (2970, 3600));
    assert_eq!(times(86_400, Some(43_200), 0.0), (43_200, 86_400));
    assert_eq!(times(120, None, 0.0), (60, 120));
    assert_eq!(times(600, None, 0.0), (300, 600));
}
