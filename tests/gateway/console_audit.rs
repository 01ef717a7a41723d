//! The audit log of the console: what is in it, and that no secret is.

use reqwest::Method;
use serde_json::{Value, json};

use crate::console::{PASSWORD, Session, TestConsole};

/// All lines of the log, page by page, the newest first.
async fn lines(admin: &Session<'_>, filter: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let path = format!("/api/v1/audit?{filter}&after={after}");
        let found = admin.json(Method::GET, &path, None, 200).await;
        let changes = found["changes"].as_array().expect("a list");
        all.extend(changes.iter().cloned());
        match found["next"].as_str() {
            Some(next) => {
                assert_eq!(changes.len(), 50, "a page is full before another follows");
                after = next.to_owned();
            }
            None => return all,
        }
    }
}

fn actions(lines: &[Value]) -> Vec<&str> {
    let actions = lines.iter().map(|line| line["action"].as_str());
    actions.map(|action| action.expect("a word")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_is_in_the_log_and_no_secret_is() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    let member = console.account("ada", "member").await;
    let mut secrets = vec![
        PASSWORD.to_owned(),
        admin.cookie.clone(),
        member.cookie.clone(),
    ];
    let text = |value: &Value| value.as_str().expect("text").to_owned();

    let body = json!({"label": "laptop", "spending_cap": 3});
    let path = "/api/v1/accounts/ada/keys";
    let made = member.json(Method::POST, path, Some(body), 201).await;
    secrets.push(text(&made["secret"]));
    let key = format!("/api/v1/keys/{}", text(&made["id"]));
    let rotated = member
        .json(Method::POST, &format!("{key}/rotate"), Some(json!({})), 200)
        .await;
    secrets.push(text(&rotated["secret"]));
    let change = json!({"spending_cap": 2.5, "models": ["m*"]});
    member.json(Method::PATCH, &key, Some(change), 200).await;
    member.json(Method::DELETE, &key, None, 204).await;
    let cap = json!({"spending_cap": 7, "reset": "daily"});
    let path = "/api/v1/accounts/ada";
    admin.json(Method::PATCH, path, Some(cap), 200).await;
    let invited = json!({"email": "new@example.org"});
    let invited = admin
        .json(Method::POST, "/api/v1/invitations", Some(invited), 201)
        .await;
    let link = text(&invited["link"]["url"]);
    secrets.push(link.rsplit('/').next().expect("a token").to_owned());
    let body = json!({"old": PASSWORD, "new": "another long password"});
    let response = member
        .send(Method::PUT, "/api/v1/me/password", Some(body))
        .await;
    assert_eq!(response.status(), 200);
    secrets.push("another long password".to_owned());
    let again = console.session(&response);
    let setup = again.json(Method::POST, "/api/v1/me/totp", None, 201).await;
    secrets.push(text(&setup["secret"]));
    again
        .json(Method::DELETE, "/api/v1/session", None, 204)
        .await;
    let printed = console.succeeds(&["key", "create", "batch", "--cap", "4"]);
    let secret = printed
        .split_whitespace()
        .find(|word| word.starts_with("sk-"));
    secrets.push(secret.expect("a secret").to_owned());
    console.succeeds(&["key", "set", "batch", "--rpm", "60"]);
    console.succeeds(&["key", "revoke", "batch"]);

    let all = lines(&admin, "").await;
    let found = actions(&all);
    let expected = [
        "key.revoke",
        "key.change",
        "key.create",
        "session.end",
        "session.begin",
        "person.change_password",
        "invitation.create",
        "account.change",
        "key.revoke",
        "key.change",
        "key.rotate",
        "key.create",
        "session.begin",
        "person.choose_password",
        "person.create",
    ];
    assert_eq!(found[..expected.len()], expected, "{found:?}");
    let of_account = &lines(&admin, "action=account").await[0];
    let fields = ["actor", "via", "action", "target", "change", "remote"];
    let told = fields.map(|field| of_account[field].as_str().expect("text"));
    let expected = [
        "root",
        "api",
        "account.change",
        "ada",
        "cap 7, reset daily",
        "127.0.0.1",
    ];
    assert_eq!(told, expected);
    assert!(of_account["time"].is_string());
    let of_command = lines(&admin, "action=key&actor=(command%20line)").await;
    assert_eq!(
        actions(&of_command),
        ["key.revoke", "key.change", "key.create"]
    );
    assert_eq!(
        (&of_command[2]["via"], &of_command[2]["change"]),
        (&json!("cli"), &json!("cap 4"))
    );
    assert_eq!(of_command[1]["change"], "rpm 60");
    assert_eq!(lines(&admin, "target=ada%2Flaptop").await.len(), 4);
    // A pattern is no pattern.
    assert_eq!(lines(&admin, "action=key%25").await.len(), 0);

    let page = admin.page("/audit?actor=root").await;
    assert!(
        page.contains("account.change") && !page.contains("key.revoke"),
        "{page}"
    );
    let whole = serde_json::to_string(&all).expect("JSON");
    for secret in secrets {
        let secret = secret.rsplit('=').next().expect("a value");
        assert!(
            secret.len() >= 10 && !whole.contains(secret),
            "{secret}: {whole}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_has_pages_and_is_for_administrators() {
    let console = TestConsole::start(", member_keys: {max: 1000}");
    let admin = console.account("root", "admin").await;
    let member = console.account("ada", "member").await;
    for number in 0..120 {
        let body = json!({"label": format!("k{number}")});
        let path = "/api/v1/accounts/ada/keys";
        member.json(Method::POST, path, Some(body), 201).await;
    }
    let all = lines(&admin, "action=key.create").await;
    assert_eq!(all.len(), 120);
    let targets: Vec<&str> = all
        .iter()
        .filter_map(|line| line["target"].as_str())
        .collect();
    assert_eq!((targets[0], targets[119]), ("ada/k119", "ada/k0"));
    member.json(Method::GET, "/api/v1/audit", None, 403).await;
    let page = admin.page("/audit").await;
    assert!(page.contains("/audit?after="), "{page}");
}
