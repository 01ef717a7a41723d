//! The spending cap of an account, which holds above the caps of its keys.

use std::cell::Cell;

use omniglot_test_support::{FORMATS, Response, new_client, request, send, wait_until};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::console::{Session, TestConsole};

const ACCOUNT: &str = "/api/v1/accounts/ada";

/// Keys of an account, each with a cap of its own, by their secrets.
async fn create_keys(session: &Session<'_>, account: &str, count: usize, cap: f64) -> Vec<String> {
    let mut secrets = Vec::new();
    for number in 0..count {
        let body = json!({"label": format!("k{number}"), "spending_cap": cap});
        let path = format!("/api/v1/accounts/{account}/keys");
        let made = session.json(Method::POST, &path, Some(body), 201).await;
        secrets.push(made["secret"].as_str().expect("a secret").to_owned());
    }
    secrets
}

/// An answer that costs a thousandth.
fn dear_request(console: &TestConsole, secret: &str) -> reqwest::RequestBuilder {
    let body = json!({"model": "m", "max_tokens": 1000,
        "messages": [{"role": "user", "content": "mock:usage=100,0,900,0 mock:text=hi"}]});
    let request = new_client().post(console.gateway.url("/v1/chat/completions"));
    request.bearer_auth(secret).json(&body)
}

async fn own_key(console: &TestConsole, secret: &str) -> Value {
    let own = new_client().get(console.gateway.url("/api/key"));
    send(own.bearer_auth(secret)).await.json()
}

fn is_over(response: &Response) -> bool {
    response.status == 429 && response.json()["error"]["code"] == "insufficient_quota"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_requests_of_ten_keys_keep_within_the_cap_of_their_account() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    console.account("ada", "member").await;
    let cap = json!({"spending_cap": 0.1, "reset": "monthly"});
    let set = admin.json(Method::PATCH, ACCOUNT, Some(cap), 200).await;
    assert_eq!(
        (&set["spending_cap"], &set["reset"], &set["kind"]),
        (&json!(0.1), &json!("monthly"), &json!("person"))
    );
    let secrets = create_keys(&admin, "ada", 10, 0.5).await;
    let mut requests = JoinSet::new();
    for number in 0..1000 {
        requests.spawn(send(dear_request(&console, &secrets[number % 10])));
    }
    let served = Cell::new(0);
    for response in requests.join_all().await {
        match response.status {
            200 => served.set(served.get() + 1),
            429 => {
                let message = response.error("chat");
                assert!(message.contains("the account `ada`"), "{message}");
            }
            _ => panic!("{}", response.text()),
        }
    }
    let count = served.get();
    assert!(count <= 100, "{count} answers of a thousandth");
    // What requests held beside others is there for later ones, to the last that fits.
    wait_until("nothing is left", async || {
        let response = send(dear_request(&console, &secrets[0])).await;
        served.set(served.get() + u32::from(response.status == 200));
        is_over(&response)
    })
    .await;
    let served = served.get();
    assert!((95..=100).contains(&served), "{served}");
    let spent = json!(f64::from(served) / 1000.0);
    wait_until("all of it is recorded", async || {
        let account = admin.json(Method::GET, ACCOUNT, None, 200).await;
        account["spent"] == spent && account["held"] == 0
    })
    .await;
    let own = own_key(&console, &secrets[3]).await;
    let account = &own["account"];
    assert_eq!(
        (
            &account["name"],
            &account["spending_cap"],
            &account["spent"]
        ),
        (&json!("ada"), &json!(0.1), &spent)
    );
    assert!(
        account["resets_at"].is_string() && account["left"].is_number(),
        "{own}"
    );
    // The key has much of its own left.
    assert!(own["left"].as_f64().expect("a number") > 0.3, "{own}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cap_of_an_account_is_set_raised_and_removed_while_its_keys_are_used() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    let member = console.account("ada", "member").await;
    let secrets = create_keys(&admin, "ada", 2, 50.0).await;
    assert_eq!(own_key(&console, &secrets[0]).await["account"], Value::Null);
    for secret in &secrets {
        assert_eq!(send(dear_request(&console, secret)).await.status, 200);
    }
    // What was spent before the cap counts.
    let text = console.succeeds(&["account", "cap", "ada", "0.002"]);
    assert!(
        text.contains("ada has a spending cap of 0.002, reset none"),
        "{text}"
    );
    wait_until("the cap holds", async || {
        is_over(&send(dear_request(&console, &secrets[0])).await)
    })
    .await;
    for (format, _) in FORMATS {
        let (path, body) = request(format, "m", "mock:text=hi", false);
        let asked = new_client().post(console.gateway.url(&path)).json(&body);
        let response = send(asked.bearer_auth(&secrets[1])).await;
        assert_eq!(response.status, 429);
        let message = response.error(format);
        let reached = "the account `ada` of this API key has ";
        assert!(message.starts_with(reached), "{message}");
        assert!(message.contains("its spending cap of 0.002"), "{message}");
    }
    // Who belongs to the account sees it, and does not set it.
    let seen = member.json(Method::GET, ACCOUNT, None, 200).await;
    assert_eq!(seen["spending_cap"], json!(0.002));
    let page = member.page("/keys").await;
    assert!(page.contains("All keys together"), "{page}");
    let more = json!({"spending_cap": 5});
    let refused = member
        .json(Method::PATCH, ACCOUNT, Some(more.clone()), 403)
        .await;
    assert_eq!(refused["error"]["code"], "forbidden");
    admin.json(Method::PATCH, ACCOUNT, Some(more), 200).await;
    wait_until("there is more", async || {
        send(dear_request(&console, &secrets[1])).await.status == 200
    })
    .await;
    let form = "quota=cap&cap=0.001&reset=daily&next=%2Fkeys";
    let saved = admin.form("/accounts/ada/cap", form).await;
    assert_eq!(saved.headers()["location"], "/keys?note=saved");
    wait_until("it is less again", async || {
        is_over(&send(dear_request(&console, &secrets[0])).await)
    })
    .await;
    let none = json!({"spending_cap": null});
    let set = admin.json(Method::PATCH, ACCOUNT, Some(none), 200).await;
    assert_eq!(
        (&set["unlimited_quota"], &set["reset"]),
        (&json!(true), &json!("none"))
    );
    wait_until("there is no cap", async || {
        send(dear_request(&console, &secrets[0])).await.status == 200
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_without_a_cap_keeps_within_that_of_its_account() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    let cap = json!({"spending_cap": 0.0025});
    let path = "/api/v1/accounts/root";
    admin.json(Method::PATCH, path, Some(cap), 200).await;
    let body = json!({"label": "free", "spending_cap": null});
    let made = admin
        .json(Method::POST, "/api/v1/accounts/root/keys", Some(body), 201)
        .await;
    let secret = made["secret"].as_str().expect("a secret");
    for _ in 0..2 {
        assert_eq!(send(dear_request(&console, secret)).await.status, 200);
    }
    assert!(is_over(&send(dear_request(&console, secret)).await));
    let refused = json!({"spending_cap": 1});
    let path = "/api/v1/accounts/default";
    let refused = admin.json(Method::PATCH, path, Some(refused), 400).await;
    assert_eq!(refused["error"]["field"], "spending_cap");
}
