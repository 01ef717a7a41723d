//! Counting tokens: `POST /v1/responses/input_tokens`.

use serde::Serialize;

use super::Responses;
use super::request;
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::{
    CountTokensRequest, RequestCodec, RequestHead, TokenCounter, UpstreamTarget, chat,
    decode_response_body,
};
use crate::json::{Present, from_json};
use crate::model::{ApiError, Losses, Request};

/// Counts tokens through the endpoint of this format.
pub(super) struct ResponsesTokenCounter;

/// The body of a response as it is encoded.
#[derive(Serialize)]
struct InputTokens {
    object: &'static str,
    input_tokens: u64,
}

from_json! {
    /// The body of a response as an upstream sends it.
    struct ReceivedInputTokens {
        "input_tokens" => input_tokens: Option<u64>,
        "error" => error: Option<Present>,
    }
}

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
        match decode_response_body(body)? {
            ReceivedInputTokens { error: Some(_), .. } => Err(chat::decode_error(200, body)),
            ReceivedInputTokens { input_tokens, .. } => input_tokens
                .ok_or_else(|| ApiError::bad_gateway("the upstream's count has no input_tokens")),
        }
    }

    fn encode_count(&self, tokens: u64) -> Vec<u8> {
        let counted = InputTokens {
            object: "response.input_tokens",
            input_tokens: tokens,
        };
        serde_json::to_vec(&counted).expect("numbers and strings always serialise")
    }

    fn count_path(&self) -> &'static str {
        "input_tokens"
    }
}
