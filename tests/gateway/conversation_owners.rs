//! What an upstream keeps is for the key that was given it, and stored conversations count as they are expanded.

use omniglot_test_support::{
    Gateway, KEY, Mock, Response, client, every_format_config, send, sse_events, wait_for,
};
use serde_json::{Value, json};

const OTHER_KEY: &str = "key-of-some";

async fn respond(gateway: &Gateway, key: &str, body: String) -> Response {
    let asked = client().post(gateway.url("/v1/responses")).bearer_auth(key);
    let asked = asked.header("content-type", "application/json");
    send(asked.body(body)).await
}

/// The items that a key was given can be referred to by it, and by no other.
#[tokio::test]
async fn an_item_that_its_upstream_keeps_is_for_the_key_that_was_given_it() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for stream in [false, true] {
        let first = json!({"model": "same-responses", "input": "Hi.", "stream": stream});
        let first = respond(&gateway, KEY, first.to_string()).await;
        let output = match stream {
            false => first.json()["output"].clone(),
            true => {
                let events = sse_events(first.text());
                let (_, last) = events.last().expect("an event");
                let event: Value = serde_json::from_str(last).expect("JSON");
                event["response"]["output"].clone()
            }
        };
        let id = output[0]["id"].as_str().expect("an id");
        let ask = r#"{"role":"user","content":"mock:echo"}"#;
        for reference in [
            format!(r#"{{"type":"item_reference","id":"{id}"}}"#),
            format!(r#"{{"id":"{id}"}}"#),
            format!(r#"{{"type":null,"id":"{id}"}}"#),
            format!(r#"{{"type":"item\u005freference","\u0069d":"{id}"}}"#),
        ] {
            let body = format!(r#"{{"model":"same-responses","input":[{reference},{ask}]}}"#);
            let own = respond(&gateway, KEY, body.clone()).await;
            assert_eq!(
                own.header("x-omniglot-upstream"),
                "mock-responses",
                "{body}"
            );
            let theirs = respond(&gateway, OTHER_KEY, body.clone()).await;
            assert_eq!(theirs.status, 400, "{body}: {}", theirs.text());
            assert_eq!(theirs.header("x-omniglot-upstream"), "", "{body}");
            let message = theirs.error("responses");
            assert!(message.contains("is kept for this key"), "{message}");
        }
        // Of two ids the upstream may take either.
        let twice = format!(
            r#"{{"model":"same-responses","input":[{{"type":"item_reference","id":"{id}","id":"msg_9"}},{ask}]}}"#
        );
        let twice = respond(&gateway, KEY, twice).await;
        assert_eq!(twice.status, 400, "{}", twice.text());
        assert_eq!(twice.header("x-omniglot-upstream"), "");
    }
    // A whole item may have any id.
    let whole = json!({"model": "same-responses", "input": [
        {"type": "message", "id": "msg_mine", "role": "user", "content": "mock:echo"},
        {"id": "msg_also", "role": "user", "content": "mock:echo"}]});
    let whole = respond(&gateway, KEY, whole.to_string()).await;
    assert_eq!(whole.status, 200, "{}", whole.text());
}

/// No key was given a conversation: the gateway has no path that makes one.
#[tokio::test]
async fn a_conversation_of_the_upstream_is_refused() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let gateway = Gateway::start(&config);
    let off = Gateway::start(&config.replace("server: {", "server: {conversations: off, "));
    for conversation in [json!("conv_1"), json!({"id": "conv_1"})] {
        let body =
            json!({"model": "same-responses", "input": "mock:echo", "conversation": conversation});
        let refused = respond(&gateway, KEY, body.to_string()).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert_eq!(refused.header("x-omniglot-upstream"), "");
        let message = refused.error("responses");
        assert!(
            message.starts_with("conversation: this key was not given a conversation `conv_1`"),
            "{message}"
        );
        // The mock keeps none, and says so in its own words: it was asked.
        let passed = respond(&off, KEY, body.to_string()).await;
        assert_eq!(passed.header("x-omniglot-upstream"), "mock-responses");
    }
    for odd in [r#""Conversation":"conv_1""#, r#""conversation":7"#] {
        let body = format!(r#"{{"model":"same-responses","input":"Hi.",{odd}}}"#);
        let refused = respond(&gateway, KEY, body).await;
        assert_eq!(refused.status, 400, "{odd}: {}", refused.text());
        assert_eq!(refused.header("x-omniglot-upstream"), "");
    }
}

/// Responds once the requests before have given their memory back, which they do after their response.
async fn respond_with_room(gateway: &Gateway, body: &Value) -> Response {
    let response = wait_for("room for a body", async || {
        let response = respond(gateway, KEY, body.to_string()).await;
        (response.status != 503).then_some(response)
    });
    let response = response.await;
    assert_eq!(response.status, 200, "{}", response.text());
    response
}

/// A short request may stand for a long conversation.
#[tokio::test]
async fn an_expanded_conversation_counts_by_its_whole_size() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let config = config.replace("server: {", "server: {body_memory: 1MiB, ");
    let gateway = Gateway::start(&config);
    let words = "word ".repeat(120 << 10);
    let mut previous = Value::Null;
    let mut items = Value::Null;
    // The first one alone is below the limit, and so is the second before it is expanded.
    for status in [200, 503] {
        let body = json!({"model": "same-chat", "input": format!("{words} mock:text=Noted."),
            "previous_response_id": previous});
        let response = respond(&gateway, KEY, body.to_string()).await;
        assert_eq!(response.status, status, "{}", response.text());
        if status == 200 {
            (previous, items) = (
                response.json()["id"].clone(),
                response.json()["output"].clone(),
            );
        } else {
            assert_eq!(response.header("retry-after"), "1");
            assert!(response.text().contains("server.body_memory"));
        }
    }
    assert!(items[0]["id"].is_string(), "{items}");
    let short = json!({"model": "same-chat", "input": "Hi.", "previous_response_id": previous});
    respond_with_room(&gateway, &short).await;
    // References are counted as the items that they stand for.
    let long = json!({"model": "same-chat", "input": "mock:long=120000"});
    let mut references = Vec::new();
    for _ in 0..2 {
        let long = respond_with_room(&gateway, &long).await.json();
        references.push(json!({"type": "item_reference", "id": long["output"][0]["id"]}));
    }
    let body = json!({"model": "same-chat", "input": references});
    let response = respond(&gateway, KEY, body.to_string()).await;
    assert_eq!(response.status, 503, "{}", response.text());
}

/// The id of another key is not known here, whatever the server keeps.
#[tokio::test]
async fn a_count_that_continues_from_an_unknown_response_says_so() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for model in [
        "same-chat",
        "same-messages",
        "same-native",
        "same-responses",
    ] {
        let body = json!({"model": model, "input": "Hi.", "previous_response_id": "resp_theirs"});
        let asked = client().post(gateway.url("/v1/responses/input_tokens"));
        let refused = send(asked.bearer_auth(KEY).json(&body)).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        let message = refused.error("responses");
        assert!(
            message.contains("no response `resp_theirs` is kept here"),
            "{model}: {message}"
        );
    }
}
