//! The spending cap of an account whose keys are used on several gateways.

use omniglot::config::Reset;
use omniglot::store::{AuditEntry, KeyChange, NewPerson, PersonRole, Store};
use omniglot_test_support::{Database, Gateway, Response, client, send, wait_until};
use rstest::rstest;
use serde_json::json;
use tokio::task::JoinSet;

use crate::{Replicas, money, total_cost, wait_until_flushed};

/// A person whose account has a cap of 1, and keys with the same cap each, by their secrets.
async fn create_keys(store: &Store, count: usize) -> Vec<String> {
    let entry = AuditEntry::default();
    let person = NewPerson {
        handle: "ada".to_owned(),
        display: "Ada".to_owned(),
        email: None,
        is_verified: false,
        password: None,
        role: PersonRole::Member,
    };
    store
        .create_person(&person, &entry)
        .await
        .expect("a person");
    let account = store.account("ada").await.expect("an answer");
    let account = account.expect("the account").id;
    let set = store.set_account_cap(&account, Some(money("1")), Reset::Monthly, &entry);
    set.await.expect("a cap");
    let mut secrets = Vec::new();
    for number in 0..count {
        let change = KeyChange {
            account: Some("ada".to_owned()),
            spending_cap: Some(Some(money("1"))),
            ..KeyChange::default()
        };
        let name = format!("ada/k{number}");
        let made = store.create_owned_key(&name, &change, None, &entry).await;
        secrets.push(made.expect("a key").1);
    }
    secrets
}

/// A request for an answer of so many tokens, of which each costs a thousandth.
fn request(gateway: &Gateway, secret: &str, tokens: u64) -> reqwest::RequestBuilder {
    let words = format!("mock:usage=5,0,{tokens},0 mock:text=hi");
    let body = json!({"model": "chat", "max_completion_tokens": tokens,
        "messages": [{"role": "user", "content": words}]});
    let request = client().post(gateway.url("/v1/chat/completions"));
    request.bearer_auth(secret).json(&body)
}

fn is_over(response: &Response) -> bool {
    response.status == 429 && response.json()["error"]["code"] == "insufficient_quota"
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_requests_on_two_gateways_keep_within_the_cap_of_the_account(
    #[case] database: Database,
) {
    let replicas = Replicas::new(database);
    let store = replicas.open().await;
    let secrets = create_keys(&store, 10).await;
    let gateways = [replicas.start(0), replicas.start(1)];
    let mut requests = JoinSet::new();
    for number in 0..1000 {
        let secret = &secrets[number / 2 % 10];
        requests.spawn(send(request(&gateways[number % 2], secret, 10)));
    }
    let mut served = 0;
    for response in requests.join_all().await {
        match response.status {
            200 => served += 1,
            429 => assert!(response.error("chat").contains("`ada")),
            _ => panic!("{}", response.text()),
        }
    }
    assert!(0 < served && served <= 100, "{served} answers of 0.01");
    for tokens in [10, 1] {
        for gateway in &gateways {
            wait_until("there is not so much left", async || {
                is_over(&send(request(gateway, &secrets[0], tokens)).await)
            })
            .await;
        }
    }
    wait_until_flushed(&gateways).await;
    assert_eq!(total_cost(&store).await, money("1"));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn what_other_keys_have_spent_elsewhere_is_gone(#[case] database: Database) {
    let replicas = Replicas::new(database);
    let store = replicas.open().await;
    let secrets = create_keys(&store, 2).await;
    let mut one = replicas.start(0);
    assert_eq!(send(request(&one, &secrets[0], 700)).await.status, 200);
    wait_until_flushed(std::slice::from_ref(&one)).await;
    one.process.signal("TERM");
    assert_eq!(one.process.wait().code(), Some(0));
    let other = replicas.start(1);
    let own = client().get(other.url("/api/key")).bearer_auth(&secrets[1]);
    let own = send(own).await.json();
    assert_eq!(
        (&own["spent"], &own["account"]["spent"]),
        (&json!(0), &json!(0.7))
    );
    let response = send(request(&other, &secrets[1], 301)).await;
    let message = response.error("chat");
    let left = "the account `ada` of this API key has 0.3 left of its spending cap of 1, and this request may cost 0.301";
    assert!(is_over(&response) && message.starts_with(left), "{message}");
    assert_eq!(send(request(&other, &secrets[1], 300)).await.status, 200);
}
