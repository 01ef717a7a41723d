//! Hearing of changes: at once where the database tells of them, and by looking again in any case.

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::time::{Instant, sleep_until, timeout};

use super::keys::CHANNEL;
use super::{PATIENCE, Store};

/// How often one looks without having been told.
const PAUSE: Duration = Duration::from_secs(2);

pub struct Changes {
    address: Option<SecretString>,
    /// `None`: it could not be had, and is asked for again.
    listener: Option<PgListener>,
}

impl Store {
    pub fn changes(&self) -> Changes {
        Changes {
            address: self.address.clone(),
            listener: None,
        }
    }
}

impl Changes {
    /// Returns when something has changed, or might have.
    pub async fn next(&mut self) {
        let until = Instant::now() + PAUSE;
        if self.listener.is_none() && self.listen().await {
            // What changed before it listened is found by looking.
            return;
        }
        let Some(listener) = &mut self.listener else {
            return sleep_until(until).await;
        };
        tokio::select! {
            told = listener.recv() => if told.is_err() {
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
        let connected = timeout(PATIENCE, async {
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .acquire_timeout(PATIENCE)
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
