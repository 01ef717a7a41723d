//! How long a response may take, and is billed for, where time has a price.

use std::time::Duration;

use crate::proxy::context::{RESERVED_TIME, RequestContext};
use crate::runtime::Attempt;

/// The time that an attempt is billed for. A client may read more slowly than the upstream sends, so that it is at most what
/// was reserved.
pub(super) fn billed_time(ctx: &RequestContext) -> Duration {
    let attempt = ctx.route.current().filter(|_| ctx.billing.is_reserved());
    let took = ctx.attempt.took();
    attempt.map_or(took, |attempt| took.min(longest_time(attempt)))
}

/// The time that is reserved for an attempt.
pub(super) fn longest_time(attempt: &Attempt) -> Duration {
    attempt.timeouts.total.unwrap_or(RESERVED_TIME)
}

/// In whole milliseconds, as prices and records have it.
pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
