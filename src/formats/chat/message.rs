//! The message of a choice, or a delta of it, decoded into fragments.

use smallvec::SmallVec;

use super::annotations::{CompletionAnnotation, decode_annotation};
use super::calls::{
    CallFragment, CompletionFunction, CompletionToolCall, decode_function, decode_tool_call,
};
use super::fragment::ChatFragment;
use super::output_media::{
    CompletionAudio, CompletionImage, CompletionImageUrl, decode_audio, decode_image,
};
use super::reasoning::{CompletionReasoningDetail, decode_reasoning_detail};
use super::text::non_empty;
use crate::json::{DecodeResult, FromJson, JsonReader, from_json};
use crate::model::Text;

from_json! {
    /// The `message` of a response or the `delta` of a chunk.
    pub(super) struct CompletionMessage<'a> {
        "content" => pub(super) content: Option<CompletionContent<'a>>,
        "refusal" => pub(super) refusal: Option<Text<'a>>,
        "reasoning_content" => pub(super) reasoning_content: Option<Text<'a>>,
        "reasoning" => pub(super) reasoning: Option<Text<'a>>,
        "reasoning_details" => pub(super) reasoning_details: Option<Vec<CompletionReasoningDetail<'a>>>,
        "tool_calls" => pub(super) tool_calls: Option<SmallVec<[CompletionToolCall<'a>; 1]>>,
        "function_call" => pub(super) function_call: Option<Box<CompletionFunction<'a>>>,
        "annotations" => pub(super) annotations: Option<Vec<CompletionAnnotation<'a>>>,
        "images" => pub(super) images: Option<Vec<CompletionImage<'a>>>,
        "audio" => pub(super) audio: Option<Box<CompletionAudio<'a>>>,
    }
}

/// The `content` of a message: a string, or an array of parts in the dialect of Mistral.
pub(super) enum CompletionContent<'a> {
    Text(Text<'a>),
    Parts(Vec<CompletionContentPart<'a>>),
}

from_json! {
    /// One part of a `content` array.
    pub(super) struct CompletionContentPart<'a> {
        "text" => pub(super) text: Option<Text<'a>>,
        "thinking" => pub(super) thinking: Option<CompletionContent<'a>>,
        "refusal" => pub(super) refusal: Option<Text<'a>>,
        "image_url" => pub(super) image_url: Option<CompletionImageUrl<'a>>,
    }
}

impl Default for CompletionContent<'_> {
    fn default() -> Self {
        CompletionContent::Text(Text::default())
    }
}

impl<'a> FromJson<'a> for CompletionContent<'a> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        *self = match reader.peek() {
            Some(b'"') => CompletionContent::Text(reader.text()?),
            Some(b'[') => {
                let mut parts = Vec::new();
                parts.decode(reader)?;
                CompletionContent::Parts(parts)
            }
            _ => return Err(reader.stop("a string or a list of parts")),
        };
        Ok(())
    }
}

impl<'a> CompletionMessage<'a> {
    /// Decodes reasoning, text, images, audio and calls; the format keeps no order among them.
    /// `has_plain_reasoning` keeps from chunk to chunk that reasoning comes in a plain text field.
    /// `audio_type` is the media type of audio, which the wire does not name.
    pub(super) fn decode_fragments(
        &mut self,
        has_plain_reasoning: &mut bool,
        audio_type: &'static str,
        emit: &mut dyn FnMut(ChatFragment<'a>),
    ) {
        let details = self.reasoning_details.take().unwrap_or_default();
        // Details repeat the plain text, at once or as a whole at the end, and hold more than it.
        let is_detailed =
            !*has_plain_reasoning && details.iter().any(CompletionReasoningDetail::has_text);
        let plain_text = [self.reasoning_content.take(), self.reasoning.take()]
            .into_iter()
            .find_map(non_empty);
        if let Some(text) = plain_text
            && !is_detailed
        {
            *has_plain_reasoning = true;
            emit(ChatFragment::Reasoning(text));
        }
        for detail in details {
            decode_reasoning_detail(detail, is_detailed, emit);
        }
        match self.content.take() {
            Some(CompletionContent::Text(text)) if !text.is_empty() => {
                emit(ChatFragment::Text(text))
            }
            Some(CompletionContent::Parts(parts)) => {
                for part in parts {
                    decode_content_part(part, emit);
                }
            }
            Some(CompletionContent::Text(_)) | None => {}
        }
        if let Some(text) = non_empty(self.refusal.take()) {
            emit(ChatFragment::Refusal(text));
        }
        for image in self.images.take().unwrap_or_default() {
            image
                .image_url
                .map(decode_image)
                .map(ChatFragment::Media)
                .map(&mut *emit);
        }
        if let Some(audio) = self.audio.take() {
            decode_audio(*audio, audio_type, emit);
        }
        let mut add = |call: CallFragment<'a>| {
            if call.is_filled() {
                emit(ChatFragment::Call(call));
            }
        };
        for call in self.tool_calls.iter_mut().flatten() {
            add(decode_tool_call(call));
        }
        if let Some(called) = &mut self.function_call {
            add(decode_function(called));
        }
        let annotations = self.annotations.take().unwrap_or_default();
        for citation in annotations.into_iter().filter_map(decode_annotation) {
            emit(ChatFragment::Citation(citation));
        }
    }
}

fn decode_content_part<'a>(
    part: CompletionContentPart<'a>,
    emit: &mut dyn FnMut(ChatFragment<'a>),
) {
    let thinking = part.thinking.map(into_text);
    if let Some(text) = thinking.filter(|text| !text.is_empty()) {
        emit(ChatFragment::Reasoning(text));
    }
    if let Some(text) = non_empty(part.text) {
        emit(ChatFragment::Text(text));
    }
    if let Some(text) = non_empty(part.refusal) {
        emit(ChatFragment::Refusal(text));
    }
    if let Some(image_url) = part.image_url {
        emit(ChatFragment::Media(decode_image(image_url)));
    }
}

/// The text of all parts, joined.
fn into_text(content: CompletionContent<'_>) -> Text<'_> {
    match content {
        CompletionContent::Text(text) => text,
        CompletionContent::Parts(parts) => {
            let mut texts = parts.into_iter().filter_map(|part| non_empty(part.text));
            let mut whole = texts.next().unwrap_or_default();
            for more in texts {
                whole.to_mut().push_str(&more);
            }
            whole
        }
    }
}
