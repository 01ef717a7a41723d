//! The first page of a person: what is left, today's errors, and snippets that work as they are.

use std::process::Command;

use omniglot_test_support::{new_client, wait_until};
use reqwest::Method;
use serde_json::{Value, json};

use crate::console::TestConsole;

#[tokio::test]
async fn home_tells_what_is_left_and_how_today_went() {
    let console = TestConsole::start("");
    let member = console.account("ada", "member").await;
    let other = console.account("bob", "member").await;
    let home = member.json(Method::GET, "/api/v1/home", None, 200).await;
    assert_eq!(
        (&home["account"], &home["keys"]),
        (&json!("ada"), &json!([]))
    );
    assert_eq!(home["models"], json!(["m", "second"]));
    let page = member.page("/").await;
    assert!(page.contains("href=\"/accounts/ada/new-key\""), "{page}");
    assert!(
        page.contains("<a href=\"/\" aria-current=\"page\">Home</a>"),
        "{page}"
    );

    let body =
        json!({"label": "laptop", "spending_cap": 12.5, "reset": "monthly", "models": ["m"]});
    let made = member
        .json(Method::POST, "/api/v1/accounts/ada/keys", Some(body), 201)
        .await;
    let secret = made["secret"].as_str().expect("a secret");
    assert_eq!(console.chat(secret).await.status(), 200);
    let refused = new_client().post(console.gateway.url("/v1/chat/completions"));
    let refused = refused.bearer_auth(secret);
    let refused = refused.json(&json!({"model": "second", "messages": []}));
    let refused = refused.send().await.expect("an answer");
    assert_eq!(refused.status(), 403);

    let home = async || member.json(Method::GET, "/api/v1/home", None, 200).await;
    wait_until("the request is recorded", async || {
        home().await["today"]["requests"] == 1
    })
    .await;
    let home = home().await;
    let errors = &home["today"]["errors"];
    assert_eq!(errors[0]["count"], 1, "{home}");
    let key = &home["keys"][0];
    assert_eq!(key["spending_cap"].to_string(), "12.5");
    assert!(
        key["resets_at"].is_string() && key["spent"].as_f64() > Some(0.0),
        "{key}"
    );
    assert_eq!(home["models"], json!(["m"]), "those of the key");

    let page = member.page("/").await;
    let kind = errors[0]["kind"].as_str().expect("a word");
    for part in ["laptop", kind, "12.5", "Set up a client"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // Nobody sees the errors or keys of another.
    let home = other.json(Method::GET, "/api/v1/home", None, 200).await;
    assert_eq!(
        (&home["keys"], &home["today"]["errors"]),
        (&json!([]), &json!([]))
    );
    let request = console.client.get(console.url("/api/v1/home"));
    assert_eq!(request.send().await.expect("an answer").status(), 401);
}

#[tokio::test]
async fn snippets_have_the_url_of_the_gateway_and_work() {
    let console = TestConsole::start("");
    let member = console.account("ada", "member").await;
    let body = json!({"label": "laptop"});
    let made = member
        .json(Method::POST, "/api/v1/accounts/ada/keys", Some(body), 201)
        .await;
    let secret = made["secret"].as_str().expect("a secret").to_owned();
    let home = member
        .json(Method::GET, "/api/v1/home?model=second", None, 200)
        .await;
    let address = format!("http://{}", console.gateway.address);
    assert_eq!(home["gateway_url"], address);
    let snippets = home["snippets"].as_array().expect("snippets");
    for snippet in snippets {
        let text = snippet["text"].as_str().expect("text");
        assert!(text.contains(&address) && text.contains("second"), "{text}");
        assert!(text.contains("OMNIGLOT_KEY"), "{text}");
    }
    let curl = snippets.iter().find(|snippet| snippet["id"] == "curl");
    let curl = curl.expect("curl")["text"]
        .as_str()
        .expect("text")
        .to_owned();
    let output = tokio::task::spawn_blocking(move || {
        let mut shell = Command::new("sh");
        shell.args(["-c", &curl]).env("OMNIGLOT_KEY", secret);
        shell.output().expect("a shell")
    });
    let output = output.await.expect("no panic");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(answer["model"], "second", "{answer}");

    let page = member.page("/?model=second").await;
    assert!(page.contains("<option selected>second</option>"), "{page}");
    let url = "https://models.example.com";
    let named = TestConsole::start(&format!(", gateway_url: \"{url}\""));
    let member = named.account("ada", "member").await;
    let home = member.json(Method::GET, "/api/v1/home", None, 200).await;
    assert_eq!(home["gateway_url"], url);
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Days, amounts and texts are those of the language.
#[tokio::test]
async fn home_is_in_both_languages() {
    let console = TestConsole::start("");
    let member = console.account("ada", "member").await;
    let body = json!({"label": "laptop", "spending_cap": 1234.5, "reset": "monthly"});
    let root = console.account("root", "admin").await;
    let made = root
        .json(Method::POST, "/api/v1/accounts/ada/keys", Some(body), 201)
        .await;
    let resets_at = made["resets_at"].as_str().expect("a time");
    let (year, month) = (&resets_at[..4], resets_at[5..7].trim_start_matches('0'));
    let month_number: usize = month.parse().expect("a month");
    let name = MONTHS[month_number - 1];
    let page = member.page("/").await;
    for part in ["1,234.5", &format!("1 {name} {year}, 00:00 UTC")] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let chinese = console.client.get(console.url("/"));
    let chinese = chinese.header("cookie", &member.cookie);
    let chinese = chinese.header("accept-language", "zh-CN").send().await;
    let chinese = chinese.expect("an answer").text().await.expect("text");
    let moment = format!("{year}年{month}月1日 00:00 UTC");
    for part in ["首页", "设置客户端", &moment] {
        assert!(chinese.contains(part), "{part}: {chinese}");
    }
}
