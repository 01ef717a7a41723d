//! What a message or a delta says, one thing after the other, whatever the dialect.

use std::borrow::Cow;

use super::reply_in::{
    Address, Annotation, Audio, Called, Content, ContentPart, ReasoningDetail, Said, ToolCall,
};
use crate::formats::few::Few;
use crate::model::{
    Arguments, Citation, Json, Media, Signature, Source, Text, ToolKind, split_data_url,
};

pub(super) enum Bit<'a> {
    Reasoning(Text<'a>),
    /// Of the thought before it.
    Signature(Signature<'a>),
    CallSeal {
        id: Text<'a>,
        signature: Signature<'a>,
    },
    /// A proof whose issuer nobody knows: it can go nowhere.
    ForeignSeal,
    Text(Text<'a>),
    Refusal(Text<'a>),
    Media(Media<'a>),
    Call(CallBit<'a>),
    Citation(Citation<'a>),
}

/// One call, or a piece of it.
pub(super) struct CallBit<'a> {
    pub(super) index: Option<u32>,
    pub(super) id: Option<Text<'a>>,
    pub(super) name: Text<'a>,
    pub(super) arguments: Arguments<'a>,
    pub(super) kind: ToolKind,
}

impl CallBit<'_> {
    /// One backend calls nothing by no name in every answer.
    fn says_something(&self) -> bool {
        let is_silent = matches!(&self.arguments, Arguments::Text(text) if text.is_empty());
        self.id.is_some() || !self.name.is_empty() || !is_silent
    }
}

impl<'a> Said<'a> {
    /// Thoughts, words, images, calls: the format itself keeps no order among them.
    /// `has_plain` remembers from piece to piece that thoughts come in a plain field.
    /// `sound`: the type that sound is of, which the wire does not say.
    pub(super) fn walk(
        &mut self,
        has_plain: &mut bool,
        sound: &'static str,
        each: &mut dyn FnMut(Bit<'a>),
    ) {
        let details = self.reasoning_details.take().unwrap_or_default();
        // Details repeat the plain text, at once or all of it at the end; they know more.
        let is_detailed = !*has_plain && details.iter().any(ReasoningDetail::has_text);
        let plain = [self.reasoning_content.take(), self.reasoning.take()]
            .into_iter()
            .find_map(filled);
        if let Some(text) = plain
            && !is_detailed
        {
            *has_plain = true;
            each(Bit::Reasoning(text));
        }
        for detail in details {
            walk_detail(detail, is_detailed, each);
        }
        match self.content.take() {
            Some(Content::Text(text)) if !text.is_empty() => each(Bit::Text(text)),
            Some(Content::Parts(parts)) => {
                for part in parts {
                    walk_part(part, each);
                }
            }
            Some(Content::Text(_)) | None => {}
        }
        if let Some(text) = filled(self.refusal.take()) {
            each(Bit::Refusal(text));
        }
        for image in self.images.take().unwrap_or_default() {
            image.image_url.map(picture).map(Bit::Media).map(&mut *each);
        }
        if let Some(audio) = self.audio.take() {
            walk_audio(*audio, sound, each);
        }
        let mut add = |call: CallBit<'a>| {
            if call.says_something() {
                each(Bit::Call(call));
            }
        };
        for call in self.tool_calls.iter_mut().flat_map(Few::iter_mut) {
            add(read_call(call));
        }
        if let Some(called) = &mut self.function_call {
            add(read_called(called));
        }
        let annotations = self.annotations.take().unwrap_or_default();
        for citation in annotations.into_iter().filter_map(read_citation) {
            each(Bit::Citation(citation));
        }
    }
}

/// Text that is there and says something.
fn filled(text: Option<Text<'_>>) -> Option<Text<'_>> {
    text.filter(|text| !text.is_empty())
}

impl ReasoningDetail<'_> {
    fn has_text(&self) -> bool {
        let texts = [&self.text, &self.summary];
        texts.into_iter().flatten().any(|text| !text.is_empty())
    }
}

fn walk_detail<'a>(detail: ReasoningDetail<'a>, with_text: bool, each: &mut dyn FnMut(Bit<'a>)) {
    if let Some(text) = filled(detail.text).or_else(|| filled(detail.summary))
        && with_text
    {
        each(Bit::Reasoning(text));
    }
    let Some(wrapped) = filled(detail.signature).or_else(|| filled(detail.data)) else {
        return;
    };
    each(
        match (Signature::unwrap_text(&wrapped), filled(detail.id)) {
            (None, _) => Bit::ForeignSeal,
            (Some(signature), Some(id)) => Bit::CallSeal { id, signature },
            (Some(signature), None) => Bit::Signature(signature),
        },
    );
}

fn walk_part<'a>(part: ContentPart<'a>, each: &mut dyn FnMut(Bit<'a>)) {
    let thinking = part.thinking.map(into_text);
    if let Some(text) = thinking.filter(|text| !text.is_empty()) {
        each(Bit::Reasoning(text));
    }
    if let Some(text) = filled(part.text) {
        each(Bit::Text(text));
    }
    if let Some(text) = filled(part.refusal) {
        each(Bit::Refusal(text));
    }
    if let Some(address) = part.image_url {
        each(Bit::Media(picture(address)));
    }
}

/// What a whole reply is asked for in, and what comes in pieces.
pub(super) const WHOLE_SOUND: &str = "audio/wav";
pub(super) const SOUND_IN_PIECES: &str = "audio/pcm;rate=24000";

/// The words stand for the sound where a client cannot hear it.
fn walk_audio<'a>(audio: Audio<'a>, mime: &'static str, each: &mut dyn FnMut(Bit<'a>)) {
    if let Some(text) = filled(audio.transcript) {
        each(Bit::Text(text));
    }
    if let Some(data) = filled(audio.data) {
        each(Bit::Media(Media {
            mime: mime.into(),
            source: Source::Base64(data),
            name: None,
            detail: None,
        }));
    }
}

fn into_text(content: Content<'_>) -> Text<'_> {
    match content {
        Content::Text(text) => text,
        Content::Parts(parts) => {
            let mut texts = parts.into_iter().filter_map(|part| filled(part.text));
            let mut whole = texts.next().unwrap_or_default();
            for more in texts {
                whole.to_mut().push_str(&more);
            }
            whole
        }
    }
}

fn picture(address: Address<'_>) -> Media<'_> {
    let url = address.url;
    let split = match &url {
        Cow::Borrowed(url) => split_data_url(url).map(|(mime, data)| (mime.into(), data.into())),
        Cow::Owned(url) => {
            split_data_url(url).map(|(mime, data)| (mime.to_owned().into(), data.to_owned().into()))
        }
    };
    let (mime, source) = match split {
        Some((mime, data)) => (mime, Source::Base64(data)),
        None => ("image/*".into(), Source::Url(url)),
    };
    Media {
        mime,
        source,
        name: None,
        detail: None,
    }
}

fn read_call<'a>(call: &mut ToolCall<'a>) -> CallBit<'a> {
    let (called, kind) = match (&mut call.function, &mut call.custom) {
        (None, Some(custom)) => (&mut **custom, ToolKind::Custom),
        (function, _) => (function.get_or_insert_default(), ToolKind::Function),
    };
    CallBit {
        index: call.index,
        id: filled(call.id.take()),
        kind,
        ..read_called(called)
    }
}

fn read_called<'a>(called: &mut Called<'a>) -> CallBit<'a> {
    CallBit {
        index: None,
        id: None,
        name: filled(called.name.take()).unwrap_or_default(),
        arguments: match called.arguments.take() {
            None | Some(Json::Null) => Arguments::Text(Text::default()),
            Some(Json::Str(text)) => Arguments::Text(text),
            Some(tree) => Arguments::Tree(tree),
        },
        kind: ToolKind::Function,
    }
}

fn read_citation(annotation: Annotation<'_>) -> Option<Citation<'_>> {
    let cited = annotation.url_citation?;
    Some(Citation {
        url: cited.url?,
        title: filled(cited.title),
        start: cited.start_index.unwrap_or(0),
        end: cited.end_index.unwrap_or(0),
    })
}
