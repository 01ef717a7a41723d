//! Signing in at an identity provider: what is believed, who is connected with whom, and hostile answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use omniglot_test_support::{RecordedRequest, RecordingServer, SmtpServer};
use reqwest::header::{COOKIE, LOCATION, SET_COOKIE};
use reqwest::{Method, Response};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::console::{PASSWORD, Session, TestConsole, cookie};

/// What the provider says next.
#[derive(Clone)]
struct Saying {
    header: Value,
    claims: Value,
    user_info: Value,
    /// Signs with a key that it does not publish.
    is_forged: bool,
    /// Publishes its second key instead of the first.
    has_rotated: bool,
    issuer: Option<String>,
}

/// What a test has the provider say instead.
type Change = Box<dyn Fn(&mut Saying)>;

/// An identity provider that says what a test wants.
struct Provider {
    server: RecordingServer,
    saying: Arc<Mutex<Saying>>,
}

struct Keys {
    first: EcdsaKeyPair,
    second: EcdsaKeyPair,
}

fn new_key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let der = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
    EcdsaKeyPair::from_pkcs8(algorithm, der.as_ref(), &random).expect("a key")
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn seconds() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.expect("a clock").as_secs()
}

fn published(key: &EcdsaKeyPair, id: &str) -> Value {
    let point = key.public_key().as_ref();
    json!({"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": id,
           "x": encode(&point[1..33]), "y": encode(&point[33..])})
}

fn answer(request: &RecordedRequest, saying: &Saying, keys: &Keys) -> (u16, Value) {
    let own = format!("http://{}", request.header("host"));
    let path = request.line.split(' ').nth(1).expect("a path");
    let (key, id) = match saying.has_rotated {
        true => (&keys.second, "second"),
        false => (&keys.first, "first"),
    };
    match path {
        "/.well-known/openid-configuration" => {
            let issuer = saying.issuer.clone().unwrap_or_else(|| own.clone());
            let metadata = json!({"issuer": issuer,
                "authorization_endpoint": format!("{own}/authorize"),
                "token_endpoint": format!("{own}/token"), "jwks_uri": format!("{own}/keys"),
                "userinfo_endpoint": format!("{own}/userinfo")});
            (200, metadata)
        }
        // Keys of kinds that nobody here knows are beside it.
        "/keys" => (200, json!({"keys": [{"kty": "odd"}, published(key, id)]})),
        "/token" => {
            let mut header = json!({"alg": "ES256", "kid": id});
            let mut claims = json!({"iss": own, "aud": "omniglot", "sub": "subject-1",
                "iat": seconds(), "exp": seconds() + 300});
            for (whole, more) in [(&mut header, &saying.header), (&mut claims, &saying.claims)] {
                for (name, value) in more.as_object().expect("an object") {
                    whole[name] = value.clone();
                }
            }
            let signed = format!(
                "{}.{}",
                encode(header.to_string()),
                encode(claims.to_string())
            );
            let key = if saying.is_forged { &new_key() } else { key };
            let signature = key.sign(&SystemRandom::new(), signed.as_bytes());
            let signature = signature.expect("a signature");
            let token = match header["alg"].as_str() {
                Some("none") => format!("{signed}."),
                _ => format!("{signed}.{}", encode(signature.as_ref())),
            };
            (
                200,
                json!({"access_token": "an-access-token", "token_type": "Bearer", "id_token": token}),
            )
        }
        "/userinfo" => {
            assert_eq!(request.header("authorization"), "Bearer an-access-token");
            (200, saying.user_info.clone())
        }
        _ => (404, Value::Null),
    }
}

impl Provider {
    fn start() -> Provider {
        let saying = Saying {
            header: json!({}),
            claims: json!({}),
            user_info: json!({"sub": "subject-1"}),
            is_forged: false,
            has_rotated: false,
            issuer: None,
        };
        let saying = Arc::new(Mutex::new(saying));
        let said = saying.clone();
        let keys = Keys {
            first: new_key(),
            second: new_key(),
        };
        let server = RecordingServer::start(move |request, _| {
            let saying = said.lock().expect("a lock").clone();
            let (status, body) = answer(request, &saying, &keys);
            (status, "application/json", body.to_string())
        });
        Provider { server, saying }
    }

    fn console(&self, more: &str) -> TestConsole {
        TestConsole::start(&self.settings(more))
    }

    fn settings(&self, more: &str) -> String {
        format!(
            ", identity: [{{name: corp, label: Example SSO, issuer: \"{}\", client_id: omniglot, client_secret: \"a secret/of ours\", \
             trust_email: true, groups: {{admins: gateway-admins}}}}]{more}",
            self.server.url("")
        )
    }

    fn says(&self, change: impl FnOnce(&mut Saying)) {
        change(&mut self.saying.lock().expect("a lock"));
    }
}

/// A browser on its way to the provider.
struct Departed {
    cookie: String,
    query: HashMap<String, String>,
}

/// Goes to the provider, as somebody who is signed in or not.
async fn depart(session: &Session<'_>, query: &str) -> Departed {
    let response = session
        .send(Method::GET, &format!("/identity/corp{query}"), None)
        .await;
    assert_eq!(response.status(), 303);
    let url = response.headers()[LOCATION].to_str().expect("text");
    let url = Url::parse(url).expect("a URL");
    Departed {
        cookie: cookie(response.headers()),
        query: url.query_pairs().into_owned().collect(),
    }
}

/// Comes back with these cookies and this query.
async fn come_back(console: &TestConsole, cookies: &str, query: &str) -> Response {
    let url = console.url(&format!("/identity/corp/callback?{query}"));
    let request = console.client.get(url).header(COOKIE, cookies);
    request.send().await.expect("an answer")
}

/// Goes to the provider and back; the ID token has the nonce of the browser unless the test says another.
async fn visit(provider: &Provider, session: &Session<'_>, query: &str) -> Response {
    let departed = depart(session, query).await;
    provider.says(|saying| {
        if saying
            .claims
            .get("nonce")
            .is_none_or(|nonce| nonce != "another")
        {
            saying.claims["nonce"] = json!(departed.query["nonce"]);
        }
    });
    let cookies = format!("{}; {}", session.cookie, departed.cookie);
    let back = format!("code=a-code&state={}", departed.query["state"]);
    come_back(session.console, &cookies, &back).await
}

fn nobody(console: &TestConsole) -> Session<'_> {
    Session {
        console,
        cookie: "none=none".to_owned(),
    }
}

/// The session among the cookies that a response sets.
fn begun<'c>(console: &'c TestConsole, response: &Response) -> Session<'c> {
    with_cookie(console, response, "omniglot_session=")
}

/// Somebody without an account, who has come back from the provider.
fn newcomer<'c>(console: &'c TestConsole, response: &Response) -> Session<'c> {
    with_cookie(console, response, "omniglot_identity=")
}

fn with_cookie<'c>(console: &'c TestConsole, response: &Response, name: &str) -> Session<'c> {
    let cookies = response.headers().get_all(SET_COOKIE).iter();
    let mut cookies = cookies.map(|cookie| cookie.to_str().expect("text"));
    let found = cookies.find(|cookie| cookie.starts_with(name));
    let found = found.expect("a cookie").split(';').next().expect("a pair");
    Session {
        console,
        cookie: found.to_owned(),
    }
}

fn location(response: &Response) -> &str {
    let location = response.headers().get(LOCATION).expect("a redirect");
    location.to_str().expect("text")
}

#[tokio::test]
async fn somebody_new_chooses_a_username_and_comes_again() {
    let provider = Provider::start();
    let console = provider.console(", sign_up: {domains: [example.com]}");
    let nobody = nobody(&console);
    let page = nobody.page("/sign-in").await;
    assert!(page.contains("Continue with Example SSO"), "{page}");
    // The address comes from the endpoint that is asked with the access token.
    provider.says(|saying| {
        saying.user_info = json!({"sub": "subject-1", "email": "Ada@Example.com",
            "email_verified": true, "name": "Ada Lovelace"});
    });
    let arrived = visit(&provider, &nobody, "?next=%2Fme").await;
    assert_eq!(location(&arrived), "/welcome");
    assert_eq!(
        nobody.send(Method::GET, "/welcome", None).await.status(),
        410
    );
    let newcomer = newcomer(&console, &arrived);
    let page = newcomer.page("/welcome").await;
    assert!(
        page.contains("value=\"ada\"") && page.contains("Ada Lovelace"),
        "{page}"
    );
    let made = newcomer.form("/welcome", "handle=ada&display=Ada").await;
    assert_eq!(made.status(), 303);
    let ada = begun(&console, &made);
    let me = ada.json(Method::GET, "/api/v1/me", None, 200).await;
    assert_eq!(
        (&me["email"], &me["verified"]),
        (&json!("ada@example.com"), &json!(true))
    );
    assert_eq!(
        (&me["role"], &me["has_password"]),
        (&json!("member"), &json!(false))
    );
    let used = newcomer.send(Method::GET, "/welcome", None).await;
    assert_eq!(used.status(), 410);

    // What went to the provider: PKCE, and the client's own secret.
    let requests = provider.server.requests();
    let exchange = requests
        .iter()
        .find(|request| request.line == "POST /token");
    let exchange = exchange.expect("an exchange");
    let login = "Basic b21uaWdsb3Q6YStzZWNyZXQlMkZvZitvdXJz";
    assert_eq!(exchange.header("authorization"), login);
    let form: HashMap<String, String> = url::form_urlencoded::parse(exchange.body.as_bytes())
        .into_owned()
        .collect();
    assert_eq!(form["redirect_uri"], console.url("/identity/corp/callback"));
    let departed = depart(&nobody, "").await;
    assert_eq!(departed.query["code_challenge_method"], "S256");
    assert_eq!(departed.query["scope"], "openid email profile");
    assert_eq!(form["code_verifier"].len(), 43);

    let again = visit(&provider, &nobody, "?next=%2Fme").await;
    assert_eq!(location(&again), "/me");
    let ada = begun(&console, &again);
    let identities = ada
        .json(Method::GET, "/api/v1/me/identities", None, 200)
        .await;
    assert_eq!(identities[0]["label"], "Example SSO");
    // It is the only way to sign in.
    let path = format!(
        "/api/v1/me/identities/{}",
        identities[0]["id"].as_str().expect("an id")
    );
    let refused = ada.json(Method::DELETE, &path, None, 409).await;
    assert_eq!(refused["error"]["code"], "last_identity");

    // A group of the provider makes administrators, and no longer.
    provider.says(|saying| saying.claims["groups"] = json!(["staff", "gateway-admins"]));
    console.account("root", "admin").await;
    let admin = begun(&console, &visit(&provider, &nobody, "").await);
    admin.json(Method::GET, "/api/v1/people", None, 200).await;
    provider.says(|saying| saying.claims["groups"] = json!(["staff"]));
    let member = begun(&console, &visit(&provider, &nobody, "").await);
    member.json(Method::GET, "/api/v1/people", None, 403).await;

    // Others of another domain do not get in, nor whose address nobody has proven.
    for (email, is_proven) in [("eve@example.org", true), ("eve@example.com", false)] {
        provider.says(|saying| {
            saying.claims["sub"] = json!("subject-2");
            saying.user_info =
                json!({"sub": "subject-2", "email": email, "email_verified": is_proven});
        });
        let refused = visit(&provider, &nobody, "").await;
        assert_eq!(refused.status(), 403, "{email}");
    }
    console.succeeds(&["account", "disable", "ada"]);
    provider.says(|saying| {
        saying.claims["sub"] = json!("subject-1");
        saying.user_info = json!({"sub": "subject-1"});
    });
    let refused = visit(&provider, &nobody, "").await;
    assert_eq!(refused.status(), 403);
    assert!(refused.text().await.expect("text").contains("disabled"));
}

#[tokio::test]
async fn hostile_answers_are_refused() {
    let provider = Provider::start();
    let console = provider.console(", sign_up: open");
    let nobody = nobody(&console);
    let good = provider.saying.lock().expect("a lock").clone();
    let later = seconds() + 3600;
    let cases: Vec<(&str, Change)> = vec![
        (
            "another nonce",
            Box::new(|saying| saying.claims["nonce"] = json!("another")),
        ),
        (
            "another issuer",
            Box::new(|saying| saying.claims["iss"] = json!("https://evil.example")),
        ),
        (
            "another audience",
            Box::new(|saying| saying.claims["aud"] = json!("other")),
        ),
        (
            "an audience of several without azp",
            Box::new(|saying| {
                saying.claims["aud"] = json!(["omniglot", "other"]);
            }),
        ),
        (
            "another party",
            Box::new(|saying| saying.claims["azp"] = json!("other")),
        ),
        (
            "expired",
            Box::new(|saying| saying.claims["exp"] = json!(seconds() - 120)),
        ),
        (
            "of the future",
            Box::new(move |saying| saying.claims["iat"] = json!(later)),
        ),
        (
            "not valid yet",
            Box::new(move |saying| saying.claims["nbf"] = json!(later)),
        ),
        (
            "without expiry",
            Box::new(|saying| saying.claims["exp"] = Value::Null),
        ),
        (
            "without subject",
            Box::new(|saying| saying.claims["sub"] = json!("")),
        ),
        (
            "unsigned",
            Box::new(|saying| saying.header["alg"] = json!("none")),
        ),
        (
            "signed with a shared secret",
            Box::new(|saying| saying.header["alg"] = json!("HS256")),
        ),
        (
            "signed as if with RSA",
            Box::new(|saying| saying.header["alg"] = json!("RS256")),
        ),
        (
            "signed with another key",
            Box::new(|saying| saying.is_forged = true),
        ),
        (
            "signed with a key that is not there",
            Box::new(|saying| saying.header["kid"] = json!("third")),
        ),
        (
            "of another subject at userinfo",
            Box::new(|saying| saying.user_info = json!({"sub": "other"})),
        ),
    ];
    for (what, change) in cases {
        provider.says(|saying| {
            *saying = good.clone();
            change(saying);
        });
        let response = visit(&provider, &nobody, "").await;
        assert_eq!(response.status(), 403, "{what}");
        let text = response.text().await.expect("text");
        assert!(
            text.contains("did not confirm who you are"),
            "{what}: {text}"
        );
    }
    // A small difference between the clocks does not matter.
    provider.says(|saying| {
        *saying = good.clone();
        saying.claims["exp"] = json!(seconds() - 20);
        saying.claims["iat"] = json!(seconds() + 20);
    });
    assert_eq!(visit(&provider, &nobody, "").await.status(), 303);
    let log = console.log.text();
    for reason in [
        "another nonce",
        "ExpiredSignature",
        "InvalidAudience",
        "InvalidIssuer",
        "InvalidSignature",
    ] {
        assert!(log.contains(reason), "{reason}");
    }
}

#[tokio::test]
async fn an_answer_belongs_to_the_browser_that_asked() {
    let provider = Provider::start();
    let console = provider.console(", sign_up: open");
    let nobody = nobody(&console);
    let (own, foreign) = (depart(&nobody, "").await, depart(&nobody, "").await);
    provider.says(|saying| saying.claims["nonce"] = json!(own.query["nonce"]));
    let state = &own.query["state"];
    for (what, cookies, query) in [
        ("no cookie", String::new(), format!("code=c&state={state}")),
        (
            "another browser",
            foreign.cookie.clone(),
            format!("code=c&state={state}"),
        ),
        ("no state", own.cookie.clone(), "code=c".to_owned()),
        (
            "another issuer",
            own.cookie.clone(),
            format!("code=c&state={state}&iss=https%3A%2F%2Fevil.example"),
        ),
        (
            "an error",
            own.cookie.clone(),
            format!("error=access_denied&state={state}"),
        ),
        ("no code", own.cookie.clone(), format!("state={state}")),
    ] {
        let response = come_back(&console, &cookies, &query).await;
        assert_eq!(response.status(), 403, "{what}");
    }
    let requests = provider.server.requests();
    let exchanges = requests
        .iter()
        .filter(|request| request.line == "POST /token");
    assert_eq!(exchanges.count(), 0, "no code was redeemed");
    let right = come_back(&console, &own.cookie, &format!("code=c&state={state}")).await;
    assert_eq!(right.status(), 303);
    assert_eq!(
        nobody
            .send(Method::GET, "/identity/other", None)
            .await
            .status(),
        404
    );
    let challenge = &own.query["code_challenge"];
    let requests = provider.server.requests();
    let exchange = requests
        .iter()
        .find(|request| request.line == "POST /token");
    let body = &exchange.expect("an exchange").body;
    let verifier = body.split("code_verifier=").nth(1).expect("a verifier");
    let verifier = verifier.split('&').next().expect("text");
    assert_eq!(encode(Sha256::digest(verifier.as_bytes())), *challenge);
}

#[tokio::test]
async fn identities_are_connected_by_proven_addresses_or_by_their_owner() {
    let provider = Provider::start();
    let server = SmtpServer::start().await;
    let mail = format!(
        ", sign_up: open, mail: {{from: noreply@example.com, smtp: \"smtp://{}\"}}",
        server.address
    );
    let console = provider.console(&mail);
    let nobody = nobody(&console);
    // One account has proven its address, the other has not.
    let ask = console.client.post(console.url("/api/v1/sign-up"));
    ask.json(&json!({"email": "ada@example.com"}))
        .send()
        .await
        .expect("an answer");
    let token = server.until_received(1).await.token();
    let body = json!({"token": token, "handle": "ada", "password": PASSWORD});
    let made = console
        .client
        .post(console.url("/api/v1/invitations/accept"));
    let made = made.json(&body).send().await.expect("an answer");
    assert_eq!(made.status(), 201);
    console.succeeds(&["account", "create", "bob", "--email", "bob@example.com"]);

    provider.says(|saying| {
        saying.claims["email"] = json!("bob@example.com");
        saying.claims["email_verified"] = json!(true);
    });
    let refused = visit(&provider, &nobody, "").await;
    assert_eq!(refused.status(), 403);
    assert!(
        refused
            .text()
            .await
            .expect("text")
            .contains("has not confirmed it")
    );

    provider.says(|saying| saying.claims["email"] = json!("ada@example.com"));
    let arrived = visit(&provider, &nobody, "").await;
    assert_eq!(location(&arrived), "/");
    let ada = begun(&console, &arrived);
    let me = ada.json(Method::GET, "/api/v1/me", None, 200).await;
    assert_eq!(me["handle"], "ada");
    // From now on the subject counts, whatever the address is.
    provider.says(|saying| saying.claims["email"] = json!("new@example.com"));
    let ada = begun(&console, &visit(&provider, &nobody, "").await);
    let me = ada.json(Method::GET, "/api/v1/me", None, 200).await;
    assert_eq!(
        (&me["handle"], &me["email"]),
        (&json!("ada"), &json!("ada@example.com"))
    );

    // What belongs to one is not connected with another.
    let eve = console.account("eve", "member").await;
    let taken = visit(&provider, &eve, "?purpose=link").await;
    assert_eq!(taken.status(), 409);
    provider.says(|saying| {
        saying.claims["sub"] = json!("subject-9");
        saying.user_info = json!({"sub": "subject-9"});
    });
    let linked = visit(&provider, &eve, "?purpose=link").await;
    assert_eq!(location(&linked), "/me?note=saved");
    assert!(eve.page("/me").await.contains("Disconnect"));
    let identities = eve
        .json(Method::GET, "/api/v1/me/identities", None, 200)
        .await;
    let path = format!(
        "/api/v1/me/identities/{}",
        identities[0]["id"].as_str().expect("an id")
    );
    ada.json(Method::DELETE, &path, None, 404).await;
    // To connect one needs a session.
    let sent_away = nobody
        .send(Method::GET, "/identity/corp?purpose=link", None)
        .await;
    assert_eq!(location(&sent_away), "/sign-in?next=%2Fme");
    eve.json(Method::DELETE, &path, None, 204).await;
    // Another site does not begin it with her browser.
    for purpose in ["link", "confirm"] {
        let url = console.url(&format!("/identity/corp?purpose={purpose}"));
        let request = console.client.get(url).header(COOKIE, &eve.cookie);
        let request = request.header("sec-fetch-site", "cross-site");
        let sent_away = request.send().await.expect("an answer");
        assert_eq!(location(&sent_away), "/me", "{purpose}");
    }
}

#[tokio::test]
async fn who_has_no_password_confirms_at_the_provider() {
    let provider = Provider::start();
    let console = provider.console(", sign_up: open, admins: [ada@example.com]");
    let nobody = nobody(&console);
    // She signed in there an hour ago: that is no sign-in of this moment.
    provider.says(|saying| {
        saying.claims["email"] = json!("ada@example.com");
        saying.claims["email_verified"] = json!("true");
        saying.claims["auth_time"] = json!(seconds() - 3600);
    });
    let newcomer = newcomer(&console, &visit(&provider, &nobody, "").await);
    let made = newcomer.form("/welcome", "handle=ada").await;
    let me = begun(&console, &made);
    let me = me.json(Method::GET, "/api/v1/me", None, 200).await;
    assert_eq!(me["role"], "admin", "by console.admins");
    let ada = begun(&console, &visit(&provider, &nobody, "").await);
    let unlimited = json!({"label": "k", "spending_cap": null});
    let keys = "/api/v1/accounts/ada/keys";
    let refused = ada
        .json(Method::POST, keys, Some(unlimited.clone()), 403)
        .await;
    assert_eq!(refused["error"]["code"], "confirm_password");
    let page = ada.page("/confirm?next=%2Fkeys").await;
    assert!(
        page.contains("purpose=confirm") && !page.contains("name=\"password\""),
        "{page}"
    );
    let departed = depart(&ada, "?purpose=confirm").await;
    assert_eq!(
        (&*departed.query["prompt"], &*departed.query["max_age"]),
        ("login", "0")
    );
    // The provider did not ask her again.
    let stale = visit(&provider, &ada, "?purpose=confirm&next=%2Fkeys").await;
    assert_eq!(stale.status(), 403);
    provider.says(|saying| {
        saying.claims["auth_time"] = json!(seconds());
        saying.claims["sub"] = json!("somebody else");
        saying.user_info = json!({"sub": "somebody else"});
    });
    assert_eq!(
        visit(&provider, &ada, "?purpose=confirm").await.status(),
        403
    );
    provider.says(|saying| {
        saying.claims["sub"] = json!("subject-1");
        saying.user_info = json!({"sub": "subject-1"});
    });
    let confirmed = visit(&provider, &ada, "?purpose=confirm&next=%2Fkeys").await;
    assert_eq!(location(&confirmed), "/keys");
    ada.json(Method::POST, keys, Some(unlimited), 201).await;
}

#[tokio::test]
async fn keys_may_be_replaced_and_the_metadata_must_be_of_the_issuer() {
    let provider = Provider::start();
    let console = provider.console(", sign_up: open");
    let nobody = nobody(&console);
    assert_eq!(visit(&provider, &nobody, "").await.status(), 303);
    provider.says(|saying| saying.has_rotated = true);
    assert_eq!(visit(&provider, &nobody, "").await.status(), 303);
    // A key that is not there is not asked for again and again.
    provider.says(|saying| saying.header["kid"] = json!("third"));
    for _ in 0..3 {
        assert_eq!(visit(&provider, &nobody, "").await.status(), 403);
    }
    let requests = provider.server.requests();
    let fetched = requests
        .iter()
        .filter(|request| request.line == "GET /keys");
    assert_eq!(fetched.count(), 2);
    let other = Provider::start();
    other.says(|saying| saying.issuer = Some("https://evil.example".to_owned()));
    let console = other.console("");
    let sent = console
        .client
        .get(console.url("/identity/corp"))
        .send()
        .await;
    assert_eq!(sent.expect("an answer").status(), 403);
    let log = console.log.text();
    assert!(
        log.contains("is of the issuer \"https://evil.example\""),
        "{log}"
    );
}
