//! The body of an upstream's error.

use std::pin::pin;
use std::time::Duration;

use bytes::BytesMut;
use pingora_core::Result;
use pingora_core::protocols::http::client::HttpSession as UpstreamSession;
use pingora_proxy::Session;
use tokio::time::Instant as TokioInstant;

use super::{idle_timeout, read_chunk};
use crate::proxy::context::RequestContext;
use crate::proxy::timer::{is_downstream, unless_gone};
use crate::proxy::upstream::decompress::Decompressor;

/// How long the body of an error is waited for while another upstream could be asked.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(1);

/// Error bodies are short; longer ones are not worth reading.
const ERROR_BODY_LIMIT: usize = 1 << 20;

/// The body of an error, or as much of it as came in time: it is no reason to wait when another
/// upstream is there.
pub(super) async fn read_error_body(
    session: &mut Session,
    ctx: &mut RequestContext,
    upstream: &mut UpstreamSession,
    decompressor: &mut Decompressor,
) -> Result<BytesMut> {
    let limit = idle_timeout(ctx);
    let mut body = BytesMut::new();
    let may_retry = ctx.may_retry();
    let hurry = may_retry.then(|| TokioInstant::now() + ERROR_BODY_WAIT);
    loop {
        let deadline = hurry.or(ctx.deadline());
        let reading = pin!(read_chunk(upstream, limit));
        let chunk = match unless_gone(session, deadline, reading).await {
            Err(error) if hurry.is_some() && !is_downstream(&error) => {
                ctx.attempt.set_unfinished(true);
                return Ok(body);
            }
            chunk => chunk?,
        };
        let end = chunk.is_none();
        let Ok(chunk) = decompressor.decompress(chunk) else {
            // The status says enough.
            ctx.attempt.set_unfinished(true);
            return Ok(body);
        };
        body.extend_from_slice(&chunk.unwrap_or_default());
        if end || body.len() > ERROR_BODY_LIMIT {
            ctx.attempt.set_unfinished(!end);
            return Ok(body);
        }
    }
}
