//! Counts that are partial or cannot be read: what a response is measured as, whatever the formats and however it comes.

use super::*;
use crate::formats::Framing;
use crate::model::TranslationState;

/// A text of so many tokens.
const TOKENS: u64 = 100;

fn text() -> String {
    "aaaa".repeat(TOKENS as usize)
}

/// The input and the output of a response, and whether some of it is an estimate. The request has 77 tokens of input.
fn measured(client: Format, upstream: Format, stream: bool, body: &str) -> (u64, u64, bool) {
    let operation = match stream {
        true => Operation::Stream(Framing::Sse),
        false => Operation::Generate,
    };
    let summary = RequestSummary::new(Format::Native.codec(), operation, Some("m"), b"{}");
    let options = ResponseOptions {
        model: "m".to_owned(),
        stream,
        framing: Framing::Sse,
        include_usage: true,
        request_id: "req_1".to_owned(),
        created_at: 1,
        translation_state: TranslationState::default(),
    };
    let mime = match stream {
        true => "text/event-stream",
        false => "application/json",
    };
    let summary = summary.expect("a request");
    let translator = ResponseTranslator::new(client, upstream, &summary, options, mime, usize::MAX);
    let mut translator = translator.expect("a response of the upstream's format");
    // A stream that breaks off ends in an error.
    let _ = translator.translate_chunk(&mut Some(body.to_owned().into()), true);
    let MeasuredUsage { usage, estimated } = translator.usage(|| 77);
    (usage.input, usage.output, estimated)
}

/// Measures a response in passthrough and in translation, which must agree.
fn measured_everywhere(upstream: Format, stream: bool, body: &str) -> (u64, u64, bool) {
    let other = match upstream {
        Format::Chat => Format::Messages,
        _ => Format::Chat,
    };
    let passed = measured(upstream, upstream, stream, body);
    let translated = measured(other, upstream, stream, body);
    assert_eq!(passed, translated, "{upstream:?} {body}");
    passed
}

fn events(events: &[String]) -> String {
    let event = |event: &String| format!("data: {event}\n\n");
    events.iter().map(event).collect()
}

fn chat_chunk(delta: &str, finish: &str, usage: &str) -> String {
    format!(
        r#"{{"id":"c","choices":[{{"index":0,"delta":{{{delta}}},"finish_reason":{finish}}}]{usage}}}"#
    )
}

fn chat_usage(usage: &str) -> String {
    format!(r#"{{"id":"c","choices":[],"usage":{{{usage}}}}}"#)
}

fn content() -> String {
    format!(r#""content":"{}""#, text())
}

fn chat_stream(last: &[String]) -> String {
    let mut all = vec![
        chat_chunk(&content(), "null", ""),
        chat_chunk("", r#""stop""#, ""),
    ];
    all.extend_from_slice(last);
    all.push("[DONE]".to_owned());
    events(&all)
}

/// A stream of the messages format: the usage at its start and at its end.
fn messages_stream(start: &str, end: &str) -> String {
    let text = text();
    events(&[
        format!(
            r#"{{"type":"message_start","message":{{"id":"m","model":"m","role":"assistant","content":[],"usage":{{{start}}}}}}}"#
        ),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#
            .to_owned(),
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
        ),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
        format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"end_turn"}}{end}}}"#),
        r#"{"type":"message_stop"}"#.to_owned(),
    ])
}

fn native_chunk(text: &str, finish: &str, usage: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"text":"{text}"}}]}},"index":0{finish}}}],"usageMetadata":{{{usage}}}}}"#
    )
}

const STOP: &str = r#","finishReason":"STOP""#;

/// The names of the counts of input and output.
fn count_names(format: Format) -> (&'static str, &'static str) {
    match format {
        Format::Chat => ("prompt_tokens", "completion_tokens"),
        Format::Native => ("promptTokenCount", "candidatesTokenCount"),
        _ => ("input_tokens", "output_tokens"),
    }
}

/// A stream with content and these counts.
fn stream_with(format: Format, usage: &str) -> String {
    let text = text();
    match format {
        Format::Chat => chat_stream(&[chat_usage(usage)]),
        Format::Messages => messages_stream("", &format!(r#","usage":{{{usage}}}"#)),
        Format::Native => events(&[
            native_chunk(&text, "", r#""totalTokenCount":5"#),
            native_chunk("", STOP, usage),
        ]),
        _ => {
            let item = format!(
                r#"{{"type":"message","id":"i","role":"assistant","status":"completed","content":[{{"type":"output_text","text":"{text}","annotations":[]}}]}}"#
            );
            events(&[
                r#"{"type":"response.created","response":{"id":"r","model":"m","status":"in_progress","output":[]}}"#.to_owned(),
                r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"i","role":"assistant","content":[]}}"#.to_owned(),
                format!(
                    r#"{{"type":"response.output_text.delta","item_id":"i","output_index":0,"content_index":0,"delta":"{text}"}}"#
                ),
                format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#),
                format!(
                    r#"{{"type":"response.completed","response":{{"id":"r","model":"m","status":"completed","output":[{item}],"usage":{{{usage}}}}}}}"#
                ),
            ])
        }
    }
}

/// A JSON response with the same.
fn body_with(format: Format, usage: &str) -> String {
    let text = text();
    match format {
        Format::Chat => format!(
            r#"{{"id":"c","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"finish_reason":"stop"}}],"usage":{{{usage}}}}}"#
        ),
        Format::Messages => format!(
            r#"{{"id":"m","type":"message","role":"assistant","model":"m","content":[{{"type":"text","text":"{text}"}}],"stop_reason":"end_turn","usage":{{{usage}}}}}"#
        ),
        Format::Native => native_chunk(&text, STOP, usage),
        _ => format!(
            r#"{{"id":"r","model":"m","status":"completed","output":[{{"type":"message","id":"i","role":"assistant","status":"completed","content":[{{"type":"output_text","text":"{text}","annotations":[]}}]}}],"usage":{{{usage}}}}}"#
        ),
    }
}

#[test]
fn a_count_is_the_same_however_it_is_written_and_an_estimate_where_it_cannot_be_read() {
    let estimate = (5, TOKENS, true);
    for format in [
        Format::Chat,
        Format::Messages,
        Format::Native,
        Format::Responses,
    ] {
        let (input, output) = count_names(format);
        for (count, expected) in [
            ("8000", (5, 8000, false)),
            ("8000.5", (5, 8001, false)),
            ("8e3", (5, 8000, false)),
            (r#""8000""#, (5, 8000, false)),
            ("1000000000000000000000000000000", (5, u64::MAX, false)),
            ("-8000", estimate),
            ("null", estimate),
            (r#""many""#, estimate),
            ("0", estimate),
        ] {
            let usage = format!(r#""{input}":5,"{output}":{count}"#);
            let stream = stream_with(format, &usage);
            assert_eq!(
                measured_everywhere(format, true, &stream),
                expected,
                "{format:?} {count}"
            );
            let body = body_with(format, &usage);
            assert_eq!(
                measured_everywhere(format, false, &body),
                expected,
                "{format:?} {count}"
            );
        }
        for (usage, expected) in [
            (format!(r#""{input}":5"#), estimate),
            (String::new(), (77, TOKENS, true)),
            // What was sent is not free either.
            (format!(r#""{input}":-5,"{output}":9"#), (77, 9, true)),
        ] {
            let stream = stream_with(format, &usage);
            assert_eq!(
                measured_everywhere(format, true, &stream),
                expected,
                "{stream}"
            );
            let body = body_with(format, &usage);
            assert_eq!(
                measured_everywhere(format, false, &body),
                expected,
                "{body}"
            );
        }
    }
}

#[test]
fn content_after_the_last_count_of_a_whole_stream_is_estimated() {
    let text = text();
    let first = r#""promptTokenCount":5,"candidatesTokenCount":1"#;
    let input = r#""promptTokenCount":5"#;
    let chat = |usage: &str| {
        events(&[
            chat_chunk(
                r#""content":"a""#,
                "null",
                &format!(r#","usage":{{{usage}}}"#),
            ),
            chat_chunk(&content(), "null", ""),
            chat_chunk("", r#""stop""#, ""),
            "[DONE]".to_owned(),
        ])
    };
    for (format, stream, expected) in [
        (
            Format::Native,
            events(&[
                native_chunk("a", "", first),
                native_chunk(&text, "", input),
                native_chunk("", STOP, input),
            ]),
            (5, 1 + TOKENS, true),
        ),
        (
            Format::Native,
            events(&[native_chunk("a", "", first), native_chunk(&text, "", input)]),
            (5, 1 + TOKENS, true),
        ),
        (
            Format::Native,
            events(&[
                native_chunk(&text, "", input),
                native_chunk("", STOP, r#""promptTokenCount":5,"thoughtsTokenCount":9"#),
            ]),
            (5, 9 + TOKENS, true),
        ),
        (
            Format::Native,
            events(&[
                native_chunk(
                    &text,
                    "",
                    r#""promptTokenCount":5,"candidatesTokenCount":9"#,
                ),
                native_chunk("", STOP, ""),
            ]),
            (5, 9, false),
        ),
        (
            Format::Messages,
            messages_stream(r#""input_tokens":5,"output_tokens":1"#, ""),
            (5, 1 + TOKENS, true),
        ),
        (
            Format::Messages,
            messages_stream(r#""input_tokens":5,"output_tokens":1"#, r#","usage":{}"#),
            (5, 1 + TOKENS, true),
        ),
        (
            Format::Messages,
            messages_stream(
                r#""input_tokens":5,"output_tokens":1"#,
                r#","usage":{"output_tokens":1}"#,
            ),
            (5, 1, false),
        ),
        (
            Format::Chat,
            chat(r#""prompt_tokens":5,"completion_tokens":1"#),
            (5, 1 + TOKENS, true),
        ),
        (
            Format::Chat,
            chat(r#""prompt_tokens":5,"completion_tokens":0"#),
            (5, 1 + TOKENS, true),
        ),
        (
            Format::Chat,
            chat_stream(&[
                chat_usage(r#""prompt_tokens":5,"completion_tokens":8000"#),
                chat_usage(r#""prompt_tokens":0,"completion_tokens":0"#),
            ]),
            (5, 8000, false),
        ),
        // Nothing came, and nothing is counted.
        (
            Format::Chat,
            events(&[
                chat_chunk("", r#""stop""#, ""),
                chat_usage(r#""prompt_tokens":5,"completion_tokens":0"#),
                "[DONE]".to_owned(),
            ]),
            (5, 0, false),
        ),
    ] {
        assert_eq!(
            measured_everywhere(format, true, &stream),
            expected,
            "{stream}"
        );
    }
    // Thoughts are counted apart.
    let thoughts = r#""promptTokenCount":5,"thoughtsTokenCount":9"#;
    let body = native_chunk(&text, STOP, thoughts);
    assert_eq!(
        measured_everywhere(Format::Native, false, &body),
        (5, 9 + TOKENS, true)
    );
}

#[test]
fn an_image_without_a_count_is_estimated() {
    let usage = |usage: &str| {
        format!(r#"{{"created":1,"data":[{{"b64_json":"iVBORw0KGgo="}}],"usage":{usage}}}"#)
    };
    for (counts, expected) in [
        (
            r#"{"input_tokens":100,"output_tokens":40}"#,
            (100, 40, false),
        ),
        (
            r#"{"input_tokens":"100","output_tokens":39.5}"#,
            (100, 40, false),
        ),
        (r#"{"input_tokens":100}"#, (100, 765, true)),
        (
            r#"{"input_tokens":100,"output_tokens":-1}"#,
            (100, 765, true),
        ),
        (
            r#"{"input_tokens":100,"output_tokens":null}"#,
            (100, 765, true),
        ),
    ] {
        let body = usage(counts);
        for client in [Format::Images, Format::Chat] {
            assert_eq!(
                measured(client, Format::Images, false, &body),
                expected,
                "{counts}"
            );
        }
    }
    let event = |usage: &str| {
        format!(r#"{{"type":"image_generation.completed","b64_json":"iVBORw0KGgo="{usage}}}"#)
    };
    for (usages, expected) in [
        (
            [
                r#","usage":{"input_tokens":5,"output_tokens":7}"#,
                r#","usage":{"input_tokens":5,"output_tokens":7}"#,
            ],
            (10, 14, false),
        ),
        (
            [
                r#","usage":{"input_tokens":5,"output_tokens":7}"#,
                r#","usage":{"input_tokens":5}"#,
            ],
            (10, 7 + 765, true),
        ),
        ([r#","usage":{"input_tokens":5}"#, ""], (5, 2 * 765, true)),
    ] {
        let stream = events(&usages.map(event));
        for client in [Format::Images, Format::Chat] {
            assert_eq!(
                measured(client, Format::Images, true, &stream),
                expected,
                "{stream}"
            );
        }
    }
}
