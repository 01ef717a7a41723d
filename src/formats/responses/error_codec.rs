//! Errors as responses, which are those of the chat format, and as the end of a stream that passed through.

use super::response_object::ResponseObject;
use super::stream::events::{EventBody, SequenceNumbers};
use super::{Responses, error};
use crate::formats::{ErrorCodec, InterruptedStream, chat};
use crate::model::ApiError;
use crate::sse::SseWriter;

impl ErrorCodec for Responses {
    fn decode_error(&self, status: u16, body: &[u8]) -> ApiError {
        chat::decode_error(status, body)
    }

    fn encode_error(&self, api_error: &ApiError, _request_id: &str) -> (u16, Vec<u8>) {
        chat::encode_error(api_error)
    }

    /// Continues the upstream's numbers and ends the response that it began.
    fn encode_stream_error(
        &self,
        api_error: &ApiError,
        stream: &InterruptedStream<'_>,
        out: &mut SseWriter,
    ) {
        let InterruptedStream { observer, model } = stream;
        let mut sequence = SequenceNumbers::from(observer.next_event);
        error::encode_in_stream(api_error, sequence.next(), out);
        // No response has begun.
        let Some((id, created)) = &observer.reply else {
            return;
        };
        let response = ResponseObject {
            usage: observer.usage.map(Into::into),
            ..ResponseObject::failed(id, *created, model, api_error)
        };
        let body = EventBody::Response {
            response: &response,
        };
        sequence.send("response.failed", body, out);
    }
}
