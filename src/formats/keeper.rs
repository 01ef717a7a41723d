//! Going on from a reply that was kept, in the formats that have a way to.

use bytes::Bytes;

use crate::model::{ApiError, FieldLocation};

/// A format's way to go on from a reply that is kept on the server's side, and to fetch it again.
pub trait ConversationCodec: Sync {
    /// What a request adds to its conversation, as it says it.
    fn input(&self, added: &[u8]) -> Result<Items, ApiError>;
    /// The request as if the client had sent the whole conversation.
    fn resume(&self, body: &[u8], before: &[Items]) -> Result<Bytes, ApiError>;
    /// A whole reply's id; no more of it is read.
    fn id(&self, reply: &[u8]) -> Option<String>;
    /// And what it adds to its conversation.
    fn output(&self, reply: &Bytes) -> Option<Items>;
    /// The whole reply, in the event that ends a stream.
    fn last_reply(&self, data: &str) -> Option<Bytes>;
    /// The refusal of a request whose conversation is not kept as far as this reply.
    fn broken(&self, id: &str) -> ApiError;
    /// Where the client wrote it, if not in a request before this one: `before` items are not its.
    fn own_place(&self, place: &FieldLocation, before: usize) -> Option<FieldLocation>;
    /// One page of what was said before a reply and in its request, as the query wants it.
    fn page(&self, id: &str, items: &[Items], query: Option<&str>) -> Result<Vec<u8>, ApiError>;
    /// The answer to a reply's deletion.
    fn deleted(&self, id: &str) -> Vec<u8>;
}

/// A stretch of a conversation: the elements of a JSON list, as they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Items {
    pub text: Bytes,
    pub count: usize,
}
