//! The inspector: what a request was and became, for the owners of its key alone, and without any credential.

use omniglot_test_support::{new_client, wait_until};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::console::{Session, TestConsole};

/// What the upstream `other` of the tests is sent.
const CREDENTIAL: &str = "credential-of-the-upstream";

/// A key of one's own account: its id and its secret.
async fn key(session: &Session<'_>, account: &str) -> (String, String) {
    let path = format!("/api/v1/accounts/{account}/keys");
    let body = json!({"label": "k", "spending_cap": 5});
    let made = session.json(Method::POST, &path, Some(body), 201).await;
    let text = |field: &str| made[field].as_str().expect("text").to_owned();
    (text("id"), text("secret"))
}

/// Starts an inspection of a key; its id.
async fn start(session: &Session<'_>, key: &str) -> String {
    let path = format!("/api/v1/keys/{key}/inspection");
    let started = session.json(Method::POST, &path, None, 201).await;
    started["id"].as_str().expect("an id").to_owned()
}

async fn ask(console: &TestConsole, secret: &str, body: &Value) -> Response {
    let request = new_client().post(
        console
            .gateway
            .url("/v1/chat/completions?user=1&token=t-o-k"),
    );
    let request = request.bearer_auth(secret).header("x-api-key", secret);
    request.json(body).send().await.expect("an answer")
}

/// The last request of an inspection, once it has ended.
async fn capture(session: &Session<'_>, inspection: &str, number: usize) -> Value {
    let path = format!("/api/v1/inspections/{inspection}");
    wait_until("the request has ended", async || {
        let view = session.json(Method::GET, &path, None, 200).await;
        view["requests"][number - 1]["status"].is_number()
    })
    .await;
    let path = format!("{path}/requests/{number}");
    session.json(Method::GET, &path, None, 200).await
}

fn kinds(capture: &Value, side: &str) -> Vec<String> {
    let events = capture["timeline"].as_array().expect("a timeline").iter();
    let events = events.filter(|event| event["side"] == side);
    let mut kinds: Vec<String> = events
        .map(|event| event["kind"].as_str().expect("a kind").to_owned())
        .collect();
    kinds.dedup();
    kinds
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("{pointer} of {value}"))
}

#[tokio::test]
async fn an_owner_sees_all_four_sides_of_a_stream_without_credentials() {
    let console = TestConsole::start("");
    let ada = console.account("ada", "member").await;
    let (key, secret) = key(&ada, "ada").await;
    let inspection = start(&ada, &key).await;
    // The upstream repeats everything that it was sent, its credential too.
    let prompt = format!("<script>alert(1)</script> my key is {secret} mock:echo");
    let body = json!({
        "model": "second", "seed": 7, "max_tokens": 20, "stream": true,
        "messages": [{"role": "user", "content": prompt}],
    });
    let answered = ask(&console, &secret, &body).await;
    assert_eq!(answered.status(), 200);
    answered.text().await.expect("a stream");
    let capture = capture(&ada, &inspection, 1).await;

    let head = text(&capture, "/client_request/head");
    assert!(
        head.starts_with("POST /v1/chat/completions?user=1&token=*** HTTP/1.1\n"),
        "{head}"
    );
    assert!(head.contains("\nauthorization: ***") && head.contains("\nx-api-key: ***"));
    let sent = text(&capture, "/client_request/body");
    assert!(sent.contains("\"seed\":7") && sent.contains("my key is ***"));
    // The first upstream is not there.
    assert_eq!(capture["attempts"][0]["upstream"], "gone");
    assert_eq!(capture["attempts"][0]["response"], Value::Null);
    let attempt = &capture["attempts"][1];
    assert_eq!(
        (&attempt["upstream"], &attempt["format"]),
        (&json!("other"), &json!("messages"))
    );
    let head = text(attempt, "/request/head");
    assert!(head.starts_with("POST /v1/messages HTTP/1.1\n"), "{head}");
    assert!(
        head.contains("\nx-api-key: ***") && head.contains("host: ***"),
        "{head}"
    );
    let sent = text(attempt, "/request/body");
    assert!(
        !sent.contains("seed") && sent.contains("max_tokens"),
        "{sent}"
    );
    assert!(text(attempt, "/response/head").contains("text/event-stream"));
    assert!(text(attempt, "/response/body").contains("event: message_start"));
    let got = text(&capture, "/client_response/body");
    assert!(got.contains("chat.completion.chunk") && got.ends_with("data: [DONE]\n\n"));
    let all = capture.to_string();
    for credential in [&*secret, CREDENTIAL, "t-o-k"] {
        assert!(!all.contains(credential), "{credential}: {all}");
    }

    // When it happened, what it cost and what was lost.
    assert_eq!(
        kinds(&capture, "upstream"),
        [
            "attempt_started",
            "sent",
            "attempt_failed",
            "attempt_started",
            "sent",
            "header_received",
            "stream_event"
        ]
    );
    assert_eq!(
        kinds(&capture, "client"),
        [
            "arrived",
            "body_read",
            "header_sent",
            "stream_event",
            "ended"
        ]
    );
    let names: Vec<&str> = capture["timeline"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|event| event["detail"].as_str())
        .collect();
    for name in [
        "message_start",
        "message_stop",
        "[DONE]",
        "gone",
        "other",
        "200",
    ] {
        assert!(names.contains(&name), "{name}: {names:?}");
    }
    let times = capture["timeline"].as_array().expect("events").iter();
    let times: Vec<f64> = times
        .map(|event| event["ms"].as_f64().expect("ms"))
        .collect();
    assert!(times.is_sorted() && times[0] == 0.0, "{times:?}");
    assert_eq!(capture["dropped"], json!(["seed", "?user", "?token"]));
    assert!(capture["cost"].as_f64().is_some_and(|cost| cost > 0.0));
    let bill = format!("/api/v1/requests/{}", text(&capture, "/request_id"));
    wait_until("the bill is in the store", async || {
        ada.send(Method::GET, &bill, None).await.status() == 200
    })
    .await;
    let bill = ada.json(Method::GET, &bill, None, 200).await;
    assert_eq!(bill["cost"], capture["cost"]);

    // The page shows the same, escaped.
    let page = ada.page(&format!("/inspections/{inspection}/1")).await;
    assert!(page.contains("&#60;script&#62;alert(1)") && !page.contains("<script>alert"));
    for part in ["message_start", "<code>seed</code>", "x-api-key: ***"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains(&secret) && !page.contains(CREDENTIAL));
    let page = ada.page(&format!("/inspections/{inspection}")).await;
    assert!(page.contains(&format!("/inspections/{inspection}/1")) && page.contains("second"));
    assert!(
        page.contains(&format!("({})", console.gateway.process.id())),
        "{page}"
    );
}

#[tokio::test]
async fn others_see_nothing_and_what_was_captured_is_not_stored() {
    let console = TestConsole::start("");
    let ada = console.account("ada", "member").await;
    let (eve, admin) = (
        console.account("eve", "member").await,
        console.account("root", "admin").await,
    );
    let (id, secret) = key(&ada, "ada").await;
    let own = format!("/api/v1/keys/{id}/inspection");
    for (session, status) in [(&eve, 404), (&admin, 403)] {
        session.json(Method::POST, &own, None, status).await;
        session.json(Method::DELETE, &own, None, status).await;
    }
    assert!(
        !admin
            .page(&format!("/keys/{id}"))
            .await
            .contains("/inspection")
    );
    ada.json(Method::DELETE, &own, None, 404).await;
    // Before it begins nothing is captured.
    assert_eq!(console.chat(&secret).await.status(), 200);
    let page = ada.page(&format!("/keys/{id}")).await;
    assert!(page.contains("Start inspecting"));
    let started = ada.form(&format!("/keys/{id}/inspection"), "").await;
    let path = started.headers()["location"]
        .to_str()
        .expect("a path")
        .to_owned();
    let inspection = path.rsplit('/').next().expect("an id").to_owned();
    assert_eq!(start(&ada, &id).await, inspection, "it is the same one");
    let body =
        json!({"model": "m", "messages": [{"role": "user", "content": "quite a secret plan"}]});
    assert_eq!(ask(&console, &secret, &body).await.status(), 200);
    // A refusal is captured as well; a list is not.
    let unknown = json!({"model": "nothing", "messages": []});
    assert_eq!(ask(&console, &secret, &unknown).await.status(), 404);
    let list = new_client().get(console.gateway.url("/v1/models"));
    assert_eq!(
        list.bearer_auth(&secret).send().await.expect("it").status(),
        200
    );
    let refused = capture(&ada, &inspection, 2).await;
    assert_eq!(
        (&refused["status"], &refused["attempts"]),
        (&json!(404), &json!([]))
    );
    for path in [
        &path,
        &format!("{path}/1"),
        &format!("/api/v1{path}"),
        &format!("/api/v1{path}/requests/1"),
    ] {
        for session in [&eve, &admin] {
            let status = session.send(Method::GET, path, None).await.status();
            assert_eq!(status, 404, "{path}");
        }
        let nobody = console.client.get(console.url(path)).send().await;
        let status = nobody.expect("an answer").status();
        assert!([303, 401].contains(&status.as_u16()), "{path}: {status}");
    }
    let ended = ada.form(&format!("/keys/{id}/inspection/end"), "").await;
    assert_eq!(ended.headers()["location"], path.as_str());
    assert_eq!(console.chat(&secret).await.status(), 200);
    let view = ada
        .json(Method::GET, &format!("/api/v1{path}"), None, 200)
        .await;
    assert_eq!(view["requests"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        (&view["running"], &view["left"]),
        (&json!(false), &json!(0))
    );

    let files = std::fs::read_dir(console.folder.path()).expect("a folder");
    let files = files.filter_map(|file| std::fs::read(file.expect("a file").path()).ok());
    let stored: Vec<u8> = files.flatten().collect();
    let holds = |text: &str| memchr::memmem::find(&stored, text.as_bytes()).is_some();
    assert!(holds("inspection.start") && holds("inspection.end") && holds("ada/k"));
    assert!(!holds("secret plan"));
    assert!(!console.log.text().contains("secret plan"));
}

#[tokio::test]
async fn an_inspection_ends_with_its_last_request_and_tells_so() {
    let console = TestConsole::start("");
    let ada = console.account("ada", "member").await;
    let (id, secret) = key(&ada, "ada").await;
    let inspection = start(&ada, &id).await;
    let path = format!("/api/v1/inspections/{inspection}");
    let stream = console.client.get(console.url(&path));
    let stream = stream.header("cookie", &ada.cookie);
    let stream = stream.header("accept", "text/event-stream").send().await;
    let stream = stream.expect("an answer");
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    // What is longer than a pane is cut, and says so.
    let long =
        json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(400 << 10)}]});
    assert_eq!(ask(&console, &secret, &long).await.status(), 200);
    let cut = capture(&ada, &inspection, 1).await;
    let request = &cut["client_request"];
    assert_eq!(request["cut"], true);
    let shown = text(request, "/body").len();
    assert!(
        shown <= 256 << 10 && request["size"].as_u64() > Some(400 << 10),
        "{shown}"
    );
    let page = ada.page(&format!("/inspections/{inspection}/1")).await;
    assert!(page.contains("cut: the first part is shown"));
    for number in 2..=21 {
        let left = ada.json(Method::GET, &path, None, 200).await["left"].clone();
        assert_eq!(left, json!(21 - number));
        assert_eq!(console.chat(&secret).await.status(), 200);
    }
    let view = ada.json(Method::GET, &path, None, 200).await;
    assert_eq!(view["requests"].as_array().map(Vec::len), Some(20));
    let events = stream.text().await.expect("events");
    assert!(events.contains("event: inspection\n"), "{events}");
    let last = events
        .rsplit("event: end\ndata: ")
        .next()
        .expect("an event");
    let last = last.lines().next().expect("a line");
    let last: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(
        (&last["running"], &last["left"]),
        (&json!(false), &json!(0))
    );
}

#[tokio::test]
async fn keys_of_the_config_are_inspected_by_administrators() {
    let console = TestConsole::start("");
    let (ada, admin) = (
        console.account("ada", "member").await,
        console.account("root", "admin").await,
    );
    let page = admin.page("/config-keys").await;
    let id = page
        .split("/keys/")
        .nth(1)
        .and_then(|rest| rest.split('/').next());
    let id = id.expect("a form");
    let path = format!("/api/v1/keys/{id}/inspection");
    ada.json(Method::POST, &path, None, 403).await;
    let inspection = start(&admin, id).await;
    assert_eq!(console.chat("a-secret-of-the-config").await.status(), 200);
    let capture = capture(&admin, &inspection, 1).await;
    assert!(!capture.to_string().contains("a-secret-of-the-config"));
    ada.json(
        Method::GET,
        &format!("/api/v1/inspections/{inspection}"),
        None,
        404,
    )
    .await;
    admin.json(Method::DELETE, &path, None, 204).await;
}

#[tokio::test]
async fn the_inspector_can_be_switched_off() {
    let console = TestConsole::start(", inspector: off");
    let ada = console.account("ada", "member").await;
    let (id, _) = key(&ada, "ada").await;
    let path = format!("/api/v1/keys/{id}/inspection");
    let refused = ada.json(Method::POST, &path, None, 404).await;
    assert_eq!(refused["error"]["code"], "inspector_off");
    assert!(
        !ada.page(&format!("/keys/{id}"))
            .await
            .contains("/inspection")
    );
}
