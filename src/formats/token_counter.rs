//! Codec of the endpoint that counts the tokens of a request, in the formats that have one.

use super::body::decode_response_body;
use super::request_findings::RequestFindings;
use super::request_options::UpstreamTarget;
use crate::json::{Edit, Present, from_json};
use crate::model::{ApiError, Losses, Request};

/// Encodes and decodes the requests and responses of a token counting endpoint.
pub trait TokenCounter: Sync {
    /// Decodes a client's request for a count.
    fn decode_count_request<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<CountTokensRequest<'a>, ApiError>;
    /// Encodes a request for an upstream's count, which accepts fewer fields than generation.
    fn encode_count_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError>;
    /// Decodes an upstream's response.
    fn decode_count(&self, body: &[u8]) -> Result<u64, ApiError>;
    /// Encodes a response for a client.
    fn encode_count(&self, tokens: u64) -> Vec<u8>;
    /// Returns the path of the count in a response.
    fn count_path(&self) -> &'static str;
    /// Checks that a second field, beside the one for routing, names the model of the path, if it names one.
    fn check_model(&self, _body: &[u8], _path_model: &str) -> Result<(), ApiError> {
        Ok(())
    }
    /// Returns what of a request decides access, in the formats whose counts have the request in a field, if this one has.
    fn findings(&self, _body: &[u8]) -> Option<RequestFindings> {
        None
    }
    /// Returns the edit for a second field that names the model, beside the one for routing.
    fn rename_model(&self, _body: &[u8], _model: &str) -> Option<Edit> {
        None
    }
}

/// A request whose tokens a client wants counted.
#[derive(Debug)]
pub struct CountTokensRequest<'a> {
    pub request: Request<'a>,
    /// The field that holds it, if it is not the whole body.
    pub within: Option<&'static str>,
}

from_json! {
    struct InputTokenCount {
        // The second name is that of AWS Bedrock.
        "input_tokens" | "inputTokens" => input_tokens: Option<u64>,
        "error" => error: Option<Present>,
    }
}

/// Decodes an upstream's response in the formats whose count is `input_tokens`.
pub(super) fn decode_input_tokens(
    body: &[u8],
    decode_error: impl FnOnce(u16, &[u8]) -> ApiError,
) -> Result<u64, ApiError> {
    let response: InputTokenCount = decode_response_body(body)?;
    if response.error.is_some() {
        return Err(decode_error(200, body));
    }
    let count = response.input_tokens;
    count.ok_or_else(|| ApiError::bad_gateway("the upstream's count has no input_tokens"))
}
