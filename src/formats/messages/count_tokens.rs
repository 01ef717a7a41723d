//! Counting tokens: `POST /v1/messages/count_tokens`.

use serde::Serialize;

use super::Messages;
use super::request;
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::{
    CountTokensRequest, ErrorCodec, RequestCodec, RequestHead, TokenCounter, UpstreamTarget,
    decode_response_body,
};
use crate::json::{Present, from_json};
use crate::model::{ApiError, Losses, Request};

/// The token counter of the format.
pub(super) struct MessagesTokenCounter;

#[derive(Serialize)]
struct MessagesTokenCount {
    input_tokens: u64,
}

from_json! {
    struct RawMessagesTokenCount {
        "input_tokens" => input_tokens: Option<u64>,
        // The name of AWS Bedrock.
        "inputTokens" => bedrock_tokens: Option<u64>,
        "error" => error: Option<Present>,
    }
}

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
        match decode_response_body(body)? {
            RawMessagesTokenCount { error: Some(_), .. } => Err(Messages.decode_error(200, body)),
            RawMessagesTokenCount {
                input_tokens,
                bedrock_tokens,
                ..
            } => input_tokens
                .or(bedrock_tokens)
                .ok_or_else(|| ApiError::bad_gateway("the upstream's count has no input_tokens")),
        }
    }

    fn encode_count(&self, tokens: u64) -> Vec<u8> {
        let count = MessagesTokenCount {
            input_tokens: tokens,
        };
        serde_json::to_vec(&count).expect("a number always serialises")
    }

    fn count_path(&self) -> &'static str {
        "input_tokens"
    }
}
