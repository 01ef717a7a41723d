//! Keeps the credentials of all upstreams fresh: one task for each source, which is asked by nobody else.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::new_credential::NewCredential;
use super::source::{CredentialFetcher, secrets};
use crate::runtime::{Credential, FetchedCredential, Runtime};

/// How long before its end a credential is replaced, if it lives long enough.
const EARLY: Duration = Duration::from_secs(5 * 60);
/// How long one fetch may take, with all of its requests.
const FETCH_TIMEOUT: Duration = Duration::from_secs(20);
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// A source that gives credentials which end at once is not asked all the time.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(500);

/// Fetches credentials for as long as the gateway runs.
pub struct CredentialRefresher<F> {
    runtime: Arc<Runtime>,
    fetcher: Arc<F>,
}

impl<F: CredentialFetcher> CredentialRefresher<F> {
    pub fn new(runtime: Arc<Runtime>, fetcher: F) -> CredentialRefresher<F> {
        CredentialRefresher {
            runtime,
            fetcher: Arc::new(fetcher),
        }
    }

    /// Runs for ever. A reload ends the tasks of sources that the config has no more.
    pub async fn run(&self) {
        let mut running: Vec<(Arc<FetchedCredential>, AbortHandle)> = Vec::new();
        loop {
            let snapshot = self.runtime.snapshot();
            let used = snapshot.upstreams.iter();
            let used =
                used.filter_map(|upstream| Some((&upstream.name, upstream.credential.as_ref()?)));
            let used: Vec<(&Arc<str>, &Arc<FetchedCredential>)> = used.collect();
            running.retain(|(credential, task)| {
                let is_used = used.iter().any(|(_, used)| Arc::ptr_eq(used, credential));
                if !is_used {
                    task.abort();
                }
                is_used
            });
            for (name, credential) in used {
                let mut known = running.iter();
                if known.any(|(known, _)| Arc::ptr_eq(known, credential)) {
                    continue;
                }
                let keeping = keep_fresh(name.clone(), credential.clone(), self.fetcher.clone());
                running.push((credential.clone(), tokio::spawn(keeping).abort_handle()));
            }
            drop(snapshot);
            self.runtime.reloaded.notified().await;
        }
    }
}

/// Fetches a credential again and again: before it expires, and when a request finds none.
async fn keep_fresh<F: CredentialFetcher>(
    upstream: Arc<str>,
    credential: Arc<FetchedCredential>,
    fetcher: Arc<F>,
) {
    let mut failures = 0;
    loop {
        let fetching = timeout(FETCH_TIMEOUT, fetcher.fetch(&credential.source));
        let fetched = fetching.await;
        match fetched.unwrap_or_else(|_| Err("the source did not answer in time".to_owned())) {
            Ok(new) => {
                if failures > 0 {
                    log::info!("upstream {upstream}: its credentials are fetched again");
                }
                failures = 0;
                let fresh = timed(new, Instant::now(), rand::rng().random_range(0.0..=1.0));
                let refresh_at = fresh.refresh_at;
                credential.set(fresh);
                until_due(&credential, refresh_at).await;
            }
            Err(reason) => {
                let reason = masked(&reason, &secrets(&credential.source));
                log::warn!("upstream {upstream}: its credentials cannot be fetched: {reason}");
                credential.set_failed(&reason);
                sleep(backoff(failures)).await;
                failures += 1;
            }
        }
    }
}

/// Waits until it is time for the next one, or until a request has found that the current one is gone.
async fn until_due(credential: &FetchedCredential, refresh_at: Instant) {
    while Instant::now() < refresh_at && credential.current().is_some() {
        tokio::select! {
            () = sleep_until(refresh_at) => {}
            () = credential.wanted() => {}
        }
    }
}

/// A new credential with its times. It is replaced five minutes before its end, or after half of its life if that is
/// later; a little sooner than that, so that gateways which started together do not ask together.
fn timed(new: NewCredential, now: Instant, jitter: f64) -> Credential {
    let half = new.life / 2;
    let planned = new.life.saturating_sub(EARLY).max(half);
    let planned = new.refresh_in.map_or(planned, |wish| wish.min(planned));
    let planned = planned.mul_f64(1.0 - 0.1 * jitter);
    Credential {
        value: new.value,
        refresh_at: now + planned.max(SHORTEST_INTERVAL),
        expires_at: now + new.life,
    }
}

fn backoff(failures: u32) -> Duration {
    let longest = FIRST_BACKOFF * 2_u32.saturating_pow(failures.min(6));
    let longest = longest.min(LONGEST_BACKOFF);
    longest.mul_f64(rand::rng().random_range(0.5..=1.0))
}

/// A text without these secrets.
fn masked(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets.iter().filter(|secret| secret.len() >= 8) {
        text = text.replace(secret, "***");
    }
    text
}

#[cfg(test)]
mod tests;
