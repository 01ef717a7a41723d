//! The output items of a response.

use serde::Serialize;

use super::annotations::{TokenLogprob, UrlCitationAnnotation, decode_annotation, decode_logprobs};
use super::image_generation;
use super::lenient_object::LenientObject;
use super::signatures;
use super::status::COMPLETED;
use crate::model::{Arguments, Call, Citation, Json, Logprob, Media, Signature, Text, ToolKind};

/// One item, decoded leniently.
pub(super) enum DecodedItem<'a> {
    Message(Vec<MessageContent<'a>>),
    Reasoning {
        text: Text<'a>,
        signature: Option<Signature<'a>>,
    },
    Call(Call<'a>),
    Image(Media<'a>),
    /// A call of a tool that the upstream runs; the message that follows holds what came of it.
    Hosted,
}

/// One part of a message's content.
pub(super) enum MessageContent<'a> {
    Text {
        text: Text<'a>,
        /// Counted from the start of this text; `None`: an annotation that cites no URL.
        citations: Vec<Option<Citation<'a>>>,
        logprobs: Vec<Logprob<'a>>,
    },
    Refusal(Text<'a>),
}

/// Decodes an item into its id and the rest.
pub(super) fn decode<'a>(item: Json<'a>) -> (Text<'a>, DecodedItem<'a>) {
    let mut item = LenientObject::of(item);
    let id = item.text("id");
    let decoded = match item.text("type").as_ref() {
        "message" => DecodedItem::Message(decode_message(&mut item)),
        "reasoning" => decode_reasoning(&id, &mut item),
        "function_call" => decode_call(&mut item, "arguments", ToolKind::Function),
        "custom_tool_call" => decode_call(&mut item, "input", ToolKind::Custom),
        "image_generation_call" => image_generation::decode_output_call(&mut item)
            .map_or(DecodedItem::Hosted, DecodedItem::Image),
        _ => DecodedItem::Hosted,
    };
    (id, decoded)
}

fn decode_message<'a>(item: &mut LenientObject<'a>) -> Vec<MessageContent<'a>> {
    let content = item.list("content").into_iter().map(LenientObject::of);
    content
        .map(|mut part| match part.text("type").as_ref() {
            "refusal" => MessageContent::Refusal(part.text("refusal")),
            _ => MessageContent::Text {
                text: part.text("text"),
                citations: part
                    .list("annotations")
                    .into_iter()
                    .map(decode_annotation)
                    .collect(),
                logprobs: decode_logprobs(part.list("logprobs")),
            },
        })
        .collect()
}

/// Decodes reasoning: the summary, or where there is none the reasoning itself, which some upstreams show.
fn decode_reasoning<'a>(id: &str, item: &mut LenientObject<'a>) -> DecodedItem<'a> {
    let summary = join_paragraphs(item.list("summary"));
    let text = if summary.is_empty() {
        join_paragraphs(item.list("content"))
    } else {
        summary
    };
    let ciphertext = item.text("encrypted_content");
    let signature = (!ciphertext.is_empty()).then(|| signatures::decode_own(id, &ciphertext));
    DecodedItem::Reasoning { text, signature }
}

/// Separates the parts of a summary.
pub(super) const PARAGRAPH: &str = "\n\n";

fn join_paragraphs<'a>(parts: Vec<Json<'a>>) -> Text<'a> {
    let mut joined = Text::default();
    for part in parts {
        let text = LenientObject::of(part).text("text");
        if joined.is_empty() {
            joined = text;
        } else if !text.is_empty() {
            joined.to_mut().push_str(PARAGRAPH);
            joined.to_mut().push_str(&text);
        }
    }
    joined
}

fn decode_call<'a>(
    item: &mut LenientObject<'a>,
    arguments: &str,
    kind: ToolKind,
) -> DecodedItem<'a> {
    let id = item.text("call_id");
    DecodedItem::Call(Call {
        id: Some(id).filter(|id| !id.is_empty()),
        name: item.text("name"),
        arguments: Arguments::Text(item.text(arguments)),
        signature: None,
        kind,
    })
}

/// One item as it is encoded.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputItem<'a> {
    Message {
        id: String,
        status: &'static str,
        role: &'static str,
        content: Vec<OutputContent<'a>>,
    },
    Reasoning {
        id: String,
        summary: Vec<SummaryText<'a>>,
        encrypted_content: Option<String>,
    },
    FunctionCall {
        id: String,
        call_id: Text<'a>,
        name: Text<'a>,
        namespace: Option<String>,
        arguments: Text<'a>,
        status: &'static str,
    },
    CustomToolCall {
        id: String,
        call_id: Text<'a>,
        name: Text<'a>,
        namespace: Option<String>,
        input: Text<'a>,
        status: &'static str,
    },
    ImageGenerationCall {
        id: String,
        #[serialize_always]
        result: Option<Text<'a>>,
        status: &'static str,
    },
}

impl OutputItem<'_> {
    /// The id of the item.
    pub(super) fn id(&self) -> &str {
        match self {
            OutputItem::Message { id, .. }
            | OutputItem::Reasoning { id, .. }
            | OutputItem::FunctionCall { id, .. }
            | OutputItem::CustomToolCall { id, .. }
            | OutputItem::ImageGenerationCall { id, .. } => id,
        }
    }

    /// Sets the status of the item, where items of its type have one.
    pub(super) fn set_status(&mut self, new: &'static str) {
        match self {
            OutputItem::Message { status, .. }
            | OutputItem::FunctionCall { status, .. }
            | OutputItem::CustomToolCall { status, .. } => *status = new,
            // An image is never incomplete.
            OutputItem::ImageGenerationCall { status, .. } => *status = COMPLETED,
            OutputItem::Reasoning { .. } => {}
        }
    }
}

/// One part of a message's content as it is encoded.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputContent<'a> {
    OutputText {
        text: Text<'a>,
        annotations: Vec<UrlCitationAnnotation<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        logprobs: Vec<TokenLogprob<'a>>,
    },
    Refusal {
        refusal: Text<'a>,
    },
}

impl OutputContent<'_> {
    /// An empty text.
    pub(super) const fn text() -> OutputContent<'static> {
        OutputContent::OutputText {
            text: Text::Borrowed(""),
            annotations: Vec::new(),
            logprobs: Vec::new(),
        }
    }

    /// An empty refusal.
    pub(super) const fn refusal() -> OutputContent<'static> {
        OutputContent::Refusal {
            refusal: Text::Borrowed(""),
        }
    }
}

/// One part of a summary as it is encoded.
#[derive(Serialize)]
#[serde(tag = "type", rename = "summary_text")]
pub(super) struct SummaryText<'a> {
    pub text: Text<'a>,
}

/// The arguments of a function that is called without any: clients parse them as JSON.
pub(super) const NO_ARGUMENTS: &str = "{}";
