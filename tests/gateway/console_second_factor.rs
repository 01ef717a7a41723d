//! The second factor of the console: codes after the password, each of which works once.

use std::time::SystemTime;

use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use totp_rs::{Builder, Secret};

use crate::console::{PASSWORD, Session, TestConsole, cookie};

/// The code of a secret, some steps from now. The clock may go on to the next step at any moment; one step of difference
/// is allowed.
fn code(secret: &str, steps: u64) -> String {
    let secret = Secret::try_from_base32(secret).expect("base 32");
    let totp = Builder::new()
        .with_secret(secret)
        .build()
        .expect("a secret");
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.expect("a clock").as_secs();
    totp.generate(now + 30 * steps).to_string()
}

/// Turns the second factor on; returns the session, the secret and the recovery codes.
async fn turn_on<'c>(person: &Session<'c>) -> (Session<'c>, String, Vec<String>) {
    let setup = person
        .json(Method::POST, "/api/v1/me/totp", None, 201)
        .await;
    let secret = setup["secret"].as_str().expect("a secret").to_owned();
    let wrong = json!({"code": "000 000"});
    if code(&secret, 0) != "000000" {
        person
            .json(Method::PUT, "/api/v1/me/totp", Some(wrong), 401)
            .await;
    }
    let right = json!({"code": code(&secret, 0)});
    let on = person
        .send(Method::PUT, "/api/v1/me/totp", Some(right))
        .await;
    assert_eq!(on.status(), 200);
    let session = person.console.session(&on);
    let body: Value = on.json().await.expect("JSON");
    let codes = body["recovery_codes"].as_array().expect("codes").iter();
    let codes = codes.map(|code| code.as_str().expect("text").to_owned());
    (session, secret, codes.collect())
}

async fn sign_in(console: &TestConsole, login: &str) -> Response {
    let body = json!({"login": login, "password": PASSWORD});
    let request = console.client.post(console.url("/api/v1/session"));
    request.json(&body).send().await.expect("an answer")
}

/// Enters a code for a sign-in that waits.
async fn enter(console: &TestConsole, pending: &str, code: &str) -> Response {
    let request = console.client.post(console.url("/api/v1/session/totp"));
    let request = request.header(COOKIE, pending).json(&json!({"code": code}));
    request.send().await.expect("an answer")
}

#[tokio::test]
async fn a_code_follows_the_password_and_works_once() {
    let console = TestConsole::start("");
    let before = console.account("ada", "member").await;
    let (ada, secret, recovery) = turn_on(&before).await;
    before.json(Method::GET, "/api/v1/me", None, 401).await;
    let me = ada.json(Method::GET, "/api/v1/me", None, 200).await;
    assert_eq!(me["second_factor"], true);
    ada.json(Method::POST, "/api/v1/me/totp", None, 409).await;

    let signed_in = sign_in(&console, "ada").await;
    assert_eq!(signed_in.status(), 202);
    let pending = cookie(signed_in.headers());
    assert!(pending.starts_with("omniglot_code="), "{pending}");
    let waiting = Session {
        console: &console,
        cookie: pending.clone(),
    };
    waiting.json(Method::GET, "/api/v1/me", None, 401).await;
    // Nor does the token open anything as the cookie of a session.
    let as_session = Session {
        console: &console,
        cookie: pending.replace("omniglot_code", "omniglot_session"),
    };
    as_session.json(Method::GET, "/api/v1/me", None, 401).await;
    // The code that turned it on was used.
    let refused = enter(&console, &pending, &code(&secret, 0)).await;
    assert_eq!(refused.status(), 401);
    assert!(refused.text().await.expect("text").contains("wrong_code"));
    let next = code(&secret, 1);
    let right = enter(&console, &pending, &next).await;
    assert_eq!(right.status(), 201);
    console
        .session(&right)
        .json(Method::GET, "/api/v1/me", None, 200)
        .await;
    assert_eq!(enter(&console, &pending, &next).await.status(), 410);
    let pending = cookie(sign_in(&console, "ada").await.headers());
    assert_eq!(
        enter(&console, &pending, &next).await.status(),
        401,
        "a replay"
    );

    // Without the phone: each recovery code works once, however it is typed.
    let typed = recovery[0].to_uppercase().replace('-', " ");
    assert_eq!(enter(&console, &pending, &typed).await.status(), 201);
    let pending = cookie(sign_in(&console, "ada").await.headers());
    assert_eq!(enter(&console, &pending, &recovery[0]).await.status(), 401);
    let left = ada.json(Method::GET, "/api/v1/me/totp", None, 200).await;
    assert_eq!(left, json!({"enabled": true, "recovery_codes_left": 9}));

    // A link for another password does not take its place.
    let printed = console.succeeds(&["account", "link", "ada"]);
    let mut words = printed.split_whitespace();
    let link = words.find(|word| word.starts_with("http")).expect("a link");
    let token = link.rsplit('/').next().expect("a token");
    let body = json!({"token": token, "password": "another password"});
    let chosen = console.client.put(console.url("/api/v1/reset")).json(&body);
    let chosen = chosen.send().await.expect("an answer");
    assert_eq!(chosen.status(), 202);
    assert!(cookie(chosen.headers()).starts_with("omniglot_code="));
    // The sign-in of the old password has ended with it.
    assert_eq!(enter(&console, &pending, &recovery[1]).await.status(), 410);
}

#[tokio::test]
async fn wrong_codes_are_slowed_down_and_an_administrator_helps_who_lost_all() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    let (ada, secret, _) = turn_on(&console.account("ada", "member").await).await;
    let pending = cookie(sign_in(&console, "ada").await.headers());
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(
            enter(&console, &pending, "not a code")
                .await
                .status()
                .as_u16(),
        );
    }
    assert_eq!(statuses, [401, 401, 401, 401, 401, 429]);
    // Also for the right one: that is what makes guessing slow.
    let right = enter(&console, &pending, &code(&secret, 1)).await;
    assert_eq!(right.status(), 429);

    let me = ada.json(Method::GET, "/api/v1/me", None, 200).await;
    let path = format!("/api/v1/people/{}/totp", me["id"].as_str().expect("an id"));
    ada.json(Method::DELETE, &path, None, 403).await;
    let removed = admin.json(Method::DELETE, &path, None, 200).await;
    assert_eq!(removed["second_factor"], false);
    ada.json(Method::GET, "/api/v1/me", None, 401).await;
    assert_eq!(sign_in(&console, "ada").await.status(), 201);
}

#[tokio::test]
async fn the_pages_of_the_second_factor_work_without_javascript() {
    let console = TestConsole::start("");
    let ada = console.account("ada", "member").await;
    assert!(ada.page("/me").await.contains("/me/second-factor/begin"));
    let begun = ada.form("/me/second-factor/begin", "").await;
    assert_eq!(begun.headers()[LOCATION], "/me/second-factor");
    let page = ada.page("/me/second-factor").await;
    assert!(page.contains("src=\"data:image/svg+xml;base64,"), "{page}");
    let secret = page.split("id=\"totp-secret\">").nth(1).expect("a secret");
    let secret = secret.split('<').next().expect("text").replace(' ', "");
    let wrong = ada.form("/me/second-factor", "code=nothing").await;
    assert_eq!(wrong.status(), 401);
    assert!(wrong.text().await.expect("text").contains(&secret[..4]));
    let fields = format!("code={}", code(&secret, 0));
    let on = ada.form("/me/second-factor", &fields).await;
    assert_eq!(on.status(), 200);
    let ada = console.session(&on);
    assert!(
        on.text()
            .await
            .expect("text")
            .contains("Keep your recovery codes")
    );
    let page = ada.page("/me").await;
    assert!(page.contains("Recovery codes left: 10"), "{page}");

    let nobody = Session {
        console: &console,
        cookie: String::new(),
    };
    let fields = "login=ada&password=a+long+password&next=%2Fme";
    let signed_in = nobody.form("/sign-in", fields).await;
    assert_eq!(signed_in.headers()[LOCATION], "/sign-in/code?next=%2Fme");
    let waiting = Session {
        console: &console,
        cookie: cookie(signed_in.headers()),
    };
    assert!(
        waiting
            .page("/sign-in/code?next=%2Fme")
            .await
            .contains("Enter your code")
    );
    let wrong = waiting
        .form("/sign-in/code", "code=nothing&next=%2Fme")
        .await;
    assert_eq!(wrong.status(), 401);
    let fields = format!("code={}&next=https%3A%2F%2Fevil.example", code(&secret, 1));
    let right = waiting.form("/sign-in/code", &fields).await;
    assert_eq!(right.headers()[LOCATION], "/");
    let cookies: Vec<_> = right.headers().get_all(SET_COOKIE).iter().collect();
    assert_eq!(cookies.len(), 2, "{cookies:?}");
    let off = ada.form("/me/second-factor/off", "").await;
    assert_eq!(off.headers()[LOCATION], "/me?note=saved");
    let without = nobody
        .form("/sign-in", "login=ada&password=a+long+password")
        .await;
    assert_eq!(without.headers()[LOCATION], "/");
}
