//! Usage in the console: sums, requests, and bills that add up.

use omniglot_test_support::{new_client, wait_until};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::console::{Session, TestConsole};

/// A key of one's own account: its secret.
async fn key(session: &Session<'_>, account: &str, label: &str) -> String {
    let path = format!("/api/v1/accounts/{account}/keys");
    let body = json!({"label": label, "spending_cap": 5});
    let made = session.json(Method::POST, &path, Some(body), 201).await;
    made["secret"].as_str().expect("a secret").to_owned()
}

/// Asks for something that the upstream's format cannot express; the first upstream is not there.
async fn ask_second(console: &TestConsole, secret: &str) -> Response {
    let body = json!({"model": "second", "seed": 7, "max_tokens": 20, "messages": [{"role": "user", "content": "hi"}]});
    let request = new_client().post(console.gateway.url("/v1/chat/completions"));
    let request = request.bearer_auth(secret).json(&body);
    let response = request.send().await.expect("an answer");
    assert_eq!(response.status(), 200);
    response
}

async fn until_recorded(session: &Session<'_>, count: u64) {
    wait_until("the usage is in the store", async || {
        let usage = session.json(Method::GET, "/api/v1/usage", None, 200).await;
        usage["total"]["requests"] == count
    })
    .await;
}

/// An amount of JSON as a whole number of the smallest unit; amounts here have few digits.
fn units(amount: &Value) -> i128 {
    (amount.as_f64().expect("a number") * 1e15).round() as i128
}

#[tokio::test]
async fn a_bill_adds_up_to_the_digit_and_names_its_prices() {
    let console = TestConsole::start("");
    let ada = console.account("ada", "member").await;
    let eve = console.account("eve", "member").await;
    let secret = key(&ada, "ada", "laptop").await;
    let answered = ask_second(&console, &secret).await;
    let told = answered.headers()["x-omniglot-cost"]
        .to_str()
        .expect("text");
    let told: Value = serde_json::from_str(told).expect("a number");
    let id = answered.headers()["x-request-id"].to_str().expect("text");
    until_recorded(&ada, 1).await;

    let path = format!("/api/v1/requests/{id}");
    let request = ada.json(Method::GET, &path, None, 200).await;
    assert_eq!(
        (&request["key"], &request["model"]),
        (&json!("ada/laptop"), &json!("second"))
    );
    let bill = &request["bill"];
    assert_eq!(bill["prices"], "input=1.25 output=10 per_request=0.001");
    let lines = bill["lines"].as_array().expect("lines");
    let items: Vec<&str> = lines
        .iter()
        .map(|line| line["item"].as_str().expect("a name"))
        .collect();
    assert_eq!(items, ["input", "output", "per_request"]);
    assert_eq!(lines[0]["count"], request["input"]);
    assert_eq!(lines[0]["price"].to_string(), "1.25");
    let sum: i128 = lines.iter().map(|line| units(&line["amount"])).sum();
    assert_eq!(sum, units(&bill["total"]));
    assert_eq!(
        units(&bill["total"]),
        units(&told),
        "as the client was told"
    );
    assert_eq!(bill["difference"], Value::Null);
    let price = units(&lines[0]["price"]) / 1_000_000;
    let tokens = lines[0]["count"].as_u64().expect("a count");
    assert_eq!(price * i128::from(tokens), units(&lines[0]["amount"]));

    // Who was asked, and what was lost.
    let attempts = request["attempts"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 2, "{request}");
    assert_eq!(
        (&attempts[0]["upstream"], &attempts[1]["upstream"]),
        (&json!("gone"), &json!("other"))
    );
    assert!(attempts[0]["error"].is_string() && attempts[1]["error"].is_null());
    assert_eq!(request["dropped"], json!(["seed"]));
    assert_eq!(
        (&request["format"], &request["upstream_format"]),
        (&json!("chat"), &json!("messages"))
    );

    let page = ada.page(&format!("/requests/{id}")).await;
    for part in [
        "1.25 per million",
        "Prices in force",
        "input=1.25 output=10",
        "<code>seed</code>",
        "gone",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // The key itself may know the same.
    let own = async |secret: &str| {
        let url = console.gateway.url(&format!("/api/requests/{id}"));
        let request = new_client().get(url).bearer_auth(secret);
        request.send().await.expect("an answer")
    };
    let told: Value = own(&secret).await.json().await.expect("JSON");
    assert_eq!(units(&told["cost"]), units(&bill["total"]));
    assert_eq!(told["bill"][0]["amount"], lines[0]["amount"]);
    assert_eq!(told["earlier_attempts"][0]["upstream"], "gone");
    assert_eq!(told["dropped"], json!(["seed"]));
    let of_eve = key(&eve, "eve", "k").await;
    assert_eq!(own(&of_eve).await.status(), 404);

    // To others the request does not exist.
    eve.json(Method::GET, &path, None, 404).await;
    let page = format!("/requests/{id}");
    let page = eve.send(Method::GET, &page, None).await;
    assert_eq!(page.status(), 404);
    let admin = console.account("root", "admin").await;
    admin.json(Method::GET, &path, None, 200).await;
}

#[tokio::test]
async fn usage_is_added_up_for_who_may_see_it() {
    let console = TestConsole::start("");
    let ada = console.account("ada", "member").await;
    let eve = console.account("eve", "member").await;
    let admin = console.account("root", "admin").await;
    let (first, second) = (
        key(&ada, "ada", "first").await,
        key(&ada, "ada", "=second").await,
    );
    let of_eve = key(&eve, "eve", "k").await;
    for secret in [&first, &first, &second, &of_eve, "a-secret-of-the-config"] {
        assert_eq!(console.chat(secret).await.status(), 200);
    }
    ask_second(&console, &first).await;
    until_recorded(&admin, 6).await;

    let usage = ada.json(Method::GET, "/api/v1/usage", None, 200).await;
    assert_eq!(
        (&usage["account"], &usage["total"]["requests"]),
        (&json!("ada"), &json!(4))
    );
    assert_eq!(usage["days"].as_array().expect("days").len(), 30);
    let names = |group: &Value| -> Vec<String> {
        let group = group.as_array().expect("a list").iter();
        group
            .map(|line| line["name"].as_str().expect("a name").to_owned())
            .collect()
    };
    assert_eq!(names(&usage["models"]), ["second", "m"]);
    assert_eq!(names(&usage["keys"]), ["ada/first", "ada/=second"]);
    let parts = usage["keys"].as_array().expect("keys").iter();
    let sum: i128 = parts.map(|key| units(&key["cost"])).sum();
    assert_eq!(sum, units(&usage["total"]["cost"]));
    let one = ada
        .json(
            Method::GET,
            "/api/v1/usage?key=ada%2Ffirst&model=m",
            None,
            200,
        )
        .await;
    assert_eq!(one["total"]["requests"], 2);
    let other = ada
        .json(Method::GET, "/api/v1/usage?key=eve%2Fk", None, 200)
        .await;
    assert_eq!(other["total"]["requests"], 0, "it is no key of ada's");
    ada.json(Method::GET, "/api/v1/usage?account=eve", None, 404)
        .await;
    ada.json(Method::GET, "/api/v1/requests?account=eve", None, 404)
        .await;
    for (query, field) in [
        ("from=yesterday", "from"),
        ("until=2026-13-01", "until"),
        ("from=2026-02-01&until=2026-01-01", "from"),
        ("from=2020-01-01&until=2026-01-01", "from"),
    ] {
        let path = format!("/api/v1/usage?{query}");
        let refused = ada.json(Method::GET, &path, None, 400).await;
        assert_eq!(refused["error"]["field"], field, "{query}");
    }

    // Those of the config are only for administrators.
    let fixed = admin
        .json(Method::GET, "/api/v1/requests?key=fixed", None, 200)
        .await;
    assert_eq!(fixed["requests"].as_array().expect("a list").len(), 1);
    let none = ada
        .json(Method::GET, "/api/v1/requests?key=fixed", None, 200)
        .await;
    assert_eq!(none["requests"], json!([]));

    let page = ada.page("/usage").await;
    for part in ["<svg", "ada/first", "By model", "The numbers as a table"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("eve/k"));
    let csv = ada.send(Method::GET, "/usage.csv?by=key", None).await;
    assert_eq!(csv.headers()["content-type"], "text/csv; charset=utf-8");
    let csv = csv.text().await.expect("text");
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some("key,requests,estimated,input,cached,cache_written,output,thinking,images,cost")
    );
    assert!(csv.contains("\nada/first,3,0,"), "{csv}");
    let nobody = Session {
        console: &console,
        cookie: String::new(),
    };
    let sent_away = nobody.send(Method::GET, "/usage.csv", None).await;
    assert_eq!(sent_away.status(), 303);
}

#[tokio::test]
async fn requests_are_listed_page_by_page() {
    let console = TestConsole::start("");
    let ada = console.account("ada", "member").await;
    let (first, second) = (key(&ada, "ada", "a").await, key(&ada, "ada", "b").await);
    for number in 0..60 {
        let secret = if number % 3 == 0 { &second } else { &first };
        assert_eq!(console.chat(secret).await.status(), 200);
    }
    until_recorded(&ada, 60).await;
    let ids = |page: &Value| -> Vec<String> {
        let requests = page["requests"].as_array().expect("a list").iter();
        requests
            .map(|request| request["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    let page = ada.json(Method::GET, "/api/v1/requests", None, 200).await;
    let mut all = ids(&page);
    assert_eq!(all.len(), 50);
    let next = page["next"].as_str().expect("a next page");
    let path = format!("/api/v1/requests?after={next}");
    let last = ada.json(Method::GET, &path, None, 200).await;
    assert_eq!((ids(&last).len(), &last["next"]), (10, &Value::Null));
    all.extend(ids(&last));
    let times: Vec<&str> = page["requests"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|request| request["time"].as_str().expect("a time"))
        .collect();
    assert!(times.is_sorted_by(|one, next| one >= next));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 60, "each once");
    let of_one = ada
        .json(Method::GET, "/api/v1/requests?key=ada%2Fb", None, 200)
        .await;
    assert_eq!(ids(&of_one).len(), 20);
    for query in ["model=other", "failed=true", "until=2020-01-01"] {
        let path = format!("/api/v1/requests?{query}");
        let none = ada.json(Method::GET, &path, None, 200).await;
        assert_eq!(ids(&none).len(), 0, "{query}");
    }
    let refused = ada
        .json(Method::GET, "/api/v1/requests?after=there", None, 400)
        .await;
    assert_eq!(refused["error"]["field"], "after");

    // The page has a link to the next one.
    let page = ada.page("/requests").await;
    assert!(page.contains("Older requests"));
    let link = page.split("href=\"").find(|part| part.contains("after="));
    let link = link.expect("a link").split('"').next().expect("a path");
    let second = ada.page(&link.replace("&#38;", "&")).await;
    assert!(second.contains("Newest requests") && !second.contains("Older requests"));
}
