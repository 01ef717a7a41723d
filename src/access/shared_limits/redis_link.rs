//! The one connection to Redis, which reconnects in the background; while it is down, queries fail at once.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError};
use secrecy::ExposeSecret as _;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use crate::config::LimitsStore;
use crate::metrics::Metrics;

/// A request does not wait longer than this for an answer.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_millis(50);

/// Time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Pause between two attempts to connect.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub(super) struct RedisLink(Arc<RedisLinkState>);

struct RedisLinkState {
    /// The address without its password, for log lines.
    shown: String,
    client: Client,
    /// `None`: not connected.
    connection: ArcSwapOption<MultiplexedConnection>,
    broken: Notify,
    is_up: watch::Sender<bool>,
    metrics: Arc<Metrics>,
}

impl RedisLink {
    pub(super) fn new(settings: &LimitsStore, metrics: Arc<Metrics>) -> Result<RedisLink, String> {
        let client = Client::open(settings.0.url.expose_secret());
        // The library's message may include the address with its password.
        let client = client.map_err(|_| "its address cannot be used".to_owned())?;
        metrics.set_limits_store_up(false);
        Ok(RedisLink(Arc::new(RedisLinkState {
            shown: settings.to_string(),
            client,
            connection: ArcSwapOption::empty(),
            broken: Notify::new(),
            is_up: watch::Sender::new(false),
            metrics,
        })))
    }

    /// Keeps the connection up for as long as it is polled.
    pub(super) async fn run(&self) {
        let mut is_logged = false;
        loop {
            match self.connect().await {
                Some(connection) => {
                    self.0.connection.store(Some(Arc::new(connection)));
                    self.0.metrics.set_limits_store_up(true);
                    self.0.is_up.send_replace(true);
                    if std::mem::take(&mut is_logged) {
                        log::info!("{} is in use again", self.0.shown);
                    }
                    self.0.broken.notified().await;
                    self.0.metrics.set_limits_store_up(false);
                }
                None => sleep(RETRY_INTERVAL).await,
            }
            if self.0.connection.load().is_none() && !std::mem::replace(&mut is_logged, true) {
                log::error!(
                    "{} does not answer: limits of keys hold per process until it does",
                    self.0.shown
                );
            }
        }
    }

    async fn connect(&self) -> Option<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(CONNECT_TIMEOUT));
        let connecting = async {
            let client = &self.0.client;
            let mut connection = client
                .get_multiplexed_async_connection_with_config(&config)
                .await?;
            ping(&mut connection).await?;
            Ok::<_, RedisError>(connection)
        };
        let mut connection = timeout(CONNECT_TIMEOUT, connecting).await.ok()?.ok()?;
        // A connection that is too slow for requests is not used.
        timeout(REQUEST_TIMEOUT, ping(&mut connection))
            .await
            .ok()?
            .ok()?;
        Some(connection)
    }

    pub(super) async fn wait_connected(&self) {
        // The sender outlives this call.
        let _ = self.0.is_up.subscribe().wait_for(|is_up| *is_up).await;
    }

    /// Runs a query. `None`: not connected, or no answer in time, which closes the connection.
    pub(super) async fn query<T>(
        &self,
        limit: Duration,
        query: impl AsyncFnOnce(&mut MultiplexedConnection) -> Result<T, RedisError>,
    ) -> Option<T> {
        let connection = self.0.connection.load_full()?;
        let mut own = MultiplexedConnection::clone(&connection);
        if let Ok(Ok(answer)) = timeout(limit, query(&mut own)).await {
            return Some(answer);
        }
        // Another task may have replaced the connection already.
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
