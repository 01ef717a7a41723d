//! From a client's connection to an upstream's and back: the only folder that knows pingora's.

mod answer;
mod archive;
mod attempt;
mod bill;
mod checks;
mod connections;
mod context;
mod counting;
mod drive;
mod entry;
mod essentials;
mod files;
mod front;
mod head;
mod intake;
mod kept;
mod later;
mod outgoing;
mod patience;
mod plain;
mod pool;
mod receipt;
mod receive;
mod relay;
mod retry;
mod route;
mod secrets;
mod send;
mod settle;
mod silence;
mod steps;
mod whereabouts;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pingora_core::protocols::http::ServerSession as Session;
use pingora_core::{Error, ErrorType, Result};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

pub use archive::Archive;
pub use checks::Checks;
pub use connections::Connections;
pub use context::RequestContext;
pub use front::{Door, Front};
pub use settle::AccessLog;

use patience::Bell;

use crate::access::{Keyring, Leases, SharedLimits};
use crate::images::{Files, TaskQueue};
use crate::journal::Journal;
use crate::metrics::Metrics;
use crate::model::{ApiError, ApiErrorKind};
use crate::runtime::Runtime;

pub struct Gateway {
    pub runtime: Arc<Runtime>,
    pub metrics: Arc<Metrics>,
    /// The keys of the store; `None`: there is no store.
    pub keyring: Option<Arc<Keyring>>,
    /// Limits that other gateways keep too; `None`: this process keeps them alone.
    pub shared_limits: Option<Arc<SharedLimits>>,
    /// What this process may spend of caps that it shares; `None`: it shares none.
    pub leases: Option<Arc<Leases>>,
    /// Where kept replies outlive the process; `None`: nowhere.
    pub archive: Option<Arc<Archive>>,
    pub access_log: Option<AccessLog>,
    /// Absent: what requests took is kept in memory only.
    pub journal: Option<Arc<Journal>>,
    pub connections: Connections,
    /// Told when draining has taken long enough: what is still in flight ends with an error.
    pub stop: Arc<Notify>,
    /// And then this says so for good.
    pub stopped: Arc<AtomicBool>,
    pub desk: Arc<TaskQueue>,
    pub files: Arc<Files>,
}

impl Gateway {
    /// Requests in flight have been told to end.
    fn is_leaving(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// One request of a connection; whether its client has got all of an answer.
    async fn serve(
        &self,
        session: &mut Session,
        bell: &mut Bell,
        stop: Pin<&mut Notified<'_>>,
    ) -> bool {
        let mut exchange = self.exchange();
        exchange.bell = std::mem::take(bell);
        let told = match self.handle(session, &mut exchange, stop).await {
            Ok(()) => true,
            Err(error) => self.tell(session, &error, &mut exchange).await,
        };
        settle::settle(self, session, &mut exchange);
        *bell = std::mem::take(&mut exchange.bell);
        told
    }

    fn exchange(&self) -> RequestContext {
        let (metrics, journal) = (self.metrics.clone(), self.journal.clone());
        RequestContext::new(self.runtime.snapshot(), metrics, journal)
    }

    /// The request is answered, or it has failed.
    async fn handle(
        &self,
        session: &mut Session,
        exchange: &mut RequestContext,
        stop: Pin<&mut Notified<'_>>,
    ) -> Result<()> {
        tokio::select! {
            biased;
            done = self.receive(session, exchange) => return done,
            () = stop => {}
        }
        if exchange.writing {
            // Half of a piece is out: whatever came now would stand in the middle of it.
            return Error::e_explain(ErrorType::ConnectionClosed, "stopped while writing")
                .map_err(|error: Box<Error>| error.into_down());
        }
        let api_error = ApiError::new(ApiErrorKind::Overloaded, "the gateway is shutting down");
        Err(self.park(exchange, api_error))
    }

    /// The one place where an error is told; whether the client has got it whole.
    async fn tell(
        &self,
        session: &mut Session,
        error: &Error,
        exchange: &mut RequestContext,
    ) -> bool {
        exchange.told = exchange.api_error.as_ref().map(|api_error| api_error.kind);
        match exchange.api_error.take() {
            Some(api_error) => answer::api_error(session, exchange, &api_error)
                .await
                .is_ok(),
            None if drive::is_downstream(error) => {
                exchange.client_left = true;
                exchange.status = 499;
                false
            }
            None => {
                log::error!("{}: {error}", exchange.request_id);
                let api_error = ApiError::new(ApiErrorKind::Internal, "the gateway failed");
                answer::api_error(session, exchange, &api_error)
                    .await
                    .is_ok()
            }
        }
    }

    /// Keeps an error for `tell`; the error says whether another attempt may follow.
    fn park(&self, exchange: &mut RequestContext, mut api_error: ApiError) -> Box<Error> {
        if let Some(attempt) = exchange.attempt() {
            secrets::hide_in_fault(&attempt.upstream, &mut api_error);
        }
        let mut error = Error::explain(
            ErrorType::HTTPStatus(api_error.status),
            api_error.message.clone(),
        );
        error.set_retry(
            exchange.tried > 0
                && exchange.may_try_again()
                && retry::may_be_better_elsewhere(api_error.kind),
        );
        exchange.api_error = Some(api_error);
        error
    }
}
