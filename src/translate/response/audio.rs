//! Responses about audio, which differ in kind.

use super::ResponseHandler;
use crate::formats::{EndpointResponse, Operation, PassthroughEndpoint, ResponseOptions};
use crate::model::{ApiError, Format};
use crate::translate::RequestSummary;
use crate::translate::json_body::JsonBody;
use crate::translate::passthrough::SsePassthrough;
use crate::translate::upstream_error::unexpected_content_type;

/// The endpoint of a request whose responses differ in kind.
pub(super) fn audio_endpoint(summary: &RequestSummary) -> Option<PassthroughEndpoint> {
    match summary.operation {
        Operation::Passthrough(endpoint) if endpoint.is_audio() => Some(endpoint),
        _ => None,
    }
}

/// Chooses what is done with a response about audio. Its content type alone tells what it is: some models do not stream.
pub(super) fn of_audio(
    endpoint: PassthroughEndpoint,
    client: Format,
    summary: &RequestSummary,
    options: ResponseOptions,
    mime: &str,
) -> Result<ResponseHandler, ApiError> {
    let kind = endpoint.response_kind(mime);
    let kind = kind.ok_or_else(|| unexpected_content_type(mime, summary.stream))?;
    Ok(match kind {
        EndpointResponse::Json => {
            ResponseHandler::Json(JsonBody::new(client, client, summary, options))
        }
        EndpointResponse::Text => ResponseHandler::Json(JsonBody::of_text(endpoint)),
        EndpointResponse::Events => {
            let stream = SsePassthrough::new(client.codec(), &summary.model, false);
            ResponseHandler::Passthrough(stream.of_endpoint(Some(endpoint)))
        }
        EndpointResponse::Recording(bytes_per_token) => ResponseHandler::Recording(bytes_per_token),
    })
}
