//! Ids of what an upstream keeps, beside references: they pass for the key that was given them, and for no other.

use omniglot_test_support::{Gateway, KEY, RecordingServer, Response, client, send};
use serde_json::{Value, json};

const OTHER_KEY: &str = "key-of-some";

/// An upstream of three formats that keeps reasoning, an image, a container and audio.
fn keeping_upstream() -> RecordingServer {
    RecordingServer::start(|request, _| {
        let is_stream = request.json()["stream"] == true;
        let ((answer, events), end) = match request.line.as_str() {
            "POST /v1/responses" => (response(), ""),
            "POST /v1/messages" => (message(), ""),
            _ => (completion(), "data: [DONE]\n\n"),
        };
        match is_stream {
            false => (200, "application/json", answer.to_string()),
            true => {
                let events = events.iter().map(|event| format!("data: {event}\n\n"));
                (200, "text/event-stream", events.collect::<String>() + end)
            }
        }
    })
}

fn response() -> (Value, Vec<Value>) {
    let output = json!([
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk="},
        {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1", "container_id": "cntr_1"},
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}", "server_label": "s"},
        {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
            "content": [{"type": "output_text", "text": "hi", "annotations": []}]}]);
    let whole = json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m",
        "output": output, "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}});
    // The items come with the last event alone.
    let mut started = whole.clone();
    started["output"] = json!([]);
    let events = vec![
        json!({"type": "response.created", "sequence_number": 0, "response": started}),
        json!({"type": "response.completed", "sequence_number": 1, "response": whole}),
    ];
    (whole, events)
}

fn message() -> (Value, Vec<Value>) {
    let container = json!({"id": "container_1", "expires_at": "2030-01-01T00:00:00Z"});
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let text = json!({"type": "text", "text": "hi"});
    let mut whole = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [text],
        "stop_reason": "end_turn", "stop_sequence": null, "usage": usage});
    let start = whole.clone();
    whole["container"] = container.clone();
    let events = vec![
        json!({"type": "message_start", "message": start}),
        json!({"type": "content_block_start", "index": 0, "content_block": text}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "container": container}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    (whole, events)
}

fn completion() -> (Value, Vec<Value>) {
    let audio = json!({"id": "audio_1", "data": "aGk=", "transcript": "hi", "expires_at": 1});
    let choice = |name: &str| json!([{"index": 0, name: {"role": "assistant", "content": null, "audio": audio}, "finish_reason": "stop"}]);
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    let whole = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": choice("message"), "usage": usage});
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": choice("delta"), "usage": usage});
    (whole, vec![chunk])
}

fn config(upstream: &RecordingServer, server: &str, more: &str) -> String {
    let mut text = format!(
        "server: {{listen: LISTEN, admin: ADMIN{server}}}\nkeys:\n  - {{name: all, secret: {KEY}}}\n  \
         - {{name: some, secret: {OTHER_KEY}}}\n{more}upstreams:\n"
    );
    for (format, path) in [("responses", "/v1"), ("messages", ""), ("chat", "/v1")] {
        let url = upstream.url(path);
        text += &format!("  - {{name: {format}, format: {format}, base_url: \"{url}\"}}\n");
    }
    let url = upstream.url("/v1");
    text += &format!(
        "  - {{name: open, format: responses, base_url: \"{url}\", capabilities: {{responses_keeps_state: false}}}}\n\
         models:\n"
    );
    for format in ["responses", "messages", "chat", "open"] {
        text += &format!("  - {{id: {format}, upstreams: [{{name: {format}}}]}}\n");
    }
    text
}

async fn ask(gateway: &Gateway, key: &str, model: &str, more: &Value) -> Response {
    let turns = json!([{"role": "user", "content": "Hi."}]);
    let (path, mut body) = match model {
        "messages" => ("/v1/messages", json!({"max_tokens": 9, "messages": turns})),
        "chat" => ("/v1/chat/completions", json!({"messages": turns})),
        _ => ("/v1/responses", json!({"input": turns})),
    };
    body["model"] = json!(model);
    for (field, value) in more.as_object().expect("an object") {
        body[field] = value.clone();
    }
    let asked = client().post(gateway.url(path)).bearer_auth(key);
    send(asked.json(&body)).await
}

/// Everything by which a request can name what the upstream above keeps.
fn mentions() -> Vec<(&'static str, Value)> {
    let after = |item: Value| {
        let user = json!({"role": "user", "content": "Hi."});
        ("responses", json!({"input": [user, item]}))
    };
    vec![
        after(json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        after(
            json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "x"}]}),
        ),
        after(json!({"type": "image_generation_call", "id": "ig_1"})),
        after(json!({"type": "message", "id": "msg_1"})),
        after(json!({"type": "message", "role": "assistant", "id": "msg_1", "content": []})),
        after(
            json!({"type": "web_search_call", "id": "msg_1", "action": {"type": "search", "query": "x"}}),
        ),
        after(json!({"type": "code_interpreter_call", "id": "ci_1", "code": "1"})),
        after(json!({"role": "assistant", "id": "msg_1"})),
        after(json!({"type": "Item_Reference", "id": "msg_1"})),
        after(json!({"type": "item_reference", "ID": "msg_1"})),
        after(
            json!({"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": true}),
        ),
        after(
            json!({"type": "code_interpreter_call", "id": "ci_1", "code": "1", "container_id": "cntr_1"}),
        ),
        after(json!({"type": "function_call_output", "call_id": "c",
            "output": [{"type": "item_reference", "id": "msg_1"}]})),
        (
            "responses",
            json!({"input": [[{"type": "item_reference", "id": "msg_1"}]]}),
        ),
        (
            "responses",
            json!({"input": {"type": "item_reference", "id": "msg_1"}}),
        ),
        (
            "responses",
            json!({"tools": [{"type": "code_interpreter", "container": "cntr_1"}]}),
        ),
        (
            "responses",
            json!({"prompt": {"id": "pmpt_1", "variables": {"x": {"type": "item_reference", "id": "msg_1"}}}}),
        ),
        ("messages", json!({"container": "container_1"})),
        (
            "messages",
            json!({"container": {"id": "container_1", "skills": []}}),
        ),
        (
            "chat",
            json!({"messages": [{"role": "user", "content": "Hi."}, {"role": "assistant", "audio": {"id": "audio_1"}},
                {"role": "user", "content": "And?"}]}),
        ),
    ]
}

#[tokio::test]
async fn what_an_upstream_keeps_is_for_the_key_that_was_given_it() {
    for stream in [false, true] {
        let upstream = keeping_upstream();
        let gateway = Gateway::start(&config(&upstream, "", ""));
        for model in ["responses", "messages", "chat"] {
            let first = ask(&gateway, KEY, model, &json!({"stream": stream})).await;
            assert_eq!(first.status, 200, "{}", first.text());
        }
        let asked = upstream.requests().len();
        for (model, more) in mentions() {
            let theirs = ask(&gateway, OTHER_KEY, model, &more).await;
            assert_eq!(theirs.status, 400, "{model} {more}: {}", theirs.text());
            let message = theirs.error(model);
            assert!(message.contains("this key"), "{more}: {message}");
        }
        assert_eq!(upstream.requests().len(), asked, "nothing of it was sent");
        for (model, more) in mentions() {
            let own = ask(&gateway, KEY, model, &more).await;
            assert_eq!(own.status, 200, "{model} {more}: {}", own.text());
        }
    }
}

#[tokio::test]
async fn a_thread_goes_on_for_the_key_that_began_it() {
    const CAPPED: &str = "key-with-a-cap";
    for stream in [false, true] {
        let upstream = keeping_upstream();
        let capped = format!("  - {{name: capped, secret: {CAPPED}, spending_cap: 1000}}\n");
        let priced = "{id: messages, pricing: {input: 1, output: 1},";
        let config = config(&upstream, "", &capped).replace("{id: messages,", priced);
        let gateway = Gateway::start(&config);
        let next = json!({"thread": {"type": "continue", "previous_message_id": "m"}});
        // Its id is noted only where a thread is asked for.
        let plain = ask(&gateway, KEY, "messages", &json!({"stream": stream})).await;
        assert_eq!(plain.status, 200, "{}", plain.text());
        let refused = ask(&gateway, KEY, "messages", &next).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        let create = json!({"stream": stream, "thread": {"type": "create"}});
        let first = ask(&gateway, KEY, "messages", &create).await;
        assert_eq!(first.status, 200, "{}", first.text());
        let asked = upstream.requests().len();
        let spelled = json!({"Thread": {"type": "continue", "previous_message_id": "m"}});
        for (key, more) in [
            (OTHER_KEY, &next),
            (OTHER_KEY, &spelled),
            (CAPPED, &create),
            (CAPPED, &next),
        ] {
            let refused = ask(&gateway, key, "messages", more).await;
            assert_eq!(refused.status, 400, "{key} {more}: {}", refused.text());
            if more != &spelled {
                // The tool runners of the SDKs look for it.
                let code = &refused.json()["error"]["details"]["error_code"];
                assert_eq!(code, "thread_unsupported_request", "{key} {more}");
            }
        }
        assert_eq!(upstream.requests().len(), asked, "nothing of it was sent");
        let own = ask(&gateway, KEY, "messages", &next).await;
        assert_eq!(own.status, 200, "{}", own.text());
    }
}

/// Clients send what they were given back as it is.
#[tokio::test]
async fn whole_items_pass_whoever_was_given_them() {
    let upstream = keeping_upstream();
    let gateway = Gateway::start(&config(&upstream, "", ""));
    let mut items = response().0["output"].clone();
    items[0]["encrypted_content"] = json!("sealed");
    items[2]["container_id"] = Value::Null;
    items[2]["outputs"] = json!([{"type": "logs", "logs": "1"}]);
    let own = json!({"input": items, "store": false, "tools": [
        {"type": "code_interpreter", "container": {"type": "auto"}}]});
    let response = ask(&gateway, OTHER_KEY, "responses", &own).await;
    assert_eq!(response.status, 200, "{}", response.text());
    // An upstream that keeps nothing cannot give it away.
    let short = json!({"input": [{"role": "user", "content": "Hi."}, {"type": "reasoning", "id": "rs_9", "summary": []}]});
    let response = ask(&gateway, OTHER_KEY, "open", &short).await;
    assert_eq!(response.status, 200, "{}", response.text());
    let skills = json!({"container": {"skills": [{"type": "anthropic", "skill_id": "pptx"}]}});
    let response = ask(&gateway, OTHER_KEY, "messages", &skills).await;
    assert_eq!(response.status, 200, "{}", response.text());
}

/// Nobody stores such a response, but its client has its ids.
#[tokio::test]
async fn the_ids_of_a_response_that_is_not_stored_are_known_too() {
    let upstream = keeping_upstream();
    let gateway = Gateway::start(&config(&upstream, "", ""));
    let first = ask(&gateway, KEY, "responses", &json!({"store": false})).await;
    assert_eq!(first.status, 200, "{}", first.text());
    let next = json!({"store": false, "input": [{"role": "user", "content": "Hi."},
        {"type": "reasoning", "id": "rs_1", "summary": []}]});
    for (key, status) in [(KEY, 200), (OTHER_KEY, 400)] {
        let response = ask(&gateway, key, "responses", &next).await;
        assert_eq!(response.status, status, "{}", response.text());
    }
}

/// An upstream that takes the id of its response from the client, as some self-hosted servers do, gives nobody what another keeps.
#[tokio::test]
async fn an_id_is_known_only_at_the_server_that_gave_it() {
    let keeping = keeping_upstream();
    let obliging = RecordingServer::start(|request, _| {
        let mut answer = response().0;
        let id = request.json()["request_id"].clone();
        answer["id"] = id.clone();
        answer["output"][0]["id"] = id;
        (200, "application/json", answer.to_string())
    });
    let more = format!(
        "  - {{name: obliging, format: responses, base_url: \"{url}\"}}\n  \
         - {{name: forgetting, format: responses, base_url: \"{url}\", capabilities: {{responses_keeps_state: false}}}}\n\
         models:\n  - {{id: obliging, upstreams: [{{name: obliging}}]}}\n  \
         - {{id: forgetting, upstreams: [{{name: forgetting}}]}}\n  \
         - {{id: both, upstreams: [{{name: obliging, priority: 1}}, {{name: responses, priority: 2}}]}}\n",
        url = obliging.url("/v1")
    );
    let config = config(&keeping, "", "").replace("models:\n", &more);
    let gateway = Gateway::start(&config);
    let first = ask(&gateway, KEY, "responses", &json!({})).await;
    assert_eq!(first.status, 200, "{}", first.text());
    let after = |item: Value| json!({"input": [{"role": "user", "content": "Hi."}, item]});
    // Those that may be answered come last: with its answer the server gives its ids to the key.
    let mentions = [
        after(json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        json!({"tools": [{"type": "code_interpreter", "container": "cntr_1"}]}),
        after(json!({"type": "item_reference", "id": "msg_1"})),
        json!({"previous_response_id": "resp_1"}),
    ];
    for model in ["obliging", "forgetting"] {
        for id in ["resp_1", "rs_1", "msg_1", "cntr_1"] {
            let chosen = ask(&gateway, OTHER_KEY, model, &json!({"request_id": id})).await;
            assert_eq!(chosen.status, 200, "{}", chosen.text());
        }
        for more in &mentions {
            let asked = keeping.requests().len();
            let theirs = ask(&gateway, OTHER_KEY, "responses", more).await;
            // What the gateway stores itself under such an id is their own, and is sent whole.
            if theirs.status == 200 {
                let sent = keeping.requests()[asked].json();
                assert_eq!(model, "forgetting", "{more}");
                assert_eq!(sent["previous_response_id"], Value::Null, "{more}");
                let is_expanded = more["previous_response_id"] == "resp_1"
                    || more["input"][1]["type"] == "item_reference";
                assert!(is_expanded, "{more}");
                assert!(!sent.to_string().contains("item_reference"), "{sent}");
                continue;
            }
            assert_eq!(theirs.status, 400, "{model} {more}: {}", theirs.text());
            let message = theirs.error("responses");
            assert!(message.contains("another server"), "{more}: {message}");
            assert_eq!(keeping.requests().len(), asked, "nothing of it was sent");
        }
    }
    // Where a model has several upstreams, the one that gave the id is asked.
    for more in &mentions {
        let own = ask(&gateway, KEY, "both", more).await;
        assert_eq!(own.status, 200, "{more}: {}", own.text());
        assert_eq!(own.header("x-omniglot-upstream"), "responses", "{more}");
    }
}

/// With a store, what a key was given outlives the process.
#[tokio::test]
async fn what_a_key_was_given_is_known_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().display();
    let store =
        format!("store: \"sqlite:{path}/store.db\"\njournal: {{path: \"{path}/journal\"}}\n");
    let upstream = keeping_upstream();
    let config = config(&upstream, "", &store);
    let mut gateway = Gateway::start(&config);
    for model in ["responses", "messages", "chat"] {
        let first = ask(&gateway, KEY, model, &json!({})).await;
        assert_eq!(first.status, 200, "{}", first.text());
    }
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
    let gateway = Gateway::start(&config);
    for (model, more) in mentions() {
        for (key, status) in [(OTHER_KEY, 400), (KEY, 200)] {
            let response = ask(&gateway, key, model, &more).await;
            assert_eq!(
                response.status,
                status,
                "{model} {more}: {}",
                response.text()
            );
        }
    }
}
