//! What a translated stream may hold, and what it becomes.

use super::*;
use crate::formats::Framing;
use crate::model::TranslationState;

fn options() -> ResponseOptions {
    ResponseOptions {
        model: "m".to_owned(),
        stream: true,
        framing: Framing::Sse,
        include_usage: false,
        request_id: "req_1".to_owned(),
        created_at: 1,
        translation_state: TranslationState::default(),
    }
}

#[test]
fn what_a_stream_may_hold_is_limited() {
    let text = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    let call = |at: u32, arguments: &str| {
        let function = format!(r#"{{"name":"f","arguments":"{arguments}"}}"#);
        let call = format!(r#"{{"index":{at},"id":"c{at}","function":{function}}}"#);
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{call}]}}}}]}}\n\n")
    };
    let two_calls = |length| call(0, "1") + &call(1, &"2".repeat(length));
    let choice = |at: u32| format!("data: {{\"choices\":[{{\"index\":{at},\"delta\":{{}}}}]}}\n\n");
    let candidate = |at: u32| format!("data: {{\"candidates\":[{{\"index\":{at}}}]}}\n\n");
    let too_large = Some("is larger than 4000 bytes (`server.body_limit`)");
    let too_many = Some("the upstream's choice 128 is over the limit of 128 choices");
    for (from, bytes, fault) in [
        (Format::Chat, text.repeat(10), None),
        (Format::Chat, text.repeat(100), too_large),
        (Format::Chat, two_calls(1000), None),
        // The second call waits for the end of the first.
        (Format::Chat, two_calls(5000), too_large),
        (Format::Chat, choice(127), None),
        (Format::Chat, choice(128), too_many),
        (Format::Native, candidate(127), None),
        (Format::Native, candidate(128), too_many),
    ] {
        let mut translator = StreamTranslator::new(from, Format::Messages, &options());
        let mut observer = ResponseObserver::default();
        let chunk = bytes.as_bytes();
        let translated = translator.translate_chunk(chunk, false, 4000, &mut observer, &mut None);
        let message = translated.map_or_else(|api_error| api_error.message.clone(), |()| "".into());
        let is_expected = fault.map_or(message.is_empty(), |fault| message.contains(fault));
        let length = chunk.len();
        assert!(is_expected, "{from:?} {length}: {message}");
        assert_eq!(observer.is_unread, fault.is_some(), "{from:?} {length}");
    }
}

#[test]
fn what_is_held_of_many_events_is_limited() {
    let long = "x".repeat(100);
    let chat = |delta: String| format!(r#"{{"choices":[{{"index":0,"delta":{{{delta}}}}}]}}"#);
    let call = |at: usize, arguments: &str| {
        let function = format!(r#"{{"name":"f","arguments":"{arguments}"}}"#);
        chat(format!(
            r#""tool_calls":[{{"index":{at},"id":"{long}{at}","function":{function}}}]"#
        ))
    };
    let text = |_| chat(format!(r#""content":"{long}""#));
    let native = |part: String| {
        format!(r#"{{"candidates":[{{"index":0,"content":{{"parts":[{part}]}}}}]}}"#)
    };
    type Events<'e> = &'e dyn Fn(usize) -> String;
    let waiting_calls: Events<'_> = &|at| call(at, if at == 0 { "1" } else { "" });
    let complete_calls: Events<'_> = &|at| call(at, "{}");
    let cited: Events<'_> = &|at| match at {
        0 => r#"{"type":"message_start","message":{"id":"m"}}"#.to_owned(),
        1 => r#"{"type":"content_block_start","content_block":{"type":"text"}}"#.to_owned(),
        _ => {
            let kind = "web_search_result_location";
            let citation = format!(r#"{{"type":"{kind}","url":"http://{long}{at}"}}"#);
            let delta = format!(r#"{{"type":"citations_delta","citation":{citation}}}"#);
            format!(r#"{{"type":"content_block_delta","delta":{delta}}}"#)
        }
    };
    let open_call = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","call_id":"c","name":"f"}}"#;
    let images: Events<'_> = &|at| match at {
        0 => open_call.to_owned(),
        _ => {
            let image =
                format!(r#"{{"type":"image_generation_call","id":"i{at}","result":"{long}"}}"#);
            format!(r#"{{"type":"response.output_item.done","output_index":{at},"item":{image}}}"#)
        }
    };
    let partial: Events<'_> = &|at| {
        let name = if at == 0 { r#""name":"f","# } else { "" };
        let argument = format!(r#"{{"jsonPath":"$.a","stringValue":"{long}"}}"#);
        native(format!(
            r#"{{"functionCall":{{{name}"partialArgs":[{argument}],"willContinue":true}}}}"#
        ))
    };
    let native_text: Events<'_> = &|_| native(format!(r#"{{"text":"{long}"}}"#));
    let arguments: Events<'_> = &|_| call(0, "1");
    let reasoning: Events<'_> = &|_| native(format!(r#"{{"text":"{long}","thought":true}}"#));
    let (limit, most) = (20_000, 400);
    for (from, to, events, is_limited) in [
        (Format::Chat, Format::Messages, waiting_calls, true),
        (Format::Chat, Format::Messages, complete_calls, true),
        (Format::Messages, Format::Chat, cited, true),
        (Format::Responses, Format::Chat, images, true),
        (Format::Native, Format::Chat, partial, true),
        (Format::Native, Format::Messages, native_text, true),
        (Format::Chat, Format::Responses, &text, true),
        (Format::Chat, Format::Native, &text, true),
        (Format::Native, Format::Chat, reasoning, true),
        (Format::Chat, Format::Messages, &text, false),
        (Format::Chat, Format::Messages, arguments, false),
        (
            Format::Messages,
            Format::Native,
            &|at| cited(at.min(1)),
            false,
        ),
    ] {
        let mut translator = StreamTranslator::new(from, to, &options());
        let mut observer = ResponseObserver::default();
        let failed = (0..most).find_map(|at| {
            let event = format!("data: {}\n\n", events(at));
            let event = event.as_bytes();
            let translated =
                translator.translate_chunk(event, false, limit, &mut observer, &mut None);
            translated
                .err()
                .map(|api_error| (at, api_error.message.clone()))
        });
        let sample = events(2);
        match failed {
            Some((at, message)) => {
                assert!(
                    message.contains("is larger than 20000 bytes"),
                    "{message}: {sample}"
                );
                assert!(is_limited && at > 10, "{from:?} -> {to:?}: {at}: {sample}");
            }
            None => assert!(!is_limited, "{from:?} -> {to:?}: {sample}"),
        }
    }
}

#[test]
fn a_response_may_have_thousands_of_items() {
    let item = |at: usize| {
        let call = format!(
            r#"{{"type":"function_call","call_id":"c{at}","name":"f","arguments":"{{}}"}}"#
        );
        format!(
            "data: {{\"type\":\"response.output_item.done\",\"output_index\":{at},\"item\":{call}}}\n\n"
        )
    };
    let mut bytes: String = (0..5000).map(item).collect();
    bytes += "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n";
    let sent = stream(
        Format::Responses,
        Format::Messages,
        bytes.as_bytes(),
        &options(),
    );
    let sent = String::from_utf8_lossy(&sent);
    assert_eq!(sent.matches("\"tool_use\",\"id\"").count(), 5000);
    assert!(sent.contains("message_stop"));
}

#[test]
fn the_usage_of_an_error_event_is_counted() {
    let failed = r#"{"type":"response.failed","response":{"id":"resp_1","status":"failed",
        "error":{"code":"server_error","message":"Gone."},"usage":{"input_tokens":5,
        "output_tokens":2,"total_tokens":7}}}"#;
    let error =
        r#"{"error":{"message":"Gone."},"usage":{"prompt_tokens":5,"completion_tokens":2}}"#;
    for (from, data) in [(Format::Responses, failed), (Format::Chat, error)] {
        let data = data.replace('\n', "");
        let mut translator = StreamTranslator::new(from, Format::Messages, &options());
        let mut observer = ResponseObserver::default();
        let bytes = format!("data: {data}\n\n");
        let translated =
            translator.translate_chunk(bytes.as_bytes(), true, 9999, &mut observer, &mut None);
        assert!(translated.is_err());
        let usage = observer.usage.expect("usage");
        assert_eq!((usage.input, usage.output), (5, 2), "{data}");
    }
}

#[test]
fn split_surrogate_pairs_and_empty_events_do_not_break_a_stream() {
    let chunk = |rest: &str| format!("data: {{\"choices\":[{{\"index\":0,{rest}}}]}}\n\ndata:\n\n");
    let bytes = [
        chunk(r#""delta":{"content":"\ud83d"}"#),
        chunk(r#""delta":{"content":"\ude00"}"#),
        chunk(r#""delta":{},"finish_reason":"stop""#),
    ];
    let bytes = bytes.concat();
    let sent = stream(Format::Chat, Format::Messages, bytes.as_bytes(), &options());
    let sent = String::from_utf8_lossy(&sent);
    assert!(
        sent.contains("😀") && sent.contains("message_stop"),
        "{sent}"
    );
}
