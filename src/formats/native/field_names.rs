//! The names of request fields in every spelling that clients use, `mimeType` and `mime_type` alike,
//! and the functions that take such fields out of an object.

use crate::json::{Fields, Node, Path, UNSPECIFIED};
use crate::model::{ApiError, FieldLocation, Json, Losses, Text};

/// All spellings of one field. The documented one stands first: it wins where a client sends both.
pub(super) type FieldNames = &'static [&'static str];

/// The request inside a `countTokens` body that counts more than `contents`.
pub(super) const GENERATE_CONTENT_REQUEST: FieldNames =
    &["generateContentRequest", "generate_content_request"];
pub(super) const SYSTEM_INSTRUCTION: FieldNames = &["systemInstruction", "system_instruction"];
pub(super) const TOOL_CONFIG: FieldNames = &["toolConfig", "tool_config"];
pub(super) const SAFETY_SETTINGS: FieldNames = &["safetySettings", "safety_settings"];
pub(super) const GENERATION_CONFIG: FieldNames = &["generationConfig", "generation_config"];
pub(super) const CACHED_CONTENT: FieldNames = &["cachedContent", "cached_content"];

pub(super) const INLINE_DATA: FieldNames = &["inlineData", "inline_data"];
pub(super) const FILE_DATA: FieldNames = &["fileData", "file_data"];
pub(super) const FUNCTION_CALL: FieldNames = &["functionCall", "function_call"];
pub(super) const FUNCTION_RESPONSE: FieldNames = &["functionResponse", "function_response"];
pub(super) const EXECUTABLE_CODE: FieldNames = &["executableCode", "executable_code"];
pub(super) const CODE_EXECUTION_RESULT: FieldNames =
    &["codeExecutionResult", "code_execution_result"];
pub(super) const MIME_TYPE: FieldNames = &["mimeType", "mime_type"];
pub(super) const FILE_URI: FieldNames = &["fileUri", "file_uri"];
pub(super) const DISPLAY_NAME: FieldNames = &["displayName", "display_name"];

pub(super) const FUNCTION_DECLARATIONS: FieldNames =
    &["functionDeclarations", "function_declarations"];
pub(super) const PARAMETERS_JSON_SCHEMA: FieldNames =
    &["parametersJsonSchema", "parameters_json_schema"];
pub(super) const CODE_EXECUTION: FieldNames = &["codeExecution", "code_execution"];
pub(super) const GOOGLE_SEARCH: FieldNames = &[
    "vendorSearch",
    "vendor_search",
    "googleSearch",
    "google_search",
];
pub(super) const GOOGLE_SEARCH_RETRIEVAL: FieldNames = &[
    "vendorSearchRetrieval",
    "vendor_search_retrieval",
    "googleSearchRetrieval",
    "google_search_retrieval",
];
pub(super) const GOOGLE_MAPS: FieldNames =
    &["vendorMaps", "vendor_maps", "googleMaps", "google_maps"];
pub(super) const FUNCTION_CALLING_CONFIG: FieldNames =
    &["functionCallingConfig", "function_calling_config"];
pub(super) const ALLOWED_FUNCTION_NAMES: FieldNames =
    &["allowedFunctionNames", "allowed_function_names"];
pub(super) const RETRIEVAL_CONFIG: FieldNames = &["retrievalConfig", "retrieval_config"];
pub(super) const LAT_LNG: FieldNames = &["latLng", "lat_lng"];

pub(super) const TOP_P: FieldNames = &["topP", "top_p"];
pub(super) const TOP_K: FieldNames = &["topK", "top_k"];
pub(super) const MAX_OUTPUT_TOKENS: FieldNames = &["maxOutputTokens", "max_output_tokens"];
pub(super) const CANDIDATE_COUNT: FieldNames = &["candidateCount", "candidate_count"];
pub(super) const STOP_SEQUENCES: FieldNames = &["stopSequences", "stop_sequences"];
pub(super) const PRESENCE_PENALTY: FieldNames = &["presencePenalty", "presence_penalty"];
pub(super) const FREQUENCY_PENALTY: FieldNames = &["frequencyPenalty", "frequency_penalty"];
pub(super) const RESPONSE_MIME_TYPE: FieldNames = &["responseMimeType", "response_mime_type"];
pub(super) const RESPONSE_SCHEMA: FieldNames = &["responseSchema", "response_schema"];
pub(super) const RESPONSE_JSON_SCHEMA: FieldNames = &["responseJsonSchema", "response_json_schema"];
pub(super) const RESPONSE_MODALITIES: FieldNames = &["responseModalities", "response_modalities"];
pub(super) const RESPONSE_LOGPROBS: FieldNames = &["responseLogprobs", "response_logprobs"];
pub(super) const THINKING_CONFIG: FieldNames = &["thinkingConfig", "thinking_config"];
pub(super) const INCLUDE_THOUGHTS: FieldNames = &["includeThoughts", "include_thoughts"];
pub(super) const THINKING_BUDGET: FieldNames = &["thinkingBudget", "thinking_budget"];
pub(super) const THINKING_LEVEL: FieldNames = &["thinkingLevel", "thinking_level"];
pub(super) const IMAGE_CONFIG: FieldNames = &["imageConfig", "image_config"];
pub(super) const ASPECT_RATIO: FieldNames = &["aspectRatio", "aspect_ratio"];
pub(super) const IMAGE_SIZE: FieldNames = &["imageSize", "image_size"];
pub(super) const MEDIA_RESOLUTION: FieldNames = &["mediaResolution", "media_resolution"];

/// The name of a model in a body.
pub(super) fn resource_name(model: &str) -> String {
    format!("models/{model}")
}

/// Takes a field out of an object, whichever spelling the client used.
#[inline]
pub(super) fn take<'a, 's>(
    fields: &'s mut Fields<'a, '_>,
    names: FieldNames,
) -> Option<Node<'a, 's>> {
    let (key, value) = names
        .iter()
        .find_map(|key| Some((*key, fields.take(key)?)))?;
    Some(Node {
        value,
        path: Path::Key(&fields.path, key),
    })
}

/// Takes a string field out of an object.
pub(super) fn take_text<'a>(
    fields: &mut Fields<'a, '_>,
    names: FieldNames,
) -> Result<Option<Text<'a>>, ApiError> {
    take(fields, names).map(Node::text).transpose()
}

/// Takes an enum field out of an object; `None` if it is absent, unspecified or not in `values`.
pub(super) fn take_enum(
    fields: &mut Fields<'_, '_>,
    names: FieldNames,
    values: &[&'static str],
) -> Option<&'static str> {
    enum_value(&take(fields, names)?.value, values)
}

/// Finds the enum value that a JSON string names, in upper or lower case. A name that ends in
/// `_UNSPECIFIED` counts as absent.
pub(super) fn enum_value(value: &Json<'_>, values: &[&'static str]) -> Option<&'static str> {
    let name = value.as_str().filter(|name| !name.ends_with(UNSPECIFIED))?;
    let known = values.iter().find(|value| value.eq_ignore_ascii_case(name));
    known.copied()
}

/// Takes an array field out of an object and visits its elements.
pub(super) fn for_each<'a>(
    fields: &mut Fields<'a, '_>,
    names: FieldNames,
    visit: impl FnMut(u32, Node<'a, '_>) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    take(fields, names).map_or(Ok(()), |node| node.each(visit))
}

/// Decodes an array of strings.
pub(super) fn decode_texts<'a>(node: Node<'a, '_>) -> Result<Vec<Text<'a>>, ApiError> {
    let mut texts = Vec::new();
    node.each(|_, node| {
        texts.push(node.text()?);
        Ok(())
    })?;
    Ok(texts)
}

/// Takes out a field that no other format has, and reports it as dropped.
pub(super) fn report_dropped(fields: &mut Fields<'_, '_>, names: FieldNames, losses: &mut Losses) {
    if let Some(node) = take(fields, names) {
        losses.dropped(FieldLocation::Path(node.path.to_string().into()));
    }
}

/// The error for a field that only an upstream of this format could serve.
pub(super) fn not_available(path: &Path<'_>) -> ApiError {
    ApiError::invalid(format!("{path} is not available for this model")).at(path.to_string())
}
