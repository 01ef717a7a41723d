//! The parts of a candidate's content in a response.

use serde::Serialize;

use super::media::{FileData, InlineData};
use super::reasoning::encode_signature;
use super::response_calls::{
    ClientArgs, ClientFunctionCall, UpstreamFunctionCall, encode_function_call,
};
use crate::json::from_json;
use crate::model::{Call, FieldLocation, Issuer, Media, PartKind, Signature, Source, Text};

from_json! {
    /// A part as an upstream sends it. Rare payloads are boxed to keep it small.
    pub(super) struct UpstreamPart<'a> {
        "text" => text: Option<Text<'a>>,
        "thought" => thought: Option<bool>,
        "thoughtSignature" => thought_signature: Option<Text<'a>>,
        "inlineData" => inline_data: Option<Box<UpstreamInlineData<'a>>>,
        "fileData" => file_data: Option<Box<UpstreamFileData<'a>>>,
        "functionCall" => function_call: Option<Box<UpstreamFunctionCall<'a>>>,
        "codeExecutionResult" => code_execution_result: Option<UpstreamCodeExecution<'a>>,
    }
}

from_json! {
    struct UpstreamInlineData<'a> {
        "mimeType" => mime_type: Option<Text<'a>>,
        "data" => data: Option<Text<'a>>,
    }
}

from_json! {
    struct UpstreamFileData<'a> {
        "mimeType" => mime_type: Option<Text<'a>>,
        "fileUri" => file_uri: Option<Text<'a>>,
    }
}

from_json! {
    struct UpstreamCodeExecution<'a> {
        "output" => output: Option<Text<'a>>,
    }
}

/// The decoded payload of a part.
pub(super) enum UpstreamPayload<'a> {
    Text(Text<'a>),
    /// The output of code that the upstream itself ran.
    CodeOutput(Text<'a>),
    Reasoning(Text<'a>),
    Call(UpstreamFunctionCall<'a>),
    Media(Media<'a>),
    /// No payload, or one that no other format has.
    Unsupported,
}

impl<'a> UpstreamPart<'a> {
    /// Whether the part holds text of the answer itself.
    pub(super) fn is_text(&self) -> bool {
        let has_text = self.text.as_ref().is_some_and(|text| !text.is_empty());
        let has_output = self.text.is_none() && self.code_execution_result.is_some();
        self.function_call.is_none() && self.thought != Some(true) && (has_text || has_output)
    }

    /// Decodes the payload and the signature of a part.
    pub(super) fn decode(self) -> (UpstreamPayload<'a>, Option<Signature<'a>>) {
        let signature = self.thought_signature;
        let signature = signature
            .filter(|data| !data.is_empty())
            .map(|data| Signature {
                issuer: Issuer::Native,
                data,
            });
        let media = |mime: Option<Text<'a>>, source| {
            UpstreamPayload::Media(Media {
                mime: mime.unwrap_or_default(),
                source,
                name: None,
                detail: None,
            })
        };
        let thought = self.thought == Some(true);
        let payload = if let Some(call) = self.function_call {
            UpstreamPayload::Call(*call)
        } else if let Some(text) = self.text {
            match thought {
                true => UpstreamPayload::Reasoning(text),
                false => UpstreamPayload::Text(text),
            }
        } else if let Some(inline) = self.inline_data.filter(|_| !thought) {
            media(
                inline.mime_type,
                Source::Base64(inline.data.unwrap_or_default()),
            )
        } else if let Some(file) = self.file_data.filter(|_| !thought) {
            media(
                file.mime_type,
                Source::Url(file.file_uri.unwrap_or_default()),
            )
        } else if let Some(output) = self.code_execution_result.and_then(|run| run.output) {
            UpstreamPayload::CodeOutput(output)
        } else {
            UpstreamPayload::Unsupported
        };
        (payload, signature)
    }
}

/// A part of a response to a client.
#[serde_with::skip_serializing_none]
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClientPart<'a> {
    pub(super) text: Option<Text<'a>>,
    inline_data: Option<InlineData<'a>>,
    file_data: Option<FileData<'a>>,
    function_call: Option<ClientFunctionCall<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    thought_signature: Option<Text<'a>>,
}

impl<'a> ClientPart<'a> {
    pub(super) fn text(text: &'a str) -> ClientPart<'a> {
        ClientPart {
            text: Some(text.into()),
            ..ClientPart::default()
        }
    }

    pub(super) fn reasoning(text: &'a str, signature: Option<&'a Signature<'_>>) -> ClientPart<'a> {
        ClientPart {
            text: Some(text.into()),
            thought: true,
            thought_signature: signature.map(encode_signature),
            ..ClientPart::default()
        }
    }

    pub(super) fn media(media: &'a Media<'_>) -> ClientPart<'a> {
        let mime_type = &*media.mime;
        match &media.source {
            Source::Base64(data) => ClientPart {
                inline_data: Some(InlineData {
                    mime_type,
                    data: (&**data).into(),
                }),
                ..ClientPart::default()
            },
            Source::Url(file_uri) | Source::File(file_uri) => ClientPart {
                file_data: Some(FileData {
                    mime_type,
                    file_uri,
                }),
                ..ClientPart::default()
            },
            Source::Plain(text) => ClientPart::text(text),
        }
    }

    pub(super) fn call(call: &'a Call<'_>, args: Option<ClientArgs<'a>>) -> ClientPart<'a> {
        ClientPart {
            function_call: Some(encode_function_call(call, args)),
            thought_signature: call.signature.as_ref().map(encode_signature),
            ..ClientPart::default()
        }
    }

    /// A part that holds nothing but the signature of hidden reasoning.
    pub(super) fn signature(signature: &'a Signature<'_>) -> ClientPart<'a> {
        ClientPart {
            thought_signature: Some(encode_signature(signature)),
            ..ClientPart::text("")
        }
    }

    /// Adds the signature of the hidden reasoning that led to the part.
    pub(super) fn signed_with(self, signature: Option<&'a Signature<'_>>) -> ClientPart<'a> {
        ClientPart {
            thought_signature: signature.map(encode_signature).or(self.thought_signature),
            ..self
        }
    }

    pub(super) const fn is_signed(&self) -> bool {
        self.thought_signature.is_some()
    }

    /// Whether the part holds text of the answer itself.
    pub(super) fn is_text(&self) -> bool {
        self.text.is_some() && !self.thought
    }
}

/// Encodes a part that is not a call; `None` if it has no content.
pub(super) fn encode_content_part<'a>(part: &'a PartKind<'_>) -> Option<ClientPart<'a>> {
    match part {
        PartKind::Text(text) | PartKind::Refusal(text) => {
            (!text.is_empty()).then(|| ClientPart::text(text))
        }
        PartKind::Reasoning {
            text,
            signature: None,
        } if text.is_empty() => None,
        PartKind::Reasoning { text, signature } => {
            Some(ClientPart::reasoning(text, signature.as_ref()))
        }
        PartKind::Media(media) => Some(ClientPart::media(media)),
        PartKind::Call(_) | PartKind::Result(_) => None,
    }
}

/// The location of a part in a response to a client.
pub(super) fn part_location(candidate: usize, part: usize) -> FieldLocation {
    FieldLocation::Path(format!("candidates[{candidate}].content.parts[{part}]").into())
}
