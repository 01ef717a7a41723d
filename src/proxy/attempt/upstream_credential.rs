//! Requests to upstreams whose credentials are fetched: they wait for one, and are repeated once where it is refused.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use pingora_core::Result;
use pingora_core::protocols::http::client::HttpSession as UpstreamSession;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_http::RequestHeader;
use pingora_proxy::Session;
use tokio::time::timeout;

use crate::credentials;
use crate::json::ChunkedBytes;
use crate::metrics::FailureCause;
use crate::model::ApiError;
use crate::proxy::context::RequestContext;
use crate::proxy::gateway::Gateway;
use crate::proxy::large_body;
use crate::proxy::timer::{is_downstream, unless_gone};
use crate::proxy::upstream::session::UpstreamRequest;
use crate::runtime::{Credential, FetchedCredential};

impl Gateway {
    /// Sends a request with a credential. One that the upstream refuses is fetched again, and the request repeated once.
    pub(in crate::proxy) async fn send_with_credential(
        &self,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
        peer: &mut HttpPeer,
        mut request: UpstreamRequest,
        fetched: &Arc<FetchedCredential>,
    ) -> Result<Box<UpstreamSession>> {
        let unsigned = request.header.clone();
        let mut is_repeated = false;
        loop {
            let credential = self.credential(session, ctx, fetched).await?;
            request.header = with_credential(&credential, unsigned.clone(), &request.body);
            let sending = Box::pin(self.send(session, ctx, peer, request.clone()));
            let mut upstream = sending.await?;
            let refused = upstream.response_header().is_some_and(|header| {
                credentials::is_refused(&credential, header.status, &header.headers)
            });
            let is_final = !refused || is_repeated || !fetched.reject(&credential);
            if is_final || ctx.client.has_left() {
                return Ok(upstream);
            }
            let (id, name) = (ctx.client.request_id(), ctx.route.upstream_name());
            log::info!("{id}: upstream {name}: its credential is refused, another one is fetched");
            upstream.shutdown().await;
            is_repeated = true;
        }
    }

    /// The current credential; the first one is waited for as long as for a connection.
    async fn credential(
        &self,
        session: &mut Session,
        ctx: &mut RequestContext,
        fetched: &FetchedCredential,
    ) -> Result<Arc<Credential>> {
        if let Some(current) = fetched.current() {
            return Ok(current);
        }
        let limit = ctx.route.current().map(|attempt| attempt.timeouts.connect);
        let limit = limit.unwrap_or_default();
        let waiting = async { Ok(timeout(limit, fetched.get()).await) };
        let waited = unless_gone(session, ctx.deadline(), pin!(waiting)).await;
        let reason = match waited {
            Ok(Ok(Ok(credential))) => return Ok(credential),
            Ok(Ok(Err(reason))) => reason,
            Err(error) if is_downstream(&error) => return Err(error),
            Ok(Err(_)) | Err(_) => "it is not fetched in time".into(),
        };
        let (id, name) = (ctx.client.request_id(), ctx.route.upstream_name());
        log::warn!("{id}: upstream {name}: no credential: {reason}");
        let message = "the gateway could not get a credential for the upstream; its log says why";
        let api_error = ApiError::bad_gateway(message);
        self.upstream_failed(ctx, FailureCause::Credentials, &api_error);
        Err(ctx.set_error(api_error))
    }
}

/// The header of a request with this credential.
pub(in crate::proxy) fn with_credential(
    credential: &Credential,
    header: RequestHeader,
    body: &(Bytes, ChunkedBytes),
) -> RequestHeader {
    let mut parts: http::request::Parts = header.into();
    let (first, mut rest) = body.clone();
    let mut chunks = std::iter::once(first).chain(std::iter::from_fn(|| rest.next_chunk()));
    let length = body.0.len() + body.1.len();
    large_body::process(length, || {
        credentials::apply(credential, &mut parts, &mut chunks);
    });
    parts.into()
}
