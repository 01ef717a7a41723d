//! Codec of stored responses, in the formats where a conversation can continue from one.

use std::ops::Range;

use bytes::Bytes;

use crate::model::{ApiError, FieldLocation};

/// Encodes and decodes what a format has for responses that the server stores.
pub trait ConversationCodec: Sync {
    /// Decodes the items that a request adds to its conversation.
    fn request_items(&self, added: &Bytes) -> Result<ConversationItems, ApiError>;
    /// Encodes the request as if the client had sent the whole conversation.
    fn resume(&self, body: &Bytes, before: &[ConversationItems]) -> Result<Bytes, ApiError>;
    /// Decodes the id of a response, and no more of it.
    fn response_id(&self, response: &[u8]) -> Option<String>;
    /// Decodes the items that a response adds to its conversation.
    fn response_items(&self, response: &Bytes) -> Option<ConversationItems>;
    /// Returns the id of the response that an item is of, where the id of the item tells it.
    fn response_of_item(&self, item_id: &str) -> Option<String>;
    /// Decodes the items of a response, each with its id.
    fn items_by_id(&self, response: &Bytes) -> Vec<(String, Bytes)>;
    /// Decodes the whole response out of the event that ends a stream.
    fn final_response(&self, data: &str) -> Option<Bytes>;
    /// Returns the error for a request that continues from a response which is not stored.
    fn missing_response(&self, id: &str) -> ApiError;
    /// Returns the error for a request that continues a conversation which its key was not given.
    fn missing_conversation(&self, id: &str) -> ApiError;
    /// Returns the error for a request that refers to an item which its key was not given.
    fn missing_item(&self, id: &str) -> ApiError;
    /// Returns the location in the client's own body: the first `before` items are not in it.
    /// `None`: the location is in an earlier request.
    fn client_location(&self, place: &FieldLocation, before: usize) -> Option<FieldLocation>;
    /// Encodes one page of the items before a response and in its request, as the query selects.
    fn encode_items(
        &self,
        id: &str,
        items: &[ConversationItems],
        query: Option<&str>,
    ) -> Result<Vec<u8>, ApiError>;
    /// Encodes the response to the deletion of a stored response.
    fn encode_deletion(&self, id: &str) -> Vec<u8>;
}

/// Consecutive items of a conversation: elements of a JSON array, as they were sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationItems {
    pub text: Bytes,
    pub count: usize,
}

/// A reference that stands for an item of a stored response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemReference {
    pub item_id: String,
    /// Where it stands in the body.
    pub range: Range<usize>,
}
