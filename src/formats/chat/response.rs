//! JSON responses, decoded and encoded.
//!
//! They are decoded by the fragments that a stream's chunks are decoded by, and gathered from the deltas that a stream
//! is encoded in.

use serde::Serialize;

use super::Chat;
use super::annotations::ChatAnnotation;
use super::calls::{CallFragment, ChatToolCall};
use super::choice_encoder::ChoiceEncoder;
use super::completion::{Completion, CompletionChoice};
use super::delta::{ChatDelta, DeltaSink};
use super::error::decode_error;
use super::finish_reason::{ChoiceSummary, is_known_finish_reason};
use super::fragment::ChatFragment;
use super::identity::ChatIdentity;
use super::logprobs::ChatLogprobs;
use super::output_media::{AUDIO_TYPE, ChatOutputAudio, ChatOutputImage};
use super::reasoning::{ChatReasoningDetail, ReasoningDetails, signed_positions};
use super::text::append_text;
use super::usage::ChatUsage;
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::{ResponseCodec, ResponseOptions, decode_response_body, missing_content};
use crate::model::{
    ApiError, Call, Choice, Citation, FieldLocation, Finish, Losses, Part, PartKind, Response,
    Signature, Text, append, borrowed,
};

impl ResponseCodec for Chat {
    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError> {
        // Some backends send an error inside of an array.
        if body.trim_ascii_start().starts_with(b"[") {
            return Err(decode_error(200, body));
        }
        let mut completion: Completion<'a> = decode_response_body(body)?;
        if let Some(api_error) = completion.api_error() {
            return Err(api_error);
        }
        let Some(choices) = completion
            .choices
            .take()
            .filter(|choices| !choices.is_empty())
        else {
            return Err(missing_content());
        };
        let is_prompt_blocked = completion.is_prompt_blocked();
        let mut numbered = Vec::with_capacity(choices.len());
        for (position, choice) in (0..).zip(choices) {
            let number = choice.index.unwrap_or(position);
            let choice = decode_choice(number, choice, is_prompt_blocked, losses)?;
            numbered.push((number, choice));
        }
        numbered.sort_by_key(|(number, _)| *number);
        Ok(Response {
            created: completion.created(),
            usage: completion.usage(),
            id: completion.id.unwrap_or_default(),
            model: completion.model.unwrap_or_default(),
            choices: numbered.into_iter().map(|(_, choice)| choice).collect(),
        })
    }

    fn encode_response(
        &self,
        response: &Response<'_>,
        options: &ResponseOptions,
        losses: &mut Losses,
    ) -> Vec<u8> {
        let id = borrowed(&response.id);
        let identity = ChatIdentity::new(id, response.created, &response.model, options);
        // Clients take the first choice without a check.
        let empty = Choice {
            parts: Vec::new(),
            citations: Vec::new(),
            logprobs: Vec::new(),
            finish: Finish::Other,
        };
        let choices = match response.choices.as_slice() {
            [] => std::slice::from_ref(&empty),
            choices => choices,
        };
        let body = ChatCompletion {
            id: &identity.id,
            object: "chat.completion",
            created: identity.created,
            model: &identity.model,
            choices: (0..)
                .zip(choices)
                .map(|(index, choice)| {
                    report_losses(index, choice, losses);
                    encode_choice(index, choice, &identity)
                })
                .collect(),
            usage: response.usage.map(ChatUsage::from),
        };
        to_json_bytes(&body, response.size())
    }
}

/// Decodes one choice; `number` is its index in the reported losses.
fn decode_choice<'a>(
    number: u32,
    mut choice: CompletionChoice<'a>,
    is_prompt_blocked: bool,
    losses: &mut Losses,
) -> Result<Choice<'a>, ApiError> {
    let location = |field: &str| FieldLocation::Path(format!("choices[{number}].{field}").into());
    let mut decoded = DecodedMessage::default();
    if let Some(message) = &mut choice.message {
        message.decode_fragments(&mut false, AUDIO_TYPE, &mut |fragment| {
            decoded.add(fragment)
        });
    }
    if decoded.attach_call_signatures() {
        losses.dropped(location("message.reasoning_details"));
    }
    let summary = ChoiceSummary {
        has_calls: decoded.has(|kind| matches!(kind, PartKind::Call(_))),
        has_refusal: decoded.has(|kind| matches!(kind, PartKind::Refusal(_))),
        is_prompt_blocked,
    };
    let finish = choice.finish(summary)?;
    if !is_known_finish_reason(choice.finish_reason.as_deref()) {
        losses.approximated(location("finish_reason"));
    }
    Ok(Choice {
        logprobs: choice.logprobs().collect(),
        parts: decoded.parts,
        citations: decoded.citations,
        finish: finish.unwrap_or(summary.finish()),
    })
}

/// The fragments of a message, gathered.
#[derive(Default)]
struct DecodedMessage<'a> {
    parts: Vec<Part<'a>>,
    citations: Vec<Citation<'a>>,
    call_signatures: Vec<(Text<'a>, Signature<'a>)>,
    has_foreign_signature: bool,
}

impl<'a> DecodedMessage<'a> {
    /// Adds a fragment; text of one kind in succession is joined, as it is in a stream.
    fn add(&mut self, fragment: ChatFragment<'a>) {
        let last = self.parts.last_mut().map(|part| &mut part.kind);
        match (fragment, last) {
            (ChatFragment::Text(more), Some(PartKind::Text(text)))
            | (ChatFragment::Refusal(more), Some(PartKind::Refusal(text)))
            | (
                ChatFragment::Reasoning(more),
                Some(PartKind::Reasoning {
                    text,
                    signature: None,
                }),
            ) => {
                text.to_mut().push_str(&more);
            }
            (ChatFragment::Signature(new), Some(PartKind::Reasoning { signature, .. }))
                if signature.is_none() =>
            {
                *signature = Some(new);
            }
            (ChatFragment::Text(text), _) => self.push(PartKind::Text(text)),
            (ChatFragment::Refusal(text), _) => self.push(PartKind::Refusal(text)),
            (ChatFragment::Reasoning(text), _) => self.push(PartKind::Reasoning {
                text,
                signature: None,
            }),
            (ChatFragment::Signature(signature), _) => self.push(PartKind::Reasoning {
                text: Text::default(),
                signature: Some(signature),
            }),
            (ChatFragment::Media(media), _) => self.push(PartKind::Media(media)),
            (ChatFragment::Call(call), _) => self.push(PartKind::Call(decode_call(call))),
            (ChatFragment::CallSignature { id, signature }, _) => {
                self.call_signatures.push((id, signature))
            }
            (ChatFragment::ForeignSignature, _) => self.has_foreign_signature = true,
            (ChatFragment::Citation(citation), _) => self.citations.push(citation),
        }
    }

    fn push(&mut self, kind: PartKind<'a>) {
        self.parts.push(Part { kind, at: None });
    }

    /// Puts each signature on its call and returns whether one was lost.
    fn attach_call_signatures(&mut self) -> bool {
        let mut is_lost = self.has_foreign_signature;
        let signatures = std::mem::take(&mut self.call_signatures);
        let ids = self.parts.iter().map(|part| match &part.kind {
            PartKind::Call(call) => call.id.as_deref(),
            _ => None,
        });
        let positions = signed_positions(&signatures, ids);
        for ((_, signature), position) in signatures.into_iter().zip(positions) {
            match position.map(|at| &mut self.parts[at].kind) {
                Some(PartKind::Call(call)) => call.signature = Some(signature),
                _ => is_lost = true,
            }
        }
        is_lost
    }

    fn has(&self, is: impl Fn(&PartKind<'_>) -> bool) -> bool {
        self.parts.iter().any(|part| is(&part.kind))
    }
}

fn decode_call(call: CallFragment<'_>) -> Call<'_> {
    Call {
        id: call.id,
        name: call.name,
        arguments: call.arguments,
        signature: None,
        kind: call.kind,
    }
}

/// The body of a response to a client.
#[derive(Serialize)]
struct ChatCompletion<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    model: &'a str,
    choices: Vec<ChatChoice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<ChatUsage>,
}

#[derive(Serialize)]
struct ChatChoice<'a> {
    index: u32,
    message: ChatResponseMessage<'a>,
    logprobs: Option<ChatLogprobs<'a>>,
    finish_reason: &'static str,
}

/// A message, gathered from the deltas that a stream has of it.
#[derive(Default, Serialize)]
struct ChatResponseMessage<'a> {
    role: &'static str,
    content: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<Text<'a>>,
    refusal: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatToolCall<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reasoning_details: Vec<ChatReasoningDetail<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<ChatAnnotation<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<ChatOutputImage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<ChatOutputAudio<'a>>,
}

impl<'a> DeltaSink<'a, 'a> for ChatResponseMessage<'a> {
    fn push(&mut self, delta: ChatDelta<'a>) {
        append_text(&mut self.content, delta.content);
        append_text(&mut self.reasoning_content, delta.reasoning_content);
        append_text(&mut self.refusal, delta.refusal);
        if let Some([call]) = delta.tool_calls {
            call.gather(&mut self.tool_calls);
        }
        if let Some([detail]) = delta.reasoning_details {
            self.reasoning_details.push(detail);
        }
        if let Some([mut image]) = delta.images {
            image.index = None;
            self.images.push(image);
        }
        match (&mut self.audio, delta.audio) {
            // There is room for the data of one.
            (Some(audio), Some(more)) => audio.data = more.data,
            (audio, more) => *audio = audio.take().or(more),
        }
    }

    fn hold(&self, held: &mut Text<'a>, more: &Text<'a>) {
        append(held, more.clone());
    }
}

/// Reports what the format cannot express of a choice.
fn report_losses(index: u32, choice: &Choice<'_>, losses: &mut Losses) {
    let location = |field: &str| FieldLocation::Path(format!("choices[{index}].{field}").into());
    match &choice.finish {
        Finish::Paused | Finish::ContextFull => losses.approximated(location("finish_reason")),
        Finish::StopSequence(Some(_)) => losses.dropped(location("finish_reason")),
        _ => {}
    }
    let kinds = || choice.parts.iter().map(|part| &part.kind);
    let mut after_calls = kinds().skip_while(|kind| !matches!(kind, PartKind::Call(_)));
    // All text is in one field, so its position among the calls is lost.
    if after_calls.any(|kind| matches!(kind, PartKind::Text(text) if !text.is_empty())) {
        losses.approximated(location("message.content"));
    }
}

fn encode_choice<'a>(
    index: u32,
    choice: &'a Choice<'_>,
    identity: &ChatIdentity<'_>,
) -> ChatChoice<'a> {
    let mut message = ChatResponseMessage {
        role: "assistant",
        annotations: choice.citations.iter().map(ChatAnnotation::new).collect(),
        ..ChatResponseMessage::default()
    };
    let details = ReasoningDetails::of_parts(&choice.parts);
    let mut encoder = ChoiceEncoder::new(index, details);
    for part in &choice.parts {
        let mut encode = |event| encoder.encode_event(event, identity, &mut message);
        part.kind.unfold(index, &mut encode);
    }
    let finish_reason = encoder.finish(&choice.finish, &mut message);
    // Beside calls, no text is `null`.
    if !message.tool_calls.is_empty() && message.content.as_deref() == Some("") {
        message.content = None;
    }
    ChatChoice {
        index,
        message,
        logprobs: (!choice.logprobs.is_empty()).then(|| ChatLogprobs::new(&choice.logprobs)),
        finish_reason,
    }
}
