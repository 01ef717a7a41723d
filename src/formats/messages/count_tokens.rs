//! Counting tokens: `POST /v1/messages/count_tokens`.

use super::Messages;
use super::request;
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::token_counter::decode_input_tokens;
use crate::formats::{
    CountTokensRequest, ErrorCodec, RequestCodec, RequestHead, TokenCounter, UpstreamTarget,
};
use crate::model::{ApiError, Losses, Request};

/// The token counter of the format.
pub(super) struct MessagesTokenCounter;

impl TokenCounter for MessagesTokenCounter {
    fn decode_count_request<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<CountTokensRequest<'a>, ApiError> {
        let request = Messages.decode_request(&RequestHead::default(), body, losses)?;
        let within = None;
        Ok(CountTokensRequest { request, within })
    }

    fn encode_count_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError> {
        let (prompt, _) = request::encode_prompt(request, target, losses)?;
        Ok(to_json_bytes(&prompt, request.size()))
    }

    fn decode_count(&self, body: &[u8]) -> Result<u64, ApiError> {
        decode_input_tokens(body, |status, body| Messages.decode_error(status, body))
    }

    fn encode_count(&self, tokens: u64) -> Vec<u8> {
        format!(r#"{{"input_tokens":{tokens}}}"#).into_bytes()
    }

    fn count_path(&self) -> &'static str {
        "input_tokens"
    }
}
