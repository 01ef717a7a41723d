//! Each format decodes what it has encoded, whole or as a stream.

use omniglot::formats::{Framing, ResponseOptions};
use omniglot::model::{Finish, Fold, Format, Losses, PartKind, Response, Source, Usage};
use omniglot::sse::{SseFrames, SseWriter};
use proptest::prelude::*;
use serde_json::Value;

use crate::many;
use crate::random_responses::sayable;

pub fn response_options(stream: bool) -> ResponseOptions {
    ResponseOptions {
        model: "m".to_owned(),
        stream,
        framing: Framing::Sse,
        include_usage: true,
        request_id: "req_1".to_owned(),
        created_at: 1_760_000_000,
        translation_state: omniglot::model::TranslationState::default(),
    }
}

/// What must survive of a choice; formats may join words that stand apart.
#[derive(Debug, PartialEq)]
struct ComparedContent {
    words: String,
    refusal: String,
    thoughts: String,
    /// Names, ids and arguments.
    calls: Vec<(String, String, Value)>,
    /// Types and sources.
    media: Vec<(String, Source<'static>)>,
    finish: Finish<'static>,
}

fn compared_content(response: &Response<'_>) -> (Vec<ComparedContent>, Option<Usage>) {
    let choices = response.choices.iter().map(|choice| {
        let mut kept = ComparedContent {
            words: String::new(),
            refusal: String::new(),
            thoughts: String::new(),
            calls: Vec::new(),
            media: Vec::new(),
            finish: choice.finish.clone().into_owned(),
        };
        for part in &choice.parts {
            match &part.kind {
                PartKind::Text(text) => kept.words.push_str(text),
                PartKind::Refusal(text) => kept.refusal.push_str(text),
                PartKind::Reasoning { text, .. } => kept.thoughts.push_str(text),
                PartKind::Call(call) => kept.calls.push((
                    call.name.to_string(),
                    call.id.as_deref().unwrap_or_default().to_owned(),
                    serde_json::from_str(&call.arguments.to_text()).expect("JSON arguments"),
                )),
                PartKind::Media(media) => {
                    let media = media.clone().into_owned();
                    kept.media.push((media.mime.into_owned(), media.source));
                }
                PartKind::Result(_) => {}
            }
        }
        kept
    });
    (choices.collect(), response.usage)
}

fn streamed(format: Format, response: &Response<'_>) -> Response<'static> {
    let mut encoder = format.codec().stream_encoder(&response_options(true));
    let mut out = SseWriter::default();
    response.unfold(&mut |event| encoder.encode_event(event, &mut out));
    let mut decoder = format.codec().stream_decoder();
    let mut fold = Fold::default();
    SseFrames::default().push(&out.take(), |frame| {
        let data = frame.data.expect("every event has a payload");
        let read = decoder.decode_event(&data, &mut |event| fold.push(event));
        read.unwrap_or_else(|api_error| panic!("{data}: {api_error:?}"));
    });
    decoder
        .finish(&mut |event| fold.push(event))
        .expect("a proper end");
    fold.finish()
}

fn check(format: Format, response: &Response<'_>) -> Result<(), TestCaseError> {
    let codec = format.codec();
    let before = compared_content(response);
    let body = codec.encode_response(response, &response_options(false), &mut Losses::default());
    let again = codec.decode_response(&body, &mut Losses::default());
    let again = again.map_err(|api_error| TestCaseError::fail(format!("{api_error:?}")))?;
    prop_assert_eq!(
        &compared_content(&again),
        &before,
        "{}",
        String::from_utf8_lossy(&body)
    );
    prop_assert_eq!(
        &compared_content(&streamed(format, response)),
        &before,
        "in a stream"
    );
    Ok(())
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn chat_decodes_what_it_encoded(response in sayable(Format::Chat)) {
        check(Format::Chat, &response)?;
    }

    #[test]
    fn messages_decodes_what_it_encoded(response in sayable(Format::Messages)) {
        check(Format::Messages, &response)?;
    }

    #[test]
    fn native_decodes_what_it_encoded(response in sayable(Format::Native)) {
        check(Format::Native, &response)?;
    }

    #[test]
    fn responses_decodes_what_it_encoded(response in sayable(Format::Responses)) {
        check(Format::Responses, &response)?;
    }
}
