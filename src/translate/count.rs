//! Counting tokens across formats: the question in the upstream's words, the number in the client's.

use super::convert::in_words_of;
use super::estimate;
use super::rename::rename;
use crate::formats::{CountTokensRequest, TokenCounter, UpstreamTarget};
use crate::model::{ApiError, ApiErrorKind, FieldLocation, Format, Labels, Losses, Sampling};

/// What the upstream's counter is asked. `None`: its format has no counter; what the upstream
/// could not be told of the request is reported and refused all the same.
pub fn count_tokens_request(
    from: Format,
    to: Format,
    body: &[u8],
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<Option<Vec<u8>>, ApiError> {
    let asked = counter(from)?.decode_count_request(body, losses)?;
    let CountTokensRequest {
        mut request,
        within,
    } = asked;
    // How a reply is drawn and labelled costs no tokens: to leave it out is no loss.
    request.sampling = Sampling::default();
    request.labels = Labels::default();
    rename(&mut request, to.codec().tool_name_rule(), losses);
    let encoded = match to.codec().token_counter() {
        Some(counter) => counter
            .encode_count_request(&request, target, losses)
            .map(Some),
        None => {
            let unasked = to.codec().encode_request(&request, target, losses);
            unasked.map(|_| None)
        }
    };
    if let Some(field) = within {
        for lost in &mut losses.0 {
            move_into(from, field, &mut lost.location);
        }
    }
    encoded.map_err(|mut api_error| {
        if let (Some(field), Some(place)) = (within, &mut api_error.location) {
            move_into(from, field, place);
        }
        in_words_of(from, api_error)
    })
}

/// A place in a request that stands inside a field of the client's body.
fn move_into(client: Format, field: &str, place: &mut FieldLocation) {
    // Paths were noted while the body was read, and are whole.
    if !matches!(place, FieldLocation::Path(_)) {
        let path = client.codec().path_of(place);
        *place = FieldLocation::Path(format!("{field}.{path}").into());
    }
}

/// The number of an upstream's counter, in the client's answer.
pub(super) fn answer(from: Format, to: Format, body: &[u8]) -> Result<Vec<u8>, ApiError> {
    let tokens = counter(from)?.decode_count(body)?;
    Ok(counter(to)?.encode_count(tokens))
}

/// An answer that nobody was asked for: about how many tokens the client's body has.
pub fn estimate_token_count(
    client: Format,
    body: &[u8],
    losses: &mut Losses,
) -> Result<Vec<u8>, ApiError> {
    let counter = counter(client)?;
    // What could not be told to an upstream has been noted when that was tried.
    let question = counter.decode_count_request(body, &mut Losses::default())?;
    losses.approximated(FieldLocation::Path(counter.count_path().into()));
    Ok(counter.encode_count(estimate::tokens(&question.request)))
}

/// Whoever counts has asked on the path of a counter, or was chosen for having one.
fn counter(format: Format) -> Result<&'static dyn TokenCounter, ApiError> {
    let counter = format.codec().token_counter();
    counter.ok_or_else(|| ApiError::new(ApiErrorKind::Internal, "the format has no counter"))
}
