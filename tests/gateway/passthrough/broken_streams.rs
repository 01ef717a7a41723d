//! Streams that do not reach their end always end with an error, never cleanly.

use omniglot_test_support::{
    Gateway, Mock, NATIVE_ARRAY, Response, STREAM_KINDS, assert_error_event, every_format_config,
    format_of, gateway_with_fixed_responses, is_end, is_error, post, request, response_head,
    stream_events,
};

async fn send_request(base: String, kind: &str, prompt: &str) -> Response {
    stream(base, kind, &format!("same-{}", format_of(kind)), prompt).await
}

async fn stream(base: String, kind: &str, model: &str, prompt: &str) -> Response {
    let (mut path, mut body) = request(format_of(kind), model, prompt, true);
    if kind == NATIVE_ARRAY {
        path = path.replace("?alt=sse", "");
    }
    if kind == "chat" {
        body["stream_options"] = serde_json::json!({"include_usage": true});
    }
    post(format!("{base}{path}"), body.to_string()).await
}

#[tokio::test]
async fn a_stream_cut_before_its_end_is_an_error() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for kind in STREAM_KINDS {
        let whole = send_request(mock.url(""), kind, "one two").await;
        let whole = stream_events(kind, whole.text());
        let end = whole.iter().position(|piece| is_end(kind, piece));
        let end = end.expect("the mock ends its streams");
        let mut in_stream = 0;
        for count in 0..=end {
            let prompt = format!("mock:cut={count} one two");
            let response = send_request(gateway.url(""), kind, &prompt).await;
            let good = assert_error_event(kind, &response, &prompt);
            if count == 0 {
                assert_eq!(
                    response.status, 502,
                    "{kind}: nothing came, nothing goes out"
                );
            }
            if let Some(good) = good {
                // The last ones may get lost with the connection, before the gateway.
                assert!(good <= count, "{kind}: {good} of {count}");
                in_stream += 1;
            }
        }
        assert!(
            in_stream > 0,
            "{kind}: some cuts come after the first content"
        );
    }
}

#[tokio::test]
async fn a_stream_without_its_end_event_is_an_error() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for kind in STREAM_KINDS {
        let response = send_request(gateway.url(""), kind, "mock:no_end one two three").await;
        let good = assert_error_event(kind, &response, "no_end");
        assert!(
            good.is_some_and(|good| good >= 3),
            "{kind}: {}",
            response.text()
        );
        assert!(
            response.text().contains("three"),
            "{kind}: {}",
            response.text()
        );
    }
}

#[tokio::test]
async fn a_stream_that_turns_into_garbage_is_an_error() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for kind in STREAM_KINDS {
        let whole = send_request(mock.url(""), kind, "one two").await;
        let whole = stream_events(kind, whole.text());
        let end = whole.iter().position(|piece| is_end(kind, piece));
        let mut in_stream = 0;
        for count in 0..=end.expect("an end") {
            let prompt = format!("mock:garbage={count} one two");
            let response = send_request(gateway.url(""), kind, &prompt).await;
            let good = assert_error_event(kind, &response, &prompt);
            assert!(
                !response.text().contains("broken\n"),
                "{kind}: {}",
                response.text()
            );
            if let Some(good) = good {
                assert_eq!(good, count, "{kind}: what came was sent");
                in_stream += 1;
            }
        }
        assert!(
            in_stream > 0,
            "{kind}: some of it comes after the first content"
        );
    }
}

#[tokio::test]
async fn an_error_event_of_the_upstream_passes() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for kind in STREAM_KINDS {
        for count in 0..5 {
            let prompt = format!("mock:stream_error={count} one two");
            let through = send_request(gateway.url(""), kind, &prompt).await;
            let good = assert_error_event(kind, &through, &prompt);
            assert!(through.text().contains("The mock broke off"), "{kind}");
            if through.status == 200 {
                let direct = send_request(mock.url(""), kind, &prompt).await;
                assert_eq!(through.text(), direct.text(), "{kind}");
            }
            assert_eq!(good.is_some(), through.status == 200, "{kind}");
            if count > 1 {
                assert_eq!(through.status, 200, "{kind}: content had come");
            }
        }
    }
    let response = send_request(gateway.url(""), "chat", "mock:stream_error=0").await;
    assert_eq!(response.status, 502, "nothing but a role had come");
}

const CANDIDATE: &str =
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"hi ]"}]}}]}"#;
const LAST: &str = r#"{"candidates":[{"content":{"parts":[{"text":"!"}]},"finishReason":"STOP"}]}"#;

#[tokio::test]
async fn a_cut_array_is_closed_after_its_error() {
    let whole = format!("[{CANDIDATE}\r\n,\r\n{CANDIDATE},\n{LAST}\n]\n");
    let kind = "application/json; charset=UTF-8";
    let near_the_end = [whole.len() - 3, whole.len() - 2, whole.len()];
    let cuts: Vec<usize> = (1..whole.len() - 3)
        .step_by(5)
        .chain(near_the_end)
        .collect();
    let case = |cut: &usize| ("native", response_head("200 OK", kind), &whole[..*cut]);
    let gateway = gateway_with_fixed_responses(&cuts.iter().map(case).collect::<Vec<_>>());
    for (number, cut) in cuts.iter().enumerate() {
        let response = stream(
            gateway.url(""),
            NATIVE_ARRAY,
            &format!("case-{number}"),
            "hi",
        )
        .await;
        let said = &whole[..*cut];
        if *cut == whole.len() {
            assert_eq!(response.text(), whole);
            continue;
        }
        // The first element is complete where its last bracket has come.
        if *cut <= CANDIDATE.len() {
            assert_eq!(response.status, 502, "{said}");
            response.error("native");
            continue;
        }
        assert_eq!(response.status, 200, "{said}");
        let pieces = stream_events(NATIVE_ARRAY, response.text());
        let (error, good) = pieces.split_last().expect("pieces");
        assert!(is_error(NATIVE_ARRAY, error), "{said}: {}", response.text());
        let complete = said.matches(CANDIDATE).count() + said.matches(LAST).count();
        assert_eq!(good.len(), complete, "{said}: {}", response.text());
    }
}

#[tokio::test]
async fn an_array_without_a_finish_reason_is_an_error() {
    let closed = format!("[{CANDIDATE}]");
    let objects = format!("{CANDIDATE}\n{LAST}");
    let broken = format!("[{CANDIDATE},\n{{\"candidates\":7}},\n{LAST}]");
    let kind = || response_head("200 OK", "application/json");
    let cases = ["[]", "{}", "[1]", "null", &closed, &objects, &broken];
    let gateway = gateway_with_fixed_responses(&cases.map(|body| ("native", kind(), body)));
    for (number, body) in cases.iter().enumerate() {
        let response = stream(
            gateway.url(""),
            NATIVE_ARRAY,
            &format!("case-{number}"),
            "hi",
        )
        .await;
        let good = assert_error_event(NATIVE_ARRAY, &response, body);
        let expected = body.starts_with("[{").then_some(1);
        assert_eq!(good, expected, "{body}: {}", response.text());
    }
}

#[tokio::test]
async fn a_cut_event_is_followed_by_an_error() {
    let good = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\r\n\r\n";
    let rests = [
        "",
        "data: {\"choi",
        "data: {\"choices\":[]}",
        ": comment",
        "event: x\r\n",
    ];
    let said = rests.map(|rest| format!("{good}{rest}"));
    let cases: Vec<_> = said
        .iter()
        .map(|said| {
            (
                "chat",
                response_head("200 OK", "text/event-stream"),
                said.as_str(),
            )
        })
        .collect();
    let gateway = gateway_with_fixed_responses(&cases);
    for (number, rest) in rests.iter().enumerate() {
        let response = stream(gateway.url(""), "chat", &format!("case-{number}"), "hi").await;
        assert_eq!(response.status, 200);
        let text = response.text().strip_prefix(good).expect("the good one");
        // A reader of events sees the error as an event of its own, and nothing else.
        let pieces = stream_events("chat", text);
        assert!(is_error("chat", &pieces[0]), "{rest:?}: {text:?}");
        assert_eq!(pieces.len(), 1, "{rest:?}: {text:?}");
    }
}

#[tokio::test]
async fn every_end_that_real_upstreams_send_is_accepted() {
    let words = r#"data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}"#;
    let finish = r#"data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let said = [
        format!("{words}\n\n{finish}\n\ndata: [DONE]\n\n"),
        format!("{words}\r\n\r\n{finish}\r\n\r\ndata: [DONE]\r\n\r\n"),
        format!(": ping\n\n{words}\n\n: ping\n\n{finish}\n\n"),
        format!("{words}\n\n{finish}\n\ndata: [DONE]"),
        format!("{words}\n\ndata: [DONE]"),
        format!("\u{feff}{words}\n\n{finish}\n\ndata:[DONE]\n\n"),
        format!("event: chunk\nid: 1\n{words}\n\nretry: 5\n{finish}\n\n"),
    ];
    let head = response_head("200 OK", "text/event-stream");
    let cases: Vec<_> = said
        .iter()
        .map(|said| ("chat", head.clone(), said.as_str()))
        .collect();
    let gateway = gateway_with_fixed_responses(&cases);
    for (number, said) in said.iter().enumerate() {
        let response = stream(gateway.url(""), "chat", &format!("case-{number}"), "hi").await;
        assert_eq!((response.status, response.text()), (200, said.as_str()));
    }
}

/// Of such a stream nobody knows whether another choice was to come: only its own last event, or a proper end of the body, says so.
#[tokio::test]
async fn a_broken_connection_is_no_end_of_a_stream_that_has_not_said_so() {
    let finish = |index: u32| {
        let choice =
            format!(r#"{{"index":{index},"delta":{{"content":"a"}},"finish_reason":"stop"}}"#);
        format!("data: {{\"choices\":[{choice}]}}\n\n")
    };
    let last = format!("data: {LAST}\n\n");
    let cases = [
        ("chat", finish(0), true),
        ("chat", finish(130), true),
        ("chat", finish(0) + "data: [DONE]\n\n", false),
        ("native", last.clone(), true),
        ("native", last.repeat(2), true),
        ("native", last.replace("STOP", ""), true),
    ];
    let bodies = cases
        .each_ref()
        .map(|(_, text, _)| format!("{:x}\r\n{text}\r\n", text.len()));
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let responses: Vec<_> = cases
        .iter()
        .zip(&bodies)
        .map(|((format, ..), body)| (*format, head.as_bytes().to_vec(), body.as_str()))
        .collect();
    let gateway = gateway_with_fixed_responses(&responses);
    for (number, (kind, text, is_broken)) in cases.iter().enumerate() {
        let response = stream(gateway.url(""), kind, &format!("case-{number}"), "hi").await;
        assert_eq!(response.status, 200, "{text}");
        let events = stream_events(kind, response.text());
        let has_error = events.iter().any(|event| is_error(kind, event));
        assert_eq!(has_error, *is_broken, "{text}: {}", response.text());
    }
}
