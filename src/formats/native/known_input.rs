//! The fields of requests that the gateway knows: none of them has an upstream read or do more than the decoder finds.

use super::text_input::TEXT_INPUT;
use crate::formats::other_model::find_other_model;
use crate::json::KnownFields;

/// Beside the fields of text those of media, of code in earlier turns and of settings. With any
/// other field, an upstream may read or do what nobody has counted.
const KNOWN_INPUT: KnownFields = KnownFields {
    top: &[
        "cachedContent",
        "cached_content",
        "serviceTier",
        "service_tier",
        "store",
        "modelArmorConfig",
        "model_armor_config",
    ],
    nested: &[
        "inlineData",
        "inline_data",
        "data",
        "mimeType",
        "mime_type",
        "displayName",
        "display_name",
        "fileData",
        "file_data",
        "fileUri",
        "file_uri",
        "responseModalities",
        "response_modalities",
        "mediaResolution",
        "media_resolution",
        "level",
        "imageConfig",
        "image_config",
        "aspectRatio",
        "aspect_ratio",
        "imageSize",
        "image_size",
        "executableCode",
        "executable_code",
        "code",
        "language",
        "codeExecutionResult",
        "code_execution_result",
        "outcome",
        "output",
        "audioTimestamp",
        "audio_timestamp",
        "enableAffectiveDialog",
        "enable_affective_dialog",
        "behavior",
        "scheduling",
        "willContinue",
        "will_continue",
    ],
    opaque: &[
        "speechConfig",
        "speech_config",
        "retrievalConfig",
        "retrieval_config",
        "partMetadata",
        "part_metadata",
        "modelArmorConfig",
        "model_armor_config",
    ],
    types: &[],
    base: Some(&TEXT_INPUT),
};

/// Returns the path of the first field that the gateway does not know.
pub(super) fn unknown_field(body: &[u8]) -> Option<String> {
    KNOWN_INPUT.find_unknown(str::from_utf8(body).unwrap_or_default())
}

/// Returns the path of the first field that names another model.
pub(super) fn other_model(body: &[u8]) -> Option<String> {
    find_other_model(body, &KNOWN_INPUT, Some("contents"), &[])
}
