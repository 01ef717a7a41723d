//! Counting the tokens of a request, in the formats that have a way to ask for it.

use super::UpstreamTarget;
use crate::json::Edit;
use crate::model::{ApiError, Losses, Request};

/// A format's way to ask how many tokens a request has, without having it answered.
pub trait Counter: Sync {
    fn decode_question<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Question<'a>, ApiError>;
    /// For an upstream's counter, which takes less than a request for a reply may hold.
    fn encode_question(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError>;
    fn decode_count(&self, body: &[u8]) -> Result<u64, ApiError>;
    fn encode_count(&self, tokens: u64) -> Vec<u8>;
    /// Where the number stands in an answer.
    fn count_path(&self) -> &'static str;
    /// What must change in a body for an upstream that calls the model so, beside the name that
    /// routing went by.
    fn rename(&self, _body: &[u8], _model: &str) -> Option<Edit> {
        None
    }
}

/// What a client wants counted.
#[derive(Debug)]
pub struct Question<'a> {
    pub request: Request<'a>,
    /// The field it stands in, if it is not the whole body.
    pub within: Option<&'static str>,
}
