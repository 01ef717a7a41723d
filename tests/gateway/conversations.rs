//! Conversations of the responses format that continue from a response id on upstreams without storage, and the
//! responses to clients that look for a request id or a websocket.

use omniglot_test_support::{
    FORMATS, Gateway, KEY, Mock, Response, client, echoed_request, every_format_config, post,
    request, send, sse_events,
};
use reqwest::Method;
use serde_json::{Value, json};

const STATELESS: [&str; 3] = ["chat", "messages", "native"];

async fn respond(gateway: &Gateway, body: &Value) -> Response {
    post(gateway.url("/v1/responses"), body.to_string()).await
}

async fn send_request(gateway: &Gateway, method: Method, path: &str, key: &str) -> Response {
    let request = client().request(method, gateway.url(path));
    send(request.bearer_auth(key)).await
}

/// The whole reply, however it came.
fn reply(response: &Response, stream: bool) -> Value {
    assert_eq!(response.status, 200, "{}", response.text());
    if !stream {
        return response.json();
    }
    let events = sse_events(response.text());
    let (_, last) = events.last().expect("an event");
    let event: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(event["type"], "response.completed");
    event["response"].clone()
}

#[tokio::test]
async fn a_conversation_continues_from_the_id_of_a_response() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for upstream in STATELESS {
        for stream in [false, true] {
            let model = format!("same-{upstream}");
            let first = json!({"model": model, "input": "My name is Ada.", "stream": stream});
            let first = reply(&respond(&gateway, &first).await, stream);
            assert_eq!(
                (&first["store"], &first["previous_response_id"]),
                (&json!(true), &Value::Null)
            );
            let second = json!({"model": model, "input": [{"role": "user", "content": "And Bob."}],
                "previous_response_id": first["id"], "stream": stream});
            let second = reply(&respond(&gateway, &second).await, stream);
            assert_eq!(second["previous_response_id"], first["id"]);
            assert_ne!(second["id"], first["id"]);
            let third = json!({"model": model, "input": "mock:echo Who is here?",
                "previous_response_id": second["id"]});
            let response = respond(&gateway, &third).await;
            assert_eq!(response.header("x-omniglot-dropped"), "");
            let sent = echoed_request("responses", &response)["body"].to_string();
            let words = [
                "My name is Ada.",
                "You said: My name is Ada.",
                "And Bob.",
                "You said: And Bob.",
                "Who is here?",
            ];
            let places: Vec<_> = words.iter().map(|words| sent.find(words)).collect();
            assert!(
                places.iter().all(Option::is_some) && places.is_sorted(),
                "{upstream}: {sent}"
            );
            // Twice from the same place: the other branch is not part of it.
            let other = json!({"model": model, "input": "mock:echo Who else?", "previous_response_id": first["id"]});
            let sent =
                echoed_request("responses", &respond(&gateway, &other).await)["body"].to_string();
            assert!(sent.contains("Ada") && !sent.contains("Bob"), "{sent}");
        }
    }
}

/// A stream that has long begun when it ends is kept like one that came at once.
#[tokio::test]
async fn a_slow_stream_is_stored_with_its_conversation() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for upstream in STATELESS {
        let model = format!("same-{upstream}");
        let input = "mock:text=Noted. Go on. mock:pace=20ms My name is Ada.";
        let first = json!({"model": model, "input": input, "stream": true});
        let first = reply(&respond(&gateway, &first).await, true);
        let second = json!({"model": model, "input": "mock:echo Who is here?",
            "previous_response_id": first["id"]});
        let sent =
            echoed_request("responses", &respond(&gateway, &second).await)["body"].to_string();
        assert!(
            sent.contains("My name is Ada.") && sent.contains("Noted. Go on."),
            "{upstream}: {sent}"
        );
    }
}

#[tokio::test]
async fn a_tool_loop_continues_by_id_with_its_signatures() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let tools = json!([{"type": "function", "name": "look", "parameters": {"type": "object"}}]);
    for upstream in ["messages", "native"] {
        let model = format!("same-{upstream}");
        let first =
            json!({"model": model, "tools": tools, "input": "mock:tool mock:thinking Look!"});
        let first = reply(&respond(&gateway, &first).await, false);
        let output = first["output"].as_array().expect("a list");
        let call = output.iter().find(|item| item["type"] == "function_call");
        let id = &call.expect("a call")["call_id"];
        let input = json!([{"type": "function_call_output", "call_id": id, "output": "7"},
            {"role": "user", "content": "mock:tool mock:proofs Again!"}]);
        let second = json!({"model": model, "tools": tools, "input": input, "previous_response_id": first["id"]});
        let second = reply(&respond(&gateway, &second).await, false);
        assert!(
            second["output"].to_string().contains("proofs=1."),
            "{upstream}: {second}"
        );
    }
}

#[tokio::test]
async fn a_stored_response_is_fetched_listed_and_deleted_by_its_own_key() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let first = json!({"model": "same-chat", "input": "One."});
    let first = reply(&respond(&gateway, &first).await, false);
    let second = json!({"model": "same-chat", "input": "Two.", "previous_response_id": first["id"], "stream": true});
    let second = reply(&respond(&gateway, &second).await, true);
    let path = format!("/v1/responses/{}", second["id"].as_str().expect("an id"));
    let get = async |path: &str| send_request(&gateway, Method::GET, path, KEY).await;

    let fetched = get(&path).await;
    assert_eq!((fetched.status, fetched.json()), (200, second.clone()));
    let list = get(&format!("{path}/input_items?order=asc")).await.json();
    let texts: Vec<_> = list["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| &item["content"][0]["text"])
        .collect();
    assert_eq!(texts, ["One.", "You said: One.", "Two."]);
    assert_eq!(list["has_more"], false);
    let page = get(&format!("{path}/input_items?limit=1")).await.json();
    assert_eq!(page["data"][0]["content"][0]["text"], "Two.");
    assert_eq!(page["has_more"], true);
    assert_eq!(
        get(&format!("{path}/input_items?limit=0")).await.status,
        400
    );

    for (method, path) in [
        (Method::GET, path.clone()),
        (Method::DELETE, path.clone()),
        (Method::GET, format!("{path}/input_items")),
    ] {
        let other = send_request(&gateway, method, &path, "key-of-some").await;
        assert_eq!(other.status, 404);
        other.error("responses");
        assert_eq!(other.json()["error"]["code"], "response_not_found");
    }
    let theirs =
        json!({"model": "same-chat", "input": "Mine?", "previous_response_id": second["id"]});
    let theirs = client()
        .post(gateway.url("/v1/responses"))
        .bearer_auth("key-of-some")
        .body(theirs.to_string());
    let theirs = send(theirs).await;
    assert_eq!(theirs.status, 400);
    assert_eq!(
        theirs.json()["error"]["code"],
        "previous_response_not_found"
    );

    let deleted = send_request(&gateway, Method::DELETE, &path, KEY).await;
    assert_eq!(
        deleted.json(),
        json!({"id": second["id"], "object": "response", "deleted": true})
    );
    assert_eq!(get(&path).await.status, 404);
    let posted = send_request(&gateway, Method::POST, &path, KEY).await;
    assert_eq!(
        (posted.status, posted.header("allow")),
        (405, "GET, DELETE")
    );
}

#[tokio::test]
async fn failed_responses_and_those_with_store_false_are_not_stored() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let refused = async |id: &Value| {
        let next = json!({"model": "same-chat", "input": "Go on.", "previous_response_id": id});
        let response = respond(&gateway, &next).await;
        assert_eq!(response.status, 400);
        let error = response.json();
        assert_eq!(error["error"]["param"], "previous_response_id");
        assert_eq!(error["error"]["code"], "previous_response_not_found");
    };
    let unkept = json!({"model": "same-chat", "input": "Forget this.", "store": false});
    let unkept = reply(&respond(&gateway, &unkept).await, false);
    assert_eq!(unkept["store"], false);
    refused(&unkept["id"]).await;
    refused(&json!("resp_nobody")).await;
    let failed = json!({"model": "same-chat", "input": "mock:cut=3 mock:long", "stream": true});
    let failed = respond(&gateway, &failed).await;
    let started: Value = serde_json::from_str(&sse_events(failed.text())[0].1).expect("JSON");
    refused(&started["response"]["id"]).await;

    let off = every_format_config(mock.address)
        .replace("admin: ADMIN", "admin: ADMIN, conversations: off");
    let gateway = Gateway::start(&off);
    let body = json!({"model": "same-chat", "input": "Keep this.", "store": true});
    let response = respond(&gateway, &body).await;
    assert_eq!(response.header("x-omniglot-dropped"), "store");
    let id = response.json()["id"].clone();
    let path = format!("/v1/responses/{}", id.as_str().expect("an id"));
    assert_eq!(
        send_request(&gateway, Method::GET, &path, KEY).await.status,
        404
    );
}

/// An upstream of the same format that keeps replies gets the id; one that does not is told all.
#[tokio::test]
async fn an_upstream_that_stores_responses_itself_gets_the_id() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let config = format!(
        "{config}  - {{id: stateless, capabilities: {{responses_keeps_state: false}}, upstreams: [{{name: mock-responses, model: theirs}}]}}\n"
    );
    let gateway = Gateway::start(&config);
    for stream in [false, true] {
        let first = json!({"model": "same-responses", "input": "Hi.", "stream": stream});
        let first = reply(&respond(&gateway, &first).await, stream);
        let next = json!({"model": "same-responses", "input": "mock:name=asked", "previous_response_id": first["id"]});
        let response = respond(&gateway, &next).await;
        // The mock keeps nothing, and says so in its own words: it was asked.
        assert_eq!(
            (response.status, response.header("x-omniglot-upstream")),
            (400, "mock-responses")
        );
        // To the upstream both keys are one, so the gateway tells them apart.
        let theirs = client()
            .post(gateway.url("/v1/responses"))
            .bearer_auth("key-of-some");
        let response = send(theirs.body(next.to_string())).await;
        assert_eq!(response.status, 400);
        assert_eq!(
            response.header("x-omniglot-upstream"),
            "",
            "{}",
            response.text()
        );
        let error = response.json();
        assert_eq!(error["error"]["code"], "previous_response_not_found");
        let path = format!("/v1/responses/{}", first["id"].as_str().expect("an id"));
        let kept = send_request(&gateway, Method::GET, &path, KEY).await;
        assert_eq!(kept.status, 404, "{}", kept.text());
    }
    let body =
        json!({"model": "same-responses", "input": "Hi.", "previous_response_id": "resp_theirs"});
    let response = respond(&gateway, &body).await;
    assert_eq!(
        response.json()["error"]["code"],
        "previous_response_not_found"
    );

    for stream in [false, true] {
        let first = json!({"model": "stateless", "input": "My name is Ada.", "stream": stream});
        let first = reply(&respond(&gateway, &first).await, stream);
        let next = json!({"model": "stateless", "input": "mock:echo Who?", "previous_response_id": first["id"]});
        let sent = echoed_request("responses", &respond(&gateway, &next).await);
        let sent: Value =
            serde_json::from_str(sent["body"].as_str().expect("a body")).expect("JSON");
        assert_eq!(sent["previous_response_id"], Value::Null);
        assert_eq!(sent["input"].as_array().expect("a list").len(), 3);
    }
    // A long one goes out in pieces and is kept whole.
    let long = json!({"model": "stateless", "input": "mock:long=100000"});
    let long = reply(&respond(&gateway, &long).await, false);
    assert_eq!(long["model"], "stateless");
    let path = format!("/v1/responses/{}", long["id"].as_str().expect("an id"));
    let kept = send_request(&gateway, Method::GET, &path, KEY).await;
    assert_eq!(kept.json(), long);
    // A reply that the gateway kept can go on at any upstream.
    let first = json!({"model": "same-chat", "input": "My name is Ada."});
    let first = reply(&respond(&gateway, &first).await, false);
    let next = json!({"model": "same-responses", "input": "mock:echo Who?", "previous_response_id": first["id"]});
    let sent = echoed_request("responses", &respond(&gateway, &next).await)["body"].to_string();
    assert!(sent.contains("Ada"), "{sent}");
}

#[tokio::test]
async fn losses_are_reported_for_the_current_request_only() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let marked = |words: &str| json!([{"role": "user", "content": [{"type": "input_text", "text": words, "unheard_of": 1}]}]);
    let first = json!({"model": "same-messages", "input": marked("One.")});
    let first = respond(&gateway, &first).await;
    let path = "input[0].content[0].unheard_of";
    assert_eq!(first.header("x-omniglot-dropped"), path);
    let next = json!({"model": "same-messages", "input": "Two.", "previous_response_id": first.json()["id"]});
    let next = respond(&gateway, &next).await;
    assert_eq!((next.status, next.header("x-omniglot-dropped")), (200, ""));
    let last = json!({"model": "same-messages", "input": marked("Three."), "previous_response_id": next.json()["id"]});
    let last = respond(&gateway, &last).await;
    assert_eq!(last.header("x-omniglot-dropped"), path);
}

#[tokio::test]
async fn token_counts_include_the_stored_conversation() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let first = json!({"model": "same-messages", "input": "one two three"});
    let first = reply(&respond(&gateway, &first).await, false);
    let count = async |body: Value| {
        let url = gateway.url("/v1/responses/input_tokens");
        let response = post(url, body.to_string()).await;
        assert_eq!(response.status, 200, "{}", response.text());
        response.json()["input_tokens"].as_u64().expect("a number")
    };
    let alone = count(json!({"model": "same-messages", "input": "four"})).await;
    let whole = count(
        json!({"model": "same-messages", "input": "four", "previous_response_id": first["id"]}),
    )
    .await;
    // "one two three", and "You said: one two three".
    assert_eq!(whole, alone + 8);
}

#[tokio::test]
async fn a_websocket_is_refused_so_that_clients_fall_back_at_once() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    let upgrade = client()
        .get(gateway.url("/v1/responses"))
        .bearer_auth(KEY)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    let response = send(upgrade).await;
    assert_eq!(response.status, 426, "{}", response.text());
    response.error("responses");
    let plain = send_request(&gateway, Method::GET, "/v1/responses", KEY).await;
    assert_eq!((plain.status, plain.header("allow")), (405, "POST"));
}

#[tokio::test]
async fn every_response_has_the_request_id_header_of_its_format() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        for (prompt, stream) in [("hi", false), ("hi", true), ("mock:error=500", false)] {
            for upstream in ["chat", "messages"] {
                let (path, body) = request(format, &format!("same-{upstream}"), prompt, stream);
                let response = post(gateway.url(&path), body.to_string()).await;
                let id = response.header("x-request-id");
                assert!(id.starts_with("req_"), "{format} {prompt}");
                let theirs = if format == "messages" { id } else { "" };
                assert_eq!(response.header("request-id"), theirs, "{format} {prompt}");
            }
        }
    }
}

/// Clients such as the Vercel AI SDK send the ids of items that they were given, instead of the items.
#[tokio::test]
async fn items_of_a_stored_response_can_be_referred_to_by_their_ids() {
    let mock = Mock::start();
    let config = every_format_config(mock.address);
    let config = format!(
        "{config}  - {{id: same-stateless, capabilities: {{responses_keeps_state: false}}, upstreams: [{{name: mock-responses, model: theirs}}]}}\n"
    );
    let gateway = Gateway::start(&config);
    let tools = json!([{"type": "function", "name": "look", "parameters": {"type": "object"}}]);
    for upstream in ["chat", "messages", "native", "stateless"] {
        for stream in [false, true] {
            let model = format!("same-{upstream}");
            let ask = json!({"role": "user", "content": "mock:tool mock:thinking Look!"});
            let first = json!({"model": model, "tools": tools, "input": [ask], "stream": stream});
            let first = reply(&respond(&gateway, &first).await, stream);
            let output = first["output"].as_array().expect("a list");
            let call = output.iter().find(|item| item["type"] == "function_call");
            let call_id = &call.expect("a call")["call_id"];
            let references = output
                .iter()
                .map(|item| json!({"type": "item_reference", "id": item["id"]}));
            let result =
                json!({"type": "function_call_output", "call_id": call_id, "output": "seven"});
            let next = json!({"role": "user", "content": "mock:echo Go on."});
            let ask = json!({"role": "user", "content": "Look!"});
            let input: Vec<Value> = [ask]
                .into_iter()
                .chain(references)
                .chain([result, next])
                .collect();
            let second = json!({"model": model, "tools": tools, "input": input});
            let response = respond(&gateway, &second).await;
            assert_eq!(response.status, 200, "{upstream}: {}", response.text());
            let sent = echoed_request("responses", &response)["body"].to_string();
            assert!(!sent.contains("item_reference"), "{upstream}: {sent}");
            // Once where it is declared, and once where it is called.
            assert!(sent.matches("look").count() >= 2, "{upstream}: {sent}");
            let words = ["Look!", "seven", "Go on."];
            let places: Vec<_> = words.iter().map(|words| sent.find(words)).collect();
            assert!(
                places.iter().all(Option::is_some) && places.is_sorted(),
                "{upstream}: {sent}"
            );

            // What is stored of the second request holds the items as well.
            let path = format!(
                "/v1/responses/{}/input_items?order=asc",
                response.json()["id"].as_str().expect("an id")
            );
            let list = send_request(&gateway, Method::GET, &path, KEY).await.json();
            let items = list["data"].as_array().expect("a list");
            assert!(
                items.iter().any(|item| item["type"] == "function_call"),
                "{list}"
            );

            // A short body would stand for a very long one.
            let mut twice = second.clone();
            let items = twice["input"].as_array_mut().expect("a list");
            items.push(items[1].clone());
            let refused = respond(&gateway, &twice).await;
            assert_eq!(refused.status, 400, "{}", refused.text());
            let message = refused.error("responses");
            assert!(message.contains("is referred to twice"), "{message}");

            let theirs = client()
                .post(gateway.url("/v1/responses"))
                .bearer_auth("key-of-some")
                .body(second.to_string());
            let theirs = send(theirs).await;
            assert_eq!(theirs.status, 400, "{}", theirs.text());
        }
    }
}

#[tokio::test]
async fn the_responses_of_a_key_do_not_evict_those_of_another() {
    let mock = Mock::start();
    let text = every_format_config(mock.address);
    let size = "admin: ADMIN, conversations: {size: 1MiB}";
    let gateway = Gateway::start(&text.replace("admin: ADMIN", size));
    let body = json!({"model": "same-chat", "input": "My name is Ada."});
    let kept = reply(&respond(&gateway, &body).await, false);
    let large = json!({"model": "same-chat", "input": "x".repeat(100_000)}).to_string();
    for _ in 0..30 {
        let request = client().post(gateway.url("/v1/responses"));
        let request = request.header("content-type", "application/json");
        let response = send(request.bearer_auth("key-of-some").body(large.clone())).await;
        assert_eq!(response.status, 200, "{}", response.text());
    }
    let path = format!("/v1/responses/{}", kept["id"].as_str().expect("an id"));
    let response = send_request(&gateway, Method::GET, &path, KEY).await;
    assert_eq!(response.status, 200, "{}", response.text());
}
