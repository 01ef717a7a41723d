//! Waits for changes of keys: notified by PostgreSQL, and by polling in any case.

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::time::{Instant, sleep_until, timeout};

use super::database::{CONNECT_TIMEOUT, Store};
use super::keys::CHANNEL;

/// Interval of polling without a notification.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

pub struct KeyChanges {
    address: Option<SecretString>,
    /// `None`: not connected; the next call tries again.
    listener: Option<PgListener>,
}

impl Store {
    pub fn changes(&self) -> KeyChanges {
        KeyChanges {
            address: self.address.clone(),
            listener: None,
        }
    }
}

impl KeyChanges {
    /// Returns when keys have changed, or may have.
    pub async fn next(&mut self) {
        let until = Instant::now() + POLL_INTERVAL;
        if self.listener.is_none() && self.listen().await {
            // Changes from before the LISTEN are found by polling.
            return;
        }
        let Some(listener) = &mut self.listener else {
            return sleep_until(until).await;
        };
        tokio::select! {
            notification = listener.recv() => if notification.is_err() {
                self.listener = None;
                sleep_until(until).await;
            },
            () = sleep_until(until) => {}
        }
    }

    async fn listen(&mut self) -> bool {
        let Some(address) = &self.address else {
            return false;
        };
        let connected = timeout(CONNECT_TIMEOUT, async {
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .acquire_timeout(CONNECT_TIMEOUT)
                .connect(address.expose_secret())
                .await?;
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.listen(CHANNEL).await?;
            Ok::<_, sqlx::Error>(listener)
        });
        self.listener = connected.await.ok().and_then(Result::ok);
        self.listener.is_some()
    }
}
