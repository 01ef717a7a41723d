//! The translation explorer of the console: for everybody, bounded, and without a trace of what was sent.

use reqwest::Response;
use reqwest::header::{ACCEPT_LANGUAGE, CONTENT_SECURITY_POLICY, RETRY_AFTER};
use serde_json::{Value, json};

use crate::console::TestConsole;

async fn get(console: &TestConsole, path: &str) -> Response {
    let request = console.client.get(console.url(path));
    request.send().await.expect("an answer")
}

/// Sends a form as browsers do; nobody is signed in.
async fn submit(console: &TestConsole, fields: &[(&str, &str)]) -> Response {
    let mut body = url::form_urlencoded::Serializer::new(String::new());
    body.extend_pairs(fields);
    let request = console.client.post(console.url("/translate"));
    let request = request
        .header("content-type", "application/x-www-form-urlencoded")
        .header("sec-fetch-site", "same-origin");
    let sent = request.body(body.finish()).send();
    sent.await.expect("an answer")
}

async fn translated(console: &TestConsole, body: Value) -> (u16, Value) {
    let request = console.client.post(console.url("/api/v1/translate"));
    let response = request.json(&body).send().await.expect("an answer");
    let status = response.status().as_u16();
    (status, response.json().await.expect("JSON"))
}

#[tokio::test]
async fn everybody_sees_what_becomes_of_a_body() {
    let console = TestConsole::start("");
    let response = get(&console, "/translate").await;
    assert_eq!(response.status(), 200);
    let policy = &response.headers()[CONTENT_SECURITY_POLICY];
    assert!(policy.to_str().expect("text").contains("script-src 'self'"));
    let page = response.text().await.expect("text");
    for part in [
        "OpenAI Chat Completions",
        "class=\"line dropped\"",
        "<mark class=\"dropped\">&#34;seed&#34;</mark>",
        "href=\"/sign-in\"",
        "name=\"messages_version\"",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("data-linked") && !page.contains("name=\"chat_think_tags\""));

    // The settings are in the query, and so is what is shown of another format.
    let path = "/translate?kind=response&from=native&to=messages";
    let page = get(&console, path).await.text().await.expect("text");
    assert!(page.contains("usageMetadata") && page.contains("stop_reason"));
    let path = "/translate?from=chat&to=chat&chat_unsupported=seed";
    let page = get(&console, path).await.text().await.expect("text");
    assert!(page.contains("passes through") && page.contains("class=\"line dropped\""));
    // What is behind the # of a link does not come here.
    let path = "/translate?from=chat&to=native&linked=1";
    let page = get(&console, path).await.text().await.expect("text");
    assert!(page.contains("data-linked") && !page.contains("class=\"line"));
    let chinese = console.client.get(console.url("/translate"));
    let chinese = chinese.header(ACCEPT_LANGUAGE, "zh-CN").send().await;
    let page = chinese.expect("an answer").text().await.expect("text");
    assert!(page.contains("<h1>转换</h1>"));
    let unknown = get(&console, "/translate?from=latin").await;
    assert_eq!(unknown.status(), 400);
}

#[tokio::test]
async fn a_form_translates_what_was_pasted_and_leaves_no_trace() {
    let console = TestConsole::start("");
    let secret = "what-nobody-else-may-read";
    let input = format!(
        "{{\"model\": \"m\", \"seed\": 7,\r\n\"messages\": [{{\"role\": \"user\", \"content\": \"{secret} </textarea><script>x()\"}}]}}"
    );
    let fields = [
        ("kind", "request"),
        ("from", "chat"),
        ("to", "responses"),
        ("sampling", ""),
        ("responses_encrypted_reasoning", "false"),
        ("input", &input),
    ];
    let response = submit(&console, &fields).await;
    assert_eq!(response.status(), 200);
    let page = response.text().await.expect("text");
    assert!(page.contains("<code>seed</code>") && page.contains(secret));
    assert!(!page.contains("<script>x") && !page.contains("</textarea><script"));
    let link = page
        .split("id=\"view-link\" href=\"")
        .nth(1)
        .expect("a link");
    let link = link
        .split('"')
        .next()
        .expect("its end")
        .replace("&#38;", "&");
    let (address, fragment) = link.split_once('#').expect("a fragment");
    assert!(
        address.contains("linked=1") && address.contains("responses_encrypted_reasoning=false")
    );
    assert!(!address.contains(secret) && fragment.starts_with("input="));

    // An example follows the format, and an empty text is one.
    let fields = [("from", "messages"), ("to", "chat"), ("input", "")];
    let page = submit(&console, &fields).await.text().await.expect("text");
    assert!(page.contains("stop_sequences") && page.contains("<code>top_k</code>"));
    assert!(!page.contains("#input="), "a link to an example is short");

    // What the gateway refuses is refused here in its words.
    let broken = input.replace("\"seed\": 7", "\"temperature\": 9");
    let fields = [("from", "chat"), ("to", "messages"), ("input", &broken)];
    let page = submit(&console, &fields).await.text().await.expect("text");
    assert!(page.contains("class=\"line refused\"") && page.contains("temperature"));

    let mistaken = submit(&console, &[("max_output_tokens", "many")]).await;
    assert_eq!(mistaken.status(), 400);
    let mistaken = submit(&console, &[("efforts", "sideways")]).await;
    assert_eq!(mistaken.status(), 400);
    assert!(
        mistaken
            .text()
            .await
            .expect("text")
            .contains("efforts: sideways")
    );

    let log = console.log.text();
    assert!(!log.contains(secret), "{log}");
}

/// A stream of which each few bytes become several events.
fn many_parts() -> String {
    let parts = [r#"{"text":"a"}"#, r#"{"text":"b","thought":true}"#].join(",");
    let parts = vec![parts; 5000].join(",");
    format!(
        "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{parts}]}},\"finishReason\":\"STOP\"}}]}}\n\n"
    )
}

#[tokio::test]
async fn the_api_translates_and_names_what_is_wrong() {
    let console = TestConsole::start("");
    let request = json!({"model": "m", "seed": 7, "reasoning_effort": "high", "messages": [{"role": "user", "content": "hi"}]});
    let body = json!({"from": "chat", "to": "messages", "input": request, "model": "other", "max_output_tokens": 77});
    let (status, view) = translated(&console, body).await;
    assert_eq!(status, 200, "{view}");
    let sent: Value = serde_json::from_str(view["output"].as_str().expect("a text")).expect("JSON");
    assert_eq!(
        (&sent["model"], &sent["max_tokens"]),
        (&json!("other"), &json!(77))
    );
    let losses = view["losses"].as_array().expect("losses");
    let seed =
        json!({"action": "dropped", "path": "seed", "is_in_input": true, "output_path": null});
    assert!(losses.contains(&seed), "{view}");
    let limit = losses.iter().find(|loss| loss["action"] == "added");
    assert_eq!(limit.expect("a limit")["output_path"], "max_tokens");
    assert_eq!(view["refused"], Value::Null);

    // The same as text, with a capability.
    let body = json!({"from": "chat", "to": "messages", "input": request.to_string(), "capabilities": {"messages_thinking": "budget", "messages_mid_system": true}});
    let (_, view) = translated(&console, body).await;
    assert!(
        view["output"]
            .as_str()
            .expect("a text")
            .contains("budget_tokens"),
        "{view}"
    );

    let wrong = |change: Value| {
        let mut body = json!({"from": "chat", "to": "messages", "input": {}});
        for (name, value) in change.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    for (change, field) in [
        (json!({"to": "latin"}), "to"),
        (json!({"kind": "song"}), "kind"),
        (json!({"capabilities": {"wings": true}}), "capabilities"),
        (json!({"max_output_tokens": 0}), "max_output_tokens"),
        (json!({"input": "x".repeat((256 << 10) + 1)}), "input"),
        (
            json!({"kind": "stream", "from": "native", "to": "responses", "input": many_parts()}),
            "input",
        ),
        (json!({"unknown": 1}), "body"),
    ] {
        let (status, refusal) = translated(&console, wrong(change)).await;
        assert_eq!(
            (status, &refusal["error"]["field"]),
            (400, &json!(field)),
            "{refusal}"
        );
    }
    let largest = json!({"from": "chat", "to": "messages", "input": "x".repeat(256 << 10)});
    let (status, view) = translated(&console, largest).await;
    assert_eq!((status, &view["refused"]["status"]), (200, &json!(400)));

    // Bodies of everything else stay small.
    let long = json!({"login": "ada", "password": "x".repeat(100 << 10)});
    let request = console
        .client
        .post(console.url("/api/v1/session"))
        .json(&long);
    let response = request.send().await.expect("an answer");
    assert!(
        matches!(response.status().as_u16(), 400 | 413),
        "{}",
        response.status()
    );
    let description = get(&console, "/openapi.json").await;
    let description: Value = description.json().await.expect("JSON");
    assert!(description["paths"]["/api/v1/translate"]["post"].is_object());
}

#[tokio::test]
async fn a_network_translates_only_so_much() {
    let console = TestConsole::start("");
    let body = json!({"from": "chat", "to": "messages", "input": {}});
    let mut refused = None;
    for _ in 0..200 {
        let request = console.client.post(console.url("/api/v1/translate"));
        let response = request.json(&body).send().await.expect("an answer");
        if response.status() == 429 {
            refused = Some(response);
            break;
        }
    }
    let refused = refused.expect("a refusal");
    assert!(refused.headers().contains_key(RETRY_AFTER));
    // The page is still there, with its form.
    let response = get(&console, "/translate").await;
    assert_eq!(response.status(), 429);
    let page = response.text().await.expect("text");
    assert!(page.contains("role=\"alert\"") && page.contains("<textarea"));
}
