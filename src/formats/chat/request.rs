//! The top level of a request body, decoded and encoded.

use serde::Serialize;

use super::Chat;
use super::chat_message::ChatMessage;
use super::error::unsupported_content;
use super::field_paths::setting_of;
use super::output::{
    ChatAudioOptions, ChatResponseFormat, decode_output, encode_audio_options, encode_modalities,
    encode_response_format,
};
use super::reader::object;
use super::settings::{
    ChatSampling, decode_reasoning_effort, decode_sampling, encode_parallel_tool_calls,
    encode_reasoning_effort, encode_sampling,
};
use super::tools::{
    ChatTool, ChatToolChoice, decode_tool_choice, decode_tools, encode_tool, encode_tool_choice,
};
use super::turns::{decode_turns, encode_turns};
use super::unsupported::remove_unsupported;
use super::web_search::{ChatWebSearchOptions, decode_web_search, encode_web_search};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::{RequestCodec, RequestHead, UpstreamTarget};
use crate::json::{Fields, Node, Path};
use crate::model::{
    ApiError, FieldLocation, Json, Labels, Losses, Request, Setting, SettingAliases,
};

impl RequestCodec for Chat {
    fn decode_request<'a>(
        &self,
        _head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError> {
        let mut fields = Fields::of_body(body)?;
        // Routing has already resolved the model, with or without this field: only its type is checked.
        fields.text("model")?;
        let mut aliases = SettingAliases::default();
        let request = Request {
            turns: decode_turns(&mut fields, losses)?,
            sampling: decode_sampling(&mut fields, &mut aliases)?,
            tools: decode_tools(&mut fields, losses)?,
            tool_choice: decode_tool_choice(&mut fields, losses)?,
            parallel_tools: fields.bool("parallel_tool_calls")?,
            output: decode_output(&mut fields, losses)?,
            thinking: decode_reasoning_effort(&mut fields)?,
            search: decode_web_search(&mut fields, losses)?,
            labels: decode_labels(&mut fields, &mut aliases)?,
            code_execution: false,
            aliases,
        };
        decode_delivery(&mut fields, losses)?;
        fields.finish(losses);
        Ok(request)
    }

    fn encode_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError> {
        if request.code_execution {
            let location = FieldLocation::Setting(Setting::CodeExecution);
            return Err(unsupported_content(&location, "it runs no code"));
        }
        let capabilities = target.capabilities;
        let labels = &request.labels;
        let output = &request.output;
        let body = ChatRequest {
            model: target.model,
            messages: encode_turns(request, target, losses)?,
            tools: request
                .tools
                .iter()
                .map(|tool| encode_tool(tool, losses))
                .collect(),
            tool_choice: encode_tool_choice(request, losses),
            parallel_tool_calls: encode_parallel_tool_calls(request, capabilities, losses),
            response_format: encode_response_format(&output.format, losses),
            sampling: encode_sampling(request, capabilities, losses),
            reasoning_effort: encode_reasoning_effort(request.thinking, capabilities, losses),
            verbosity: output.verbosity.as_deref(),
            modalities: encode_modalities(output, losses),
            audio: output
                .audio
                .then(|| encode_audio_options(target.stream, losses)),
            web_search_options: request
                .search
                .as_ref()
                .map(|search| encode_web_search(search, losses)),
            service_tier: labels
                .service_tier
                .as_deref()
                .map(|tier| encode_service_tier(tier, losses)),
            metadata: labels.metadata.as_ref(),
            user: labels.user.as_deref(),
            prompt_cache_key: labels.cache_key.as_deref(),
            stream: target.stream.then_some(true),
            // Without it the upstream reports no token counts.
            stream_options: target.stream.then_some(ChatStreamOptions {
                include_usage: true,
            }),
        };
        let encoded = to_json_bytes(&body, request.size());
        let text = str::from_utf8(&encoded).unwrap_or_default();
        let shorter = remove_unsupported(text, capabilities, &mut |name| {
            let setting = setting_of(&name).map(FieldLocation::Setting);
            setting
                .into_iter()
                .for_each(|location| losses.dropped(location));
        });
        Ok(shorter.unwrap_or(encoded))
    }
}

/// The body of a request to an upstream.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    tool_choice: Option<ChatToolChoice<'a>>,
    parallel_tool_calls: Option<bool>,
    response_format: Option<ChatResponseFormat<'a>>,
    #[serde(flatten)]
    sampling: ChatSampling<'a>,
    reasoning_effort: Option<&'static str>,
    verbosity: Option<&'a str>,
    modalities: Option<Vec<&'static str>>,
    audio: Option<ChatAudioOptions>,
    web_search_options: Option<ChatWebSearchOptions<'a>>,
    service_tier: Option<&'a str>,
    metadata: Option<&'a Json<'a>>,
    user: Option<&'a str>,
    prompt_cache_key: Option<&'a str>,
    stream: Option<bool>,
    stream_options: Option<ChatStreamOptions>,
}

#[derive(Serialize)]
struct ChatStreamOptions {
    include_usage: bool,
}

/// Decodes the fields that label a request: `user`, `prompt_cache_key`, `service_tier`, `metadata`.
fn decode_labels<'a>(
    fields: &mut Fields<'a, '_>,
    aliases: &mut SettingAliases,
) -> Result<Labels<'a>, ApiError> {
    let service_tier = fields.text("service_tier")?;
    let metadata = fields.node("metadata").map(decode_metadata).transpose()?;
    let mut user = fields.text("user")?;
    if user.is_none() {
        // The newer name of `user`.
        user = fields.text("safety_identifier")?;
        aliases.user = user.as_ref().map(|_| "safety_identifier");
    }
    Ok(Labels {
        user,
        cache_key: fields.text("prompt_cache_key")?,
        service_tier,
        metadata,
    })
}

/// Decodes a `metadata` object and checks the limits of the API reference.
pub(in crate::formats) fn decode_metadata<'a>(node: Node<'a, '_>) -> Result<Json<'a>, ApiError> {
    let path = node.path;
    let metadata = object(node)?;
    let entries = metadata.as_object().map_or(&[][..], |map| map.as_vec());
    if entries.len() > 16 {
        return Err(path.wrong("at most 16 entries"));
    }
    for (key, value) in entries {
        let short = |text: &str, limit| text.chars().count() <= limit;
        if !short(key, 64) {
            return Err(path.wrong("keys of at most 64 characters"));
        }
        if !value.as_str().is_some_and(|value| short(value, 512)) {
            return Err(Path::Key(&path, key).wrong("a string of at most 512 characters"));
        }
    }
    Ok(metadata)
}

/// Encodes `service_tier`; `ultrafast` exists only in the responses format and becomes `fast`.
fn encode_service_tier<'a>(tier: &'a str, losses: &mut Losses) -> &'a str {
    if tier == "ultrafast" {
        losses.approximated(FieldLocation::Setting(Setting::ServiceTier));
        return "fast";
    }
    tier
}

/// Decodes `stream`, `stream_options` and `store`, which the gateway itself carries out.
fn decode_delivery(fields: &mut Fields<'_, '_>, losses: &mut Losses) -> Result<(), ApiError> {
    fields.bool("stream")?;
    if let Some(node) = fields.node("stream_options") {
        node.fields(|mut options| {
            options.bool("include_usage")?;
            decode_unsupported_switch(&mut options, "include_obfuscation", losses)?;
            options.finish(losses);
            Ok(())
        })?;
    }
    decode_unsupported_switch(fields, "store", losses)
}

/// Decodes a switch for something the gateway does not do: `false` is met, `true` is a loss.
fn decode_unsupported_switch(
    fields: &mut Fields<'_, '_>,
    key: &str,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    if fields.bool(key)? == Some(true) {
        let path = Path::Key(&fields.path, key).to_string();
        losses.dropped(FieldLocation::Path(path.into()));
    }
    Ok(())
}
