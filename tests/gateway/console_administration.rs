//! What administrators see of the gateway: its upstreams, and the config that is in force.

use omniglot_test_support::wait_until;
use reqwest::Method;
use serde_json::{Value, json};

use crate::console::TestConsole;

fn named<'v>(list: &'v Value, field: &str, name: &str) -> &'v Value {
    let list = list.as_array().expect("a list");
    let found = list.iter().find(|one| one[field] == name);
    found.unwrap_or_else(|| panic!("{name}: {list:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_of_upstreams_is_shown() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    let member = console.account("ada", "member").await;
    let body = json!({"label": "k"});
    let path = "/api/v1/accounts/root/keys";
    let made = admin.json(Method::POST, path, Some(body), 201).await;
    let secret = made["secret"].as_str().expect("a secret");
    for _ in 0..3 {
        assert_eq!(console.chat(secret).await.status(), 200);
    }
    // The first upstream of this one is not there.
    let body = json!({"model": "second", "messages": [{"role": "user", "content": "hi"}]});
    for _ in 0..2 {
        let request = console
            .client
            .post(console.gateway.url("/v1/chat/completions"));
        let response = request.bearer_auth(secret).json(&body).send().await;
        assert_eq!(response.expect("an answer").status(), 200);
    }
    let all = admin
        .json(Method::GET, "/api/v1/upstreams", None, 200)
        .await;
    let names: Vec<&str> = all
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!(names, ["gone", "mock", "other"]);
    let mock = named(&all, "name", "mock");
    assert_eq!((&mock["requests"], &mock["failed"]), (&json!(3), &json!(0)));
    assert_eq!(
        (&mock["in_flight"], &mock["waiting"]),
        (&json!(0), &json!(0))
    );
    let model = named(&mock["models"], "model", "m");
    assert_eq!(
        (&model["breaker"], &model["requests"]),
        (&json!("closed"), &json!(3))
    );
    let gone = named(&all, "name", "gone");
    assert_eq!((&gone["requests"], &gone["failed"]), (&json!(2), &json!(2)));
    let page = admin.page("/upstreams").await;
    assert!(page.contains("2 of 2 (100.0 %)"), "{page}");
    member
        .json(Method::GET, "/api/v1/upstreams", None, 403)
        .await;
    assert_eq!(
        member.send(Method::GET, "/upstreams", None).await.status(),
        403
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_config_in_force_is_shown_without_secrets() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    let config = admin.json(Method::GET, "/api/v1/config", None, 200).await;
    assert!(
        !config.to_string().contains("a-secret-of-the-config"),
        "{config}"
    );
    let lines = config["lines"].as_array().expect("lines");
    let line = |text: &str| {
        let found = lines.iter().find(|line| line["text"] == text);
        found.unwrap_or_else(|| panic!("{text}: {config}"))
    };
    assert_eq!(line("    secret: [redacted]")["line"], 5);
    assert_eq!(line("  - name: fixed")["line"], 5);
    assert_eq!(line("    base_url: http://127.0.0.1:9/v1")["line"], 6);
    assert_eq!(config["problems"], json!([]));
    let page = admin.page("/config").await;
    assert!(
        page.contains("[redacted]") && !page.contains("a-secret-of-the-config"),
        "{page}"
    );

    // A file that is refused: the config stays, and the page says why.
    let file = std::fs::read_to_string(console.gateway.file()).expect("the config");
    std::fs::write(console.gateway.file(), format!("{file}nonsense: true\n")).expect("written");
    console.gateway.process.signal("HUP");
    wait_until("it is refused", async || {
        let config = admin.json(Method::GET, "/api/v1/config", None, 200).await;
        config["problems"][0]["line"] == 8
    })
    .await;
    let page = admin.page("/config").await;
    assert!(
        page.contains("The file was refused") && page.contains("unknown key"),
        "{page}"
    );
    let weak = file.replace("a-secret-of-the-config", "short");
    std::fs::write(console.gateway.file(), weak).expect("written");
    console.gateway.process.signal("HUP");
    wait_until("it is taken, with a warning", async || {
        let config = admin.json(Method::GET, "/api/v1/config", None, 200).await;
        let lines = config["lines"].as_array().expect("lines");
        let warned = lines.iter().find(|line| line["warnings"] != json!([]));
        config["problems"] == json!([]) && warned.is_some_and(|line| line["line"] == 5)
    })
    .await;
}
