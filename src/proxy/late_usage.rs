//! Reads the usage at the end of a stream whose client has left: the response is complete, and its cost depends on it.

use std::pin::pin;
use std::time::{Duration, Instant};

use pingora_core::Result;
use pingora_core::protocols::http::client::HttpSession as UpstreamSession;

use super::context::RequestContext;
use super::timer::{is_downstream, within};
use super::upstream::decompress::Decompressor;

/// How long the usage is waited for, and how much may come before it: it follows the finish reason at once.
const MAX_WAIT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 256 << 10;

/// Passes on how a stream has ended; if the client has left it, reads its usage first.
pub(super) async fn read_after(
    ended: Result<()>,
    ctx: &mut RequestContext,
    upstream: &mut UpstreamSession,
    decompressor: &mut Decompressor,
) -> Result<()> {
    if ended.as_ref().is_err_and(|error| is_downstream(error)) {
        read(ctx, upstream, decompressor).await;
    }
    ended
}

/// Reads on while the content is complete and its usage is still to come. What cannot be read is estimated.
async fn read(
    ctx: &mut RequestContext,
    upstream: &mut UpstreamSession,
    decompressor: &mut Decompressor,
) {
    let until = Instant::now() + MAX_WAIT;
    let mut left = MAX_BYTES;
    while let Some(translator) = &mut ctx.response.translator
        && translator.observer().awaits_usage()
    {
        let limit = until.saturating_duration_since(Instant::now());
        let chunk = within(limit, pin!(upstream.read_response_body())).await;
        let Some(Ok(Some(chunk))) = chunk else {
            return;
        };
        let Some(rest) = left.checked_sub(chunk.len()) else {
            return;
        };
        left = rest;
        let Ok(mut chunk) = decompressor.decompress(Some(chunk)) else {
            return;
        };
        if translator.translate_chunk(&mut chunk, false).is_err() {
            return;
        }
    }
}
