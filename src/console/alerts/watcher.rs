//! Looks at the alerts every few seconds: which thresholds are reached, and which messages are to be sent.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::event::AlertEvent;
use super::sender::send_alert;
use crate::console::actor::now;
use crate::console::alert_failure::AlertFailure;
use crate::console::state::{ALERT_INTERVAL, Console};
use crate::metrics::Metrics;
use crate::store::{
    AlertFilter, AlertTarget, FiredThreshold, Store, StoreError, StoredAlert, WatchedAlert,
};

/// Pause between two looks.
const INTERVAL: Duration = Duration::from_secs(2);
/// The same where there is no alert: another gateway may have made one. No pause is longer.
const IDLE_INTERVAL: Duration = Duration::from_secs(60);
/// A look takes no more than this part of the time, unless the pause were too long then.
const SHARE: u32 = 100;
/// Messages that are sent at once.
const AT_ONCE: usize = 8;
/// Milliseconds after which an attempt is over, whatever became of it: more than the longest takes.
const CLAIMED_FOR: i64 = 60_000;
/// The pauses before a message is tried again, in milliseconds.
const PAUSES: [i64; 4] = [2_000, 20_000, 120_000, 600_000];

/// Watches all alerts of the store, beside other gateways that do so too.
pub async fn watch_alerts(console: Arc<Console>, metrics: Arc<Metrics>) {
    metrics.show_alerts();
    let places = Arc::new(Semaphore::new(AT_ONCE));
    // The first gateway makes the tables beside this.
    let mut is_well = false;
    let mut pause = INTERVAL;
    loop {
        sleep(INTERVAL).await;
        tokio::select! {
            () = sleep(pause.saturating_sub(INTERVAL)) => {}
            () = console.alerts_changed.notified() => {}
        }
        let began = Instant::now();
        let looked = look(&console, &metrics, &places).await;
        pause = match looked {
            Ok(true) => (began.elapsed() * SHARE).clamp(INTERVAL, IDLE_INTERVAL),
            Ok(false) => IDLE_INTERVAL,
            Err(_) => INTERVAL,
        };
        if let Err(error) = &looked
            && is_well
        {
            log::error!("alerts cannot be watched: {error}");
        }
        is_well = looked.is_ok();
    }
}

/// Returns whether there is any alert.
async fn look(
    console: &Arc<Console>,
    metrics: &Arc<Metrics>,
    places: &Arc<Semaphore>,
) -> Result<bool, StoreError> {
    if !console.store.has_alerts().await? {
        return Ok(false);
    }
    let time = Timestamp::now();
    for alert in console.store.watched_alerts(time).await? {
        let Some(step) = next_step(&alert) else {
            continue;
        };
        let message = step.is_told.then(|| {
            let event = AlertEvent::of(console, &alert, step.fired.percent, time);
            (event.to_json(), time.as_millisecond())
        });
        let message = message.as_ref().map(|(text, due)| (text.as_str(), *due));
        let store = &console.store;
        store
            .fire_alert(&alert.id, &alert.fired, &step.fired, message)
            .await?;
    }
    deliver(console, metrics, places).await?;
    Ok(true)
}

/// What is noted of an alert now.
#[derive(Debug, PartialEq, Eq)]
struct AlertStep {
    fired: FiredThreshold,
    /// Somebody is told; otherwise thresholds that are no longer reached can be reached again.
    is_told: bool,
}

/// `None`: nothing is new.
fn next_step(alert: &WatchedAlert) -> Option<AlertStep> {
    let seen = &alert.fired;
    let is_same_kind = seen.period.len() == alert.period.len();
    if is_same_kind && seen.period > alert.period {
        // The period is over for a gateway whose clock is ahead.
        return None;
    }
    let told = match seen.period == alert.period {
        true => seen.percent,
        false => 0,
    };
    let is_reached = |percent: &u8| alert.spent.times(100) >= alert.cap.times(u64::from(*percent));
    let reached = alert.percents.iter().copied().filter(is_reached).max();
    let reached = reached.unwrap_or_default();
    let order = reached.cmp(&told);
    (order != Ordering::Equal).then(|| AlertStep {
        fired: FiredThreshold {
            period: alert.period.clone(),
            percent: reached,
        },
        is_told: order == Ordering::Greater,
    })
}

/// Starts an attempt for each message that waits, as far as there are places.
async fn deliver(
    console: &Arc<Console>,
    metrics: &Arc<Metrics>,
    places: &Arc<Semaphore>,
) -> Result<(), StoreError> {
    let free = places.available_permits();
    if free == 0 {
        return Ok(());
    }
    for due in console.store.due_alerts(now(), free).await? {
        let Ok(place) = places.clone().try_acquire_owned() else {
            break;
        };
        let until = now() + CLAIMED_FOR;
        let Some(claimed) = console.store.claim_alert(&due, until).await? else {
            continue;
        };
        let (console, metrics) = (console.clone(), metrics.clone());
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = attempt(&console, &metrics, &due.id, until, claimed).await {
                log::error!("alert {}: {error}", due.id);
            }
        });
    }
    Ok(())
}

/// Sends a message once, and notes what became of it.
async fn attempt(
    console: &Console,
    metrics: &Metrics,
    id: &str,
    until: i64,
    (body, attempts): (String, i64),
) -> Result<(), StoreError> {
    let store = &console.store;
    let (alert, event) = match read(store, id, &body).await {
        Ok(Some(read)) => read,
        Ok(None) => return store.give_up_alert(id, until).await,
        Err(error @ StoreError::Corrupt(_)) => {
            store.give_up_alert(id, until).await?;
            return Err(error);
        }
        Err(error) => return Err(error),
    };
    let sent = send_alert(console, &alert, &event, &body).await;
    let channel = channel(&alert);
    let percent = event.percent.unwrap_or_default();
    if let Err(failure @ AlertFailure::TooMany) = sent {
        log::warn!("alert {id}: {channel}: {failure}; it waits");
        let (at, word) = (now(), failure.to_string());
        let next = at + i64::try_from(ALERT_INTERVAL.as_millis()).unwrap_or(CLAIMED_FOR);
        let outcome = (at, percent, word.as_str());
        return store.postpone_alert(id, until, outcome, next).await;
    }
    let pause = usize::try_from(attempts - 1).ok();
    let pause = pause.and_then(|attempt| PAUSES.get(attempt));
    let next = match (&sent, pause) {
        (Err(_), Some(pause)) => Some(now() + pause),
        _ => None,
    };
    match (&sent, next) {
        (Ok(()), _) => log::info!("alert {id}: told by {channel}"),
        (Err(failure), Some(_)) => {
            log::warn!("alert {id}: {channel}: {failure}; it is tried again");
        }
        (Err(failure), None) => log::error!("alert {id}: {channel}: not sent: {failure}"),
    }
    if next.is_none() {
        metrics.count_alert(channel, sent.is_ok());
    }
    let outcome = sent.map_or_else(|failure| failure.to_string(), |()| "sent".to_owned());
    let outcome = (now(), percent, outcome.as_str());
    store.settle_alert(id, until, outcome, next).await
}

/// The alert of a message, and what the message tells; `None`: the alert is no more.
async fn read(
    store: &Store,
    id: &str,
    body: &str,
) -> Result<Option<(StoredAlert, AlertEvent)>, StoreError> {
    let alerts = store.alerts(AlertFilter::One(id)).await?;
    let Some(alert) = alerts.into_iter().next() else {
        return Ok(None);
    };
    let event = serde_json::from_str(body);
    let event = event.map_err(|_| StoreError::Corrupt("message of an alert"))?;
    Ok(Some((alert, event)))
}

/// The value of the `channel` label.
const fn channel(alert: &StoredAlert) -> &'static str {
    match alert.target {
        AlertTarget::Person(_) | AlertTarget::Email(_) => "mail",
        AlertTarget::Webhook(_) => "webhook",
    }
}

#[cfg(test)]
mod tests;
