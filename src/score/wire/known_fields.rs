//! The fields that a request of each format may have at its top, and in its generation config.

use http::HeaderMap;
use serde_json::Value;

use super::format::WireFormat;

const CHAT: &str = "model messages max_completion_tokens max_tokens temperature top_p n stop seed presence_penalty \
    frequency_penalty logit_bias logprobs top_logprobs tools tool_choice parallel_tool_calls functions function_call \
    response_format reasoning_effort verbosity stream stream_options modalities audio prediction web_search_options \
    service_tier store metadata user safety_identifier prompt_cache_key prompt_cache_options prompt_cache_retention \
    moderation";
const MESSAGES: &str = "model max_tokens messages system stop_sequences temperature top_p top_k thinking output_config \
    tools tool_choice stream metadata service_tier speed cache_control container diagnostics inference_geo \
    user_profile_id";
const NATIVE: &str = "contents systemInstruction system_instruction tools toolConfig tool_config safetySettings \
    safety_settings cachedContent generationConfig generation_config serviceTier store labels model";
const GENERATION: &str = "temperature topP topK seed presencePenalty frequencyPenalty maxOutputTokens candidateCount \
    stopSequences responseMimeType responseSchema responseJsonSchema responseModalities responseLogprobs logprobs \
    thinkingConfig imageConfig mediaResolution speechConfig responseFormat top_p top_k presence_penalty \
    frequency_penalty max_output_tokens candidate_count stop_sequences response_mime_type response_schema \
    response_json_schema response_modalities thinking_config";
const RESPONSES: &str = "model input instructions max_output_tokens temperature top_p top_logprobs tools tool_choice \
    parallel_tool_calls max_tool_calls reasoning text include store previous_response_id conversation stream \
    stream_options truncation metadata user safety_identifier prompt_cache_key prompt_cache_options \
    prompt_cache_retention service_tier background prompt context_management moderation image access_programs";

/// The schema of the output before it moved to `output_config`; the beta header still opens it.
const OUTPUT_FORMAT: &str = "output_format";

/// Names the first field that an upstream of the format does not know.
pub fn unknown(format: WireFormat, headers: &HeaderMap, body: &Value) -> Option<String> {
    let known = match format {
        WireFormat::Chat => CHAT,
        WireFormat::Messages => MESSAGES,
        WireFormat::Native => NATIVE,
        WireFormat::Responses => RESPONSES,
    };
    let beta = headers
        .get("anthropic-beta")
        .and_then(|names| names.to_str().ok());
    let is_beta = beta.is_some_and(|names| names.contains("structured-outputs"));
    let found = unknown_of(body, known).filter(|name| !(is_beta && *name == OUTPUT_FORMAT));
    let nested = || match format {
        WireFormat::Native => unknown_of(&body["generationConfig"], GENERATION),
        _ => None,
    };
    let name = found.or_else(nested)?;
    Some(format!("unknown field `{name}`"))
}

fn unknown_of<'b>(object: &'b Value, known: &str) -> Option<&'b str> {
    let is_known = |name: &str| known.split_whitespace().any(|field| field == name);
    let mut names = object.as_object()?.keys();
    names.find(|name| !is_known(name)).map(String::as_str)
}
