//! Embeddings, the vectors of texts, in no format's words.

use super::{FieldLocation, Losses, Text};

/// A request for the vectors of texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EmbeddingRequest<'a> {
    pub inputs: Vec<Text<'a>>,
    /// The length of each vector; absent: the model's own.
    pub dimensions: Option<u64>,
    /// What the client says of each input; empty: nothing of any.
    pub hints: Vec<InputHints<'a>>,
}

/// What a client may say of an input, and only some upstreams take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputHints<'a> {
    /// What the vector is for, in the words of Gemini.
    pub task_type: Option<InputHint<Text<'a>>>,
    /// The title of the document that the text is.
    pub title: Option<InputHint<Text<'a>>>,
    /// A text that is too long is cut.
    pub auto_truncate: Option<InputHint<bool>>,
}

/// One such value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputHint<T> {
    pub value: T,
    /// Where it stands in the client's body.
    pub path: String,
}

impl InputHints<'_> {
    /// Reports all of it as dropped.
    pub fn report_dropped(&self, losses: &mut Losses) {
        let paths = [
            self.task_type.as_ref().map(|hint| &hint.path),
            self.title.as_ref().map(|hint| &hint.path),
            self.auto_truncate.as_ref().map(|hint| &hint.path),
        ];
        for path in paths.into_iter().flatten() {
            losses.dropped(FieldLocation::Path(path.clone().into()));
        }
    }
}

/// The vectors of a response, in the order of the inputs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Embeddings {
    pub vectors: Vec<Vec<f32>>,
    /// Absent where the upstream did not count them.
    pub input_tokens: Option<u64>,
}
