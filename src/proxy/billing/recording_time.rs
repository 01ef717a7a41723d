//! Recordings whose minutes have a price: how long they may be, and how long they are billed for.

use crate::formats::Operation;
use crate::model::ApiError;
use crate::proxy::context::RequestContext;
use crate::runtime::{Attempt, CappedAccount};

/// An estimate has a token for each KiB of a recording; of most, that is 64 ms (128 kbit/s).
const MILLISECONDS_PER_TOKEN: u64 = 64;

const MILLISECONDS_PER_MINUTE: u64 = 60_000;

/// How long a recording is.
#[derive(Debug, Clone, Copy)]
pub(in crate::proxy) struct RecordingTime {
    pub(in crate::proxy) milliseconds: u64,
    /// The upstream has not reported it.
    pub(in crate::proxy) is_estimated: bool,
}

/// Tells whether the recording of an attempt is billed by its minutes.
fn is_billed(operation: Operation, attempt: &Attempt) -> bool {
    let takes_recording =
        matches!(operation, Operation::Passthrough(endpoint) if endpoint.takes_recording());
    let prices = attempt.settings.prices;
    takes_recording && prices.is_some_and(|prices| prices.charges_audio())
}

/// Refuses what may cost any amount: few bytes can be hours, and only the model's own limit is known before.
pub(in crate::proxy) fn check_bounded(
    capped: CappedAccount<'_>,
    operation: Operation,
    attempts: &[Attempt],
) -> Result<(), ApiError> {
    let is_unbounded = |attempt: &Attempt| {
        is_billed(operation, attempt) && attempt.settings.settings.max_audio_minutes.is_none()
    };
    if !attempts.iter().any(is_unbounded) {
        return Ok(());
    }
    let message = format!(
        "{capped} has a spending cap, and the recordings of this model are billed by the minute: use another \
         model, or set max_audio_minutes of the model in the config"
    );
    Err(ApiError::invalid(message).at("model"))
}

/// The longest recording that an attempt may be billed for, in milliseconds.
pub(in crate::proxy) fn longest(operation: Operation, attempt: &Attempt) -> u64 {
    let minutes = attempt.settings.settings.max_audio_minutes;
    match is_billed(operation, attempt) {
        true => minutes
            .unwrap_or_default()
            .saturating_mul(MILLISECONDS_PER_MINUTE),
        false => 0,
    }
}

/// What the recording of the attempt under way is billed for. Where the upstream does not report how long it is, a key with
/// a cap pays for the longest: it could send a long one with few bytes each time. `tokens` estimates those of the request.
pub(in crate::proxy) fn billed(
    ctx: &RequestContext,
    tokens: impl FnOnce() -> u64,
) -> Option<RecordingTime> {
    let (attempt, request) = (ctx.route.current()?, ctx.route.request()?);
    if !is_billed(request.operation, attempt) {
        return None;
    }
    let translator = ctx.response.translator.as_ref();
    let reported = translator.and_then(|translator| translator.observer().audio_milliseconds);
    let estimate = || match ctx.billing.is_reserved() {
        true => longest(request.operation, attempt),
        false => tokens().saturating_mul(MILLISECONDS_PER_TOKEN),
    };
    Some(RecordingTime {
        milliseconds: reported.unwrap_or_else(estimate),
        is_estimated: reported.is_none(),
    })
}
