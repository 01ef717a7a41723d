//! Names of fields, each in every spelling that clients write: `mimeType` and `mime_type` alike.

use crate::json::{Fields, Node, Path, UNSPECIFIED};
use crate::model::{ApiError, FieldLocation, Json, Losses, Text};

/// The documented spelling first: it wins where a field is written twice.
pub(super) type Spellings = &'static [&'static str];

/// The whole request that is to be counted, where there is more to it than the conversation.
pub(super) const WRAPPED: Spellings = &["generateContentRequest", "generate_content_request"];
pub(super) const SYSTEM: Spellings = &["systemInstruction", "system_instruction"];
pub(super) const TOOL_CONFIG: Spellings = &["toolConfig", "tool_config"];
pub(super) const SAFETY: Spellings = &["safetySettings", "safety_settings"];
pub(super) const GENERATION: Spellings = &["generationConfig", "generation_config"];
pub(super) const CACHED: Spellings = &["cachedContent", "cached_content"];

pub(super) const INLINE: Spellings = &["inlineData", "inline_data"];
pub(super) const FILE: Spellings = &["fileData", "file_data"];
pub(super) const CALL: Spellings = &["functionCall", "function_call"];
pub(super) const RESPONSE: Spellings = &["functionResponse", "function_response"];
pub(super) const CODE: Spellings = &["executableCode", "executable_code"];
pub(super) const CODE_RESULT: Spellings = &["codeExecutionResult", "code_execution_result"];
pub(super) const MIME_TYPE: Spellings = &["mimeType", "mime_type"];
pub(super) const FILE_URI: Spellings = &["fileUri", "file_uri"];
pub(super) const DISPLAY_NAME: Spellings = &["displayName", "display_name"];

pub(super) const DECLARATIONS: Spellings = &["functionDeclarations", "function_declarations"];
pub(super) const JSON_PARAMETERS: Spellings = &["parametersJsonSchema", "parameters_json_schema"];
pub(super) const CODE_EXECUTION: Spellings = &["codeExecution", "code_execution"];
pub(super) const SEARCH: Spellings = &[
    "vendorSearch",
    "vendor_search",
    "googleSearch",
    "google_search",
];
pub(super) const SEARCH_RETRIEVAL: Spellings = &[
    "vendorSearchRetrieval",
    "vendor_search_retrieval",
    "googleSearchRetrieval",
    "google_search_retrieval",
];
pub(super) const MAPS: Spellings = &["vendorMaps", "vendor_maps", "googleMaps", "google_maps"];
pub(super) const FUNCTION_CALLING: Spellings =
    &["functionCallingConfig", "function_calling_config"];
pub(super) const ALLOWED_NAMES: Spellings = &["allowedFunctionNames", "allowed_function_names"];
pub(super) const RETRIEVAL_CONFIG: Spellings = &["retrievalConfig", "retrieval_config"];
pub(super) const LAT_LNG: Spellings = &["latLng", "lat_lng"];

pub(super) const TOP_P: Spellings = &["topP", "top_p"];
pub(super) const TOP_K: Spellings = &["topK", "top_k"];
pub(super) const MAX_OUTPUT_TOKENS: Spellings = &["maxOutputTokens", "max_output_tokens"];
pub(super) const CANDIDATE_COUNT: Spellings = &["candidateCount", "candidate_count"];
pub(super) const STOP_SEQUENCES: Spellings = &["stopSequences", "stop_sequences"];
pub(super) const PRESENCE_PENALTY: Spellings = &["presencePenalty", "presence_penalty"];
pub(super) const FREQUENCY_PENALTY: Spellings = &["frequencyPenalty", "frequency_penalty"];
pub(super) const RESPONSE_MIME_TYPE: Spellings = &["responseMimeType", "response_mime_type"];
pub(super) const RESPONSE_SCHEMA: Spellings = &["responseSchema", "response_schema"];
pub(super) const RESPONSE_JSON_SCHEMA: Spellings = &["responseJsonSchema", "response_json_schema"];
pub(super) const RESPONSE_MODALITIES: Spellings = &["responseModalities", "response_modalities"];
pub(super) const RESPONSE_LOGPROBS: Spellings = &["responseLogprobs", "response_logprobs"];
pub(super) const THINKING_CONFIG: Spellings = &["thinkingConfig", "thinking_config"];
pub(super) const INCLUDE_THOUGHTS: Spellings = &["includeThoughts", "include_thoughts"];
pub(super) const THINKING_BUDGET: Spellings = &["thinkingBudget", "thinking_budget"];
pub(super) const THINKING_LEVEL: Spellings = &["thinkingLevel", "thinking_level"];
pub(super) const IMAGE_CONFIG: Spellings = &["imageConfig", "image_config"];
pub(super) const ASPECT_RATIO: Spellings = &["aspectRatio", "aspect_ratio"];
pub(super) const IMAGE_SIZE: Spellings = &["imageSize", "image_size"];
pub(super) const MEDIA_RESOLUTION: Spellings = &["mediaResolution", "media_resolution"];

#[inline]
pub(super) fn node<'a, 's>(
    fields: &'s mut Fields<'a, '_>,
    spellings: Spellings,
) -> Option<Node<'a, 's>> {
    let (key, value) = spellings
        .iter()
        .find_map(|key| Some((*key, fields.take(key)?)))?;
    Some(Node {
        value,
        path: Path::Key(&fields.path, key),
    })
}

pub(super) fn text<'a>(
    fields: &mut Fields<'a, '_>,
    spellings: Spellings,
) -> Result<Option<Text<'a>>, ApiError> {
    node(fields, spellings).map(Node::text).transpose()
}

pub(super) fn each<'a>(
    fields: &mut Fields<'a, '_>,
    spellings: Spellings,
    read: impl FnMut(u32, Node<'a, '_>) -> Result<(), ApiError>,
) -> Result<(), ApiError> {
    node(fields, spellings).map_or(Ok(()), |node| node.each(read))
}

pub(super) fn texts<'a>(node: Node<'a, '_>) -> Result<Vec<Text<'a>>, ApiError> {
    let mut texts = Vec::new();
    node.each(|_, node| {
        texts.push(node.text()?);
        Ok(())
    })?;
    Ok(texts)
}

/// The listed word that a field holds, if it holds one.
pub(super) fn word(
    fields: &mut Fields<'_, '_>,
    spellings: Spellings,
    words: &[&'static str],
) -> Option<&'static str> {
    listed(&node(fields, spellings)?.value, words)
}

/// Clients write words in either case; `…_UNSPECIFIED` is the format's way to say nothing.
pub(super) fn listed(value: &Json<'_>, words: &[&'static str]) -> Option<&'static str> {
    let given = value
        .as_str()
        .filter(|given| !given.ends_with(UNSPECIFIED))?;
    let known = words.iter().find(|word| word.eq_ignore_ascii_case(given));
    known.copied()
}

/// For a field that no other format has.
pub(super) fn report(fields: &mut Fields<'_, '_>, spellings: Spellings, losses: &mut Losses) {
    if let Some(node) = node(fields, spellings) {
        losses.dropped(FieldLocation::Path(node.path.to_string().into()));
    }
}
