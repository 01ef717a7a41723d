//! Translates requests, responses and streams between the formats of client and upstream.

mod array_passthrough;
mod body_buffer;
mod body_estimate;
mod count_tokens;
mod embeddings;
mod final_response;
mod json_body;
mod passthrough;
mod recording;
mod request;
mod request_summary;
mod response;
mod restore_names;
mod signatures;
mod stream;
mod surrogate_pairs;
mod think_tags;
mod token_estimate;
mod tool_names;
mod unexpected_body;
mod upstream_error;
mod usage;

pub use body_buffer::BodyBuffer;
pub use body_estimate::{BodyEstimate, likely_tokens_of_text, max_tokens_of_text};
pub use count_tokens::{count_tokens_request, estimate_token_count};
pub use embeddings::{cloud_embedding_request, embedding_request};
pub use json_body::response;
pub use request::{TranslatedRequest, request};
pub use request_summary::{ModelTraits, RequestSummary};
pub use response::{ResponseMode, ResponseTranslator};
pub use stream::stream;
pub use upstream_error::error;
pub use usage::MeasuredUsage;
