//! JSON responses.

use super::Responses;
use super::annotations::shifted;
use super::image_generation::image_data;
use super::output_items::{self, DecodedItem, MessageContent, NO_ARGUMENTS, OutputContent};
use super::response_builder::ResponseBuilder;
use super::response_object::{ReceivedResponse, ResponseObject};
use super::status::{OutputFlags, encode_finish};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::{ResponseCodec, ResponseOptions, chat, decode_response_body, missing_content};
use crate::model::{
    ApiError, Arguments, Call, Choice, Citation, FieldLocation, Finish, Json, Logprob, Losses,
    Part, PartKind, Response, Text, ToolKind, borrowed,
};

impl ResponseCodec for Responses {
    fn decode_response<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Response<'a>, ApiError> {
        let object: ReceivedResponse<'a> = decode_response_body(body)?;
        if object.error.is_some() && object.output.is_none() {
            return Err(chat::decode_error(200, body));
        }
        if object.output.is_none() {
            return Err(missing_content());
        }
        let mut decoder = OutputDecoder::default();
        for (number, item) in object.items().into_iter().enumerate() {
            decoder.add_item(number, item, losses);
        }
        let data = std::str::from_utf8(body).unwrap_or_default();
        let finish = object.finish(decoder.flags, data)?;
        // Some upstreams report an error beside a status of success.
        if object.error.is_some() {
            return Err(chat::decode_error(200, body));
        }
        if finish == Finish::Other {
            losses.approximated(FieldLocation::Path("incomplete_details.reason".into()));
        }
        Ok(Response {
            created: object.created(),
            usage: object.usage(),
            id: object.id.unwrap_or_default(),
            model: object.model.unwrap_or_default(),
            choices: vec![Choice {
                parts: decoder.parts,
                citations: decoder.citations,
                logprobs: decoder.logprobs,
                finish,
            }],
        })
    }

    /// Encodes the body of a JSON response: the first choice only, as the format has no others.
    fn encode_response(
        &self,
        response: &Response<'_>,
        options: &ResponseOptions,
        losses: &mut Losses,
    ) -> Vec<u8> {
        report_losses(response, losses);
        let mut builder =
            ResponseBuilder::new(&response.id, &response.model, response.created, options);
        let finish = response.choices.first().map(|choice| {
            add_choice(choice, &mut builder);
            &choice.finish
        });
        let (status, incomplete_details) = encode_finish(finish.unwrap_or(&Finish::Other));
        builder.close(status);
        let object = ResponseObject {
            incomplete_details,
            usage: response.usage.map(Into::into),
            ..builder.response(status, &builder.items)
        };
        to_json_bytes(&object, response.size())
    }
}

/// Collects the parts of a response item by item.
#[derive(Default)]
struct OutputDecoder<'a> {
    parts: Vec<Part<'a>>,
    citations: Vec<Citation<'a>>,
    logprobs: Vec<Logprob<'a>>,
    flags: OutputFlags,
    /// Length of all texts so far.
    characters: u64,
}

impl<'a> OutputDecoder<'a> {
    fn add_item(&mut self, number: usize, item: Json<'a>, losses: &mut Losses) {
        let (_, item) = output_items::decode(item);
        match item {
            DecodedItem::Message(content) => {
                for (at, content) in content.into_iter().enumerate() {
                    self.add_content(content, (number, at), losses);
                }
            }
            DecodedItem::Reasoning { text, signature } => {
                if signature.is_some() || !text.is_empty() {
                    self.add(PartKind::Reasoning { text, signature });
                }
            }
            DecodedItem::Call(call) => {
                self.flags.has_call = true;
                self.add(PartKind::Call(call));
            }
            DecodedItem::Image(media) => self.add(PartKind::Media(media)),
            DecodedItem::Hosted => {
                losses.dropped(FieldLocation::Path(format!("output[{number}]").into()))
            }
        }
    }

    fn add(&mut self, kind: PartKind<'a>) {
        self.parts.push(Part { kind, at: None });
    }

    fn add_content(
        &mut self,
        content: MessageContent<'a>,
        at: (usize, usize),
        losses: &mut Losses,
    ) {
        let (text, citations, logprobs) = match content {
            MessageContent::Refusal(text) if text.is_empty() => return,
            MessageContent::Refusal(text) => {
                self.flags.has_refusal = true;
                return self.add(PartKind::Refusal(text));
            }
            MessageContent::Text {
                text,
                citations,
                logprobs,
            } => (text, citations, logprobs),
        };
        for citation in citations {
            match citation {
                Some(citation) => self.citations.push(shifted(citation, self.characters)),
                None => {
                    let path = format!("output[{}].content[{}].annotations", at.0, at.1);
                    losses.dropped(FieldLocation::Path(path.into()));
                }
            }
        }
        self.logprobs.extend(logprobs);
        self.characters += text.chars().count() as u64;
        if !text.is_empty() {
            self.add(PartKind::Text(text));
        }
    }
}

/// Reports what of a response the format has no room for.
fn report_losses(response: &Response<'_>, losses: &mut Losses) {
    let location = |path: &'static str| FieldLocation::Path(path.into());
    if response.choices.len() > 1 {
        losses.dropped(location("choices"));
    }
    if response.usage.is_some_and(|usage| usage.has_audio()) {
        losses.dropped(location("usage: tokens of audio"));
    }
    let Some(choice) = response.choices.first() else {
        return;
    };
    match choice.finish {
        Finish::StopSequence(Some(_)) => losses.dropped(location("stop_sequence")),
        Finish::Paused | Finish::ContextFull => losses.approximated(location("stop_reason")),
        _ => {}
    }
    let is_unsupported = |part: &Part<'_>| match &part.kind {
        PartKind::Media(media) => image_data(media).is_none(),
        _ => false,
    };
    if choice.parts.iter().any(is_unsupported) {
        losses.dropped(location("media"));
    }
}

fn add_choice<'r>(choice: &'r Choice<'_>, builder: &mut ResponseBuilder<'r>) {
    for part in &choice.parts {
        add_part(&part.kind, builder);
    }
    for citation in &choice.citations {
        builder.cite(Citation {
            url: borrowed(&citation.url),
            title: citation.title.as_ref().map(borrowed),
            ..*citation
        });
    }
    for logprob in &choice.logprobs {
        let top = logprob.top.iter();
        builder.add_logprob(Logprob {
            token: borrowed(&logprob.token),
            logprob: logprob.logprob,
            top: top
                .map(|(token, value)| (borrowed(token), *value))
                .collect(),
        });
    }
    if let Finish::Filtered(Some(text)) = &choice.finish {
        add_content(OutputContent::refusal(), text, builder);
    }
}

fn add_part<'r>(part: &'r PartKind<'_>, builder: &mut ResponseBuilder<'r>) {
    match part {
        PartKind::Text(text) => add_content(OutputContent::text(), text, builder),
        PartKind::Refusal(text) => add_content(OutputContent::refusal(), text, builder),
        PartKind::Reasoning { text, signature } => {
            if text.is_empty() && signature.is_none() {
                return;
            }
            builder.begin_reasoning(signature.as_ref());
            if !text.is_empty() {
                builder.begin_summary();
                builder.append(borrowed(text));
            }
            if let Some(signature) = signature {
                builder.set_signature(signature);
            }
        }
        PartKind::Call(call) => add_call(call, builder),
        PartKind::Media(media) => {
            if let Some(data) = image_data(media) {
                builder.begin_image();
                builder.append(data.into());
            }
        }
        PartKind::Result(_) => {}
    }
}

fn add_content<'r>(
    fresh: OutputContent<'r>,
    text: &'r Text<'_>,
    builder: &mut ResponseBuilder<'r>,
) {
    if text.is_empty() {
        return;
    }
    if !builder.in_message() {
        builder.begin_message();
    }
    if !builder.continues(&fresh) {
        builder.begin_content(fresh);
    }
    builder.append(borrowed(text));
}

/// Adds a call; its signature stands before it, as the reasoning that led to it.
fn add_call<'r>(call: &'r Call<'_>, builder: &mut ResponseBuilder<'r>) {
    if let Some(signature) = &call.signature {
        builder.begin_reasoning(Some(signature));
        builder.set_signature(signature);
    }
    builder.begin_call(
        call.id.as_ref().map(borrowed),
        borrowed(&call.name),
        call.kind,
    );
    let arguments = match &call.arguments {
        Arguments::Text(text) => borrowed(text),
        Arguments::Tree(_) => call.arguments.to_text().into_owned().into(),
    };
    if arguments.is_empty() && call.kind == ToolKind::Function {
        builder.append(NO_ARGUMENTS.into());
    } else {
        builder.append(arguments);
    }
}
