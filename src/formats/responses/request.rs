//! Requests: the top-level fields of the body of `POST /v1/responses`.

use serde::Serialize;

use super::Responses;
use super::input_items::InputItem;
use super::reasoning::{self, ReasoningSettings};
use super::settings::{self, TextSettings};
use super::tool_choice::{self, ResponsesToolChoice};
use super::tools::{self, ResponsesTool};
use super::turns::{self, EncodedInput};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::settings::SAMPLING;
use crate::formats::{RequestCodec, RequestHead, UpstreamTarget, chat};
use crate::json::Fields;
use crate::model::{
    ApiError, FieldLocation, Format, Json, Losses, Part, PartKind, Request, Role, Setting, Text,
    Turn, truncated,
};

impl RequestCodec for Responses {
    fn decode_request<'a>(
        &self,
        head: &RequestHead<'_>,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Request<'a>, ApiError> {
        let mut fields = Fields::of_body(body)?;
        let mut request = Request::default();
        reject_stored_state(&mut fields, head.keeps)?;
        // Routing has decoded the name already: only its type is checked here.
        fields.text("model")?;
        decode_turns(&mut fields, &mut request, losses)?;
        settings::decode_sampling(&mut fields, &mut request.sampling)?;
        request.sampling.logprobs |= decode_include(&mut fields, losses)?;
        tools::decode(&mut fields, &mut request, losses)?;
        tool_choice::decode(&mut fields, &mut request, losses)?;
        reasoning::decode(&mut fields, &mut request.thinking, losses)?;
        settings::decode_text(&mut fields, &mut request.output, losses)?;
        decode_labels(&mut fields, &mut request)?;
        decode_transport(&mut fields, head.keeps, losses)?;
        fields.finish(losses);
        Ok(request)
    }

    fn encode_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError> {
        if request.output.audio {
            let message = "the upstream of this model cannot answer with audio";
            return Err(
                ApiError::invalid(message).at_location(FieldLocation::Setting(Setting::Audio))
            );
        }
        let (prompt, has_reasoning) = encode_prompt(request, target, losses)?;
        let sampling = &request.sampling;
        Format::Responses.report_dropped(&SAMPLING, request, losses);
        let (temperature, top_p) = settings::encode_sampling(request, target.capabilities, losses);
        let labels = &request.labels;
        let body = ResponsesRequest {
            prompt,
            max_tool_calls: max_tool_calls(request),
            max_output_tokens: sampling
                .max_tokens
                .map(|tokens| Format::Responses.fit_count(Setting::MaxTokens, tokens, losses)),
            temperature,
            top_p,
            top_logprobs: sampling.top_logprobs.filter(|_| sampling.logprobs),
            include: encode_include(request, target, has_reasoning),
            store: false,
            metadata: labels.metadata.as_ref(),
            user: labels.user.as_deref(),
            prompt_cache_key: labels.cache_key.as_deref(),
            service_tier: labels.service_tier.as_deref(),
            stream: target.stream.then_some(true),
        };
        Ok(to_json_bytes(&body, request.size()))
    }
}

/// The most calls of the upstream's own tools, where the one for images is the only one.
fn max_tool_calls(request: &Request<'_>) -> Option<u64> {
    let output = &request.output;
    let is_alone = output.images && request.search.is_none() && !request.code_execution;
    output.image_limit.filter(|_| is_alone)
}

/// The body of a request as it is encoded.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct ResponsesRequest<'r> {
    #[serde(flatten)]
    prompt: ResponsesPrompt<'r>,
    max_tool_calls: Option<u64>,
    max_output_tokens: Option<u64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_logprobs: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    /// Always sent: the upstream stores the conversation by default.
    store: bool,
    metadata: Option<&'r Json<'r>>,
    user: Option<&'r str>,
    prompt_cache_key: Option<&'r str>,
    service_tier: Option<&'r str>,
    stream: Option<bool>,
}

/// The fields of a request that count as input tokens.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct ResponsesPrompt<'r> {
    model: &'r str,
    instructions: Option<Text<'r>>,
    input: Vec<InputItem<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ResponsesTool<'r>>,
    tool_choice: Option<ResponsesToolChoice<'r>>,
    parallel_tool_calls: Option<bool>,
    reasoning: Option<ReasoningSettings>,
    text: Option<TextSettings<'r>>,
}

/// Encodes the fields that count as input tokens; `true`: they contain encrypted reasoning.
pub(super) fn encode_prompt<'r>(
    request: &'r Request<'_>,
    target: &UpstreamTarget<'r>,
    losses: &mut Losses,
) -> Result<(ResponsesPrompt<'r>, bool), ApiError> {
    let EncodedInput {
        instructions,
        input,
        has_reasoning,
    } = turns::encode(&request.turns, losses)?;
    let prompt = ResponsesPrompt {
        model: target.model,
        instructions,
        input,
        tools: tools::encode(request, losses),
        tool_choice: tool_choice::encode(request, losses),
        parallel_tool_calls: tool_choice::encode_parallel_tool_calls(request, target, losses),
        reasoning: reasoning::encode(&request.thinking, target.capabilities, losses),
        text: settings::encode_text(&request.output, losses),
    };
    Ok((prompt, has_reasoning))
}

/// Fields that refer to what only a server of this format keeps, and what to send instead.
const STORED_STATE: [(&str, &str); 3] = [
    (
        "previous_response_id",
        "responses are not stored here (server.conversations is off); send the whole conversation in `input`",
    ),
    (
        "conversation",
        "the upstream of this model keeps no conversations; continue with `previous_response_id`, or send the whole \
         conversation in `input`",
    ),
    (
        "prompt",
        "the upstream of this model keeps no prompts; send the text of the prompt in `instructions` or `input`",
    ),
];

/// Rejects a request that depends on state between requests.
fn reject_stored_state(fields: &mut Fields<'_, '_>, can_store: bool) -> Result<(), ApiError> {
    // The id of a stored response has been replaced by its conversation before decoding.
    if can_store && let Some(id) = fields.text("previous_response_id")? {
        return Err(previous_response_not_found(&id));
    }
    for (key, advice) in STORED_STATE {
        if fields.take(key).is_some() {
            return Err(ApiError::invalid(format!("{key}: {advice}")).at(key));
        }
    }
    match fields.bool("background")? {
        Some(true) => Err(ApiError::invalid(
            "background: the upstream of this model cannot answer in the background; leave `background` out, and set \
             `stream` to true for a long response",
        )
        .at("background")),
        _ => Ok(()),
    }
}

/// Builds the error for a `previous_response_id` that the gateway does not store.
pub(super) fn previous_response_not_found(id: &str) -> ApiError {
    let id = truncated(id);
    let message = format!(
        "previous_response_id: no response `{id}` is kept here (any more); send the whole conversation"
    );
    let mut api_error = ApiError::invalid(message).at("previous_response_id");
    api_error.code = Some("previous_response_not_found".to_owned());
    api_error
}

/// Decodes `instructions` and `input`.
fn decode_turns<'a>(
    fields: &mut Fields<'a, '_>,
    request: &mut Request<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    if let Some(text) = fields.text("instructions")?.filter(|text| !text.is_empty()) {
        request.turns.push(Turn {
            role: Role::System,
            parts: vec![Part {
                kind: PartKind::Text(text),
                at: None,
            }],
            at: None,
        });
    }
    match fields.node("input") {
        Some(input) => turns::decode(input, &mut request.turns, losses),
        None => fields.need("input", None),
    }
}

const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";
const LOGPROBS: &str = "message.output_text.logprobs";

/// Decodes `include`; `true`: it asks for log probabilities.
fn decode_include(fields: &mut Fields<'_, '_>, losses: &mut Losses) -> Result<bool, ApiError> {
    let mut logprobs = false;
    fields.each("include", |_, node| {
        let path = node.path;
        match node.text()?.as_ref() {
            LOGPROBS => logprobs = true,
            // Signatures are always part of a response.
            ENCRYPTED_REASONING => {}
            _ => losses.dropped(FieldLocation::Path(path.to_string().into())),
        }
        Ok(())
    })?;
    Ok(logprobs)
}

/// Encodes `include`. The upstream stores nothing, so reasoning goes on only if its ciphertext comes with the
/// response.
fn encode_include(
    request: &Request<'_>,
    target: &UpstreamTarget<'_>,
    has_reasoning: bool,
) -> Vec<&'static str> {
    let capabilities = target.capabilities;
    let mut include = Vec::new();
    if capabilities.responses_encrypted_reasoning
        && reasoning::may_reason(&request.thinking, capabilities, has_reasoning)
    {
        include.push(ENCRYPTED_REASONING);
    }
    if request.sampling.logprobs {
        include.push(LOGPROBS);
    }
    include
}

/// Decodes what labels a request: `metadata`, `user`, `prompt_cache_key`, `service_tier`.
fn decode_labels<'a>(
    fields: &mut Fields<'a, '_>,
    request: &mut Request<'a>,
) -> Result<(), ApiError> {
    let labels = &mut request.labels;
    let metadata = fields.node("metadata").map(chat::decode_metadata);
    labels.metadata = metadata.transpose()?;
    labels.user = fields.text("user")?;
    // `safety_identifier` is the newer name of `user`; beside `user` it stays and is reported as lost.
    if labels.user.is_none() {
        labels.user = fields.text("safety_identifier")?;
        request.aliases.user = labels.user.as_ref().map(|_| "safety_identifier");
    }
    labels.cache_key = fields.text("prompt_cache_key")?;
    labels.service_tier = fields.text("service_tier")?;
    Ok(())
}

/// Decodes the fields that only concern how the response is delivered; reports those that have no effect here.
fn decode_transport(
    fields: &mut Fields<'_, '_>,
    can_store: bool,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    fields.bool("stream")?;
    if let Some(node) = fields.node("stream_options") {
        node.fields(|mut fields| {
            if fields.bool("include_obfuscation")? == Some(true) {
                losses.dropped(FieldLocation::Path(
                    "stream_options.include_obfuscation".into(),
                ));
            }
            fields.finish(losses);
            Ok(())
        })?;
    }
    if fields.bool("store")? == Some(true) && !can_store {
        losses.dropped(FieldLocation::Path("store".into()));
    }
    let truncation = fields.text("truncation")?;
    if truncation.is_some_and(|truncation| truncation != "disabled") {
        losses.dropped(FieldLocation::Path("truncation".into()));
    }
    Ok(())
}
