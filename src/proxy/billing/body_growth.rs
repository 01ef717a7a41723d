//! Reserves more of a spending cap for a request whose body grows in translation.

use jiff::Timestamp;

use super::max_input::max_billed_input;
use crate::access::{self, Leases, Reserve};
use crate::formats::RequestHead;
use crate::model::{ApiError, Format, Money};
use crate::proxy::context::RequestContext;
use crate::runtime::Attempt;

/// What a translated body may have beyond the client's without more being reserved: the names of its fields.
const USUAL_GROWTH: u64 = 1024;

/// Finds how many bytes of a translated body are media. What translation leaves out of a request makes no room for text that it
/// adds: the bytes of media were reserved as far fewer tokens. `None`: nothing is reserved, or the body is no longer than the text
/// that was.
pub(in crate::proxy) fn translated_media(
    ctx: &RequestContext,
    attempt: &Attempt,
    body: &[u8],
) -> Option<u64> {
    let reserved = ctx.billing.estimate()?.text().saturating_add(USUAL_GROWTH);
    let is_of_images = attempt.upstream.format == Format::Images;
    let is_conversation = ctx.route.request()?.is_conversation() && !is_of_images;
    if !is_conversation || body.len() as u64 <= reserved {
        return None;
    }
    if media_of_client(ctx) == 0 {
        return Some(0);
    }
    let codec = attempt.upstream.format.codec();
    let media = codec.input_media(&RequestHead::default(), body);
    // What cannot be read again counts as text.
    Some(media.map_or(0, |media| media.lengths.iter().sum()))
}

/// How many bytes of the client's body are reserved as something other than text.
fn media_of_client(ctx: &RequestContext) -> u64 {
    let text = ctx.billing.estimate().map(|estimate| estimate.text());
    let body = ctx.route.body.len() as u64;
    text.map_or(0, |text| body.saturating_sub(text))
}

/// Finds what more must be reserved for the body of the attempt under way, which is so long: references in schemas are resolved, and
/// stored signatures restored. `None`: nothing.
pub(in crate::proxy) fn unreserved_growth(
    ctx: &mut RequestContext,
    length: usize,
) -> Option<Money> {
    ctx.billing.set_growth(0);
    let estimate = ctx
        .billing
        .estimate()
        .filter(|_| ctx.billing.is_reserved())?;
    let media = ctx.attempt.translated_media();
    let media = media.unwrap_or_else(|| media_of_client(ctx));
    let text = (length as u64).saturating_sub(media);
    let growth = text.saturating_sub(estimate.text().saturating_add(USUAL_GROWTH));
    if growth == 0 {
        return None;
    }
    let (attempt, request) = (ctx.route.current()?, ctx.route.request()?);
    let prices = attempt.settings.prices?;
    let findings = request.findings(ctx.client.codec(), &ctx.route.body);
    let input = |estimate| {
        let choices = request.output_limit.choices;
        max_billed_input(estimate, findings, choices, attempt, ctx.client.format())
    };
    let more = input(estimate.with_more_text(growth)).saturating_sub(input(estimate));
    let unreserved = prices
        .max_input_cost(more)
        .saturating_sub(ctx.billing.reserved_growth());
    ctx.billing.set_growth(growth);
    (unreserved > Money::ZERO).then_some(unreserved)
}

/// Reserves the cost of the growth of a body, or waits for a lease.
pub(in crate::proxy) async fn reserve_growth(
    leases: Option<&Leases>,
    ctx: &mut RequestContext,
    most: Money,
) -> Result<(), ApiError> {
    reserve_more(leases, ctx, most).await?;
    ctx.billing.add_reserved_growth(most);
    Ok(())
}

/// Adds to what is reserved for a request, or waits for a lease.
pub(in crate::proxy) async fn reserve_more(
    leases: Option<&Leases>,
    ctx: &mut RequestContext,
    most: Money,
) -> Result<(), ApiError> {
    let Some(key) = ctx.client.key() else {
        return Ok(());
    };
    let reserved = match access::reserve(leases, key, most, Timestamp::now())? {
        Reserve::Ready(reservation) => reservation,
        Reserve::Pending(waiting) => Some(waiting.wait().await?),
    };
    if let Some(reserved) = reserved {
        ctx.billing.add_reservation(reserved);
    }
    Ok(())
}
