//! Leases of spending caps that several gateways share: each process leases a part of a cap from the store, and
//! requests the next one before it is used up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::model::{CapKind, LeaseRequest, UsageRecord};
use crate::runtime::{Account, Cap, CappedAccount, LeaseAction, Runtime};
use crate::store::{CapLeaseRequest, LeaseHolder, Store, StoreError};

/// Time limit of one query: a request may be waiting for it.
const STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval of renewals, which also return unused leases.
const RENEW_INTERVAL: Duration = Duration::from_secs(5);

/// Pause before the next attempt when the store does not answer.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// In milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// Maximum number of caps in one query, as other writers wait for it.
const CAPS_PER_QUERY: usize = 100;

/// A cap that is shared with other gateways: that of a key, or of an account.
#[derive(Clone)]
struct SharedCap {
    kind: CapKind,
    id: Arc<str>,
    cap: Cap,
    account: Arc<Account>,
}

/// By the id of the key or account.
type Caps = HashMap<Arc<str>, SharedCap>;

pub struct Leases {
    store: Store,
    runtime: Arc<Runtime>,
    began: Timestamp,
    /// Tells whether the store has all records of the earlier process with the same journal.
    is_predecessor_recorded: Box<dyn Fn() -> bool + Send + Sync>,
    /// Held during a lease query: no usage may be recorded in between.
    exact: AsyncMutex<()>,
    requested: Mutex<Caps>,
    /// Those with something leased.
    leased: Mutex<Caps>,
    wake: Notify,
}

impl Leases {
    pub fn new(
        store: Store,
        holder: LeaseHolder,
        runtime: Arc<Runtime>,
        is_predecessor_recorded: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Leases {
        Leases {
            began: holder.began,
            store: store.with_holder(holder),
            runtime,
            is_predecessor_recorded: Box::new(is_predecessor_recorded),
            exact: AsyncMutex::default(),
            requested: Mutex::default(),
            leased: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// Requests more of a cap, in the background.
    pub(super) fn request(&self, capped: CappedAccount<'_>) {
        let shared = SharedCap {
            kind: capped.kind,
            id: capped.id.clone(),
            cap: capped.cap,
            account: capped.account.clone(),
        };
        locked(&self.requested).insert(capped.id.clone(), shared);
        self.wake.notify_one();
    }

    /// Requests and renews leases for as long as it is polled.
    pub async fn run(&self) {
        let mut has_taken_over = false;
        let mut next = Instant::now();
        loop {
            let is_time = tokio::select! {
                () = sleep_until(next) => true,
                () = self.wake.notified() => false,
            };
            if !has_taken_over {
                has_taken_over = self.take_over().await.is_ok();
            }
            let requested = std::mem::take(&mut *locked(&self.requested));
            let mut is_well = self.ask_for(requested, LeaseAction::More).await;
            if is_time {
                is_well &= self.renew().await;
            }
            if is_time || !is_well {
                // Credit is reported as soon as the store is back.
                next = Instant::now()
                    + if is_well {
                        RENEW_INTERVAL
                    } else {
                        RETRY_INTERVAL
                    };
            }
        }
    }

    /// Takes over from the earlier process with the same journal, once its records are in the store.
    async fn take_over(&self) -> Result<(), StoreError> {
        let until = Instant::now() + STORE_TIMEOUT;
        while !(self.is_predecessor_recorded)() {
            if Instant::now() >= until {
                return Err(StoreError::Unavailable);
            }
            sleep(Duration::from_millis(10)).await;
        }
        let succeeding = timeout(STORE_TIMEOUT, self.store.take_over());
        succeeding.await.unwrap_or(Err(StoreError::Unavailable))
    }

    async fn renew(&self) -> bool {
        let leased = locked(&self.leased).clone();
        if leased.is_empty() {
            return true;
        }
        let renewing = timeout(STORE_TIMEOUT, self.store.renew_leases(Timestamp::now()));
        let Ok(Ok(renewed)) = renewing.await else {
            return false;
        };
        let holds = |shared: &&SharedCap| shared.account.is_leased();
        let action = match leased.values().filter(holds).count() {
            known if renewed < known as u64 => LeaseAction::Restore,
            _ => LeaseAction::Trim,
        };
        let is_well = self.ask_for(leased, action).await;
        locked(&self.leased).retain(|_, shared| shared.account.is_leased());
        is_well
    }

    /// Returns what is not used, because the process is about to end.
    pub async fn release(&self) {
        let leased = locked(&self.leased).clone();
        self.ask_for(leased, LeaseAction::Release).await;
    }

    /// Requests leases of caps; returns whether the store has answered.
    async fn ask_for(&self, caps: Caps, action: LeaseAction) -> bool {
        let caps: Vec<SharedCap> = caps.into_values().collect();
        let mut is_well = true;
        for some in caps.chunks(CAPS_PER_QUERY) {
            is_well &= self.ask(some, action).await;
        }
        is_well
    }

    async fn ask(&self, caps: &[SharedCap], action: LeaseAction) -> bool {
        let mut pending: Vec<(&SharedCap, LeaseRequest)> = Vec::new();
        let asking = async {
            let _exact = self.exact.lock().await;
            let now = Timestamp::now();
            for shared in caps {
                let request = shared.account.lease_request(shared.cap, action, now);
                pending.extend(request.map(|request| (shared, request)));
            }
            if pending.is_empty() {
                return Ok(());
            }
            let requests: Vec<CapLeaseRequest> = pending.iter().map(cap_lease_request).collect();
            let grants = self.store.lease(&requests, now).await?;
            for (&(shared, request), grant) in pending.iter().zip(grants) {
                let account = &shared.account;
                account.apply_grant(shared.cap, grant, request, now);
                locked(&self.leased).insert(shared.id.clone(), shared.clone());
            }
            pending.clear();
            Ok(())
        };
        let bounded = async {
            let answered = timeout(STORE_TIMEOUT, asking).await;
            answered.unwrap_or(Err(StoreError::Unavailable))
        };
        if self.store.query("", bounded).await.is_ok() {
            return true;
        }
        let now = Timestamp::now();
        for shared in caps {
            // The cap of an account is never exceeded, at the price of refusals while the store is away.
            let may_take_credit = shared.kind == CapKind::Key;
            let account = &shared.account;
            account.continue_without_store(shared.cap, may_take_credit, now);
            // The lease is requested again when the store is back.
            locked(&self.leased).insert(shared.id.clone(), shared.clone());
        }
        false
    }

    /// Records usage in the store, and notes in the accounts what is this process's own.
    pub async fn record(&self, records: &[UsageRecord<'_>]) -> Result<usize, StoreError> {
        let _exact = self.exact.lock().await;
        let new = self.store.record(records).await?;
        let now = Timestamp::now();
        let began = self.began.as_millisecond();
        let is_own = |one: &&UsageRecord<'_>| one.at >= began && !one.cost.is_zero();
        let own: Vec<&UsageRecord<'_>> = records.iter().filter(is_own).collect();
        // Records of one key mostly follow each other, and are of one day.
        for some in own.chunk_by(|one, next| one.key_id == next.key_id && day(one) == day(next)) {
            let Ok(at) = Timestamp::from_millisecond(some[0].at) else {
                continue;
            };
            if let Some(account) = self.runtime.state.find_account(&some[0].key_id) {
                let cost = some.iter().map(|record| record.cost).sum();
                account.mark_recorded(cost, at, now);
            }
        }
        Ok(new)
    }
}

/// The day of a record in UTC.
const fn day(record: &UsageRecord<'_>) -> i64 {
    record.at.div_euclid(DAY)
}

fn cap_lease_request((shared, request): &(&SharedCap, LeaseRequest)) -> CapLeaseRequest {
    CapLeaseRequest {
        kind: shared.kind,
        id: shared.id.to_string(),
        reset: shared.cap.reset,
        lease: *request,
    }
}

fn locked(caps: &Mutex<Caps>) -> MutexGuard<'_, Caps> {
    caps.lock().unwrap_or_else(PoisonError::into_inner)
}
