//! The header of a stream, held until its first content: until then another upstream can answer.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use pingora_core::Result;
use pingora_http::ResponseHeader;
use pingora_proxy::Session;
use tokio::time::Instant as TokioInstant;

use crate::proxy::context::RequestContext;
use crate::proxy::downstream::write_body;
use crate::proxy::gateway::Gateway;

/// A stream's first events hold no content. They are held this long for some, so that a stream
/// which fails at once can still be answered by another upstream.
const HOLD: Duration = Duration::from_secs(1);

/// The header of a stream and what came before its first content.
pub(in crate::proxy) struct HeldHeader {
    header: Option<ResponseHeader>,
    bytes: BytesMut,
    since: Option<TokioInstant>,
}

impl HeldHeader {
    pub(in crate::proxy) fn new(header: ResponseHeader) -> HeldHeader {
        HeldHeader {
            header: Some(header),
            bytes: BytesMut::new(),
            since: None,
        }
    }

    /// When the header goes out, content or not; `None`: no event has come yet.
    pub(in crate::proxy) fn release_at(&self) -> Option<TokioInstant> {
        self.since.map(|since| since + HOLD)
    }

    /// Sends a chunk, or holds it until content comes.
    pub(in crate::proxy) async fn pass(
        &mut self,
        gateway: &Gateway,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
        chunk: Option<Bytes>,
        end: bool,
    ) -> Result<()> {
        if ctx.response.header_sent() {
            return write_body(session, ctx, chunk, end).await;
        }
        let translator = ctx.response.translator.as_ref();
        let begun = translator.is_some_and(|translator| translator.observer().has_content);
        let too_much = self.bytes.len() > ctx.snapshot.server.body_limit;
        if !(begun || end || too_much) {
            if let Some(chunk) = chunk {
                self.since.get_or_insert_with(TokioInstant::now);
                self.bytes.extend_from_slice(&chunk);
            }
            return Ok(());
        }
        if self.bytes.is_empty() {
            self.send(gateway, session, ctx).await?;
            return write_body(session, ctx, chunk, end).await;
        }
        self.bytes.extend_from_slice(&chunk.unwrap_or_default());
        self.release(gateway, session, ctx).await?;
        if end {
            write_body(session, ctx, None, true).await?;
        }
        Ok(())
    }

    /// Sends the header and all that was held.
    pub(in crate::proxy) async fn release(
        &mut self,
        gateway: &Gateway,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
    ) -> Result<()> {
        self.send(gateway, session, ctx).await?;
        let bytes = self.bytes.split().freeze();
        write_body(session, ctx, Some(bytes), false).await
    }

    async fn send(
        &mut self,
        gateway: &Gateway,
        session: &mut Session,
        ctx: &mut Box<RequestContext>,
    ) -> Result<()> {
        match self.header.take() {
            Some(header) => gateway.send_header(session, ctx, header).await,
            None => Ok(()),
        }
    }
}
