//! Codecs of the wire formats, one folder each: no field name of a format stands anywhere else.

mod base64_text;
mod block_sequencer;
mod body;
mod capabilities;
mod capability_flags;
mod chat;
mod chosen_host;
mod cloud_embeddings;
mod codec;
mod content_tokens;
mod conversation_codec;
mod dearer_setting;
mod effort;
mod embedding_codec;
mod embedding_vector;
mod endpoints;
mod extra_thinking;
mod field_placement;
mod free_text;
mod header_fields;
mod ids;
mod images;
mod images_only;
mod json_bytes;
mod kept_ids;
mod keyed_queue;
mod link;
mod media_kind;
mod media_url;
mod messages;
mod model_list;
mod multipart;
mod native;
mod normalized_text;
mod other_model;
mod output_schema;
mod public_address;
mod reported_usage;
mod request_findings;
mod request_options;
mod response_observer;
mod responses;
mod search_location;
mod settings;
mod signatures;
mod text_tokens;
mod token_count;
mod token_counter;
mod token_input;
mod tool_name_rule;
mod tool_rounds;
mod unknown_fields;

use crate::model::Format;

use body::{
    decode_event_data, decode_model_name, decode_request_body, decode_response_body,
    decode_unique_fields, decode_unique_item, decode_unique_members, decode_written_fields,
    error_message, missing_content, set_field, set_model,
};
pub use capabilities::{Capabilities, MessagesVersion, SearchUse, ThinkingStyle};
pub use capability_flags::{CAPABILITY_FLAGS, CapabilityFlag};
pub use cloud_embeddings::CloudEmbeddings;
pub use codec::{
    BodyCodec, Codec, ErrorCodec, FieldPaths, HttpApi, InputInspection, Passthrough, RequestCodec,
    ResponseCodec, SignatureCodec, StreamCodec, StreamDecoder, StreamEncoder,
};
pub use content_tokens::ContentTokens;
pub use conversation_codec::{ConversationCodec, ConversationItems, ItemReference};
pub use dearer_setting::DearerSetting;
pub use embedding_codec::{EmbeddingCodec, EmbeddingOptions, EmbeddingSummary, ObservedEmbeddings};
pub use endpoints::EndpointResponse;
pub use extra_thinking::ExtraThinking;
pub use field_placement::{FieldPlacement, VersionFields, place_fields};
pub use free_text::unwrap_free_text;
pub use header_fields::HeaderFields;
pub(crate) use ids::call_id;
pub use images::{image_media_type, image_urls};
pub use json_bytes::to_json_string;
pub use kept_ids::{KeptIds, KeptKind, KeptMention};
pub use messages::{
    AWS_ERROR_TYPE, BedrockStream, counting_model, decode_aws_error, decode_bedrock_count,
    encode_aws_error, encode_bedrock_count, encode_bedrock_events, encode_bedrock_token_count,
    is_expired_credential, set_stream, take_headers,
};
pub use model_list::ModelPage;
pub use normalized_text::max_growth;
pub use public_address::{is_public, is_public_https};
pub use reported_usage::ReportedUsage;
pub use request_findings::RequestFindings;
pub use request_options::{
    AsyncOption, EmbedMethod, Framing, ModelField, Operation, OutputLimit, PassthroughEndpoint,
    RequestHead, ResponseOptions, RoutingFields, UpstreamTarget,
};
use response_observer::check_choice;
pub use response_observer::{InterruptedStream, Observation, ResponseObserver};
pub use settings::SettingRule;
pub use text_tokens::estimate_json_tokens;
pub use token_counter::{CountTokensRequest, TokenCounter};
pub use token_input::InputSummary;
pub use tool_name_rule::{MAX_TOOL_NAME, ToolNameRule};
pub use tool_rounds::DEFAULT_TOOL_ROUNDS;

impl Format {
    /// Returns the codec of the format.
    pub fn codec(self) -> &'static dyn Codec {
        match self {
            Format::Chat => &chat::Chat,
            Format::Messages => &messages::Messages,
            Format::Native => &native::Native,
            Format::Responses => &responses::Responses,
            Format::Images => &images::Images,
        }
    }
}

#[cfg(test)]
mod tests;
