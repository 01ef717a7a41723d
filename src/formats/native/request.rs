//! The top level of a request.
//!
//! A request is decoded only to be translated: fields that no other format has are refused or
//! reported as dropped. [`validation`] has refused the invalid ones before.

use serde::Serialize;

use super::contents::{self, NativeContent, SystemPart};
use super::field_names::{self, FieldNames, not_available};
use super::generation_config::{self, GenerationConfig};
use super::tools::{self, NativeTool, ToolConfig};
use super::{Native, call_ids, validation};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::settings::LABELS;
use crate::formats::{RequestCodec, RequestHead, ToolNameRule, UpstreamTarget};
use crate::json::{Fields, Node};
use crate::model::{ApiError, FieldLocation, Format, Losses, Request, Setting, Text};

/// Fields that refer to state which only an upstream of this format has.
const STATEFUL_FIELDS: [FieldNames; 2] = [
    field_names::CACHED_CONTENT,
    &["continuationToken", "continuation_token"],
];

impl RequestCodec for Native {
    fn decode_request<'a>(
        &self,
        head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError> {
        decode_fields(validation::parse(body, head.text_only)?, losses)
    }

    fn encode_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError> {
        let body = encode_fields(request, target, losses)?;
        Ok(to_json_bytes(&body, request.size()))
    }

    fn tool_name_rule(&self) -> ToolNameRule {
        ToolNameRule {
            max_length: 128,
            extra_characters: &['.', ':'],
            starts_with_letter: true,
        }
    }
}

/// Decodes a request that has been parsed and validated.
pub(super) fn decode_fields<'a>(
    mut fields: Fields<'a, '_>,
    losses: &mut Losses,
) -> Result<Request<'a>, ApiError> {
    let mut request = Request::default();
    // Some clients repeat the model of the path.
    fields.take("model");
    if let Some(node) = field_names::take(&mut fields, field_names::SYSTEM_INSTRUCTION) {
        let turn = node.fields(|fields| contents::decode_system_instruction(fields, losses))?;
        request.turns.extend(turn);
    }
    if let Some(node) = fields.node("contents") {
        node.each(|at, node| {
            let turn = node.fields(|fields| contents::decode_content(at, fields, losses))?;
            request.turns.push(turn);
            Ok(())
        })?;
        call_ids::assign_call_ids(&mut request.turns, losses);
    }
    if let Some(node) = fields.node("tools") {
        tools::decode_tools(node, &mut request, losses)?;
    }
    if let Some(node) = field_names::take(&mut fields, field_names::TOOL_CONFIG) {
        tools::decode_tool_config(node, &mut request, losses)?;
    }
    field_names::report_dropped(&mut fields, field_names::SAFETY_SETTINGS, losses);
    if let Some(node) = field_names::take(&mut fields, field_names::GENERATION_CONFIG) {
        generation_config::decode_generation_config(node, &mut request, losses)?;
    }
    for names in STATEFUL_FIELDS {
        if let Some(node) = field_names::take(&mut fields, names) {
            return Err(not_available(&node.path));
        }
    }
    if let Some(node) = field_names::take(&mut fields, &["serviceTier", "service_tier"]) {
        request.labels.service_tier = decode_service_tier(node, losses)?;
    }
    fields.finish(losses);
    Ok(request)
}

/// The body of a `generateContent` request to an upstream.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NativeRequest<'a> {
    system_instruction: Option<SystemInstruction<'a>>,
    contents: Vec<NativeContent<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<NativeTool<'a>>,
    tool_config: Option<ToolConfig<'a>>,
    generation_config: Option<GenerationConfig<'a>>,
    service_tier: Option<&'static str>,
}

#[derive(Serialize)]
struct SystemInstruction<'a> {
    parts: Vec<SystemPart<'a>>,
}

impl NativeRequest<'_> {
    /// Whether the request consists of `contents` alone.
    pub(super) fn has_only_contents(&self) -> bool {
        self.system_instruction.is_none()
            && self.tools.is_empty()
            && self.tool_config.is_none()
            && self.generation_config.is_none()
            && self.service_tier.is_none()
    }
}

/// Encodes the fields of a request, which a `countTokens` body may wrap.
pub(super) fn encode_fields<'a>(
    request: &'a Request<'_>,
    target: &UpstreamTarget<'a>,
    losses: &mut Losses,
) -> Result<NativeRequest<'a>, ApiError> {
    if request.output.images && !target.capabilities.native_image_output {
        let message = "the upstream of this model cannot answer with images";
        return Err(ApiError::invalid(message).at_location(FieldLocation::Setting(Setting::Images)));
    }
    let conversation = contents::encode_turns(&request.turns, target.capabilities, losses)?;
    let (tools, tool_config) = tools::encode_tools(request, target.brand, losses);
    let parts = conversation.system;
    Ok(NativeRequest {
        system_instruction: (!parts.is_empty()).then_some(SystemInstruction { parts }),
        contents: conversation.contents,
        tools,
        tool_config,
        generation_config: generation_config::encode_generation_config(
            request,
            target.capabilities,
            losses,
        ),
        service_tier: encode_labels(request, losses),
    })
}

/// Decodes `serviceTier` into the word that the other formats share for a tier.
fn decode_service_tier<'a>(
    node: Node<'a, '_>,
    losses: &mut Losses,
) -> Result<Option<Text<'a>>, ApiError> {
    let path = node.path;
    let tier = match &*node.text()?.to_ascii_lowercase() {
        "" | "unspecified" => None,
        "standard" => Some("default"),
        "flex" => Some("flex"),
        "priority" => Some("priority"),
        _ => {
            losses.dropped(FieldLocation::Path(path.to_string().into()));
            None
        }
    };
    Ok(tier.map(Text::from))
}

/// Encodes the service tier and reports the labels that the format has no field for.
fn encode_labels(request: &Request<'_>, losses: &mut Losses) -> Option<&'static str> {
    Format::Native.report_dropped(&LABELS, request, losses);
    match request.labels.service_tier.as_deref()? {
        "auto" => None,
        "default" => Some("standard"),
        "flex" => Some("flex"),
        "priority" => Some("priority"),
        _ => {
            losses.dropped(FieldLocation::Setting(Setting::ServiceTier));
            None
        }
    }
}
