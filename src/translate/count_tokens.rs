//! Translates requests for a count of tokens, and the counts.

use super::request::with_client_path;
use super::token_estimate;
use super::tool_names::rename_tools;
use crate::formats::{CountTokensRequest, TokenCounter, UpstreamTarget};
use crate::model::{ApiError, ApiErrorKind, FieldLocation, Format, Labels, Losses, Sampling};

/// Translates a request for a count. `None`: the upstream's format has no such endpoint; losses and
/// errors are those of the request itself.
pub fn count_tokens_request(
    from: Format,
    to: Format,
    body: &[u8],
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<Option<Vec<u8>>, ApiError> {
    let CountTokensRequest {
        mut request,
        within,
    } = counter(from)?.decode_count_request(body, losses)?;
    // Sampling and labels cost no tokens: to leave them out is no loss.
    request.sampling = Sampling::default();
    request.labels = Labels::default();
    let renamed = rename_tools(&mut request, to.codec().tool_name_rule(), losses);
    let encoded = renamed.and_then(|_| match to.codec().token_counter() {
        Some(counter) => counter
            .encode_count_request(&request, target, losses)
            .map(Some),
        None => {
            let encoded = to.codec().encode_request(&request, target, losses);
            encoded.map(|_| None)
        }
    });
    if let Some(field) = within {
        for loss in &mut losses.0 {
            move_into(from, field, &mut loss.location);
        }
    }
    encoded.map_err(|mut api_error| {
        if let (Some(field), Some(location)) = (within, &mut api_error.location) {
            move_into(from, field, location);
        }
        with_client_path(from, api_error)
    })
}

/// Moves a location into the field of the client's body that holds the request.
fn move_into(client: Format, field: &str, location: &mut FieldLocation) {
    // Paths come from the decoder, and are complete.
    if !matches!(location, FieldLocation::Path(_)) {
        let path = client.codec().path_of(location);
        *location = FieldLocation::Path(format!("{field}.{path}").into());
    }
}

/// Translates an upstream's count.
pub(super) fn translate_count(from: Format, to: Format, body: &[u8]) -> Result<Vec<u8>, ApiError> {
    let tokens = counter(from)?.decode_count(body)?;
    Ok(counter(to)?.encode_count(tokens))
}

/// Estimates the tokens of a client's request, where no upstream can count them.
pub fn estimate_token_count(
    client: Format,
    body: &[u8],
    losses: &mut Losses,
) -> Result<Vec<u8>, ApiError> {
    let counter = counter(client)?;
    // The losses were recorded when the request was translated for the upstream.
    let count_request = counter.decode_count_request(body, &mut Losses::default())?;
    losses.approximated(FieldLocation::Path(counter.count_path().into()));
    Ok(counter.encode_count(token_estimate::estimate_tokens(&count_request.request)))
}

/// Returns the counter of a format that is known to have one.
fn counter(format: Format) -> Result<&'static dyn TokenCounter, ApiError> {
    let counter = format.codec().token_counter();
    counter.ok_or_else(|| ApiError::new(ApiErrorKind::Internal, "the format has no counter"))
}
