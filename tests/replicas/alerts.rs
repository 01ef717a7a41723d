//! Alerts of a key whose requests come to two gateways: one mail for each threshold.

use omniglot::config::Reset;
use omniglot::store::{
    AlertSubject, AlertTarget, AuditEntry, KeyChange, NewAlert, NewPerson, PersonRole, Store,
};
use omniglot_test_support::{
    Database, Gateway, SmtpServer, client, free_address, send, wait_until,
};
use rstest::rstest;
use serde_json::json;

use crate::{Replicas, money, wait_until_flushed};

/// A key with a cap of 1 and an alert to its owner: the secret.
async fn create_key(store: &Store) -> String {
    let entry = AuditEntry::default();
    let person = NewPerson {
        handle: "ada".to_owned(),
        display: "Ada".to_owned(),
        email: Some("ada@example.com".to_owned()),
        is_verified: true,
        password: None,
        role: PersonRole::Member,
    };
    let person = store.create_person(&person, &entry).await;
    let change = KeyChange {
        account: Some("ada".to_owned()),
        spending_cap: Some(Some(money("1"))),
        reset: Some(Reset::Monthly),
        ..KeyChange::default()
    };
    let made = store.create_owned_key("ada/k", &change, None, &entry).await;
    let (key, secret) = made.expect("a key");
    let alert = NewAlert {
        subject: AlertSubject::Key(key.id),
        percents: vec![50, 80, 100],
        target: AlertTarget::Person(person.expect("a person").id),
        secret: None,
        language: "en",
    };
    let made = store.create_alert(&alert, 10, &entry).await;
    made.expect("an alert");
    secret
}

/// Spends a thousandth for each token, once the gateway has so much of the cap.
async fn spend(gateway: &Gateway, secret: &str, tokens: u64) {
    let words = format!("mock:usage=5,0,{tokens},0 mock:text=hi");
    let body = json!({"model": "chat", "max_completion_tokens": tokens,
        "messages": [{"role": "user", "content": words}]});
    wait_until("the gateway has so much of the cap", async || {
        let request = client().post(gateway.url("/v1/chat/completions"));
        let response = send(request.bearer_auth(secret).json(&body)).await;
        response.status == 200
    })
    .await;
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn two_gateways_send_one_mail_for_a_threshold(#[case] database: Database) {
    let server = SmtpServer::start().await;
    let replicas = Replicas::new(database);
    let store = replicas.open().await;
    let secret = create_key(&store).await;
    let start = |number: usize| {
        let console = free_address();
        let config = format!(
            "{}console: {{listen: \"{console}\", public_url: \"https://console.example.com\", \
             mail: {{from: \"noreply@example.com\", smtp: \"smtp://{}\"}}}}\n",
            replicas.config(number),
            server.address
        );
        Gateway::start(&config)
    };
    let mut gateways = vec![start(0), start(1)];
    // Together they jump over the first threshold.
    spend(&gateways[0], &secret, 420).await;
    spend(&gateways[1], &secret, 400).await;
    wait_until_flushed(&gateways).await;
    wait_until("the mail is there", async || !server.received().is_empty()).await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let mails = server.received();
    // Whichever came first may have been seen alone, which is below the threshold.
    assert_eq!(mails.len(), 1, "{mails:#?}");
    assert_eq!(mails[0].to, "ada@example.com");
    assert!(mails[0].text.contains("80 %"), "{}", mails[0].text);
    // A restart tells nothing again, and goes on.
    let mut one = gateways.remove(0);
    one.process.signal("TERM");
    assert_eq!(one.process.wait().code(), Some(0));
    gateways.push(start(0));
    spend(&gateways[1], &secret, 180).await;
    wait_until_flushed(&gateways).await;
    wait_until("the next mail is there", async || {
        server.received().len() > 1
    })
    .await;
    let mails = server.received();
    assert_eq!(mails.len(), 2, "{mails:#?}");
    assert!(mails[1].text.contains("100 %"), "{}", mails[1].text);
}
