//! The steps of an attempt, from the choice of the upstream to each piece of its reply, and what
//! it means when one of them fails.

use bytes::Bytes;
use http::StatusCode;
use pingora_core::{Error, ErrorType, Result};
use tokio::time::timeout;

use super::connections::Destination;
use super::context::RequestContext;
use super::essentials::Essentials;
use super::{Gateway, attempt, drive, kept, outgoing, relay, retry, secrets};
use crate::json::ChunkedBytes;
use crate::metrics::FailureCause;
use crate::model::ApiError;
use crate::translate::{ResponseMode, ResponseTranslator};

impl Gateway {
    /// The next attempt, and where it goes.
    pub(super) async fn next_destination(
        &self,
        exchange: &mut RequestContext,
    ) -> Result<Destination> {
        exchange.begin_attempt();
        let Some(attempt) = exchange.attempt() else {
            return Error::e_explain(ErrorType::InternalError, "no attempt is left");
        };
        attempt.health.begin(std::time::Instant::now());
        let (upstream, limit) = (attempt.upstream.clone(), attempt.timeouts.connect);
        if let Some(address) = upstream.literal {
            return Ok(Destination {
                upstream,
                address,
                limit,
            });
        }
        let looking_up = Box::pin(self.runtime.resolver.resolve(&upstream));
        let looked_up = timeout(limit, looking_up).await;
        match looked_up.unwrap_or_else(|_| Err("its name is not resolved in time".to_owned())) {
            Ok(mut addresses) => {
                let address = addresses.remove(0);
                exchange.other_addresses = addresses;
                Ok(Destination {
                    upstream,
                    address,
                    limit,
                })
            }
            Err(reason) => {
                log::warn!("upstream {}: {reason}", upstream.name);
                let api_error = ApiError::bad_gateway("the upstream cannot be reached");
                self.upstream_failed(exchange, FailureCause::Connect, &api_error);
                Err(self.park(exchange, api_error))
            }
        }
    }

    /// What the attempt's upstream is sent.
    pub(super) fn prepare(&self, exchange: &mut RequestContext) -> Result<ChunkedBytes> {
        match outgoing::body(&self.runtime.conversations, exchange) {
            Ok(prepared) => {
                exchange.losses = prepared.losses;
                exchange.memory = prepared.memory;
                exchange.operation = prepared.operation;
                Ok(prepared.body)
            }
            Err(api_error) => {
                exchange.withdraw_attempt();
                let mut error = self.park(exchange, api_error);
                error.set_retry(exchange.may_try_again());
                Err(error)
            }
        }
    }

    /// What the upstream's header means: a reply to relay, or nothing: an error to read.
    pub(super) fn understand(
        &self,
        header: &Essentials,
        exchange: &mut RequestContext,
    ) -> Result<()> {
        if header.status != StatusCode::OK {
            return Ok(());
        }
        // Another attempt would make its own.
        let memory = std::mem::take(&mut exchange.memory);
        let (Some(wanted), Some(attempt)) = (&exchange.wanted, exchange.attempt()) else {
            return Ok(());
        };
        let asked = outgoing::asked(exchange, wanted, memory);
        let (from, to) = (exchange.format, attempt.upstream.format);
        let limit = exchange.snapshot.server.body_limit;
        match ResponseTranslator::choose(from, to, wanted, asked, header.content_type(), limit) {
            Ok(mut reply) => {
                reply.expect(header.length);
                exchange.reply = Some(reply);
                Ok(())
            }
            Err(api_error) => {
                self.upstream_failed(exchange, FailureCause::Malformed, &api_error);
                Err(self.park(exchange, api_error))
            }
        }
    }

    /// One more piece of the reply: what of it goes to the client takes its place.
    pub(super) fn digest(
        &self,
        body: &mut Option<Bytes>,
        end: bool,
        exchange: &mut RequestContext,
    ) -> Result<()> {
        let Some(reply) = &mut exchange.reply else {
            return Ok(());
        };
        let kind = reply.kind();
        let pushed = reply.push(body, end);
        let watch = reply.watch();
        let (begun, told) = (watch.begun, watch.api_error.clone());
        if let (Some(_), Some(attempt), Some(passed)) = (&told, exchange.attempt(), &*body)
            && let Some(hidden) = secrets::hide(&attempt.upstream, passed)
        {
            *body = Some(hidden.into());
        }
        let early = told.filter(|_| !begun && !exchange.header_sent);
        let (mut api_error, cause) = match (pushed, early) {
            (_, Some(api_error)) => (api_error, FailureCause::Status),
            (Ok(()), None) => {
                outgoing::report_reply(exchange);
                let archive = self.archive.as_deref();
                kept::keep(&self.runtime.conversations, archive, exchange);
                return Ok(());
            }
            (Err(api_error), None) if end && kind == ResponseMode::Stream => {
                (api_error, FailureCause::Cut)
            }
            (Err(api_error), None) => (api_error, FailureCause::Malformed),
        };
        if relay::is_about_credentials(api_error.kind) {
            api_error = relay::refused_credentials(exchange.upstream_name(), api_error.status);
        }
        if retry::may_be_better_elsewhere(api_error.kind) {
            self.upstream_failed(exchange, cause, &api_error);
        }
        Err(self.park(exchange, api_error))
    }

    /// Every failure of an upstream passes here once, and is given its meaning.
    pub(super) fn failed(
        &self,
        mut error: Box<Error>,
        exchange: &mut RequestContext,
    ) -> Box<Error> {
        if drive::is_downstream(&error) {
            error.set_retry(false);
            return error;
        }
        if exchange.api_error.is_some() {
            return error;
        }
        let Some(attempt) = exchange.attempt().cloned() else {
            error.set_retry(false);
            return error;
        };
        let (api_error, cause) = attempt::meaning(&error, &attempt.timeouts);
        // What an unreadable header holds may name an account: it is not for the log.
        match error.etype() {
            ErrorType::InvalidHTTPHeader => {
                log::warn!("upstream {}: unreadable header", attempt.upstream.name);
            }
            _ => {
                let said = error.to_string();
                let said = secrets::hide_in_text(&attempt.upstream, &said);
                log::warn!("upstream {}: {said}", attempt.upstream.name);
            }
        }
        self.upstream_failed(exchange, cause, &api_error);
        self.park(exchange, api_error)
    }
}
