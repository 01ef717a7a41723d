//! The forwarding loop: it calls the hooks of each attempt, and hands every failure before the
//! response header to the next attempt.

use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pingora_core::protocols::http::client::HttpSession as UpstreamSession;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::RequestHeader;
use pingora_proxy::{ProxyHttp as _, Session};
use tokio::time::timeout;

use super::attempt::response_memory;
use super::attempt::upstream_request::{place_fields, set_target_and_length};
use super::attempt::upstream_response::is_answer;
use super::billing;
use super::billing::body_growth;
use super::connection::listener;
use super::context::RequestContext;
use super::gateway::Gateway;
use super::local;
use super::respond::late_usage;
use super::timer::{DEADLINE_EXCEEDED, check_present, is_downstream, unless_gone};
use super::upstream::decompress::Decompressor;
use super::upstream::pool::UpstreamConnection;
use super::upstream::response_header;
use super::upstream::session;
use super::upstream::session::UpstreamRequest;
use crate::metrics::FailureCause;
use crate::model::{ApiError, Money};

/// Hardly any client leaves sooner, and most requests are on their way by then.
const LONG_WORK: Duration = Duration::from_millis(20);

impl Gateway {
    /// Makes attempts in order, until one has answered or none is left.
    pub(super) async fn forward(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
    ) -> Result<()> {
        self.keep_input(ctx);
        let _forwarded = (!local::counts_tokens_here(ctx)).then(listener::forward_request);
        loop {
            let outcome = self.attempt(session, ctx).await;
            ctx.end_attempt();
            ctx.attempt.release_permit();
            match outcome {
                // A hook may have allowed it before the header went out.
                Err(error) if error.retry() && ctx.may_retry() => {
                    // The error stays: it is the answer if no other attempt can follow.
                    let kept = billing::keep_cost(ctx);
                    ctx.response.translator = None;
                    ctx.route.body_memory.release_response();
                    ctx.note_upstream_wait();
                    ctx.response.end_upstream_wait();
                    ctx.attempt.clear_sent();
                    let may_cost = self.reserve_again(ctx, kept).await;
                    if !may_cost || !self.back_off(session, ctx).await? {
                        return Err(error);
                    }
                    let (id, name) = (ctx.client.request_id(), ctx.route.upstream_name());
                    log::info!("{id}: upstream {name} failed, trying the next: {error}");
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self, session: &mut Session, ctx: &mut Box<RequestContext>) -> Result<()> {
        if local::counts_tokens_here(ctx) {
            return self.estimate_tokens(session, ctx).await;
        }
        check_client(session, ctx).await?;
        let mut peer = self.upstream_peer(session, ctx).await?;
        let request = self.upstream_request(session, ctx).await?;
        let permit = self.acquire_permit(session, ctx).await?;
        ctx.attempt.set_permit(permit);
        response_memory::take_expected(ctx)?;
        check_client(session, ctx).await?;
        // On the heap, like all that is large and soon over: in place it would make every stream
        // hold it, and every call from here outwards copy it.
        let attempt = ctx.route.current().ok_or_else(no_attempt)?;
        let mut upstream = match attempt.upstream.credential.clone() {
            None => Box::pin(self.send(session, ctx, &mut peer, request)).await?,
            Some(fetched) => {
                let sending = self.send_with_credential(session, ctx, &mut peer, request, &fetched);
                Box::pin(sending).await?
            }
        };
        let outcome = match self.respond_from(session, ctx, &mut upstream).await {
            Ok(()) if ctx.attempt.is_unfinished() => {
                upstream.shutdown().await;
                Ok(())
            }
            Ok(()) => {
                Box::pin(self.upstream_pool.release(*upstream, &peer)).await;
                Ok(())
            }
            Err(error) => {
                upstream.shutdown().await;
                Err(self.error_while_proxy(&peer, session, error, ctx, false))
            }
        };
        if !outcome.as_ref().is_err_and(|error| is_downstream(error)) {
            self.upstream_succeeded(ctx);
        }
        outcome
    }

    /// The address of the attempt that has started.
    pub(super) async fn next_peer(&self, ctx: &mut RequestContext) -> Result<HttpPeer> {
        let attempt = ctx.route.current().ok_or_else(no_attempt)?;
        attempt.health.begin_attempt(Instant::now());
        let (upstream, limit) = (attempt.upstream.clone(), attempt.timeouts.connect);
        if let Some(address) = upstream.literal {
            return Ok(self.upstream_pool.peer(&upstream, address, limit));
        }
        let resolving = Box::pin(self.runtime.resolver.resolve(&upstream));
        let resolved = timeout(limit, resolving).await;
        match resolved.unwrap_or_else(|_| Err("its name is not resolved in time".to_owned())) {
            Ok(mut addresses) => {
                let address = addresses.remove(0);
                ctx.attempt.set_other_addresses(addresses);
                Ok(self.upstream_pool.peer(&upstream, address, limit))
            }
            Err(reason) => {
                let (id, name) = (ctx.client.request_id(), &upstream.name);
                log::warn!("{id}: upstream {name}: {reason}");
                let api_error = ApiError::bad_gateway("the upstream cannot be reached");
                self.upstream_failed(ctx, FailureCause::Connect, &api_error);
                Err(ctx.set_error(api_error))
            }
        }
    }

    /// The request as the upstream gets it, made by the hooks. Target and length of the header
    /// follow from the translated body.
    async fn upstream_request(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
    ) -> Result<UpstreamRequest> {
        // The hook writes all of it.
        let (empty, ()) = http::Request::new(()).into_parts();
        let mut header = RequestHeader::from(empty);
        self.upstream_request_filter(session, &mut header, ctx)
            .await?;
        let mut body: Option<Bytes> = None;
        self.request_body_filter(session, &mut body, true, ctx)
            .await?;
        let body = (body.unwrap_or_default(), ctx.attempt.take_rest_of_body());
        let (header, body) = place_fields(header, body, ctx)?;
        let length = body.0.len() + body.1.len();
        self.reserve_growth(ctx, length).await?;
        let header = set_target_and_length(session.req_header(), header, ctx, length)?;
        Ok(UpstreamRequest { header, body })
    }

    /// Reserves more for a body that became longer in translation than what was reserved for.
    async fn reserve_growth(&self, ctx: &mut RequestContext, length: usize) -> Result<()> {
        let Some(growth) = body_growth::unreserved_growth(ctx, length) else {
            return Ok(());
        };
        let reserving = Box::pin(body_growth::reserve_growth(
            self.leases.as_deref(),
            ctx,
            growth,
        ));
        match reserving.await {
            Ok(()) => Ok(()),
            Err(api_error) => Err(ctx.withdraw_attempt(api_error)),
        }
    }

    /// Reserves once more what an attempt has cost whose response cannot be used; `false`: the cap leaves too little for
    /// another one.
    async fn reserve_again(&self, ctx: &mut RequestContext, kept: Option<Money>) -> bool {
        let Some(kept) = kept else {
            return true;
        };
        let reserving = body_growth::reserve_more(self.leases.as_deref(), ctx, kept);
        Box::pin(reserving).await.is_ok()
    }

    /// Connects, sends the request and waits for the header. An idle connection that turns out to
    /// be dead is no failure of the upstream: the same request goes out on a new one, and only once
    /// more, since a new one cannot have died in the pool.
    pub(super) async fn send(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
        peer: &mut HttpPeer,
        request: UpstreamRequest,
    ) -> Result<Box<UpstreamSession>> {
        let mut only_new = false;
        if let Some(capture) = &mut ctx.capture {
            capture.note_upstream_request(&request);
        }
        loop {
            let connected = {
                let connecting = pin!(self.connect(peer, only_new));
                unless_gone(session, ctx.deadline(), connecting).await
            };
            let (connection, reused) = match connected {
                Ok(connected) => connected,
                Err(error) if is_downstream(&error) => return Err(error),
                Err(error) => {
                    let error = self.fail_to_connect(session, peer, ctx, error);
                    let Some(address) = ctx.attempt.take_next_address() else {
                        return Err(error);
                    };
                    peer._address = address.into();
                    continue;
                }
            };
            let attempt = ctx.route.current().ok_or_else(no_attempt)?;
            let timeouts = attempt.timeouts;
            ctx.attempt.set_sent();
            let deadline = ctx.deadline();
            let end = (deadline, late_usage::is_paid_to_the_end(ctx));
            let sent = {
                let (timer, client) = (&mut ctx.timer, &mut ctx.client);
                let sending = session::send(connection, peer, &request, &timeouts, timer);
                late_usage::run_step(session, client, end, pin!(sending)).await
            };
            match sent {
                Ok(response) => {
                    ctx.attempt.set_unfinished(!response.is_sent);
                    return Ok(response.session);
                }
                Err(error) if reused && may_be_stale(&error) && !ctx.client.has_left() => {
                    // The upstream may have taken its time before it closed the connection.
                    ctx.note_upstream_wait();
                    ctx.response.end_upstream_wait();
                    only_new = true;
                }
                Err(error) => {
                    return Err(self.error_while_proxy(peer, session, error, ctx, reused));
                }
            }
        }
    }

    /// A connection, and whether it has been used before.
    async fn connect(&self, peer: &HttpPeer, only_new: bool) -> Result<(UpstreamConnection, bool)> {
        if !only_new && let Some(connection) = self.upstream_pool.reuse(peer).await? {
            return Ok((connection, true));
        }
        // The largest of all futures by far, and few requests need it.
        let connecting = Box::pin(self.upstream_pool.connect(peer));
        Ok((connecting.await?, false))
    }

    /// Passes the response on, by what its header says.
    async fn respond_from(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
        upstream: &mut UpstreamSession,
    ) -> Result<()> {
        let header = upstream.response_header().ok_or_else(no_attempt)?;
        if let Some(capture) = &mut ctx.capture {
            capture.note_upstream_header(header);
        }
        let mut header = response_header::allowed(header);
        let limit = ctx.snapshot.server.body_limit;
        let coding = response_header::content_encoding(&header);
        let decompressor = Decompressor::new(coding, limit).inspect_err(|_| {
            if is_answer(header.status) {
                ctx.attempt.set_unread();
            }
        })?;
        self.upstream_response_filter(session, &mut header, ctx)
            .await?;
        self.respond(session, ctx, upstream, header, decompressor)
            .await
    }
}

/// Fails if the client has left while its request was read, restored, reserved or translated.
async fn check_client(session: &mut Session, ctx: &RequestContext) -> Result<()> {
    match ctx.client.elapsed() < LONG_WORK {
        true => Ok(()),
        false => check_present(session).await,
    }
}

/// Whether the error is what an idle connection shows that has died in the pool.
fn may_be_stale(error: &Error) -> bool {
    !is_downstream(error)
        && !matches!(
            error.etype(),
            ErrorType::ReadTimedout
                | ErrorType::WriteTimedout
                | ErrorType::Custom(DEADLINE_EXCEEDED)
        )
}

fn no_attempt() -> Box<Error> {
    Error::explain(ErrorType::InternalError, "no attempt is under way")
}
