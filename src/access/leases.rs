//! Spending caps that several gateways share: each uses a slice of what the store says is left, and asks for
//! the next one before it is used up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::model::{LeaseRequest, UsageRecord};
use crate::runtime::{Cap, Key, LeaseAction, Runtime};
use crate::store::{KeyLeaseRequest, LeaseHolder, Store, StoreError};

/// For one question and its answer. A request may be waiting.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two signs of life, by which unused slices are given back as well.
const RENEWED: Duration = Duration::from_secs(5);

/// Between two tries to reach a store that does not answer.
const PAUSE: Duration = Duration::from_secs(1);

/// In milliseconds.
const DAY: i64 = 24 * 60 * 60 * 1000;

/// Keys of one question: whoever else writes waits for it.
const KEYS: usize = 100;

/// The keys with something leased, by name.
type Keys = HashMap<Arc<str>, (Arc<Key>, Cap)>;

pub struct Leases {
    store: Store,
    runtime: Arc<Runtime>,
    began: Timestamp,
    /// What a former process has spent is in the store.
    has_predecessor_paid: Box<dyn Fn() -> bool + Send + Sync>,
    /// Held while the store is asked or told: what is spent must not be written down in between.
    exact: AsyncMutex<()>,
    wanted: Mutex<Keys>,
    leased: Mutex<Keys>,
    wake: Notify,
}

impl Leases {
    pub fn new(
        store: Store,
        holder: LeaseHolder,
        runtime: Arc<Runtime>,
        has_predecessor_paid: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Leases {
        Leases {
            began: holder.began,
            store: store.with_holder(holder),
            runtime,
            has_predecessor_paid: Box::new(has_predecessor_paid),
            exact: AsyncMutex::default(),
            wanted: Mutex::default(),
            leased: Mutex::default(),
            wake: Notify::new(),
        }
    }

    /// More is needed for a key, now or soon.
    pub(super) fn want(&self, key: &Arc<Key>, cap: Cap) {
        let keys = &mut locked(&self.wanted);
        keys.insert(key.name.clone(), (key.clone(), cap));
        self.wake.notify_one();
    }

    /// Asks for as long as it is polled.
    pub async fn run(&self) {
        let mut has_succeeded = false;
        let mut next = Instant::now();
        loop {
            let is_time = tokio::select! {
                () = sleep_until(next) => true,
                () = self.wake.notified() => false,
            };
            if !has_succeeded {
                has_succeeded = self.succeed().await.is_ok();
            }
            let wanted = std::mem::take(&mut *locked(&self.wanted));
            let mut is_well = self.ask_for(wanted, LeaseAction::More).await;
            if is_time {
                is_well &= self.renew().await;
            }
            if is_time || !is_well {
                // What was used without asking is told as soon as the store is back.
                next = Instant::now() + if is_well { RENEWED } else { PAUSE };
            }
        }
    }

    /// Takes the place of whoever had the journal before, once all of that is in the store.
    async fn succeed(&self) -> Result<(), StoreError> {
        let until = Instant::now() + PATIENCE;
        while !(self.has_predecessor_paid)() {
            if Instant::now() >= until {
                return Err(StoreError::Unavailable);
            }
            sleep(Duration::from_millis(10)).await;
        }
        let succeeding = timeout(PATIENCE, self.store.succeed());
        succeeding.await.unwrap_or(Err(StoreError::Unavailable))
    }

    async fn renew(&self) -> bool {
        let leased = locked(&self.leased).clone();
        if leased.is_empty() {
            return true;
        }
        let renewing = timeout(PATIENCE, self.store.renew_leases(Timestamp::now()));
        let Ok(Ok(renewed)) = renewing.await else {
            return false;
        };
        let holds = |(key, _): &&(Arc<Key>, Cap)| key.account.is_leased();
        let wish = match leased.values().filter(holds).count() {
            known if renewed < known as u64 => LeaseAction::Again,
            _ => LeaseAction::Tidy,
        };
        let is_well = self.ask_for(leased, wish).await;
        locked(&self.leased).retain(|_, (key, _)| key.account.is_leased());
        is_well
    }

    /// Gives back what is not used, because the process is about to end.
    pub async fn leave(&self) {
        let leased = locked(&self.leased).clone();
        self.ask_for(leased, LeaseAction::Leave).await;
    }

    /// Whether the store has answered.
    async fn ask_for(&self, keys: Keys, wish: LeaseAction) -> bool {
        let keys: Vec<(Arc<Key>, Cap)> = keys.into_values().collect();
        let mut is_well = true;
        for some in keys.chunks(KEYS) {
            is_well &= self.ask(some, wish).await;
        }
        is_well
    }

    async fn ask(&self, keys: &[(Arc<Key>, Cap)], wish: LeaseAction) -> bool {
        let mut asked: Vec<(&Arc<Key>, Cap, LeaseRequest)> = Vec::new();
        let asking = async {
            let _exact = self.exact.lock().await;
            let now = Timestamp::now();
            for (key, cap) in keys {
                let need = key.account.need(*cap, wish, now);
                asked.extend(need.map(|need| (key, *cap, need)));
            }
            if asked.is_empty() {
                return Ok(());
            }
            let asks: Vec<KeyLeaseRequest> = asked.iter().map(question).collect();
            let given = self.store.lease(&asks, now).await?;
            for (&(key, cap, need), given) in asked.iter().zip(given) {
                key.account.settle_lease(cap, given, need, now);
                let entry = (key.clone(), cap);
                locked(&self.leased).insert(key.name.clone(), entry);
            }
            asked.clear();
            Ok(())
        };
        let bounded = async {
            let answered = timeout(PATIENCE, asking).await;
            answered.unwrap_or(Err(StoreError::Unavailable))
        };
        if self.store.query(bounded).await.is_ok() {
            return true;
        }
        let now = Timestamp::now();
        for (key, cap) in keys {
            key.account.go_on_without(*cap, now);
            // It is asked for again when the store is back.
            let entry = (key.clone(), *cap);
            locked(&self.leased).insert(key.name.clone(), entry);
        }
        false
    }

    /// Writes receipts down, and notes what of them is this process's own.
    pub async fn record(&self, receipts: &[UsageRecord<'_>]) -> Result<usize, StoreError> {
        let _exact = self.exact.lock().await;
        let new = self.store.record(receipts).await?;
        let now = Timestamp::now();
        let began = self.began.as_millisecond();
        let is_own = |one: &&UsageRecord<'_>| one.at >= began && !one.cost.is_zero();
        let own: Vec<&UsageRecord<'_>> = receipts.iter().filter(is_own).collect();
        // Mostly those of a key come one after the other, and all are of today.
        for some in own.chunk_by(|one, next| one.key == next.key && day(one) == day(next)) {
            let Ok(at) = Timestamp::from_millisecond(some[0].at) else {
                continue;
            };
            if let Some(account) = self.runtime.state.known_account(&some[0].key) {
                let cost = some.iter().map(|receipt| receipt.cost).sum();
                account.note_recorded(cost, at, now);
            }
        }
        Ok(new)
    }
}

/// In UTC, as all that has a period is counted.
const fn day(receipt: &UsageRecord<'_>) -> i64 {
    receipt.at.div_euclid(DAY)
}

fn question((key, cap, need): &(&Arc<Key>, Cap, LeaseRequest)) -> KeyLeaseRequest {
    KeyLeaseRequest {
        key: key.name.to_string(),
        reset: cap.reset,
        need: *need,
    }
}

fn locked(keys: &Mutex<Keys>) -> MutexGuard<'_, Keys> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}
