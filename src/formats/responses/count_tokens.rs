//! Counting tokens: `POST /v1/responses/input_tokens`.

use super::Responses;
use super::request;
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::token_counter::decode_input_tokens;
use crate::formats::{
    CountTokensRequest, RequestCodec, RequestHead, TokenCounter, UpstreamTarget, chat,
};
use crate::model::{ApiError, Losses, Request};

/// Counts tokens through the endpoint of this format.
pub(super) struct ResponsesTokenCounter;

impl TokenCounter for ResponsesTokenCounter {
    fn decode_count_request<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<CountTokensRequest<'a>, ApiError> {
        // Whether responses are stored makes no difference to a count, nor to what is missing.
        let head = RequestHead {
            keeps: true,
            ..RequestHead::default()
        };
        let request = Responses.decode_request(&head, body, losses)?;
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
        decode_input_tokens(body, chat::decode_error)
    }

    fn encode_count(&self, tokens: u64) -> Vec<u8> {
        format!(r#"{{"object":"response.input_tokens","input_tokens":{tokens}}}"#).into_bytes()
    }

    fn count_path(&self) -> &'static str {
        "input_tokens"
    }
}
