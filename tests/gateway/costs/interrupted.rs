//! Interrupted streams and clients that disconnect: what arrived is billed, and marked as an estimate.

use std::time::Duration;

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, client, fixed_response_upstream, request,
};

use super::{config, line_of, lines, send_request};

#[tokio::test]
async fn an_interrupted_stream_costs_what_arrived() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", ""));
    let words = "mock:usage=1000,400,50,20 mock:events=8";
    let mut asked = Vec::new();
    for fault in ["mock:stream_error=3", "mock:cut=6"] {
        for (client, _) in FORMATS {
            for (upstream, _) in FORMATS {
                let (model, words) = (format!("priced-{upstream}"), format!("{words} {fault}"));
                let response = send_request(&gateway, client, &model, &words, true).await;
                assert_eq!(response.status, 200, "{}", response.text());
                assert!(response.text().contains("error"), "{}", response.text());
                let id = response.header("x-request-id").to_owned();
                let (_, body) = request(client, &model, &words, true);
                asked.push((
                    id,
                    format!("{client} → {upstream}: {fault}"),
                    body.to_string(),
                ));
            }
        }
    }
    gateway.until_idle().await;
    let estimated = gateway.metric("omniglot_estimated_tokens_total").await;
    assert!(!estimated.is_empty());
    let lines = lines(gateway);
    for (id, what, body) in asked {
        let line = line_of(&lines, &id);
        assert_eq!(line.field("estimated"), "true", "{what}");
        assert_eq!(line.field("cost"), line.worth(), "{what}");
        assert_eq!(
            line.count("input_tokens"),
            body.len().div_ceil(4) as u64,
            "{what}"
        );
        // Three words of eight at most, or a few more where frames are fewer.
        let output = line.count("output_tokens");
        assert!((1..20).contains(&output), "{what}: {output}");
    }
}

#[tokio::test]
async fn text_that_arrived_is_estimated_by_its_bytes() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", ""));
    let words = "mock:stream_error=2 mock:text=four eight never";
    let mut ids = Vec::new();
    for (client, _) in FORMATS {
        for (upstream, _) in FORMATS {
            let model = format!("priced-{upstream}");
            let response = send_request(&gateway, client, &model, words, true).await;
            ids.push((response.header("x-request-id").to_owned(), client, upstream));
        }
    }
    let lines = lines(gateway);
    for (id, client, upstream) in ids {
        // "four" and " eight" are ten bytes.
        let line = line_of(&lines, &id);
        assert_eq!(line.count("output_tokens"), 3, "{client} → {upstream}");
        assert_eq!(line.count("thinking_tokens"), 0, "{client} → {upstream}");
    }
}

/// Tokens may be short, and upstreams send one in each event.
#[tokio::test]
async fn text_of_short_tokens_is_estimated_by_its_characters_and_pieces() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", ""));
    let mut asked = Vec::new();
    for (words, tokens) in [
        ("mock:stream_error=9 mock:text=a b c d e f g h i never", 9),
        ("mock:stream_error=1 mock:text=31415926 never", 8),
        ("mock:stream_error=1 mock:text=今日は世界 never", 5),
    ] {
        for (client, _) in FORMATS {
            for (upstream, _) in FORMATS {
                let model = format!("priced-{upstream}");
                let response = send_request(&gateway, client, &model, words, true).await;
                let id = response.header("x-request-id").to_owned();
                asked.push((id, tokens, format!("{client} → {upstream}: {words}")));
            }
        }
    }
    let lines = lines(gateway);
    for (id, tokens, what) in asked {
        let line = line_of(&lines, &id);
        let output = line.count("output_tokens");
        // A space may come with the word before it.
        assert!((tokens..=tokens + 1).contains(&output), "{what}: {output}");
    }
}

#[tokio::test]
async fn a_client_that_disconnects_is_billed_for_what_it_received() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", ""));
    let words = "mock:wait=never mock:name=left";
    let mut bodies = Vec::new();
    for (left, (format, _)) in (1..).zip(FORMATS) {
        // It hears nothing but the opening of its stream, or nothing at all.
        let (path, body) = request(format, "priced-responses", words, left % 2 == 0);
        bodies.push(body.to_string().len().div_ceil(4) as u64);
        let asked = client()
            .post(gateway.url(&path))
            .bearer_auth(KEY)
            .json(&body);
        let waiting = tokio::spawn(asked.send());
        mock.until_seen("left", "waiting", 1).await;
        waiting.abort();
        mock.until_seen("left", "cancelled", left).await;
    }
    gateway.until_idle().await;
    let lines = lines(gateway);
    assert_eq!(lines.len(), bodies.len());
    for line in &lines {
        assert_eq!(line.field("status"), "499");
        assert_eq!(line.field("estimated"), "true");
        assert_eq!(line.count("output_tokens"), 0);
        assert_eq!(line.field("cost"), line.worth());
    }
    let mut inputs: Vec<u64> = lines
        .iter()
        .map(|line| line.count("input_tokens"))
        .collect();
    inputs.sort_unstable();
    bodies.sort_unstable();
    assert_eq!(inputs, bodies);
}

#[tokio::test]
async fn a_client_that_disconnects_before_an_upstream_is_used_is_not_billed() {
    let mock = Mock::start();
    let upstream = "max_in_flight: 1, ";
    let config =
        config(mock.address, "", "").replace("{name: chat, ", &format!("{{{upstream}name: chat, "));
    let gateway = Gateway::start(&config);
    let (path, first) = request("chat", "priced-chat", "mock:wait=go mock:name=first", false);
    let (_, second) = request("chat", "priced-chat", "mock:name=second", false);
    let post = |body| {
        client()
            .post(gateway.url(&path))
            .bearer_auth(KEY)
            .json(body)
    };
    let first = tokio::spawn(post(&first).send());
    mock.until_seen("first", "waiting", 1).await;
    let second = tokio::spawn(post(&second).send());
    omniglot_test_support::wait_until("one waits", async || {
        let lines = gateway
            .metric("omniglot_upstream_requests_waiting{upstream=\"chat\"}")
            .await;
        lines.iter().any(|line| line.ends_with(" 1"))
    })
    .await;
    second.abort();
    omniglot_test_support::wait_until("none waits", async || {
        let lines = gateway
            .metric("omniglot_upstream_requests_waiting{upstream=\"chat\"}")
            .await;
        lines.iter().any(|line| line.ends_with(" 0"))
    })
    .await;
    mock.signal("go", 1).await;
    assert_eq!(
        first.await.expect("no panic").expect("an answer").status(),
        200
    );
    gateway.until_idle().await;
    let lines = lines(gateway);
    let left = lines.iter().find(|line| line.field("status") == "499");
    assert_eq!(left.expect("a line").field("cost"), "null");
    assert_eq!(mock.seen("second", "started").await, 0);
}

#[tokio::test]
async fn a_client_that_disconnects_before_the_usage_pays_by_it() {
    let mock = Mock::start();
    let gateway = Gateway::start(&config(mock.address, "", ""));
    let words = "mock:usage=1000,400,50,20 mock:text=hello mock:wait=go mock:name=late";
    let (path, body) = request("chat", "priced-chat", words, true);
    let asked = client()
        .post(gateway.url(&path))
        .bearer_auth(KEY)
        .json(&body);
    let mut response = asked.send().await.expect("a response");
    let mut text = String::new();
    loop {
        let chunk = response.chunk().await.expect("a chunk").expect("more");
        text += str::from_utf8(&chunk).expect("text");
        if text.contains(r#""finish_reason":"stop""#) {
            break;
        }
        mock.signal("go", 1).await;
    }
    drop(response);
    // Long enough to notice it; a gateway that has not sends the usage to nobody.
    tokio::time::sleep(Duration::from_millis(300)).await;
    while mock.seen("late", "finished").await + mock.seen("late", "cancelled").await == 0 {
        mock.signal("go", 1).await;
    }
    gateway.until_idle().await;
    let lines = lines(gateway);
    assert_eq!(lines[0].field("cost"), "0.001351");
    assert_eq!(lines[0].field("estimated"), "false");
}

#[tokio::test]
async fn a_broken_native_stream_that_does_not_count_its_output_is_estimated() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    let chunk = |text: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{{\"text\":\"{text}\"}}]}}}}],\
             \"usageMetadata\":{{\"promptTokenCount\":100,\"totalTokenCount\":100}}}}\r\n\r\n"
        )
        .into_bytes()
    };
    let upstream = fixed_response_upstream(vec![head.into(), chunk("four"), chunk(" eight")]);
    let gateway = Gateway::start(&config(upstream, "", ""));
    let mut ids = Vec::new();
    for (client, _) in FORMATS {
        let response = send_request(&gateway, client, "priced-native", "hello", true).await;
        assert_eq!(response.status, 200, "{}", response.text());
        ids.push((response.header("x-request-id").to_owned(), client));
    }
    let lines = lines(gateway);
    for (id, client) in ids {
        let line = line_of(&lines, &id);
        assert_eq!(line.count("input_tokens"), 100, "{client}");
        assert_eq!(line.count("output_tokens"), 3, "{client}");
        assert_eq!(line.field("estimated"), "true", "{client}");
        assert_eq!(line.field("cost"), line.worth(), "{client}");
    }
}

/// Content that is no text, from an upstream that sends it and then nothing more.
#[tokio::test]
async fn content_of_every_kind_is_billed_where_a_stream_breaks_off() {
    let data = "A".repeat(40_000);
    for (format, events, tokens) in [
        (
            "chat",
            vec![r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"type":"custom","custom":{"name":"f","input":"abcdefg"}}]}}]}"#.to_owned()],
            2,
        ),
        ("chat", vec![r#"{"choices":[{"index":0,"delta":{"function_call":{"name":"f","arguments":"abcdefg"}}}]}"#.to_owned()], 2),
        ("chat", vec![r#"{"choices":[{"index":0,"delta":{"audio":{"transcript":"abcdefgh"}}}]}"#.to_owned()], 2),
        ("chat", vec![format!(r#"{{"choices":[{{"index":0,"delta":{{"images":[{{"image_url":{{"url":"{data}"}}}}]}}}}]}}"#)], 765),
        ("chat", vec![r#"{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"abcdefgh"}]}}]}"#.to_owned()], 2),
        ("chat", vec![r#"{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"abcde"}]}}]}"#.to_owned()], 12),
        (
            "native",
            vec![r#"{"candidates":[{"content":{"parts":[{"executableCode":{"language":"PYTHON","code":"abcd"}}]}}]}"#.to_owned()],
            14,
        ),
        (
            "native",
            vec![r#"{"candidates":[{"content":{"parts":[{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"a"}}]}}]}"#.to_owned()],
            15,
        ),
        (
            "native",
            vec![format!(r#"{{"candidates":[{{"content":{{"parts":[{{"inlineData":{{"mimeType":"image/png","data":"{data}"}}}}]}}}}]}}"#)],
            765,
        ),
        (
            "responses",
            vec![
                r#"{"type":"response.created","response":{"id":"r"}}"#.to_owned(),
                format!(r#"{{"type":"response.image_generation_call.partial_image","partial_image_b64":"{data}"}}"#),
            ],
            765,
        ),
        (
            "responses",
            vec![
                r#"{"type":"response.created","response":{"id":"r"}}"#.to_owned(),
                r#"{"type":"response.output_item.done","item":{"type":"custom_tool_call","name":"f","input":"abcdefgh"}}"#.to_owned(),
            ],
            2,
        ),
        (
            "messages",
            vec![
                r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1,"output_tokens":0}}}"#.to_owned(),
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"12345678"}}"#.to_owned(),
                r#"{"type":"content_block_stop","index":0}"#.to_owned(),
            ],
            2,
        ),
    ] {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let mut response = vec![head.into()];
        response.extend(events.iter().map(|event| format!("data: {event}\n\n").into_bytes()));
        let gateway = Gateway::start(&config(fixed_response_upstream(response), "", ""));
        let model = format!("priced-{format}");
        let broken = send_request(&gateway, format, &model, "hello", true).await;
        assert_eq!(broken.status, 200, "{}", broken.text());
        let lines = lines(gateway);
        assert_eq!(lines[0].count("output_tokens"), tokens, "{events:?}");
        assert_eq!(lines[0].field("estimated"), "true", "{events:?}");
    }
}
