//! Alerts through pages and API, told by a mail server; and the public page of scorecards.

use omniglot_test_support::{SmtpServer, wait_until};
use reqwest::Method;
use reqwest::header::LOCATION;
use serde_json::{Value, json};

use crate::console::{PASSWORD, Session, TestConsole};

fn settings(server: &SmtpServer) -> String {
    format!(
        ", public_url: \"https://console.example.com\", trusted_proxies: [127.0.0.1], sign_up: open, \
         mail: {{from: \"Omniglot <noreply@example.com>\", smtp: \"smtp://{}\"}}",
        server.address
    )
}

/// Signs up by mail, which proves the address.
async fn sign_up<'c>(console: &'c TestConsole, server: &SmtpServer) -> Session<'c> {
    let post = async |path: &str, body: Value| {
        let request = console.client.post(console.url(path)).json(&body);
        request.send().await.expect("an answer")
    };
    let asked = post("/api/v1/sign-up", json!({"email": "ada@example.com"})).await;
    assert_eq!(asked.status(), 202);
    let token = server.until_received(1).await.token();
    let body = json!({"token": token, "handle": "ada", "password": PASSWORD});
    console.session(&post("/api/v1/invitations/accept", body).await)
}

#[tokio::test]
async fn a_mail_comes_when_a_threshold_is_reached() {
    let server = SmtpServer::start().await;
    let console = TestConsole::start(&settings(&server));
    let ada = sign_up(&console, &server).await;
    let body = json!({"label": "laptop", "spending_cap": 1, "reset": "none"});
    let key = ada
        .json(Method::POST, "/api/v1/accounts/ada/keys", Some(body), 201)
        .await;
    let id = key["id"].as_str().expect("an id");
    let body = json!({"key": id, "percents": [100, 30], "to": {"person": "ada"}});
    let alert = ada
        .json(Method::POST, "/api/v1/alerts", Some(body), 201)
        .await;
    assert_eq!(
        (&alert["percents"], &alert["secret"]),
        (&json!([30, 100]), &Value::Null)
    );
    // A test message, which the server takes at once.
    let path = format!("/api/v1/alerts/{}", alert["id"].as_str().expect("an id"));
    let tested = ada
        .json(Method::POST, &format!("{path}/test"), None, 200)
        .await;
    assert_eq!(tested, json!({"sent": true, "reason": null}));
    let mail = server.until_received(2).await;
    assert!(mail.text.contains("Test message"), "{}", mail.text);
    let secret = key["secret"].as_str().expect("a secret");
    assert_eq!(console.chat(secret).await.status(), 200);
    // A threshold is reached because the cap is lowered. The mail is deferred once, and tried again.
    server.defer_next();
    let of_key = format!("/api/v1/keys/{id}");
    wait_until("the usage is in the store", async || {
        let key = ada.json(Method::GET, &of_key, None, 200).await;
        key["spent"] != 0
    })
    .await;
    let lower = json!({"spending_cap": "0.00001"});
    ada.json(Method::PATCH, &of_key, Some(lower), 200).await;
    wait_until("the mail is there", async || server.received().len() > 2).await;
    let mail = server.until_received(3).await;
    assert_eq!(mail.to, "ada@example.com");
    assert!(mail.text.contains("ada/laptop"), "{}", mail.text);
    let link = format!("https://console.example.com/keys/{id}/alerts");
    assert_eq!(mail.link(), link);
    wait_until("the outcome is noted", async || {
        let alerts = ada.json(Method::GET, "/api/v1/alerts", None, 200).await;
        alerts[0]["last"]["sent"] == true && alerts[0]["waiting"] == false
    })
    .await;
    let metrics = console.gateway.metric("omniglot_alerts_total").await;
    let sent = "omniglot_alerts_total{channel=\"mail\",outcome=\"sent\"} 1";
    assert!(metrics.iter().any(|line| line == sent), "{metrics:?}");
    // Changed and deleted.
    let changed = json!({"percents": [99]});
    let changed = ada.json(Method::PATCH, &path, Some(changed), 200).await;
    assert_eq!(changed["percents"], json!([99]));
    let deleted = ada.send(Method::DELETE, &path, None).await;
    assert_eq!(deleted.status(), 204);
    ada.json(Method::DELETE, &path, None, 404).await;
}

#[tokio::test]
async fn webhooks_are_public_and_their_secrets_are_shown_once() {
    let console = TestConsole::start("");
    let ada = console.account("ada", "member").await;
    let body = json!({"label": "laptop"});
    let key = ada
        .json(Method::POST, "/api/v1/accounts/ada/keys", Some(body), 201)
        .await;
    let id = key["id"].as_str().expect("an id");
    for url in [
        "https://127.0.0.1/",
        "https://localhost/",
        "https://[::ffff:10.0.0.1]/",
        "http://hooks.example.com/",
    ] {
        let body = json!({"key": id, "to": {"webhook": url}});
        let refused = ada
            .json(Method::POST, "/api/v1/alerts", Some(body), 400)
            .await;
        assert_eq!(refused["error"]["field"], "webhook", "{url}");
    }
    let path = format!("/keys/{id}/alerts");
    let page = ada.page(&path).await;
    assert!(page.contains("This console sends no mail"), "{page}");
    let form = format!(
        "percents=50%2C+80&to=webhook&webhook=https%3A%2F%2Fhooks.example.com%2Fsecret-path&next={path}"
    );
    let made = ada.form(&path, &form).await;
    assert_eq!(made.status(), 201);
    let page = made.text().await.expect("a page");
    let secret = page.split("whsec_").nth(1).expect("the secret");
    let secret = secret.split('<').next().expect("its end");
    let page = ada.page(&path).await;
    assert!(
        page.contains("https://hooks.example.com/secret-path"),
        "{page}"
    );
    assert!(!page.contains(secret), "it is shown once");
    let wrong = ada.form(&path, "percents=many&to=webhook").await;
    assert_eq!(wrong.status(), 400);
    let page = wrong.text().await.expect("a page");
    assert!(page.contains("role=\"alert\""), "{page}");
    // The alerts of the account are the owner's; the forms of the page change and delete.
    let alerts = ada.json(Method::GET, "/api/v1/alerts", None, 200).await;
    let alert = alerts[0]["id"].as_str().expect("an id");
    let next = format!("percents=10&next={path}");
    let changed = ada.form(&format!("/alerts/{alert}"), &next).await;
    let location = changed.headers()[LOCATION]
        .to_str()
        .expect("text")
        .to_owned();
    assert_eq!(location, format!("{path}?note=saved"));
    let deleted = ada.form(&format!("/alerts/{alert}/delete"), &next).await;
    assert_eq!(deleted.status(), 303);
    assert!(
        ada.page("/accounts/ada/alerts")
            .await
            .contains("no spending cap")
    );
    let log = console.log.text();
    assert!(
        !log.contains(secret) && !log.contains("secret-path"),
        "a log has a secret"
    );
}

#[tokio::test]
async fn the_scorecards_are_for_everybody() {
    let console = TestConsole::start("");
    let nobody = Session {
        console: &console,
        cookie: String::new(),
    };
    let found = nobody
        .json(Method::GET, "/api/v1/fidelity", None, 200)
        .await;
    let own = &found["gateways"][0];
    assert_eq!(
        (&own["offered"], &own["percent"]),
        (&json!(16), &json!(100))
    );
    assert_eq!(own["pairs"].as_array().map(Vec::len), Some(16));
    let page = nobody.page("/fidelity").await;
    for words in ["Fidelity", "100 %", "not offered", "The biggest losses"] {
        assert!(page.contains(words), "{words}");
    }
    assert!(
        nobody
            .page("/translate")
            .await
            .contains("href=\"/fidelity\"")
    );
    assert!(nobody.page("/models").await.contains("href=\"/fidelity\""));
}
