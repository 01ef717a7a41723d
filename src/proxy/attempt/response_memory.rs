//! The memory of responses, counted among that of all bodies.

use pingora_core::Result;

use crate::model::Format;
use crate::proxy::context::RequestContext;
use crate::proxy::request::request_body;
use crate::translate::ResponseTranslator;

/// Responses up to this size, which most are, take too little to count.
const UNCOUNTED_RESPONSE: usize = 256 << 10;

/// What is taken for each image before it is asked for: hardly any is smaller. Of a small memory it is an eighth.
const EXPECTED_IMAGE: usize = 1 << 20;

/// Takes the memory of a response that will be long, before the upstream is asked: without it nothing is generated, and
/// nobody pays. How long others get is known only when they come.
pub(in crate::proxy) fn take_expected(ctx: &mut RequestContext) -> Result<()> {
    let limit = ctx.snapshot.server.body_memory;
    let expected = expected_images(ctx).saturating_mul(EXPECTED_IMAGE.min(limit / 8));
    let expected = expected.min(ctx.snapshot.server.body_limit).min(limit / 2);
    let taken = ctx.route.body_memory.grow_response_to(expected, limit);
    taken.map_err(|reason| {
        let mut error = ctx.withdraw_attempt(request_body::no_memory(reason, limit));
        error.set_retry(false);
        error
    })
}

/// How many images the attempt is asked for.
fn expected_images(ctx: &RequestContext) -> usize {
    let (Some(attempt), Some(request)) = (ctx.route.current(), ctx.route.request()) else {
        return 0;
    };
    let is_image = attempt.upstream.format == Format::Images;
    let is_image = is_image || attempt.settings.settings.is_image_model();
    match is_image && request.operation.has_output() {
        true => usize::try_from(request.output_limit.choices).unwrap_or(usize::MAX),
        false => 0,
    }
}

/// Counts what is held of a long response among the memory of all bodies. The upstream is not to blame where there is too
/// little, and another one would answer with as much.
pub(in crate::proxy) fn count_memory(ctx: &mut RequestContext, chunk: usize) -> Result<()> {
    let translator = ctx.response.translator.as_ref();
    let held = chunk + translator.map_or(0, ResponseTranslator::buffered);
    if held <= UNCOUNTED_RESPONSE {
        return Ok(());
    }
    let limit = ctx.snapshot.server.body_memory;
    let counted = ctx.route.body_memory.grow_response_to(held, limit);
    counted.map_err(|reason| {
        // Its usage would stand at its end.
        if let Some(translator) = &mut ctx.response.translator
            && !translator.observer().ended
        {
            translator.set_unread();
        }
        let mut error = ctx.set_error(request_body::no_memory(reason, limit));
        error.set_retry(false);
        error
    })
}
