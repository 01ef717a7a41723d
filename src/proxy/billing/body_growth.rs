//! Reserves more of a spending cap for a request whose body grows in translation.

use jiff::Timestamp;

use crate::access::{self, Leases, Reserve};
use crate::model::{ApiError, Money};
use crate::proxy::context::RequestContext;
use crate::translate::max_tokens_of_text;

/// What a translated body may have beyond the client's without more being reserved: the names of its fields.
const USUAL_GROWTH: u64 = 1024;

/// The growth of a translated body that nothing is reserved for yet, and what it may cost.
pub(in crate::proxy) struct UnreservedGrowth {
    bytes: u64,
    most: Money,
}

/// Finds how much longer the translated body is than the one that the reservation is for: references in
/// schemas are resolved, and stored signatures restored. `None`: no more needs to be reserved.
pub(in crate::proxy) fn unreserved_growth(
    ctx: &RequestContext,
    length: usize,
) -> Option<UnreservedGrowth> {
    if !ctx.billing.is_reserved() {
        return None;
    }
    let expected = ctx.route.body.len() as u64 + USUAL_GROWTH;
    let bytes = (length as u64).checked_sub(expected)?;
    let more = bytes.checked_sub(ctx.billing.reserved_growth());
    let more = more.filter(|more| *more > 0)?;
    let prices = ctx.route.current()?.settings.prices?;
    let most = prices.max_input_cost(max_tokens_of_text(more));
    Some(UnreservedGrowth { bytes, most })
}

/// Reserves the cost of the growth of a body, or waits for a lease.
pub(in crate::proxy) async fn reserve_growth(
    leases: Option<&Leases>,
    ctx: &mut RequestContext,
    growth: UnreservedGrowth,
) -> Result<(), ApiError> {
    reserve_more(leases, ctx, growth.most).await?;
    ctx.billing.set_reserved_growth(growth.bytes);
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
