//! The top level of a request.

use serde::Serialize;

use super::Messages;
use super::blocks::MessagesContent;
use super::error::THREAD;
use super::output_config::{OutputConfig, decode_output_config, encode_output_format};
use super::settings::{
    MessagesMetadata, MessagesSampling, decode_labels, decode_sampling, encode_metadata,
    encode_sampling, encode_service_tier, encode_stop_sequences,
};
use super::thinking::{MessagesThinking, decode_thinking, encode_thinking};
use super::tool_choice::MessagesToolChoice;
use super::tools::{MessagesTool, decode_tools, encode_tools};
use super::turn_order::MessagesTurn;
use super::turns::{decode_turns, encode_turns};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::settings::SAMPLING;
use crate::formats::{RequestCodec, RequestHead, ToolNameRule, UpstreamTarget};
use crate::json::Fields;
use crate::model::{ApiError, FieldLocation, Format, Json, Losses, Request, Setting};

/// Fields for state that the upstream would have to keep, or servers that it would have to call.
const STATEFUL: [&str; 3] = ["container", "mcp_servers", THREAD];

impl RequestCodec for Messages {
    /// Decodes a request. `max_tokens` is optional here: requests that only count tokens have none.
    fn decode_request<'a>(
        &self,
        _head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError> {
        let mut fields = Fields::of_body(body)?;
        let model = fields.text("model")?;
        fields.need("model", model)?;
        let mut request = Request {
            turns: decode_turns(&mut fields, losses)?,
            sampling: decode_sampling(&mut fields)?,
            thinking: decode_thinking(&mut fields, losses)?,
            ..Request::default()
        };
        if let Some(node) = fields.node("output_config") {
            decode_output_config(node, &mut request, losses)?;
        }
        decode_tools(&mut fields, &mut request, losses)?;
        fields.bool("stream")?;
        request.labels = decode_labels(&mut fields, losses)?;
        refuse_state(&mut fields)?;
        fields.finish(losses);
        Ok(request)
    }

    fn encode_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError> {
        let (prompt, max_tokens) = encode_prompt(request, target, losses)?;
        if request.sampling.max_tokens.is_none() {
            losses.added(FieldLocation::Setting(Setting::MaxTokens));
        }
        let thinks = prompt.thinking.is_some_and(|thinking| thinking.is_on());
        let body = MessagesRequest {
            prompt,
            max_tokens,
            sampling: encode_sampling(request, target, thinks, losses),
            stop_sequences: encode_stop_sequences(&request.sampling, losses),
            metadata: encode_metadata(request, losses),
            service_tier: encode_service_tier(&request.labels, losses),
            stream: target.stream,
        };
        Format::Messages.report_dropped(&SAMPLING, request, losses);
        Ok(to_json_bytes(&body, request.size()))
    }

    fn tool_name_rule(&self) -> ToolNameRule {
        ToolNameRule::with_max_length(128)
    }
}

fn refuse_state(fields: &mut Fields<'_, '_>) -> Result<(), ApiError> {
    for key in STATEFUL {
        match fields.take(key) {
            None => {}
            Some(Json::Array(items)) if items.is_empty() => {}
            Some(_) => {
                let message = format!("{key}: the upstream of this model cannot keep or reach it");
                return Err(ApiError::invalid(message).at(key));
            }
        }
    }
    Ok(())
}

/// A request body for an upstream.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct MessagesRequest<'a> {
    #[serde(flatten)]
    prompt: MessagesPrompt<'a>,
    max_tokens: u64,
    #[serde(flatten)]
    sampling: MessagesSampling,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
    metadata: Option<MessagesMetadata<'a>>,
    service_tier: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
}

/// The fields that input tokens are counted from; they are the whole body of `count_tokens`.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct MessagesPrompt<'a> {
    model: &'a str,
    system: Option<MessagesContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<MessagesTool<'a>>,
    tool_choice: Option<MessagesToolChoice<'a>>,
    thinking: Option<MessagesThinking>,
    #[serde(skip_serializing_if = "OutputConfig::is_empty")]
    output_config: OutputConfig<'a>,
    messages: Vec<MessagesTurn<'a>>,
}

/// Encodes the prompt, and computes a `max_tokens` that leaves room for the reasoning.
pub(super) fn encode_prompt<'a>(
    request: &'a Request<'_>,
    target: &UpstreamTarget<'a>,
    losses: &mut Losses,
) -> Result<(MessagesPrompt<'a>, u64), ApiError> {
    refuse_media_output(request)?;
    request.output.image_options.drop_all(losses);
    let conversation = encode_turns(request, target.capabilities, losses)?;
    let (tools, tool_choice) = encode_tools(request, target.capabilities, losses)?;
    let forced = tool_choice
        .as_ref()
        .is_some_and(MessagesToolChoice::is_forced);
    let unsigned = conversation.ends_in_unsigned_tool_loop;
    let plan = encode_thinking(request, target, forced, unsigned, losses);
    let format = encode_output_format(&request.output.format, losses);
    if request.output.verbosity.is_some() {
        losses.dropped(FieldLocation::Setting(Setting::Verbosity));
    }
    let prompt = MessagesPrompt {
        model: target.model,
        system: conversation.system,
        tools,
        tool_choice,
        thinking: plan.thinking,
        output_config: OutputConfig {
            effort: plan.effort,
            format,
        },
        messages: conversation.messages,
    };
    Ok((prompt, plan.max_tokens))
}

/// Refuses a request for images or audio: the format answers with text only, and a text instead
/// would not be what the client asked for.
fn refuse_media_output(request: &Request<'_>) -> Result<(), ApiError> {
    let (what, setting) = match &request.output {
        output if output.images => ("images", Setting::Images),
        output if output.audio => ("audio", Setting::Audio),
        _ => return Ok(()),
    };
    let message = format!("the upstream of this model cannot answer with {what}");
    Err(ApiError::invalid(message).at_location(FieldLocation::Setting(setting)))
}
