//! The console with a mail server: accounts of proven addresses, lost passwords, and what nobody learns from them.

use omniglot_test_support::{CertificateAuthority, SmtpServer, free_address, wait_until};
use reqwest::header::LOCATION;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::console::{PASSWORD, Session, TestConsole};

fn settings(server: &SmtpServer, more: &str) -> String {
    format!(
        ", public_url: \"https://console.example.com\", trusted_proxies: [127.0.0.1], \
         mail: {{from: \"Omniglot <noreply@example.com>\", smtp: \"smtp://{}\"}}{more}",
        server.address
    )
}

async fn post(console: &TestConsole, path: &str, body: Value) -> Response {
    let request = console.client.post(console.url(path)).json(&body);
    request.send().await.expect("an answer")
}

/// Signs up by mail, as `handle@example.com`.
async fn sign_up<'c>(console: &'c TestConsole, server: &SmtpServer, handle: &str) -> Session<'c> {
    let email = format!("{handle}@example.com");
    let before = server.received().len();
    let asked = post(console, "/api/v1/sign-up", json!({"email": email})).await;
    assert_eq!(asked.status(), 202);
    let mail = server.until_received(before + 1).await;
    let body = json!({"token": mail.token(), "handle": handle, "password": PASSWORD});
    let made = post(console, "/api/v1/invitations/accept", body).await;
    assert_eq!(made.status(), 201);
    console.session(&made)
}

#[tokio::test]
async fn an_account_is_made_with_an_address_that_was_proven() {
    let server = SmtpServer::start().await;
    let console = TestConsole::start(&settings(&server, ", sign_up: {domains: [Example.com]}"));
    let nobody = Session {
        console: &console,
        cookie: String::new(),
    };
    let page = nobody.page("/sign-up").await;
    assert!(page.contains("addresses of example.com"), "{page}");
    let foreign = nobody.form("/sign-up", "email=ada%40example.org").await;
    assert_eq!(foreign.status(), 400);
    let sent = nobody.form("/sign-up", "email=Ada%40example.com").await;
    assert_eq!(sent.status(), 202);
    assert!(sent.text().await.expect("text").contains("Check your mail"));
    let mail = server.until_received(1).await;
    assert_eq!(mail.to, "ada@example.com");
    assert!(
        mail.text.contains("From: Omniglot <noreply@example.com>"),
        "{}",
        mail.text
    );
    assert!(
        mail.text.contains("Auto-Submitted: auto-generated"),
        "{}",
        mail.text
    );
    let link = mail.link();
    assert!(
        link.starts_with("https://console.example.com/invitation/"),
        "{link}"
    );
    let path = link.trim_start_matches("https://console.example.com");
    // Programs that look at links use nothing up.
    for _ in 0..2 {
        let page = nobody.page(path).await;
        assert!(page.contains("ada@example.com"), "{page}");
    }
    let made = nobody
        .form(path, "handle=ada&password=a+long+password")
        .await;
    assert_eq!(made.status(), 303);
    let ada = console.session(&made);
    let me = ada.json(Method::GET, "/api/v1/me", None, 200).await;
    assert_eq!(
        (&me["email"], &me["verified"]),
        (&json!("ada@example.com"), &json!(true))
    );
    assert_eq!(me["role"], "member");
    assert_eq!(nobody.send(Method::GET, path, None).await.status(), 410);

    // Who has an account is told so by mail, and nobody else is.
    let again = post(
        &console,
        "/api/v1/sign-up",
        json!({"email": "ADA@example.com"}),
    )
    .await;
    assert_eq!(
        (again.status().as_u16(), again.text().await.expect("text")),
        (202, String::new())
    );
    let known = server.until_received(2).await;
    assert!(
        known.text.contains("You have an account already"),
        "{}",
        known.text
    );
    assert!(!known.text.contains("/invitation/"));
    // Without the link there is no account.
    let body = json!({"handle": "eve", "email": "eve@example.com", "password": PASSWORD});
    let direct = post(&console, "/api/v1/people", body).await;
    assert_eq!(direct.status(), 403);
    assert!(direct.text().await.expect("text").contains("mail_first"));
}

#[tokio::test]
async fn a_lost_password_is_replaced_by_a_link_that_works_once() {
    let server = SmtpServer::start().await;
    let console = TestConsole::start(&settings(&server, ", sign_up: open"));
    let ada = sign_up(&console, &server, "ada").await;
    let nobody = Session {
        console: &console,
        cookie: String::new(),
    };
    let page = nobody.page("/sign-in").await;
    assert!(page.contains("href=\"/forgot\""), "{page}");
    // The same answer whoever exists, and mail for one of them.
    let mut answers = Vec::new();
    for login in ["nobody", "ada", "nobody@example.com"] {
        let answer = post(&console, "/api/v1/reset", json!({"login": login})).await;
        answers.push((answer.status().as_u16(), answer.text().await.expect("text")));
    }
    assert_eq!(answers, vec![(202, String::new()); 3]);
    let first = server.until_received(2).await;
    assert_eq!(first.to, "ada@example.com");
    // A further link ends the one before.
    let sent = nobody.form("/forgot", "login=Ada%40Example.com").await;
    assert_eq!(sent.status(), 202);
    let mail = server.until_received(3).await;
    let link = mail.link();
    let path = link.trim_start_matches("https://console.example.com");
    assert!(path.starts_with("/reset/"), "{path}");
    let old = json!({"token": first.token(), "password": "another password"});
    let request = console.client.put(console.url("/api/v1/reset"));
    let over = request.json(&old).send().await.expect("an answer");
    assert_eq!(over.status(), 410);
    for _ in 0..2 {
        assert!(nobody.page(path).await.contains("Your username is ada"));
    }
    let chosen = nobody.form(path, "password=another+password").await;
    assert_eq!(chosen.status(), 303);
    let fresh = console.session(&chosen);
    fresh.json(Method::GET, "/api/v1/me", None, 200).await;
    ada.json(Method::GET, "/api/v1/me", None, 401).await;
    assert_eq!(
        nobody
            .form(path, "password=another+password")
            .await
            .status(),
        410
    );
    let notice = server.until_received(4).await;
    assert!(
        notice.text.contains("Your password was changed"),
        "{}",
        notice.text
    );
    for (password, status) in [(PASSWORD, 401), ("another password", 201)] {
        let body = json!({"login": "ada", "password": password});
        let signed_in = post(&console, "/api/v1/session", body).await;
        assert_eq!(signed_in.status(), status);
    }
    // No token of a link is in the store or in the log.
    let mut bytes = Vec::new();
    for name in ["store.db", "store.db-wal"] {
        bytes.extend(std::fs::read(console.folder.path().join(name)).unwrap_or_default());
    }
    bytes.extend(console.log.text().into_bytes());
    for mail in server.received() {
        if mail.text.contains("/reset/") || mail.text.contains("/invitation/") {
            let token = mail.token();
            assert!(
                memchr::memmem::find(&bytes, token.as_bytes()).is_none(),
                "{token}"
            );
        }
    }
}

#[tokio::test]
async fn mail_is_not_sent_without_end() {
    let server = SmtpServer::start().await;
    let console = TestConsole::start(&settings(&server, ", sign_up: open"));
    sign_up(&console, &server, "ada").await;
    // The third for this address, with the one of the sign-up; another login of the account is counted with it.
    let mut statuses = Vec::new();
    for login in ["ada", "ada", "ada", "ada", "ada@example.com"] {
        let answer = post(&console, "/api/v1/reset", json!({"login": login})).await;
        statuses.push(answer.status().as_u16());
    }
    assert_eq!(statuses, [202, 202, 202, 429, 202]);
    wait_until("one is not sent", async || {
        console
            .log
            .text()
            .contains("mail (reset): not sent: Too many attempts")
    })
    .await;
    assert_eq!(server.until_received(4).await.to, "ada@example.com");
    // Who does not exist is counted in the same way.
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let answer = post(&console, "/api/v1/reset", json!({"login": "nobody"})).await;
        statuses.push(answer.status().as_u16());
    }
    assert_eq!(statuses, [202, 202, 202, 429]);
}

#[tokio::test]
async fn another_address_is_ones_own_once_it_is_proven() {
    let server = SmtpServer::start().await;
    let console = TestConsole::start(&settings(&server, ""));
    let admin = console.account("root", "admin").await;
    let invite = json!({"email": "ada@example.com"});
    let invited = admin
        .json(Method::POST, "/api/v1/invitations", Some(invite), 201)
        .await;
    assert_eq!(invited["mailed_to"], "ada@example.com");
    let mail = server.until_received(1).await;
    assert!(mail.text.contains("root has invited you"), "{}", mail.text);
    let body = json!({"token": mail.token(), "handle": "ada", "password": PASSWORD});
    let made = post(&console, "/api/v1/invitations/accept", body).await;
    let ada = console.session(&made);

    let change = json!({"email": "lovelace@example.org"});
    let me = ada
        .json(Method::PATCH, "/api/v1/me", Some(change), 200)
        .await;
    assert_eq!(
        (&me["email"], &me["verified"]),
        (&json!("ada@example.com"), &json!(true))
    );
    let mail = server.until_received(2).await;
    assert_eq!(mail.to, "lovelace@example.org");
    let path = mail.link().replace("https://console.example.com", "");
    let nobody = Session {
        console: &console,
        cookie: String::new(),
    };
    for _ in 0..2 {
        assert!(
            nobody
                .page(&path)
                .await
                .contains("Is lovelace@example.org your address?")
        );
    }
    let proven = nobody.form(&path, "").await;
    assert_eq!(proven.headers()[LOCATION], "/sign-in?note=verified");
    assert!(
        proven.headers().get("set-cookie").is_none(),
        "it signs nobody in"
    );
    let me = ada.json(Method::GET, "/api/v1/me", None, 200).await;
    assert_eq!(
        (&me["email"], &me["verified"]),
        (&json!("lovelace@example.org"), &json!(true))
    );
    let again = post(
        &console,
        "/api/v1/verification",
        json!({"token": mail.token()}),
    )
    .await;
    assert_eq!(again.status(), 410);

    // An address of somebody else is not told to be one.
    let changed = admin
        .form("/me", "display=Root&email=lovelace%40example.org")
        .await;
    assert_eq!(changed.headers()[LOCATION], "/me?note=verify-sent");
    let mail = server.until_received(3).await;
    assert!(
        mail.text.contains("You have an account already"),
        "{}",
        mail.text
    );
    assert_eq!(
        admin.json(Method::GET, "/api/v1/me", None, 200).await["email"],
        Value::Null
    );
    // Without an account that has a proven address nothing is sent.
    admin
        .json(Method::POST, "/api/v1/me/verification", None, 400)
        .await;
    for login in ["root", "ada"] {
        post(&console, "/api/v1/reset", json!({"login": login})).await;
    }
    assert_eq!(server.until_received(4).await.to, "lovelace@example.org");
}

#[tokio::test]
async fn mail_goes_over_tls_with_a_login_and_is_tried_again() {
    let authority = CertificateAuthority::new();
    let server = SmtpServer::start_tls(&authority, "localhost").await;
    let address = free_address();
    let settings = format!(
        "listen: \"{address}\", public_url: \"http://localhost:1\", sign_up: open, mail: {{from: noreply@example.com, \
         smtp: \"smtps://postman:p%40ss@localhost:{}\"}}",
        server.address.port()
    );
    let console = TestConsole::start_on(address, &settings, |command| {
        command.env("SSL_CERT_FILE", authority.file());
    });
    server.defer_next();
    let request = console.client.post(console.url("/api/v1/sign-up"));
    let request = request.header("accept-language", "zh-CN");
    let asked = request
        .json(&json!({"email": "ada@example.com"}))
        .send()
        .await;
    assert_eq!(asked.expect("an answer").status(), 202);
    let mail = server.until_received(1).await;
    // \0postman\0p@ss
    assert_eq!(mail.login.as_deref(), Some("AHBvc3RtYW4AcEBzcw=="));
    assert!(mail.text.contains("Subject: =?utf-8?b?"), "{}", mail.text);
    let log = console.log.text();
    assert!(log.contains("it is tried again in 2 s"), "{log}");
    assert!(
        !log.contains("p@ss") && !log.contains("ada@example.com"),
        "{log}"
    );
}

#[tokio::test]
async fn without_mail_nothing_promises_it() {
    let console = TestConsole::start(", sign_up: open");
    let nobody = Session {
        console: &console,
        cookie: String::new(),
    };
    assert!(!nobody.page("/sign-in").await.contains("/forgot"));
    assert_eq!(
        nobody.send(Method::GET, "/forgot", None).await.status(),
        404
    );
    let asked = post(&console, "/api/v1/reset", json!({"login": "ada"})).await;
    assert_eq!(asked.status(), 404);
    assert!(asked.text().await.expect("text").contains("mail_off"));
}
