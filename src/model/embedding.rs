//! Embeddings, the vectors of texts, in no format's words.

use super::Text;

/// A request for the vectors of texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmbeddingRequest<'a> {
    pub inputs: Vec<Text<'a>>,
    /// The length of each vector; absent: the model's own.
    pub dimensions: Option<u64>,
}

/// The vectors of a response, in the order of the inputs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embeddings {
    pub vectors: Vec<Vec<f32>>,
    /// Absent where the upstream did not count them.
    pub input_tokens: Option<u64>,
}
