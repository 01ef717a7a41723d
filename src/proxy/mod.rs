//! One request through pingora: `impl ProxyHttp for Gateway`, its hooks in the order in which they run.
//!
//! pingora calls `new_ctx`, `request_filter`, `fail_to_proxy` and `logging`. `request_filter` ends in
//! the forwarding loop of `forward.rs`, which calls all other hooks and answers the client itself.
//! pingora's own loop cannot do that for a model gateway: it can replay no more than 64 KiB of a body
//! that was read to find the model, it sends the response header before the first byte of the body is
//! known to be good, it has one timeout for the first byte and for silence, and no keep-alives.
//!
//! | hook | called by | what happens | file |
//! | --- | --- | --- | --- |
//! | `new_ctx` | pingora | takes the config snapshot and a request id | `context/` |
//! | `request_filter` | pingora | endpoint, key, body, model, reservation; then forwards | `request_filter.rs`, `request/admission.rs` |
//! | `upstream_peer` | loop, per attempt | starts the next attempt: its upstream's address | `forward.rs` |
//! | `upstream_request_filter` | loop | writes the header for the upstream | `attempt/upstream_request.rs` |
//! | `request_body_filter` | loop | translates the request body | `attempt/upstream_body.rs` |
//! | `fail_to_connect` | loop | another address, or the next attempt | `attempt/retry.rs` |
//! | `upstream_response_filter` | loop | chooses how the response is translated | `attempt/upstream_response.rs` |
//! | `response_body_filter` | loop, per chunk | translates the response body | `attempt/upstream_response.rs` |
//! | `response_filter` | loop | adds our headers, just before the header is sent | `downstream.rs` |
//! | `error_while_proxy` | loop | gives a failure its meaning; says whether to retry | `attempt/retry.rs` |
//! | `fail_to_proxy` | pingora | encodes the error in the client's format | `local.rs` |
//! | `logging` | pingora | settles the cost, metrics, access log | `billing/settlement.rs`, `access_log.rs` |
//!
//! The order is pingora's but for one thing: the header is held until it is known that a response
//! follows (`respond.rs`). `response_body_filter` therefore runs before `response_filter`, until the
//! whole JSON body or the first content of a stream is there, which is waited for one second after
//! its first event; a failure before that goes to the next attempt. The usage record of a request is
//! written with the last chunk of its response (`settlement::before_chunk`), before `logging`.
//! `RUST_LOG=omniglot::hooks=trace` shows the hooks of every request.
//!
//! Each folder holds what one step needs: `connection/` (listener, limits of connections, framing), `request/` (what a client sends, until
//! its model is known), `endpoint/`, `conversation/` (what is kept between requests), `billing/` (reservation and cost),
//! `attempt/` (one attempt at an upstream), `upstream/` (connections to upstreams), `respond/` (the response for the client),
//! `local/` (what the gateway answers itself), `capture/` (the inspector), `spans/` (traces), `context/` (the state of
//! a request) and `background/` (what asks upstreams beside the requests of clients).

mod access_log;
mod attempt;
mod background;
mod billing;
mod capture;
mod connection;
mod context;
mod conversation;
mod cors;
mod downstream;
mod endpoint;
mod forward;
mod gateway;
mod large_body;
mod large_body_place;
mod local;
mod request;
mod request_filter;
mod respond;
mod spans;
mod timer;
mod upstream;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use pingora_core::modules::http::HttpModules;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, ProxyWarnLogContext, Session};

pub use access_log::AccessLog;
pub use background::discovery::ModelDiscovery;
pub use background::health_check::HealthChecks;
pub use background::listed_models::ListFailure;
pub use background::live_check::{LiveAnswer, ask_upstreams};
pub use connection::listen_endpoint::ListenEndpoint;
pub use connection::listener::{ConnectionAdmission, Listener};
pub use context::RequestContext;
pub use conversation::conversation_store::ConversationStore;
pub use gateway::Gateway;
pub use upstream::pool::UpstreamPool;

#[async_trait]
impl ProxyHttp for Gateway {
    /// On the heap, because pingora moves it by value.
    type CTX = Box<RequestContext>;

    fn new_ctx(&self) -> Box<RequestContext> {
        let timer = connection::listener::request_header_read();
        let (snapshot, metrics) = (self.runtime.snapshot(), self.metrics.clone());
        let journal = self.journal.clone();
        let ctx = Box::new(RequestContext::new(snapshot, metrics, journal, timer));
        ctx.trace("new_ctx");
        ctx
    }

    /// Checks the key, reads the body, finds the model and forwards the request.
    async fn request_filter(&self, session: &mut Session, ctx: &mut Self::CTX) -> Result<bool> {
        ctx.trace("request_filter");
        self.handle(session, ctx).await?;
        Ok(true)
    }

    /// Starts the next attempt, and resolves the address of its upstream.
    async fn upstream_peer(
        &self,
        _session: &mut Session,
        ctx: &mut Self::CTX,
    ) -> Result<Box<HttpPeer>> {
        ctx.start_attempt();
        ctx.trace("upstream_peer");
        self.next_peer(ctx).await.map(Box::new)
    }

    /// Writes the header for the upstream; nothing of the client's header goes on by default.
    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        upstream_request: &mut RequestHeader,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        ctx.trace("upstream_request_filter");
        attempt::upstream_request::set_headers(&session.req_header().headers, upstream_request, ctx)
    }

    /// Translates the request body. It is called once per attempt: the whole body is there.
    async fn request_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        _end_of_stream: bool,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        ctx.trace("request_body_filter");
        let _place = self.large_body_place(ctx, ctx.route.body.len()).await;
        *body = Some(self.translate_request(ctx)?);
        Ok(())
    }

    /// Tries another address of the upstream, or gives the failure its meaning.
    fn fail_to_connect(
        &self,
        _session: &mut Session,
        _peer: &HttpPeer,
        ctx: &mut Self::CTX,
        e: Box<Error>,
    ) -> Box<Error> {
        ctx.trace("fail_to_connect");
        self.connect_failed(e, ctx)
    }

    /// Chooses from the upstream's header how the response is translated.
    async fn upstream_response_filter(
        &self,
        _session: &mut Session,
        upstream_response: &mut ResponseHeader,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        ctx.trace("upstream_response_filter");
        self.choose_translator(upstream_response, ctx)
    }

    /// Translates a chunk of the response body.
    fn response_body_filter(
        &self,
        _session: &mut Session,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
        ctx: &mut Self::CTX,
    ) -> Result<Option<Duration>> {
        ctx.trace("response_body_filter");
        self.translate_chunk(body, end_of_stream, ctx)?;
        Ok(None)
    }

    /// Adds the headers of the gateway.
    async fn response_filter(
        &self,
        _session: &mut Session,
        upstream_response: &mut ResponseHeader,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        ctx.trace("response_filter");
        downstream::add_headers(upstream_response, ctx)
    }

    /// Gives a failure after the connection its meaning, once; says whether another attempt may follow.
    fn error_while_proxy(
        &self,
        _peer: &HttpPeer,
        _session: &mut Session,
        e: Box<Error>,
        ctx: &mut Self::CTX,
        _client_reused: bool,
    ) -> Box<Error> {
        ctx.trace("error_while_proxy");
        self.attempt_failed(e, ctx)
    }

    /// Encodes the error in the client's format: as a response, or inside the stream that has begun.
    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        e: &Error,
        ctx: &mut Self::CTX,
    ) -> FailToProxy {
        ctx.trace("fail_to_proxy");
        let is_sent = local::respond_failure(session, ctx, e).await;
        FailToProxy {
            error_code: ctx.response.status(),
            can_reuse_downstream: is_sent,
        }
    }

    /// Settles the cost, and writes metrics, the access log and the spans of a trace.
    async fn logging(&self, session: &mut Session, _e: Option<&Error>, ctx: &mut Self::CTX) {
        ctx.trace("logging");
        let cost = billing::settlement::settle(ctx);
        self.count_error(ctx);
        if let Some(log) = &self.access_log {
            log.write(session, ctx, cost);
        }
        self.record_spans(session, ctx, cost);
        request::inspected_request::finish(ctx, cost);
        connection::listener::return_timer(std::mem::take(&mut ctx.timer));
    }

    /// None: pingora's default is a compression module, which would hold back events.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    /// Failures are logged by the hooks that give them their meaning.
    fn suppress_error_log(&self, _session: &Session, _ctx: &Self::CTX, _error: &Error) -> bool {
        true
    }

    fn suppress_proxy_warn_log(
        &self,
        _session: &Session,
        _ctx: &Self::CTX,
        _error: &Error,
        _context: ProxyWarnLogContext,
    ) -> bool {
        true
    }
}
