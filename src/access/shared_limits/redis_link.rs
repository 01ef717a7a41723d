//! The one connection to a Redis: made again when it breaks, and left alone while it is down.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError};
use secrecy::ExposeSecret as _;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::PATIENCE;
use crate::config::LimitsStore;
use crate::metrics::Metrics;

/// For a connection to be there.
const CONNECTING: Duration = Duration::from_secs(1);

/// Between two tries to have one.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub(super) struct Link(Arc<Inner>);

struct Inner {
    /// Without a password.
    shown: String,
    client: Client,
    /// `None`: it is down.
    connection: ArcSwapOption<MultiplexedConnection>,
    broken: Notify,
    is_up: watch::Sender<bool>,
    metrics: Arc<Metrics>,
}

impl Link {
    pub(super) fn new(settings: &LimitsStore, metrics: Arc<Metrics>) -> Result<Link, String> {
        let client = Client::open(settings.0.url.expose_secret());
        // The library's words may hold the address, and with it a password.
        let client = client.map_err(|_| "its address cannot be used".to_owned())?;
        metrics.limits_store_answers(false);
        Ok(Link(Arc::new(Inner {
            shown: settings.to_string(),
            client,
            connection: ArcSwapOption::empty(),
            broken: Notify::new(),
            is_up: watch::Sender::new(false),
            metrics,
        })))
    }

    /// Keeps it up for as long as it is polled.
    pub(super) async fn run(&self) {
        let mut is_told = false;
        loop {
            match self.connect().await {
                Some(connection) => {
                    self.0.connection.store(Some(Arc::new(connection)));
                    self.0.metrics.limits_store_answers(true);
                    self.0.is_up.send_replace(true);
                    if std::mem::take(&mut is_told) {
                        log::info!("{} is in use again", self.0.shown);
                    }
                    self.0.broken.notified().await;
                    self.0.metrics.limits_store_answers(false);
                }
                None => sleep(PAUSE).await,
            }
            if self.0.connection.load().is_none() && !std::mem::replace(&mut is_told, true) {
                log::error!(
                    "{} does not answer: limits of keys hold per process until it does",
                    self.0.shown
                );
            }
        }
    }

    async fn connect(&self) -> Option<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECTING))
            .set_response_timeout(Some(CONNECTING));
        let connecting = async {
            let client = &self.0.client;
            let mut connection = client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            ping(&mut connection).await?;
            Ok::<_, RedisError>(connection)
        };
        let mut connection = timeout(CONNECTING, connecting).await.ok()?.ok()?;
        // One that is too slow for a request is not used for any.
        timeout(PATIENCE, ping(&mut connection)).await.ok()?.ok()?;
        Some(connection)
    }

    pub(super) async fn until_up(&self) {
        // It is not dropped before this is.
        let _ = self.0.is_up.subscribe().wait_for(|is_up| *is_up).await;
    }

    /// `None`: it is down, or does not answer in time, and is down from now on.
    pub(super) async fn ask<T>(
        &self,
        patience: Duration,
        question: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Option<T> {
        let connection = self.0.connection.load_full()?;
        let mut own = MultiplexedConnection::clone(&connection);
        if let Ok(Ok(answer)) = timeout(patience, question(&mut own)).await {
            return Some(answer);
        }
        // Only who finds it as it was takes it down: there may be a new one already.
        let before = self.0.connection.compare_and_swap(&connection, None);
        if before
            .as_ref()
            .is_some_and(|before| Arc::ptr_eq(before, &connection))
        {
            self.0.is_up.send_replace(false);
            self.0.broken.notify_one();
        }
        None
    }
}

async fn ping(connection: &mut MultiplexedConnection) -> Result<String, RedisError> {
    redis::cmd("PING").query_async(connection).await
}
