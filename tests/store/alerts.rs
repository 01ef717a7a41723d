//! Alerts in the store: what they watch, and that one of several gateways tells of it.

use jiff::Timestamp;
use omniglot::config::Reset;
use omniglot::model::{Usage, UsageDetails, UsageRecord};
use omniglot::store::{
    AlertFilter, AlertSubject, AlertTarget, AuditEntry, COMMAND_LINE, DueAlert, FiredThreshold,
    KeyChange, MembershipChange, MembershipRole, NewAlert, NewPerson, PersonChange, PersonRole,
    Store, StoreError, WatchedAlert,
};
use omniglot_test_support::Database;
use rstest::rstest;

use crate::{TestStore, money};

fn entry() -> AuditEntry {
    AuditEntry {
        actor: "ada".to_owned(),
        ..AuditEntry::default()
    }
}

/// A person with an account, by the id of the account.
async fn account(store: &Store) -> (String, String) {
    let person = NewPerson {
        handle: "ada".to_owned(),
        display: "Ada".to_owned(),
        email: Some("ada@example.org".to_owned()),
        is_verified: true,
        password: None,
        role: PersonRole::Member,
    };
    let person = store.create_person(&person, &entry()).await;
    let account = store.account("ada").await.expect("an answer");
    (
        person.expect("a person").id,
        account.expect("the account").id,
    )
}

async fn key(store: &Store, label: &str, cap: Option<&str>, reset: Reset) -> String {
    let change = KeyChange {
        account: Some("ada".to_owned()),
        spending_cap: Some(cap.map(money)),
        reset: Some(reset),
        ..KeyChange::default()
    };
    let name = format!("ada/{label}");
    let made = store.create_owned_key(&name, &change, None, &entry()).await;
    made.expect("a key").0.id
}

async fn alert(store: &Store, subject: AlertSubject, target: AlertTarget) -> String {
    let alert = NewAlert {
        subject,
        percents: vec![50, 100],
        target,
        secret: None,
        language: "en",
    };
    let made = store.create_alert(&alert, 2, &entry()).await;
    made.expect("an alert")
}

async fn spend(store: &Store, key: &str, at: Timestamp, cost: &str) {
    let record = UsageRecord {
        id: uuid::Uuid::now_v7().to_string().into(),
        at: at.as_millisecond(),
        key_id: key.to_owned().into(),
        key: "ada/k".into(),
        model: "m".into(),
        upstream: "up".into(),
        format: "chat".into(),
        stream: false,
        status: 200,
        usage: Usage::default(),
        images: 0,
        estimated: false,
        cost: money(cost),
        details: UsageDetails::default(),
    };
    assert_eq!(store.record(&[record]).await.expect("recorded"), 1);
}

fn webhook() -> AlertTarget {
    AlertTarget::Webhook("https://hooks.example.org/a".to_owned())
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn alerts_watch_what_is_spent_in_the_period_of_their_cap(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (_, account) = account(&store).await;
    assert!(!store.has_alerts().await.expect("an answer"));
    let by = entry();
    let set = store.set_account_cap(&account, Some(money("100")), Reset::Monthly, &by);
    set.await.expect("a cap");
    let (now, yesterday): (Timestamp, Timestamp) = (
        "2026-11-18T12:00:00Z".parse().expect("a time"),
        "2026-11-17T12:00:00Z".parse().expect("a time"),
    );
    let october: Timestamp = "2026-10-01T00:00:00Z".parse().expect("a time");
    let mut expected = Vec::new();
    for (label, cap, reset, spent, period) in [
        ("daily", Some("5"), Reset::Daily, "1", "2026-11-18"),
        ("monthly", Some("6"), Reset::Monthly, "3", "2026-11"),
        ("never", Some("7"), Reset::Never, "7", ""),
        ("unlimited", None, Reset::Never, "", ""),
        ("nothing", Some("0"), Reset::Never, "", ""),
    ] {
        let key = key(&store, label, cap, reset).await;
        for (at, cost) in [(now, "1"), (yesterday, "2"), (october, "4")] {
            spend(&store, &key, at, cost).await;
        }
        let id = alert(&store, AlertSubject::Key(key), webhook()).await;
        if !spent.is_empty() {
            expected.push((id, Some(format!("ada/{label}")), money(spent), period));
        }
    }
    let of_account = alert(&store, AlertSubject::Account(account), webhook()).await;
    // All five keys, in this month.
    expected.push((of_account, None, money("15"), "2026-11"));
    let found = store.watched_alerts(now).await.expect("alerts");
    let figures = |alert: &WatchedAlert| (alert.id.clone(), alert.key.clone(), alert.spent);
    for (id, key, spent, period) in &expected {
        let watched = found.iter().find(|alert| alert.id == *id);
        let watched = watched.expect("it is watched");
        assert_eq!(figures(watched), (id.clone(), key.clone(), *spent));
        assert_eq!(
            (watched.period.as_str(), &*watched.account),
            (*period, "ada")
        );
        assert_eq!(watched.percents, [50, 100]);
    }
    assert_eq!(found.len(), expected.len());
    assert!(store.has_alerts().await.expect("an answer"));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_gateways_tells_and_tries(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (person, _) = account(&store).await;
    let key = key(&store, "k", Some("1"), Reset::Monthly).await;
    let id = alert(&store, AlertSubject::Key(key), AlertTarget::Person(person)).await;
    let seen = FiredThreshold {
        period: "-".to_owned(),
        percent: 0,
    };
    let fired = FiredThreshold {
        period: "2026-11".to_owned(),
        percent: 50,
    };
    let mut gateways = Vec::new();
    for _ in 0..4 {
        let (store, id) = (test_store.open().await, id.clone());
        let (seen, fired) = (seen.clone(), fired.clone());
        gateways.push(tokio::spawn(async move {
            let told = store.fire_alert(&id, &seen, &fired, Some(("{}", 1000)));
            let mut taken = 0;
            let told = told.await.expect("an answer");
            for due in store.due_alerts(1000, 8).await.expect("messages") {
                let claimed = store.claim_alert(&due, 5000).await.expect("an answer");
                taken += usize::from(claimed.is_some());
            }
            (usize::from(told), taken)
        }));
    }
    let (mut told, mut taken) = (0, 0);
    for gateway in gateways {
        let done = gateway.await.expect("no panic");
        (told, taken) = (told + done.0, taken + done.1);
    }
    assert_eq!((told, taken), (1, 1));
    let one = async || {
        let found = store.alerts(AlertFilter::One(&id)).await.expect("alerts");
        found.into_iter().next().expect("the alert")
    };
    let alert = one().await;
    assert_eq!((alert.attempts, alert.due), (1, Some(5000)));
    assert_eq!(alert.proven_email.as_deref(), Some("ada@example.org"));
    // Who has it no longer notes nothing; a process that is gone leaves it to others.
    let late = store.settle_alert(&id, 4000, (1, 50, "sent"), None).await;
    late.expect("an answer");
    assert_eq!(one().await.due, Some(5000));
    assert_eq!(store.due_alerts(4999, 8).await.expect("messages"), []);
    let due = store.due_alerts(5000, 8).await.expect("messages");
    let claimed = store.claim_alert(&due[0], 9000).await;
    assert_eq!(claimed.expect("an answer"), Some(("{}".to_owned(), 2)));
    let failed = (2, 50, "status_500");
    let settled = store.settle_alert(&id, 9000, failed, Some(7000)).await;
    settled.expect("an answer");
    let alert = one().await;
    let last = alert.last.expect("an outcome");
    assert_eq!((alert.attempts, alert.due), (2, Some(7000)));
    assert_eq!((last.percent, &*last.outcome), (Some(50), "status_500"));
    // A higher threshold takes its place, and begins anew.
    let higher = FiredThreshold {
        percent: 100,
        ..fired.clone()
    };
    let told = store.fire_alert(&id, &fired, &higher, Some(("{1}", 8000)));
    assert!(told.await.expect("an answer"));
    let alert = one().await;
    assert_eq!((alert.attempts, alert.due), (0, Some(8000)));
    assert_eq!(alert.message.as_deref(), Some("{1}"));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn alerts_end_with_their_key_and_go_to_who_belongs_to_the_account(
    #[case] database: Database,
) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (person, account) = account(&store).await;
    let key = key(&store, "k", Some("1"), Reset::Monthly).await;
    let subject = AlertSubject::Key(key.clone());
    let first = alert(&store, subject.clone(), AlertTarget::Person(person.clone())).await;
    alert(&store, subject.clone(), webhook()).await;
    let third = NewAlert {
        subject,
        percents: vec![1],
        target: webhook(),
        secret: None,
        language: "en",
    };
    let refused = store.create_alert(&third, 2, &entry()).await;
    assert!(matches!(refused, Err(StoreError::TooManyAlerts(2))));
    alert(&store, AlertSubject::Account(account), webhook()).await;
    let to = AlertTarget::Webhook("https://hooks.example.org/b".to_owned());
    let by = entry();
    let changed = store.change_alert(&first, Some(&[7]), Some((&to, Some("s"))), &by);
    changed.await.expect("changed");
    let found = store.alerts(AlertFilter::Key(&key)).await.expect("alerts");
    assert_eq!(found.len(), 2);
    assert_eq!((&*found[0].percents, &found[0].target), (&[7][..], &to));
    assert_eq!(
        (found[0].secret.as_deref(), &*found[0].made_by),
        (Some("s"), "ada")
    );
    let all = store.alerts(AlertFilter::Member(&person)).await;
    assert_eq!(all.expect("alerts").len(), 3);
    store
        .revoke_owned_key(&key, &entry())
        .await
        .expect("revoked");
    let all = store.alerts(AlertFilter::Member(&person)).await;
    let all = all.expect("alerts");
    assert_eq!(all.len(), 1);
    assert_eq!(
        store
            .watched_alerts(Timestamp::now())
            .await
            .expect("none")
            .len(),
        0
    );
    store
        .delete_alert(&all[0].id, &entry())
        .await
        .expect("deleted");
    assert!(!store.has_alerts().await.expect("an answer"));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_message_that_waits_uses_up_no_attempt(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    account(&store).await;
    let key = key(&store, "k", Some("1"), Reset::Monthly).await;
    let id = alert(&store, AlertSubject::Key(key), webhook()).await;
    let threshold = |period: &str, percent| FiredThreshold {
        period: period.to_owned(),
        percent,
    };
    let (seen, fired) = (threshold("-", 0), threshold("2026-11", 50));
    let told = store.fire_alert(&id, &seen, &fired, Some(("{}", 1000)));
    assert!(told.await.expect("an answer"));
    let due = |due| DueAlert {
        id: id.clone(),
        due,
    };
    for (from, until, next) in [(1000, 2000, 3000), (3000, 4000, 5000)] {
        let claimed = store.claim_alert(&due(from), until).await;
        assert_eq!(claimed.expect("an answer"), Some(("{}".to_owned(), 1)));
        let postponed = store.postpone_alert(&id, until, (1, 50, "too_many"), next);
        postponed.await.expect("an answer");
    }
    let claimed = store.claim_alert(&due(5000), 6000).await;
    assert!(claimed.expect("an answer").is_some());
    // One that cannot be read is claimed no more, by whoever has it.
    for (until, waits) in [(5999, true), (6000, false)] {
        store.give_up_alert(&id, until).await.expect("an answer");
        let found = store.due_alerts(9000, 8).await.expect("messages");
        assert_eq!(!found.is_empty(), waits);
    }
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn alerts_depend_on_who_has_set_them(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (_, account) = account(&store).await;
    let by = entry();
    for (handle, role) in [("grace", PersonRole::Member), ("boss", PersonRole::Admin)] {
        let person = NewPerson {
            handle: handle.to_owned(),
            display: handle.to_owned(),
            email: None,
            is_verified: false,
            password: None,
            role,
        };
        store.create_person(&person, &by).await.expect("a person");
    }
    let grace = store.person_by_login("grace").await.expect("an answer");
    let grace = grace.expect("the person").id;
    let key = key(&store, "k", Some("1"), Reset::Monthly).await;
    let make = async |subject: AlertSubject, actor: &str| {
        let alert = NewAlert {
            subject,
            percents: vec![50],
            target: webhook(),
            secret: None,
            language: "en",
        };
        let by = AuditEntry {
            actor: actor.to_owned(),
            ..AuditEntry::default()
        };
        let made = store.create_alert(&alert, 9, &by).await;
        made.expect("an alert")
    };
    let is_allowed = async |id: &str| {
        let found = store.alerts(AlertFilter::One(id)).await.expect("alerts");
        found[0].is_allowed
    };
    let (of_key, of_account) = (AlertSubject::Key(key), AlertSubject::Account(account));
    for actor in ["ada", "boss", COMMAND_LINE] {
        for subject in [&of_key, &of_account] {
            let id = make(subject.clone(), actor).await;
            assert!(is_allowed(&id).await, "{actor}: {subject:?}");
        }
    }
    let first = make(of_key, "grace").await;
    let second = make(of_account, "grace").await;
    let both = async || (is_allowed(&first).await, is_allowed(&second).await);
    assert_eq!(both().await, (false, false));
    let team = store.account("ada").await.expect("an answer");
    let team = team.expect("the account");
    let added = store.add_member(&team, &grace, MembershipRole::Member, &by);
    added.await.expect("added");
    assert_eq!(both().await, (true, false));
    for (role, expected) in [
        (MembershipRole::Viewer, (false, false)),
        (MembershipRole::Owner, (true, true)),
    ] {
        let change = MembershipChange::Role(role);
        let changed = store.change_member(&team, &grace, change, false, &by);
        changed.await.expect("changed");
        assert_eq!(both().await, expected, "{role:?}");
    }
    for (role, is_disabled, expected) in [
        (PersonRole::Member, true, false),
        (PersonRole::Viewer, false, false),
        (PersonRole::Member, false, true),
    ] {
        let change = PersonChange {
            role: Some(role),
            is_disabled: Some(is_disabled),
            ..PersonChange::default()
        };
        let changed = store.change_person(&grace, &change, &by);
        changed.await.expect("changed");
        assert_eq!(both().await, (expected, expected), "{role:?}");
    }
    let removed = store.change_member(&team, &grace, MembershipChange::Removal, false, &by);
    removed.await.expect("removed");
    assert_eq!(both().await, (false, false));
    // Who says where it goes answers for it.
    let to = webhook();
    let changed = store.change_alert(&first, None, Some((&to, None)), &by);
    changed.await.expect("changed");
    assert_eq!(both().await, (true, false));
}
