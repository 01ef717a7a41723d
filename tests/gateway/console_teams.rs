//! Teams over real sockets: made, joined, spent by, disabled and left.

use omniglot_test_support::{SmtpServer, wait_until};
use reqwest::header::LOCATION;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::console::{PASSWORD, Session, TestConsole};

const MEMBERS: &str = "/api/v1/accounts/research/members";
const INVITATIONS: &str = "/api/v1/accounts/research/invitations";

async fn make_team(admin: &Session<'_>, owner: &str) -> Value {
    let body = json!({"name": "research", "owner": owner});
    let made = admin.json(Method::POST, "/api/v1/accounts", Some(body), 201);
    made.await
}

async fn add(session: &Session<'_>, person: &str, role: &str, status: u16) -> Value {
    let body = json!({"person": person, "role": role});
    session
        .json(Method::POST, MEMBERS, Some(body), status)
        .await
}

/// A key of an account, by its id and secret.
async fn make_key(session: &Session<'_>, account: &str, label: &str) -> (String, String) {
    let path = format!("/api/v1/accounts/{account}/keys");
    let body = json!({"label": label, "spending_cap": 5});
    let made = session.json(Method::POST, &path, Some(body), 201).await;
    let text = |field: &str| made[field].as_str().expect("text").to_owned();
    (text("id"), text("secret"))
}

fn location(response: &Response) -> &str {
    let location = response.headers().get(LOCATION).expect("a redirect");
    location.to_str().expect("text")
}

fn names(list: &Value, field: &str) -> Vec<String> {
    let list = list.as_array().expect("a list").iter();
    list.map(|item| item[field].as_str().expect("text").to_owned())
        .collect()
}

#[tokio::test]
async fn a_team_has_keys_that_end_and_come_back_with_it() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    let owner = console.account("ada", "member").await;
    let other = console.account("bob", "member").await;
    let made = make_team(&admin, "ada").await;
    assert_eq!(
        (
            &made["name"],
            &made["kind"],
            &made["members"],
            &made["role"]
        ),
        (&json!("research"), &json!("team"), &json!(1), &Value::Null)
    );
    add(&owner, "bob", "member", 201).await;
    let listed = other.json(Method::GET, MEMBERS, None, 200).await;
    assert_eq!(names(&listed, "handle"), ["ada", "bob"]);
    assert!(listed[0].get("email").is_none(), "addresses are not shown");
    let (id, secret) = make_key(&other, "research", "batch").await;
    assert_eq!(console.chat(&secret).await.status(), 200);
    let path = format!("/api/v1/keys/{id}");
    wait_until("its usage is recorded", async || {
        owner.json(Method::GET, &path, None, 200).await["spent"] != 0
    })
    .await;
    let home = owner.json(Method::GET, "/api/v1/home", None, 200).await;
    assert_eq!(names(&home["teams"], "name"), ["research"]);
    for (path, part) in [
        ("/", "href=\"/teams/research\""),
        ("/teams", "research"),
        ("/teams/research", "href=\"/usage?account=research\""),
        ("/accounts/research/keys", "batch"),
        ("/usage?account=research", "research/batch"),
        ("/requests?account=research", "research/batch"),
    ] {
        let page = other.page(path).await;
        assert!(page.contains(part), "{path} has no {part}: {page}");
    }

    // The cap of the team, by the page of an administrator, holds for its keys.
    let form = "quota=cap&cap=0.000001&reset=monthly&next=%2Fteams%2Fresearch";
    let saved = admin.form("/accounts/research/cap", form).await;
    assert_eq!(location(&saved), "/teams/research?note=saved");
    wait_until("the cap holds", async || {
        console.chat(&secret).await.status() == 429
    })
    .await;
    let text = console.succeeds(&["account", "cap", "research", "50"]);
    assert!(text.contains("research has a spending cap of 50"), "{text}");
    wait_until("there is more", async || {
        console.chat(&secret).await.status() == 200
    })
    .await;

    // Disabled and enabled, on the command line and by the page.
    console.succeeds(&["account", "disable", "research"]);
    wait_until("its keys are refused", async || {
        console.chat(&secret).await.status() == 401
    })
    .await;
    let page = other.page("/teams/research").await;
    assert!(page.contains("This team is disabled"), "{page}");
    let enabled = admin.form("/teams/research/state", "disabled=false").await;
    assert_eq!(location(&enabled), "/teams/research?note=saved");
    wait_until("they work again", async || {
        console.chat(&secret).await.status() == 200
    })
    .await;

    // Who is removed sees nothing any more, in the same session.
    let bob = format!("{MEMBERS}/bob");
    owner.json(Method::DELETE, &bob, None, 204).await;
    other.json(Method::GET, &path, None, 404).await;
    other.json(Method::GET, MEMBERS, None, 404).await;
    let usage = "/api/v1/usage?account=research";
    other.json(Method::GET, usage, None, 404).await;
    other.json(Method::GET, "/api/v1/me", None, 200).await;
    let ada = format!("{MEMBERS}/ada");
    let kept = owner.json(Method::DELETE, &ada, None, 409).await;
    assert_eq!(kept["error"]["code"], "last_owner");
    let audit = "/api/v1/audit?target=research";
    let audit = admin.json(Method::GET, audit, None, 200).await;
    let expected = [
        "member.remove",
        "account.change",
        "account.change",
        "account.change",
        "account.change",
        "member.add",
        "team.create",
    ];
    assert_eq!(names(&audit["changes"], "action"), expected);
    assert_eq!(audit["changes"][5]["change"], "bob, role member");
}

#[tokio::test]
async fn teams_are_made_and_listed_on_the_command_line() {
    let console = TestConsole::start("");
    let owner = console.account("ada", "member").await;
    let text = console.succeeds(&["account", "create", "research", "--team", "--owner", "ada"]);
    assert!(text.contains("research is created as a team"), "{text}");
    let listed = owner.json(Method::GET, "/api/v1/accounts", None, 200).await;
    let research = &listed[1];
    assert_eq!(
        (&research["name"], &research["role"]),
        (&json!("research"), &json!("owner"))
    );
    let text = console.succeeds(&["account", "list", "--teams", "--json"]);
    let teams: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (names(&teams, "name"), &teams[0]["members"]),
        (vec!["research".to_owned()], &json!(1))
    );
    let table = console.succeeds(&["account", "list", "--teams"]);
    assert!(
        table.contains("research") && !table.contains("default"),
        "{table}"
    );
}

#[tokio::test]
async fn people_join_by_a_link_with_an_account_or_a_new_one() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    let owner = console.account("ada", "member").await;
    let other = console.account("bob", "member").await;
    make_team(&admin, "ada").await;
    // The page shows the link; who is signed in is asked, everybody else makes an account.
    let link = async || {
        let page = owner.form("/teams/research/invitations", "role=viewer");
        let page = page.await.text().await.expect("text");
        let (_, rest) = page.split_once("<code id=\"link\">").expect("a link");
        let link = rest.split('<').next().expect("its end");
        link.rsplit('/').next().expect("a token").to_owned()
    };
    let token = link().await;
    let path = format!("/invitation/{token}");
    let page = other.page(&path).await;
    assert!(page.contains("Join the team research"), "{page}");
    let joined = other.form(&format!("{path}/join"), "").await;
    assert_eq!(location(&joined), "/teams/research?note=joined");
    let page = other.page("/accounts/research/keys").await;
    assert!(page.contains("You may look at these keys"), "{page}");

    let token = link().await;
    let nobody = Session {
        console: &console,
        cookie: String::new(),
    };
    let page = nobody.page(&format!("/invitation/{token}")).await;
    assert!(
        page.contains("ada has invited you to the team research"),
        "{page}"
    );
    let next = format!("/sign-in?next=%2Finvitation%2F{token}");
    assert!(page.contains(&next), "{page}");
    let body = json!({"token": token, "handle": "eve", "password": PASSWORD});
    let request = console
        .client
        .post(console.url("/api/v1/invitations/accept"));
    let made = request.json(&body).send().await.expect("an answer");
    assert_eq!(made.status(), 201);
    let eve = console.session(&made);
    let me = eve.json(Method::GET, "/api/v1/me", None, 200).await;
    assert_eq!(me["role"], "member");
    let page = owner.page("/teams/research").await;
    assert!(page.contains("bob") && page.contains("eve"), "{page}");
    // Forms change roles, and lead out.
    let changed = owner
        .form("/teams/research/members/eve", "role=member")
        .await;
    assert_eq!(location(&changed), "/teams/research?note=saved");
    make_key(&eve, "research", "of-eve").await;
    let left = eve.form("/teams/research/members/eve/remove", "").await;
    assert_eq!(location(&left), "/teams?note=left");
    eve.json(Method::GET, MEMBERS, None, 404).await;
    let refused = owner
        .form("/teams/research/members", "person=zoe&role=member")
        .await;
    assert_eq!(refused.status(), 400);
    let page = refused.text().await.expect("text");
    assert!(
        page.contains("value=\"zoe\""),
        "what was typed stays: {page}"
    );
}

#[tokio::test]
async fn an_address_is_invited_by_mail_whoever_has_it() {
    let server = SmtpServer::start().await;
    let console = TestConsole::start(&format!(
        ", public_url: \"https://console.example.com\", trusted_proxies: [127.0.0.1], \
         mail: {{from: \"Omniglot <noreply@example.com>\", smtp: \"smtp://{}\"}}",
        server.address
    ));
    let admin = console.account("root", "admin").await;
    let owner = console.account("ada", "member").await;
    make_team(&admin, "ada").await;
    let mut answers = Vec::new();
    let mut tokens = Vec::new();
    for (number, email) in ["new@example.com", "eve@example.com"].iter().enumerate() {
        let mut added = add(&owner, email, "member", 202).await;
        let mail = server.until_received(number + 1).await;
        assert_eq!(mail.to, *email);
        assert!(
            mail.text
                .contains("ada has invited you to the team research")
        );
        tokens.push(mail.token());
        added["invitation"]["id"] = Value::Null;
        added["invitation"]["mailed_to"] = Value::Null;
        answers.push(added);
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0]["invitation"]["link"], Value::Null);
    let body = json!({"token": tokens[0], "handle": "newcomer", "password": PASSWORD});
    let request = console
        .client
        .post(console.url("/api/v1/invitations/accept"));
    let made = request.json(&body).send().await.expect("an answer");
    let newcomer = console.session(&made);
    let me = newcomer.json(Method::GET, "/api/v1/me", None, 200).await;
    assert_eq!(
        (&me["email"], &me["verified"]),
        (&json!("new@example.com"), &json!(true))
    );
    // An address that somebody has proven finds its invitation in the console as well.
    let invited = json!({"email": "new@example.com", "role": "viewer"});
    let invited = owner
        .json(Method::POST, INVITATIONS, Some(invited), 201)
        .await;
    assert_eq!(invited["mailed_to"], "new@example.com");
    let own = newcomer
        .json(Method::GET, "/api/v1/me/invitations", None, 200)
        .await;
    assert_eq!(names(&own, "team"), ["research"]);
    let page = newcomer.page("/teams").await;
    assert!(page.contains("ada invites you to this team"), "{page}");
    let path = format!(
        "/api/v1/me/invitations/{}",
        own[0]["id"].as_str().expect("an id")
    );
    let again = newcomer.json(Method::POST, &path, None, 409).await;
    assert_eq!(again["error"]["code"], "already_member");
    newcomer.json(Method::DELETE, &path, None, 204).await;
    // What is open can be withdrawn.
    let open = owner.json(Method::GET, INVITATIONS, None, 200).await;
    assert_eq!(names(&open, "email"), ["eve@example.com"]);
    let path = format!("{INVITATIONS}/{}", open[0]["id"].as_str().expect("an id"));
    owner.json(Method::DELETE, &path, None, 204).await;
    let nobody = console
        .client
        .get(console.url(&format!("/invitation/{}", tokens[1])));
    assert_eq!(nobody.send().await.expect("an answer").status(), 410);
}
