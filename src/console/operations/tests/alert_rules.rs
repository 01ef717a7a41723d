//! What alerts may be made, and what becomes of them with a receiver that listens here.

use std::sync::Mutex;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;

use super::*;
use crate::config::Reset;
use crate::console::operations::alerts::{AlertTargetInput, AlertsInput};
use crate::console::operations::{alerts, keys};
use crate::console::watch_alerts;
use crate::console::webhook::WebhookClient;
use crate::metrics::Metrics;
use crate::store::{AuditFilter, MembershipChange};

pub fn of_key(id: String) -> AlertsInput {
    AlertsInput {
        key: id,
        ..AlertsInput::default()
    }
}

pub fn of_account(name: &str) -> AlertsInput {
    AlertsInput {
        account: name.to_owned(),
        ..AlertsInput::default()
    }
}

pub fn webhook(url: &str) -> AlertTargetInput {
    AlertTargetInput {
        webhook: Some(url.to_owned()),
        ..AlertTargetInput::default()
    }
}

fn person(handle: &str) -> AlertTargetInput {
    AlertTargetInput {
        person: Some(handle.to_owned()),
        ..AlertTargetInput::default()
    }
}

fn email(address: &str) -> AlertTargetInput {
    AlertTargetInput {
        email: Some(address.to_owned()),
        ..AlertTargetInput::default()
    }
}

impl Scene {
    /// A new person with a proven address.
    async fn newcomer(&self, handle: &str, role: PersonRole) {
        let person = NewPerson {
            handle: handle.to_owned(),
            display: handle.to_owned(),
            email: Some(format!("{handle}@example.org")),
            is_verified: true,
            password: Some("$".to_owned()),
            role,
        };
        let entry = AuditEntry::default();
        let made = self.console.store.create_person(&person, &entry).await;
        made.expect("a person");
    }

    /// A request with a key that costs so much.
    async fn spend(&self, key: &str, cost: &str) {
        let record = UsageRecord {
            id: format!("req_{}", uuid::Uuid::now_v7()).into(),
            at: now(),
            key_id: key.to_owned().into(),
            key: "member/k".into(),
            model: "m".into(),
            upstream: "up".into(),
            format: "chat".into(),
            stream: false,
            status: 200,
            usage: Usage::default(),
            images: 0,
            estimated: false,
            cost: Money::parse(cost).expect("an amount"),
            details: UsageDetails::default(),
        };
        let recorded = self.console.store.record(&[record]).await;
        assert_eq!(recorded.expect("recorded"), 1);
    }
}

#[tokio::test]
async fn nobody_has_mail_sent_to_strangers() {
    let scene = Scene::new("{MAIL}").await;
    for (handle, role) in [
        ("ada", PersonRole::Member),
        ("grace", PersonRole::Member),
        ("chief", PersonRole::Admin),
    ] {
        scene.newcomer(handle, role).await;
    }
    let (ada, chief) = (scene.call("ada").await, scene.call("chief").await);
    let of = of_key(scene.key("ada").await);
    let create = async |call: &ConsoleCall, target: AlertTargetInput| {
        word(alerts::create_alert(call, &of, None, &target).await)
    };
    assert_eq!(create(&ada, person("ada")).await, "ok");
    // They do not belong to the account, or do not exist.
    for stranger in ["grace", "chief", "nobody"] {
        assert_eq!(
            create(&ada, person(stranger)).await,
            "invalid",
            "{stranger}"
        );
    }
    assert_eq!(create(&chief, person("chief")).await, "invalid");
    assert_eq!(create(&ada, email("ada@example.org")).await, "forbidden");
    assert_eq!(create(&chief, email("ops@example.net")).await, "ok");
    let header = email("a@x.org\r\nbcc: b@x.org");
    assert_eq!(create(&chief, header).await, "invalid");
    // One target, and one that is public.
    let both = AlertTargetInput {
        webhook: Some("https://hooks.example.org/".to_owned()),
        ..person("ada")
    };
    assert_eq!(create(&ada, both).await, "invalid");
    assert_eq!(create(&ada, AlertTargetInput::default()).await, "invalid");
    for url in [
        "https://127.0.0.1/",
        "http://hooks.example.org/",
        "https://10.0.0.1/",
    ] {
        assert_eq!(create(&chief, webhook(url)).await, "invalid", "{url}");
    }
    let shown = alerts::list_recipients(&ada, "ada").await.expect("people");
    assert_eq!(shown[0].own_email.as_deref(), Some("ada@example.org"));
    let shown = alerts::list_recipients(&chief, "ada").await;
    assert_eq!(shown.expect("people")[0].own_email, None);
    // An address that is not proven gets nothing.
    let member = scene.call("member").await;
    let of = of_key(scene.key("member").await);
    let made = alerts::create_alert(&member, &of, None, &person("member")).await;
    assert_eq!(word(made), "invalid");
}

#[tokio::test]
async fn alerts_are_few_and_their_thresholds_are_percents() {
    let scene = Scene::new("{}").await;
    let call = scene.call("member").await;
    let of = of_key(scene.key("member").await);
    let target = webhook("https://hooks.example.org/services/a-secret-path");
    for wrong in [&[][..], &[0], &[101], &[1, 2, 3, 4, 5, 6]] {
        let made = alerts::create_alert(&call, &of, Some(wrong), &target).await;
        assert_eq!(word(made), "invalid", "{wrong:?}");
    }
    let made = alerts::create_alert(&call, &of, Some(&[90, 5, 90]), &target).await;
    let made = made.expect("an alert");
    assert_eq!(made.alert.percents, [5, 90]);
    let secret = made.secret.expect("told once");
    assert!(secret.starts_with("whsec_"), "{secret}");
    let changed = alerts::change_alert(&call, &made.alert.id, Some(&[70]), None).await;
    let changed = changed.expect("changed");
    assert_eq!((changed.alert.percents, changed.secret), (vec![70], None));
    for _ in 1..10 {
        let more = alerts::create_alert(&call, &of, None, &target).await;
        assert_eq!(more.expect("an alert").alert.percents, [50, 80, 100]);
    }
    let more = alerts::create_alert(&call, &of, None, &target).await;
    assert_eq!(word(more), "too_many_alerts");
    // Neither the secret nor the path is in the audit log.
    let filter = AuditFilter {
        action: "alert".to_owned(),
        ..AuditFilter::default()
    };
    let lines = scene.console.store.audit_lines(&filter, 100).await;
    let lines = lines.expect("lines");
    assert_eq!(lines.len(), 11);
    for line in lines {
        assert!(line.change.contains('%'), "{line:?}");
        assert!(!line.change.contains("services"), "{line:?}");
    }
    // Mail is off, and the account of nobody has no cap.
    let made = alerts::create_alert(&call, &of, None, &person("member")).await;
    assert_eq!(word(made), "mail_off");
    let admin = scene.call("admin").await;
    let made = alerts::create_alert(&admin, &of_account("default"), None, &target).await;
    assert_eq!(word(made), "invalid");
    let made = alerts::create_alert(&call, &of_account("member"), None, &target).await;
    assert_eq!(word(made), "ok");
    let none = alerts::list_alerts(&call, &AlertsInput::default()).await;
    assert_eq!(none.expect("alerts").len(), 11);
}

#[tokio::test]
async fn who_only_looks_sees_the_host_of_a_webhook_and_stops_the_own_mail() {
    let scene = Scene::new("{MAIL}").await;
    scene.newcomer("guest", PersonRole::Viewer).await;
    let (admin, viewer) = (scene.call("admin").await, scene.call("guest").await);
    let of = of_key(scene.key("guest").await);
    let target = webhook("https://hooks.example.org/services/a-secret-path");
    let hook = alerts::create_alert(&admin, &of, None, &target).await;
    let hook = hook.expect("an alert").alert.id;
    let mail = alerts::create_alert(&admin, &of, None, &person("guest")).await;
    let mail = mail.expect("an alert").alert.id;
    let seen = alerts::list_alerts(&viewer, &of).await.expect("alerts");
    assert_eq!(seen[0].webhook.as_deref(), Some("hooks.example.org"));
    assert!(!seen[0].may_change);
    assert_eq!(
        word(alerts::delete_alert(&viewer, &hook).await),
        "forbidden"
    );
    assert_eq!(word(alerts::delete_alert(&viewer, &mail).await), "ok");
}

/// What a receiver got, and what it answers next.
#[derive(Default)]
struct Receiver {
    received: Mutex<Vec<(HeaderMap, String)>>,
    failures: Mutex<u16>,
}

impl Receiver {
    /// Listens, and returns the URL.
    async fn start(self: &Arc<Receiver>) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let receiver = self.clone();
        let receive = async move |headers: HeaderMap, body: String| {
            receiver.received.lock().expect("it").push((headers, body));
            let mut failures = receiver.failures.lock().expect("it");
            if *failures > 0 {
                *failures -= 1;
                return StatusCode::INTERNAL_SERVER_ERROR;
            }
            StatusCode::NO_CONTENT
        };
        let elsewhere = async || (StatusCode::FOUND, [("location", "/hook?b=c")]);
        let router = Router::new()
            .route("/hook", post(receive))
            .route("/elsewhere", post(elsewhere));
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}")
    }

    async fn until(&self, count: usize) -> (HeaderMap, String) {
        // Only a hang takes so long.
        for _ in 0..1200 {
            if self.received.lock().expect("it").len() >= count {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let received = self.received.lock().expect("it");
        assert_eq!(received.len(), count, "{received:?}");
        received[count - 1].clone()
    }
}

fn signature(secret: &str, headers: &HeaderMap, body: &str) -> String {
    let header = |name: &str| headers[name].to_str().expect("text").to_owned();
    let key = STANDARD.decode(secret.trim_start_matches("whsec_"));
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.expect("base64")).expect("a key");
    let signed = format!(
        "{}.{}.{body}",
        header("webhook-id"),
        header("webhook-timestamp")
    );
    mac.update(signed.as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[tokio::test]
async fn a_webhook_is_told_once_by_two_gateways_and_again_after_a_failure() {
    let mut scene = Scene::new("{}").await;
    let console = Arc::get_mut(&mut scene.console).expect("the only one");
    console.webhooks = WebhookClient::to_anywhere();
    let receiver = Arc::new(Receiver::default());
    let base = receiver.start().await;
    let call = scene.call("member").await;
    let key = scene.key("member").await;
    let of = of_key(key.clone());
    let made = alerts::create_alert(&call, &of, None, &webhook(&format!("{base}/hook?a=b"))).await;
    let made = made.expect("an alert");
    let secret = made.secret.expect("a secret");
    for _ in 0..2 {
        let metrics = Arc::new(Metrics::new());
        tokio::spawn(watch_alerts(scene.console.clone(), metrics));
    }
    // It jumps over a threshold, and the first attempt fails.
    *receiver.failures.lock().expect("it") = 1;
    scene.spend(&key, "4.25").await;
    let (_, first) = receiver.until(1).await;
    let (headers, body) = receiver.until(2).await;
    assert_eq!(first, body, "it is the same message");
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(
        headers["webhook-signature"].to_str().ok(),
        Some(&*signature(&secret, &headers, &body))
    );
    let event: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(event["id"], headers["webhook-id"].to_str().expect("text"));
    assert_eq!(event["type"], "spending.threshold");
    assert_eq!(event["percent"], 80);
    assert_eq!(event["spent"].to_string(), "4.25");
    assert_eq!(event["spending_cap"].to_string(), "5");
    assert_eq!(
        (&event["account"], &event["reset"]),
        (&"member".into(), &"none".into())
    );
    assert!(
        event["url"]
            .as_str()
            .is_some_and(|url| url.ends_with(&format!("/keys/{key}/alerts")))
    );
    // Nothing more until the next threshold; then a raised cap arms it again.
    tokio::time::sleep(Duration::from_secs(3)).await;
    receiver.until(2).await;
    let shown = alerts::list_alerts(&call, &of).await.expect("alerts");
    let last = shown[0].last.clone().expect("it was told");
    assert_eq!(
        (last.percent, last.sent, shown[0].waiting),
        (Some(80), true, false)
    );
    let raise = |cap: &str| KeyChange {
        spending_cap: Some(Money::parse(cap)),
        reset: Some(Reset::Never),
        ..KeyChange::default()
    };
    keys::change_key(&call, &key, raise("10"))
        .await
        .expect("raised");
    tokio::time::sleep(Duration::from_secs(3)).await;
    scene.spend(&key, "4.25").await;
    let (_, body) = receiver.until(3).await;
    let event: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(
        (event["percent"].as_u64(), event["spent"].to_string()),
        (Some(80), "8.5".to_owned())
    );
}

#[tokio::test]
async fn a_test_message_tells_why_it_did_not_arrive() {
    let mut scene = Scene::new("{}").await;
    let console = Arc::get_mut(&mut scene.console).expect("the only one");
    console.webhooks = WebhookClient::to_anywhere();
    let receiver = Arc::new(Receiver::default());
    let base = receiver.start().await;
    let call = scene.call("member").await;
    let of = of_key(scene.key("member").await);
    let mut outcomes = Vec::new();
    for url in ["/hook", "/elsewhere", "/nothing"] {
        let made = alerts::create_alert(&call, &of, None, &webhook(&format!("{base}{url}"))).await;
        let id = made.expect("an alert").alert.id;
        let tested = alerts::test_alert(&call, &id).await.expect("an outcome");
        outcomes.push(tested.reason.unwrap_or_else(|| "sent".to_owned()));
    }
    assert_eq!(outcomes, ["sent", "redirect", "status_404"]);
    let (_, body) = receiver.until(1).await;
    let event: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(
        (&event["type"], &event["percent"]),
        (&"test".into(), &Value::Null)
    );
    let shown = alerts::list_alerts(&call, &of).await.expect("alerts");
    let last = shown[1].last.clone().expect("it was tried");
    assert_eq!((last.sent, last.percent), (false, None));
    let again = alerts::test_alert(&call, &shown[0].id);
    assert_eq!(word(again.await), "ok");
    for _ in 0..2 {
        let _ = alerts::test_alert(&call, &shown[0].id).await;
    }
    let again = alerts::test_alert(&call, &shown[0].id);
    assert_eq!(word(again.await), "too_many_attempts");
}

#[tokio::test]
async fn the_webhook_of_somebody_who_has_left_is_told_nothing() {
    let mut scene = Scene::new("{}").await;
    let console = Arc::get_mut(&mut scene.console).expect("the only one");
    console.webhooks = WebhookClient::to_anywhere();
    let receiver = Arc::new(Receiver::default());
    let base = receiver.start().await;
    let others = [("member", MembershipRole::Member)];
    let team = scene.team("other", &others).await;
    let (owner, member) = (scene.call("other").await, scene.call("member").await);
    let of = of_key(scene.key(&team).await);
    let target = webhook(&format!("{base}/hook"));
    let made = alerts::create_alert(&member, &of, None, &target).await;
    let id = made.expect("an alert").alert.id;
    let test = async || {
        let tested = alerts::test_alert(&owner, &id).await;
        tested.expect("an outcome").reason
    };
    assert_eq!(test().await, None);
    let (store, entry) = (&scene.console.store, AuditEntry::default());
    let account = store.account(&team).await.expect("an answer");
    let account = account.expect("the team");
    let person = scene.person("member").await.id;
    let removal = MembershipChange::Removal;
    let removed = store.change_member(&account, &person, removal, false, &entry);
    removed.await.expect("removed");
    assert_eq!(test().await.as_deref(), Some("no_recipient"));
    receiver.until(1).await;
    // Somebody else answers for it.
    let changed = alerts::change_alert(&owner, &id, None, Some(&target)).await;
    assert_eq!(changed.expect("changed").alert.made_by, "other");
    assert_eq!(test().await, None);
    receiver.until(2).await;
}
