//! The console over real sockets: pages, API, keys that work at the gateway, and what protects them.

use std::net::SocketAddr;
use std::process::Command;

use omniglot_test_support::{
    CertificateAuthority, Gateway, Mock, Stderr, client_builder, free_address, new_client,
    omniglot, wait_until,
};
use reqwest::header::{COOKIE, HeaderMap, LOCATION, SET_COOKIE};
use reqwest::{Client, Method, Response, StatusCode};
use serde_json::{Value, json};

/// A gateway with a console, and its first administrator.
pub struct TestConsole {
    pub gateway: Gateway,
    _mock: Mock,
    pub log: Stderr,
    pub folder: tempfile::TempDir,
    address: SocketAddr,
    pub client: Client,
}

pub const PASSWORD: &str = "a long password";

impl TestConsole {
    pub fn start(settings: &str) -> TestConsole {
        let address = free_address();
        TestConsole::start_on(address, &format!("listen: \"{address}\"{settings}"), |_| {})
    }

    /// Starts a console with all of its settings, and a process that the test prepares.
    pub fn start_on(
        address: SocketAddr,
        settings: &str,
        prepare: impl FnOnce(&mut Command),
    ) -> TestConsole {
        TestConsole::start_all(address, "", settings, prepare)
    }

    /// Starts a console with further settings of the server.
    pub fn start_with_server(server: &str) -> TestConsole {
        let address = free_address();
        TestConsole::start_all(address, server, &format!("listen: \"{address}\""), |_| {})
    }

    fn start_all(
        address: SocketAddr,
        server: &str,
        settings: &str,
        prepare: impl FnOnce(&mut Command),
    ) -> TestConsole {
        let mock = Mock::start();
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display();
        let config = format!(
            "server: {{listen: LISTEN, admin: ADMIN{server}}}\nstore: \"sqlite:{path}/store.db\"\n\
             journal: {{path: \"{path}/journal\"}}\nconsole: {{{settings}}}\n\
             keys: [{{name: fixed, secret: a-secret-of-the-config, spending_cap: 2, reset: daily}}]\n\
             upstreams: [{{name: mock, format: chat, base_url: \"http://{mock}/v1\"}}, \
             {{name: gone, format: chat, base_url: \"http://127.0.0.1:9/v1\"}}, \
             {{name: other, format: messages, base_url: \"http://{mock}\", auth: {{header: {{name: x-api-key, value: credential-of-the-upstream}}}}}}]\n\
             models: [{{id: m, pricing: {{input: 1, output: 1}}, upstreams: [{{name: mock}}]}}, \
             {{id: second, pricing: {{input: 1.25, output: 10, per_request: 0.001}}, upstreams: [{{name: gone}}, {{name: other, priority: 1}}]}}]\n",
            mock = mock.address
        );
        let log = Stderr::new();
        let gateway = Gateway::start_with(&config, |command| {
            command.env("RUST_LOG", "omniglot=trace,sqlx=debug");
            log.attach(command);
            prepare(command);
        });
        let client = client_builder().redirect(reqwest::redirect::Policy::none());
        TestConsole {
            gateway,
            _mock: mock,
            log,
            folder,
            address,
            client: client.build().expect("a client"),
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = omniglot();
        command.args(arguments).arg("-c").arg(self.gateway.file());
        command
    }

    #[track_caller]
    pub fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Creates an account on the command line, and chooses the password by the link that is printed.
    pub async fn account(&self, name: &str, role: &str) -> Session<'_> {
        let printed = self.succeeds(&["account", "create", name, "--role", role]);
        let link = printed
            .split_whitespace()
            .find(|word| word.starts_with("http"));
        let link = link.expect("a link");
        let token = link.rsplit('/').next().expect("a token");
        let body = json!({"token": token, "password": PASSWORD});
        let response = self
            .client
            .put(self.url("/api/v1/reset"))
            .json(&body)
            .send()
            .await;
        let response = response.expect("an answer");
        assert_eq!(response.status(), 201);
        self.session(&response)
    }

    pub fn session(&self, response: &Response) -> Session<'_> {
        Session {
            console: self,
            cookie: cookie(response.headers()),
        }
    }

    /// Asks the gateway with a key.
    pub async fn chat(&self, secret: &str) -> Response {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
        let request = new_client().post(self.gateway.url("/v1/chat/completions"));
        let request = request.bearer_auth(secret).json(&body);
        request.send().await.expect("an answer")
    }
}

/// `NAME=VALUE` of the cookie that a response sets.
pub fn cookie(headers: &HeaderMap) -> String {
    let cookie = headers.get(SET_COOKIE).expect("a cookie");
    let cookie = cookie.to_str().expect("text");
    cookie.split(';').next().expect("a pair").to_owned()
}

/// Somebody who is signed in.
pub struct Session<'c> {
    pub console: &'c TestConsole,
    pub cookie: String,
}

impl Session<'_> {
    pub async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Response {
        let mut request = self.console.client.request(method, self.console.url(path));
        request = request.header(COOKIE, &self.cookie);
        if let Some(body) = body {
            request = request.json(&body);
        }
        request.send().await.expect("an answer")
    }

    pub async fn json(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
        status: u16,
    ) -> Value {
        let response = self.send(method, path, body).await;
        let found = response.status();
        let text = response.text().await.expect("a body");
        assert_eq!(found, status, "{path}: {text}");
        match text.as_str() {
            "" => Value::Null,
            text => serde_json::from_str(text).expect("JSON"),
        }
    }

    pub async fn page(&self, path: &str) -> String {
        let response = self.send(Method::GET, path, None).await;
        assert_eq!(response.status(), 200, "{path}");
        response.text().await.expect("text")
    }

    pub async fn form(&self, path: &str, fields: &str) -> Response {
        let request = self.console.client.post(self.console.url(path));
        let request = request
            .header(COOKIE, &self.cookie)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin");
        request
            .body(fields.to_owned())
            .send()
            .await
            .expect("an answer")
    }
}

#[tokio::test]
async fn a_key_of_the_console_works_is_rotated_and_is_revoked() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    let body = json!({"label": "laptop", "spending_cap": 12.50, "reset": "monthly", "models": ["m*"], "concurrency": 3});
    let made = admin
        .json(Method::POST, "/api/v1/accounts/root/keys", Some(body), 201)
        .await;
    let secret = made["secret"].as_str().expect("a secret");
    assert_eq!(made["name"], "root/laptop");
    assert_eq!(made["spending_cap"].to_string(), "12.5");
    assert_eq!(console.chat(secret).await.status(), 200);

    // What the key itself may know.
    let own = new_client()
        .get(console.gateway.url("/api/key"))
        .bearer_auth(secret);
    let own: Value = own
        .send()
        .await
        .expect("an answer")
        .json()
        .await
        .expect("JSON");
    assert_eq!(own["name"], "root/laptop");
    assert_eq!(own["spending_cap"].to_string(), "12.5");
    assert_eq!(
        (&own["reset"], &own["unlimited_quota"]),
        (&json!("monthly"), &json!(false))
    );
    assert!(
        own["resets_at"].is_string() && own["spent"].is_number(),
        "{own}"
    );
    assert_eq!(own["limits"]["concurrency"], 3);

    let path = format!("/api/v1/keys/{}", made["id"].as_str().expect("an id"));
    wait_until("the usage is in the store", async || {
        let key = admin.json(Method::GET, &path, None, 200).await;
        key["last_used"].is_string() && key["spent"] != 0
    })
    .await;

    let rotate = json!({"overlap_seconds": 3600});
    let rotated = admin
        .json(Method::POST, &format!("{path}/rotate"), Some(rotate), 200)
        .await;
    let next = rotated["secret"].as_str().expect("a secret");
    assert_ne!(next, secret);
    assert!(rotated["previous_until"].is_string());
    assert_eq!(console.chat(next).await.status(), 200);
    assert_eq!(console.chat(secret).await.status(), 200, "it overlaps");
    let rotated = admin
        .json(
            Method::POST,
            &format!("{path}/rotate"),
            Some(json!({})),
            200,
        )
        .await;
    let last = rotated["secret"].as_str().expect("a secret");
    wait_until("the secrets before are refused", async || {
        let (first, second) = (console.chat(secret).await, console.chat(next).await);
        first.status() == 401 && second.status() == 401
    })
    .await;
    assert_eq!(console.chat(last).await.status(), 200);
    admin.json(Method::DELETE, &path, None, 204).await;
    wait_until("the key is refused", async || {
        console.chat(last).await.status() == 401
    })
    .await;
    admin.json(Method::GET, &path, None, 404).await;
}

#[tokio::test]
async fn a_member_sees_and_changes_nothing_of_others() {
    let console = TestConsole::start(", member_keys: {cap_max: 20}");
    let admin = console.account("root", "admin").await;
    let member = console.account("ada", "member").await;
    let body = json!({"label": "k"});
    let made = admin
        .json(
            Method::POST,
            "/api/v1/accounts/root/keys",
            Some(body.clone()),
            201,
        )
        .await;
    let foreign = format!("/api/v1/keys/{}", made["id"].as_str().expect("an id"));
    member.json(Method::GET, &foreign, None, 404).await;
    member
        .json(
            Method::PATCH,
            &foreign,
            Some(json!({"concurrency": 1})),
            404,
        )
        .await;
    member.json(Method::DELETE, &foreign, None, 404).await;
    member
        .json(Method::GET, "/api/v1/accounts/root/keys", None, 404)
        .await;
    member
        .json(Method::POST, "/api/v1/accounts/root/keys", Some(body), 404)
        .await;
    member.json(Method::GET, "/api/v1/people", None, 403).await;
    let unlimited = json!({"label": "k", "spending_cap": null});
    let refused = member
        .json(
            Method::POST,
            "/api/v1/accounts/ada/keys",
            Some(unlimited.clone()),
            400,
        )
        .await;
    assert_eq!(refused["error"]["field"], "spending_cap");
    let own = admin
        .json(
            Method::POST,
            "/api/v1/accounts/root/keys",
            Some(json!({"label": "u", "spending_cap": null})),
            201,
        )
        .await;
    assert_eq!(own["unlimited_quota"], true);
    let listed = member
        .json(Method::GET, "/api/v1/accounts", None, 200)
        .await;
    assert_eq!(listed.as_array().map(Vec::len), Some(1));

    // A disabled person has no session, and no keys that work.
    let made = member
        .json(
            Method::POST,
            "/api/v1/accounts/ada/keys",
            Some(json!({"label": "k"})),
            201,
        )
        .await;
    let secret = made["secret"].as_str().expect("a secret");
    assert_eq!(console.chat(secret).await.status(), 200);
    console.succeeds(&["account", "disable", "ada"]);
    member.json(Method::GET, "/api/v1/me", None, 401).await;
    wait_until("the key is refused", async || {
        console.chat(secret).await.status() == 401
    })
    .await;
    console.succeeds(&["account", "enable", "ada"]);
    wait_until("the key works again", async || {
        console.chat(secret).await.status() == 200
    })
    .await;
    let list = console.succeeds(&["account", "list"]);
    assert!(list.contains("ada") && list.contains("member"), "{list}");
}

#[tokio::test]
async fn pages_work_without_javascript() {
    let console = TestConsole::start(", sign_up: open");
    let start = console
        .client
        .get(console.url("/keys"))
        .send()
        .await
        .expect("an answer");
    assert_eq!(start.status(), StatusCode::SEE_OTHER);
    assert_eq!(start.headers()[LOCATION], "/sign-in?next=%2Fkeys");
    let nobody = Session {
        console: &console,
        cookie: String::new(),
    };
    let fields = "handle=ada&display=Ada+%3Cb%3E&email=ada%40example.org&password=a+long+password";
    let begun = nobody.form("/sign-up", fields).await;
    assert_eq!(begun.status(), StatusCode::SEE_OTHER);
    let ada = console.session(&begun);
    let page = ada.page("/keys").await;
    assert!(
        page.contains("No keys yet") && page.contains("Ada &#60;b&#62;"),
        "{page}"
    );
    let fields = "label=laptop&quota=cap&cap=7.5&reset=daily&models=m%0D%0Aother-*&requests_per_minute=60&tokens_per_minute=&concurrency=&expires=2999-12-31";
    let made = ada.form("/accounts/ada/keys", fields).await;
    assert_eq!(made.status(), StatusCode::CREATED);
    let page = made.text().await.expect("text");
    let at = page.find("sk-omniglot-").expect("a secret");
    let secret = &page[at..at + 52];
    assert_eq!(console.chat(secret).await.status(), 200);
    let page = ada.page("/keys").await;
    assert!(
        page.contains("laptop") && page.contains("m, other-*"),
        "{page}"
    );
    assert!(!page.contains(secret), "it is shown once");
    let id = page
        .split("/keys/")
        .nth(1)
        .and_then(|rest| rest.get(..36))
        .expect("an id");
    let wrong = ada
        .form(&format!("/keys/{id}"), "quota=cap&cap=1000&reset=daily")
        .await;
    assert_eq!(wrong.status(), 400);
    assert!(
        wrong
            .text()
            .await
            .expect("text")
            .contains("may be 100 at most")
    );
    let saved = ada
        .form(&format!("/keys/{id}"), "quota=cap&cap=8&reset=monthly")
        .await;
    assert_eq!(saved.headers()[LOCATION], format!("/keys/{id}?note=saved"));
    let page = ada.page(&format!("/keys/{id}?note=saved")).await;
    assert!(
        page.contains("Saved.") && page.contains("value=\"8\""),
        "{page}"
    );
    let rotated = ada
        .form(&format!("/keys/{id}/rotate"), "overlap=3600")
        .await;
    assert_eq!(rotated.status(), 200);
    assert!(rotated.text().await.expect("text").contains("works until"));
    let revoked = ada.form(&format!("/keys/{id}/revoke"), "").await;
    assert_eq!(
        revoked.headers()[LOCATION],
        "/accounts/ada/keys?note=revoked"
    );
    let people = ada.send(Method::GET, "/people", None).await;
    assert_eq!(people.status(), 403);

    // In another language.
    let chinese = console
        .client
        .get(console.url("/sign-in"))
        .header("accept-language", "zh-CN,en;q=0.5");
    let chinese = chinese
        .send()
        .await
        .expect("an answer")
        .text()
        .await
        .expect("text");
    assert!(
        chinese.contains("登录") && chinese.contains("lang=\"zh-CN\""),
        "{chinese}"
    );
    let out = ada.form("/sign-out", "").await;
    assert_eq!(out.headers()[LOCATION], "/sign-in");
    ada.json(Method::GET, "/api/v1/session", None, 401).await;
}

#[tokio::test]
async fn the_answer_to_a_wrong_login_does_not_tell_who_exists() {
    let console = TestConsole::start("");
    console.account("ada", "member").await;
    let mut answers = Vec::new();
    for login in ["ada", "nobody", "ada@example.org"] {
        let body = json!({"login": login, "password": "wrong password"});
        let response = console
            .client
            .post(console.url("/api/v1/session"))
            .json(&body);
        let response = response.send().await.expect("an answer");
        assert!(response.headers().get(SET_COOKIE).is_none());
        answers.push((response.status(), response.text().await.expect("text")));
    }
    assert_eq!(answers[0].0, 401);
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0], answers[2]);
    let body = json!({"login": "ADA", "password": PASSWORD});
    let response = console
        .client
        .post(console.url("/api/v1/session"))
        .json(&body);
    let response = response.send().await.expect("an answer");
    assert_eq!(response.status(), 201);
    let cookie = response.headers()[SET_COOKIE]
        .to_str()
        .expect("text")
        .to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
        "{cookie}"
    );
    // Where the console has no public URL, nobody signs up either.
    let sign_up = console.client.get(console.url("/sign-up")).send().await;
    assert_eq!(sign_up.expect("an answer").status(), 403);
}

#[tokio::test]
async fn every_response_is_protected_and_other_sites_are_refused() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    for path in [
        "/sign-in",
        "/keys",
        "/nothing",
        "/api/v1/me",
        "/api/v1/nothing",
        "/openapi.json",
    ] {
        let response = admin.send(Method::GET, path, None).await;
        let header = |name: &str| {
            response
                .headers()
                .get(name)
                .map(|value| value.to_str().expect("text"))
        };
        let policy = header("content-security-policy").unwrap_or_default();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'"),
            "{path}: {policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'")
                && policy.contains("require-trusted-types-for")
        );
        assert_eq!(header("x-content-type-options"), Some("nosniff"), "{path}");
        assert_eq!(header("referrer-policy"), Some("no-referrer"), "{path}");
        assert_eq!(header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(
            header("cross-origin-opener-policy"),
            Some("same-origin"),
            "{path}"
        );
    }
    let page = admin.page("/keys").await;
    assert!(!page.contains("<style") && !page.contains(" style=") && !page.contains("onclick"));
    let asset = page
        .split("href=\"/assets/console.")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let asset = format!("/assets/console.{}", asset.expect("a stylesheet"));
    let asset = admin.send(Method::GET, &asset, None).await;
    assert_eq!(asset.status(), 200);
    assert!(
        asset.headers()["cache-control"]
            .to_str()
            .expect("text")
            .contains("immutable")
    );

    for (name, value) in [
        ("sec-fetch-site", "cross-site"),
        ("origin", "https://evil.example"),
    ] {
        let request = console
            .client
            .post(console.url("/api/v1/accounts/root/keys"));
        let request = request.header(COOKIE, &admin.cookie).header(name, value);
        let response = request
            .json(&json!({"label": "k"}))
            .send()
            .await
            .expect("an answer");
        assert_eq!(response.status(), 403, "{name}");
    }
    let own = console
        .client
        .post(console.url("/api/v1/accounts/root/keys"));
    let own = own
        .header(COOKIE, &admin.cookie)
        .header("origin", console.url(""));
    let own = own
        .json(&json!({"label": "k"}))
        .send()
        .await
        .expect("an answer");
    assert_eq!(own.status(), 201);
    let large = "x".repeat(100_000);
    let large = admin
        .send(Method::PATCH, "/api/v1/me", Some(json!({"display": large})))
        .await;
    assert!(large.status().is_client_error(), "{}", large.status());
    let away = admin
        .form(
            "/confirm",
            "password=a+long+password&next=https%3A%2F%2Fevil.example",
        )
        .await;
    assert_eq!(away.headers()[LOCATION], "/");
}

#[tokio::test]
async fn the_description_of_the_api_has_every_path() {
    let console = TestConsole::start("");
    let text = console
        .client
        .get(console.url("/openapi.json"))
        .send()
        .await;
    let described: Value = text.expect("an answer").json().await.expect("JSON");
    let paths = described["paths"].as_object().expect("paths");
    for path in [
        "session",
        "session/confirmation",
        "providers",
        "me/identities",
        "me/identities/{id}",
        "session/totp",
        "me/totp",
        "me/totp/recovery",
        "people/{id}/totp",
        "reset",
        "sign-up",
        "verification",
        "me/verification",
        "me",
        "me/password",
        "me/sessions",
        "people",
        "people/{id}",
        "people/{id}/link",
        "invitations",
        "invitations/accept",
        "accounts",
        "config/keys",
        "accounts/{account}/keys",
        "keys/{id}",
        "keys/{id}/rotate",
    ] {
        assert!(
            paths.contains_key(&format!("/api/v1/{path}")),
            "{path}: {:?}",
            paths.keys()
        );
    }
    let schemas = described["components"]["schemas"]
        .as_object()
        .expect("schemas");
    assert!(schemas.contains_key("KeyView") && schemas.contains_key("PersonView"));
}

#[tokio::test]
async fn no_secret_of_people_is_in_the_store_or_the_log() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    let made = admin
        .json(
            Method::POST,
            "/api/v1/accounts/root/keys",
            Some(json!({"label": "k"})),
            201,
        )
        .await;
    let token = admin.cookie.split('=').nth(1).expect("a token").to_owned();
    let mut bytes = Vec::new();
    for name in ["store.db", "store.db-wal"] {
        bytes.extend(std::fs::read(console.folder.path().join(name)).unwrap_or_default());
    }
    bytes.extend(console.log.text().into_bytes());
    let holds = |text: &str| memchr::memmem::find(&bytes, text.as_bytes()).is_some();
    assert!(
        holds("root/k") && holds("omniglot listens on"),
        "the store and the log were read"
    );
    for secret in [PASSWORD, &token, made["secret"].as_str().expect("a secret")] {
        assert!(!holds(secret), "{secret}");
    }
}

#[tokio::test]
async fn behind_a_proxy_links_and_cookies_are_those_of_the_public_url() {
    let settings = ", public_url: \"https://console.example.com\", trusted_proxies: [127.0.0.1]";
    let console = TestConsole::start(settings);
    let printed = console.succeeds(&["account", "create", "root", "--role", "admin"]);
    let link = printed
        .split_whitespace()
        .find(|word| word.starts_with("http"));
    let link = link.expect("a link");
    assert!(
        link.starts_with("https://console.example.com/setup/"),
        "{link}"
    );
    let token = link.rsplit('/').next().expect("a token");
    let body = json!({"token": token, "password": PASSWORD});
    let request = console.client.put(console.url("/api/v1/reset")).json(&body);
    let request = request
        .header("origin", "https://console.example.com")
        .header("x-forwarded-for", "198.51.100.7");
    let response = request.send().await.expect("an answer");
    assert_eq!(response.status(), 201);
    let cookie = response.headers()[SET_COOKIE].to_str().expect("text");
    assert!(
        cookie.starts_with("__Host-omniglot=") && cookie.contains("Secure"),
        "{cookie}"
    );
    assert!(response.headers().contains_key("strict-transport-security"));
    let admin = console.session(&response);
    let sessions = admin
        .json(Method::GET, "/api/v1/me/sessions", None, 200)
        .await;
    assert_eq!(sessions[0]["remote"], "198.51.100.7");
    let again = console
        .client
        .put(console.url("/api/v1/reset"))
        .json(&body)
        .send()
        .await;
    assert_eq!(again.expect("an answer").status(), 410);
}

#[tokio::test]
async fn a_key_of_the_config_asks_for_itself_too() {
    let console = TestConsole::start("");
    let request = new_client().get(console.gateway.url("/api/key"));
    let own = request
        .bearer_auth("a-secret-of-the-config")
        .send()
        .await
        .expect("an answer");
    let own: Value = own.json().await.expect("JSON");
    assert_eq!(
        (&own["name"], own["left"].to_string()),
        (&json!("fixed"), "2".to_owned())
    );
    let none = new_client()
        .get(console.gateway.url("/api/key"))
        .send()
        .await;
    assert_eq!(none.expect("an answer").status(), 401);
    let post = new_client()
        .post(console.gateway.url("/api/key"))
        .send()
        .await;
    assert_eq!(post.expect("an answer").status(), 405);
}

#[tokio::test]
async fn an_administrator_sees_the_keys_of_the_config_and_their_lines() {
    let console = TestConsole::start("");
    let admin = console.account("root", "admin").await;
    let member = console.account("ada", "member").await;
    assert_eq!(console.chat("a-secret-of-the-config").await.status(), 200);
    let path = "/api/v1/config/keys";
    wait_until("the usage is in the store", async || {
        let keys = admin.json(Method::GET, path, None, 200).await;
        keys[0]["last_used"].is_string() && keys[0]["spent"] != 0
    })
    .await;
    let keys = admin.json(Method::GET, path, None, 200).await;
    assert_eq!(
        (&keys[0]["name"], &keys[0]["line"]),
        (&json!("fixed"), &json!(5))
    );
    assert_eq!(keys[0]["reset"], "daily");
    let page = admin.page("/config-keys").await;
    assert!(page.contains("fixed") && page.contains("line 5"), "{page}");
    assert!(admin.page("/keys").await.contains("href=\"/config-keys\""));
    member.json(Method::GET, path, None, 403).await;
    let page = member.send(Method::GET, "/config-keys", None).await;
    assert_eq!(page.status(), 403);
    assert!(!member.page("/keys").await.contains("/config-keys"));
}

/// Whether a client that trusts one authority only can see the console.
async fn is_trusted(address: SocketAddr, authority: &CertificateAuthority) -> bool {
    let client = authority.client().build().expect("a client");
    let response = client
        .get(format!("https://{address}/sign-in"))
        .send()
        .await;
    response.is_ok_and(|response| {
        assert!(response.headers().contains_key("strict-transport-security"));
        response.status() == 200
    })
}

#[tokio::test]
async fn the_console_has_tls_of_its_own_and_reads_its_certificate_again() {
    let (old, new) = (CertificateAuthority::new(), CertificateAuthority::new());
    let (cert, key) = old.issue_files("127.0.0.1");
    let address = free_address();
    let settings = format!(
        "listen: {{addr: \"{address}\", tls: {{cert: {}, key: {}}}}}",
        cert.display(),
        key.display()
    );
    let console = TestConsole::start_on(address, &settings, |_| {});
    assert!(is_trusted(address, &old).await);
    // Links are made for what browsers reach.
    let printed = console.succeeds(&["account", "create", "root", "--role", "admin"]);
    assert!(
        printed.contains(&format!("https://{address}/setup/")),
        "{printed}"
    );
    let plain = console.client.get(console.url("/sign-in")).send().await;
    assert!(plain.is_err(), "it speaks nothing but TLS");
    let (new_cert, new_key) = new.issue_files("127.0.0.1");
    std::fs::copy(&new_cert, &cert).expect("a copy");
    std::fs::copy(&new_key, &key).expect("a copy");
    console.gateway.process.signal("HUP");
    wait_until("the new certificate is in force", async || {
        is_trusted(address, &new).await
    })
    .await;
    assert!(!is_trusted(address, &old).await);
}
