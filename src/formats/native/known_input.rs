//! The fields of requests that the gateway knows: none of them has an upstream read or do more than the decoder finds.

use std::sync::LazyLock;

use super::Native;
use super::text_input::TEXT_INPUT;
use super::tool_rounds::{CONVERSATION, tool_rounds};
use crate::formats::media_kind::may_be_text;
use crate::formats::unknown_fields::UNKNOWN_FIELDS;
use crate::formats::{InputInspection, RequestCodec, RequestFindings, RequestHead};
use crate::json::{FieldIndex, KnownFields, NO_FIELDS, PlacedFields};
use crate::model::{ApiError, InputMedia, Losses};

/// Where parts with media stand, those of the responses of functions too, and what holds the media.
const PARTS: &[&str] = &[
    "contents.parts",
    "contents.parts.functionResponse.parts",
    "contents.parts.function_response.parts",
];
const INLINE_DATA: &[&str] = &[
    "contents.parts.inlineData",
    "contents.parts.inline_data",
    "contents.parts.functionResponse.parts.inlineData",
    "contents.parts.functionResponse.parts.inline_data",
    "contents.parts.function_response.parts.inlineData",
    "contents.parts.function_response.parts.inline_data",
];
const FILE_DATA: &[&str] = &[
    "contents.parts.fileData",
    "contents.parts.file_data",
    "contents.parts.functionResponse.parts.fileData",
    "contents.parts.functionResponse.parts.file_data",
    "contents.parts.function_response.parts.fileData",
    "contents.parts.function_response.parts.file_data",
];

/// The service tiers that cost no more than the prices of a model.
const USUAL_TIERS: &[&str] = &["standard", "flex", "unspecified"];

/// Beside the fields of text those of media, of code in earlier turns and of settings. With any
/// other field, an upstream may read or do what nobody has counted. The same holds for media beside the places of `placed`: in
/// a part of another type, beside other media in one, or where the format has none. The other names hold at any depth.
const KNOWN_INPUT: KnownFields = KnownFields {
    top: &["cachedContent", "serviceTier", "store", "modelArmorConfig"],
    nested: &[
        "displayName",
        "responseModalities",
        "mediaResolution",
        "level",
        "imageConfig",
        "aspectRatio",
        "imageSize",
        "executableCode",
        "code",
        "language",
        "codeExecutionResult",
        "outcome",
        "output",
        "audioTimestamp",
        "enableAffectiveDialog",
        "behavior",
        "scheduling",
        "willContinue",
    ],
    opaque: &[
        "speechConfig",
        "retrievalConfig",
        "partMetadata",
        "modelArmorConfig",
    ],
    types: &[],
    placed: &[
        PlacedFields {
            names: &["inlineData", "inline_data", "fileData", "file_data"],
            kind: None,
            at: PARTS,
        },
        PlacedFields {
            names: &["data"],
            kind: None,
            at: INLINE_DATA,
        },
        PlacedFields {
            names: &["fileUri", "file_uri"],
            kind: None,
            at: FILE_DATA,
        },
        PlacedFields {
            names: &["mimeType", "mime_type"],
            kind: None,
            at: INLINE_DATA,
        },
        PlacedFields {
            names: &["mimeType", "mime_type"],
            kind: None,
            at: FILE_DATA,
        },
    ],
    wanted: &[&["serviceTier", "service_tier"]],
    media: &[INLINE_DATA, FILE_DATA],
    turns: Some("contents"),
    prompting: &["tools"],
    nested_prompting: &[
        "responseSchema",
        "response_schema",
        "responseJsonSchema",
        "response_json_schema",
    ],
    conversation: Some(&CONVERSATION),
    base: Some(&TEXT_INPUT),
    has_snake_case: true,
    ..NO_FIELDS
};

static FIELDS: LazyLock<FieldIndex> =
    LazyLock::new(|| FieldIndex::new(&KNOWN_INPUT, UNKNOWN_FIELDS));

impl InputInspection for Native {
    fn findings(&self, body: &[u8]) -> RequestFindings {
        RequestFindings::of(body, &FIELDS, &[USUAL_TIERS])
            .with_tool_rounds(body, tool_rounds)
            .with_modalities(body)
    }

    /// What `fileData` leads to is not seen, whatever its type claims.
    fn input_media(&self, head: &RequestHead<'_>, body: &[u8]) -> Result<InputMedia, ApiError> {
        let request = self.decode_request(head, body, &mut Losses::default())?;
        Ok(request.input_media(|_| false, may_be_text))
    }
}
