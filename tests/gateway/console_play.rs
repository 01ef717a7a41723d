//! Play: a conversation by one's own key through the gateway's own listener, with real limits and bills.

use omniglot_test_support::wait_until;
use reqwest::Method;
use serde_json::{Value, json};

use crate::console::{Session, TestConsole};

/// A key of one's own account, by its id.
async fn key(session: &Session<'_>, account: &str, body: Value) -> String {
    let path = format!("/api/v1/accounts/{account}/keys");
    let made = session.json(Method::POST, &path, Some(body), 201).await;
    made["id"].as_str().expect("an id").to_owned()
}

/// Sends a message; the events of the answer.
async fn play(session: &Session<'_>, body: Value) -> Vec<Value> {
    let response = session.send(Method::POST, "/api/v1/play", Some(body)).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.expect("a stream");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("JSON"))
        .collect()
}

fn answer(events: &[Value]) -> String {
    let texts = events.iter().filter(|event| event["type"] == "text");
    texts.filter_map(|event| event["text"].as_str()).collect()
}

#[tokio::test]
async fn every_format_plays_with_real_bills_and_shows_both_sides() {
    let console = TestConsole::start("");
    let ada = console.account("ada", "member").await;
    let id = key(&ada, "ada", json!({"label": "k", "spending_cap": 5})).await;
    let options = ada.json(Method::GET, "/api/v1/play", None, 200).await;
    assert_eq!(options["keys"], json!([{"id": id, "name": "ada/k"}]));
    assert_eq!(options["models"], json!(["m", "second"]));
    for (number, (format, path, sign)) in [
        ("chat", "/v1/chat/completions", "chat.completion.chunk"),
        ("responses", "/v1/responses", "response.completed"),
        ("messages", "/v1/messages", "message_stop"),
        (
            "native",
            "/v1beta/models/second:streamGenerateContent?alt=sse",
            "candidates",
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let body = json!({
            "key": id, "model": "second", "format": format, "system": "Be short.",
            "turns": ["hello", "hi", "what <b>now</b>"],
        });
        let events = play(&ada, body).await;
        assert_eq!(answer(&events), "You said: what <b>now</b>", "{format}");
        let done = events.last().expect("an end");
        assert_eq!(
            (&done["type"], &done["status"]),
            (&json!("done"), &json!(200))
        );
        assert!(
            done["cost"].as_f64().is_some_and(|cost| cost > 0.0),
            "{done}"
        );
        let inspection = done["inspection"].as_str().expect("an id");
        let path_of_capture = format!("/api/v1/inspections/{inspection}/requests/1");
        let capture = ada.json(Method::GET, &path_of_capture, None, 200).await;
        let head = capture["client_request"]["head"].as_str().expect("a head");
        assert!(head.starts_with(&format!("POST {path} HTTP/1.1")), "{head}");
        assert!(head.contains("authorization: ***"), "{head}");
        let got = capture["client_response"]["body"].as_str().expect("a body");
        assert!(got.contains(sign), "{format}: {got}");
        let sent = &capture["attempts"][1]["request"]["body"];
        assert!(sent.as_str().is_some_and(|sent| sent.contains("Be short.")));
        assert!(!capture.to_string().contains("sk-omniglot-"));
        // The bill is that of any other request of the key.
        let bill = format!(
            "/api/v1/requests/{}",
            done["request_id"].as_str().expect("an id")
        );
        wait_until("the bill is in the store", async || {
            ada.send(Method::GET, &bill, None).await.status() == 200
        })
        .await;
        let bill = ada.json(Method::GET, &bill, None, 200).await;
        assert_eq!(
            (&bill["key"], &bill["cost"]),
            (&json!("ada/k"), &done["cost"])
        );
        assert_eq!(bill["format"], format, "{number}");
    }
    let secrets = console.log.text();
    assert!(!secrets.contains("sk-omniglot-"), "no secret is logged");
}

#[tokio::test]
async fn the_form_answers_with_the_next_page_and_refusals_are_shown() {
    let console = TestConsole::start("");
    let ada = console.account("ada", "member").await;
    assert!(
        ada.page("/play")
            .await
            .contains("You have no key to play with")
    );
    let id = key(
        &ada,
        "ada",
        json!({"label": "k", "spending_cap": 5, "models": ["m"]}),
    )
    .await;
    let page = ada.page("/play").await;
    assert!(
        page.contains("ada/k") && page.contains("data-play"),
        "{page}"
    );
    let send = async |fields: &[(&str, &str)]| {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs([("key", &*id), ("format", "messages")]);
        body.extend_pairs(fields);
        let response = ada.form("/play", &body.finish()).await;
        let status = response.status().as_u16();
        (status, response.text().await.expect("a page"))
    };
    let (status, page) = send(&[("model", "m"), ("message", "a <i>lighthouse</i>")]).await;
    assert_eq!(status, 200);
    for part in [
        "You said: a &#60;i&#62;lighthouse&#60;/i&#62;",
        "name=\"turn\" value=\"a &#60;i&#62;lighthouse",
        "POST /v1/messages HTTP/1.1",
        "x-api-key: ***",
        "event: message_stop",
        "/inspections/",
    ] {
        let is_of_upstream = part == "x-api-key: ***";
        assert!(page.contains(part) || is_of_upstream, "{part}: {page}");
    }
    assert!(!page.contains("<i>lighthouse"));
    // A conversation goes on with what was said before.
    let more = [
        ("model", "m"),
        ("turn", "one"),
        ("turn", "two"),
        ("message", "three"),
    ];
    let (_, page) = send(&more).await;
    assert!(
        page.contains("You said: three") && page.contains(">two<"),
        "{page}"
    );
    // What the gateway refuses is shown in its words, and the message is kept.
    let (status, page) = send(&[("model", "second"), ("message", "again")]).await;
    assert_eq!(status, 200);
    assert!(page.contains("may not use the model") && page.contains(">again</textarea>"));
    let (status, page) = send(&[("model", "m"), ("message", " ")]).await;
    assert!(status == 400 && page.contains("Write a message."), "{page}");
}

#[tokio::test]
async fn nobody_plays_with_the_key_of_another_and_a_spent_cap_holds() {
    let console = TestConsole::start("");
    let ada = console.account("ada", "member").await;
    let (eve, admin) = (
        console.account("eve", "member").await,
        console.account("root", "admin").await,
    );
    let spent = json!({"label": "k", "spending_cap": 0.0001});
    let id = key(&ada, "ada", spent).await;
    let ask = |key: &str| json!({"key": key, "model": "m", "format": "chat", "turns": ["hi"]});
    for (session, status) in [(&eve, 404), (&admin, 403)] {
        session
            .json(Method::POST, "/api/v1/play", Some(ask(&id)), status)
            .await;
    }
    let events = play(&ada, ask(&id)).await;
    assert_eq!(events[0]["type"], "failed", "{events:?}");
    assert_eq!(events[1]["status"], 429, "{events:?}");
    let inspection = events[1]["inspection"].as_str().expect("an id");
    let path = format!("/api/v1/inspections/{inspection}");
    // What one asked oneself is for nobody else, and inspects nothing else of the key.
    for session in [&eve, &admin] {
        session.json(Method::GET, &path, None, 404).await;
    }
    let view = ada.json(Method::GET, &path, None, 200).await;
    assert_eq!(
        (&view["running"], &view["left"]),
        (&json!(false), &json!(0))
    );
    let page = ada.page(&format!("/keys/{id}")).await;
    assert!(page.contains("Start inspecting"));
    // The operator's own keys are for administrators.
    let options = admin.json(Method::GET, "/api/v1/play", None, 200).await;
    let fixed = options["keys"][0]["id"].as_str().expect("an id");
    assert_eq!(options["keys"][0]["name"], "fixed");
    assert_eq!(answer(&play(&admin, ask(fixed)).await), "You said: hi");
    ada.json(Method::POST, "/api/v1/play", Some(ask(fixed)), 403)
        .await;
    let revoked = format!("/api/v1/keys/{id}");
    ada.json(Method::DELETE, &revoked, None, 204).await;
    ada.json(Method::POST, "/api/v1/play", Some(ask(&id)), 404)
        .await;
}

#[tokio::test]
async fn without_the_inspector_only_the_answer_is_shown() {
    let console = TestConsole::start(", inspector: off");
    let ada = console.account("ada", "member").await;
    let id = key(&ada, "ada", json!({"label": "k"})).await;
    let body = json!({"key": id, "model": "m", "format": "chat", "turns": ["hi"]});
    let events = play(&ada, body).await;
    assert_eq!(answer(&events), "You said: hi");
    let done = events.last().expect("an end");
    assert_eq!(
        (&done["inspection"], &done["cost"]),
        (&Value::Null, &Value::Null)
    );
    assert!(
        done["request_id"]
            .as_str()
            .is_some_and(|id| id.starts_with("req_"))
    );
}
