//! People, sessions, links and rotated keys in the store.

use omniglot::store::{
    AuditEntry, KeyChange, LinkPurpose, NewLink, NewPerson, NewSession, Person, PersonChange,
    PersonRole, Store, StoreError,
};
use omniglot_test_support::Database;
use rstest::rstest;
use sha2::{Digest as _, Sha256};

use crate::TestStore;

/// Far in the future.
const LATER: i64 = 4_000_000_000_000;

fn new_person(handle: &str, role: PersonRole) -> NewPerson {
    NewPerson {
        handle: handle.to_owned(),
        display: handle.to_uppercase(),
        email: Some(format!("{handle}@example.org")),
        is_verified: false,
        password: Some("hash".to_owned()),
        role,
    }
}

async fn try_create(store: &Store, person: NewPerson) -> Result<Person, StoreError> {
    store.create_person(&person, &AuditEntry::default()).await
}

async fn create(store: &Store, handle: &str, role: PersonRole) -> Person {
    let made = try_create(store, new_person(handle, role)).await;
    made.expect("a person")
}

fn session(token: u8, now: i64) -> NewSession {
    NewSession {
        sha256: [token; 32],
        now,
        expires: now + 1000,
        stepped_up: now,
        remote: "127.0.0.1".to_owned(),
        agent: "a browser".to_owned(),
    }
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn people_are_found_by_username_and_e_mail(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let made = create(&store, "ada", PersonRole::Member).await;
    for login in ["ada", "ADA", "ada@example.org", "Ada@Example.org"] {
        let found = store.person_by_login(login).await.expect("an answer");
        assert_eq!(found.expect("the person").id, made.id, "{login}");
    }
    let nobody = store.person_by_login("ad").await.expect("an answer");
    assert!(nobody.is_none());
    let again = try_create(&store, new_person("ada", PersonRole::Member)).await;
    assert!(matches!(again, Err(StoreError::HandleTaken(_))));
    let mut other = new_person("bob", PersonRole::Member);
    other.email = Some("ada@example.org".to_owned());
    let other = try_create(&store, other).await;
    assert!(matches!(other, Err(StoreError::EmailTaken(_))));
    // An account of the command line has the name, and its keys their history.
    let change = KeyChange {
        account: Some("search".to_owned()),
        ..KeyChange::default()
    };
    store.create_key("dev", &change).await.expect("a key");
    let taken = try_create(&store, new_person("search", PersonRole::Member)).await;
    assert!(matches!(taken, Err(StoreError::HandleTaken(_))));
    let role = store.membership(&made.id, "ada").await.expect("an answer");
    assert!(role.is_some());
    assert!(
        store
            .membership(&made.id, "search")
            .await
            .expect("an answer")
            .is_none()
    );
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_session_ends_by_time_by_password_and_by_role(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let ada = create(&store, "ada", PersonRole::Member).await;
    create(&store, "root", PersonRole::Admin).await;
    let is_there = async |token: u8, now: i64, seen_after: i64| {
        let found = store.session(&[token; 32], now, seen_after).await;
        found.expect("an answer").is_some()
    };
    store
        .create_session(&ada, &session(1, 10_000), &AuditEntry::default())
        .await
        .expect("a session");
    assert!(is_there(1, 10_500, 0).await);
    assert!(!is_there(1, 11_000, 0).await, "its time is over");
    assert!(
        !is_there(1, 10_500, 10_000).await,
        "it was not used for too long"
    );
    assert!(!is_there(2, 10_500, 0).await, "another token");
    store.touch_session(&[1; 32], 10_400).await.expect("noted");
    assert!(is_there(1, 10_500, 10_000).await);

    let entry = AuditEntry::default();
    let ada = store
        .set_password(&ada.id, "new hash", &entry)
        .await
        .expect("set");
    assert!(!is_there(1, 10_500, 0).await, "the password is another");
    store
        .create_session(&ada, &session(3, 10_000), &AuditEntry::default())
        .await
        .expect("a session");
    let change = PersonChange {
        role: Some(PersonRole::Viewer),
        ..PersonChange::default()
    };
    let ada = store
        .change_person(&ada.id, &change, &entry)
        .await
        .expect("changed");
    assert!(!is_there(3, 10_500, 0).await, "the role is another");
    store
        .create_session(&ada, &session(4, 10_000), &AuditEntry::default())
        .await
        .expect("a session");
    let listed = store.sessions(&ada.id, 10_500).await.expect("sessions");
    assert_eq!(listed.len(), 1);
    assert!(
        !store
            .delete_session("somebody else", &listed[0].id, &AuditEntry::default())
            .await
            .expect("an answer")
    );
    assert!(
        store
            .delete_session(&ada.id, &listed[0].id, &AuditEntry::default())
            .await
            .expect("an answer")
    );
    assert!(!is_there(4, 10_500, 0).await);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn the_keys_of_a_disabled_person_are_changes_that_gateways_see(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let ada = create(&store, "ada", PersonRole::Member).await;
    create(&store, "root", PersonRole::Admin).await;
    let change = KeyChange {
        account: Some("ada".to_owned()),
        ..KeyChange::default()
    };
    let entry = AuditEntry::default();
    let (key, _) = store
        .create_owned_key("ada/one", &change, None, &entry)
        .await
        .expect("a key");
    let hash = key.settings.sha256;
    for is_disabled in [true, false] {
        let before = store.keys_since(0).await.expect("keys")[0].revision;
        let change = PersonChange {
            is_disabled: Some(is_disabled),
            ..PersonChange::default()
        };
        store
            .change_person(&ada.id, &change, &entry)
            .await
            .expect("changed");
        let changes = store.keys_since(before).await.expect("changes");
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].is_disabled, is_disabled);
        let found = store.key(&hash).await.expect("an answer");
        assert_eq!(found.is_none(), is_disabled);
    }
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_rotated_key_is_known_by_both_secrets_until_the_overlap_is_over(
    #[case] database: Database,
) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let entry = AuditEntry::default();
    let (key, first) = store
        .create_key("dev", &KeyChange::default())
        .await
        .expect("a key");
    let hash = |secret: &str| -> [u8; 32] { Sha256::digest(secret.as_bytes()).into() };
    let is_known = async |secret: &str| {
        let found = store.key(&hash(secret)).await.expect("an answer");
        found.map(|found| found.id) == Some(key.id.clone())
    };
    let (rotated, second) = store
        .rotate_key(&key.id, LATER, &entry)
        .await
        .expect("rotated");
    assert_eq!(rotated.id, key.id);
    assert!(second.starts_with(&rotated.prefix) && rotated.prefix != key.prefix);
    assert!(is_known(&first).await && is_known(&second).await);
    let (_, third) = store.rotate_key(&key.id, 1, &entry).await.expect("rotated");
    assert!(!is_known(&first).await, "only the last one overlaps");
    assert!(!is_known(&second).await, "its time is over");
    assert!(is_known(&third).await);
    store
        .revoke_owned_key(&key.id, &entry)
        .await
        .expect("revoked");
    assert!(!is_known(&third).await);
    let gone = store.rotate_key(&key.id, LATER, &entry).await;
    assert!(matches!(gone, Err(StoreError::NoSuchKey(_))));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_used_by_one_of_many(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let invitation = NewLink {
        role: Some(PersonRole::Admin),
        ..NewLink::new(LinkPurpose::Invite, [7; 32], LATER)
    };
    let entry = AuditEntry {
        actor: "(command line)".to_owned(),
        ..AuditEntry::default()
    };
    store
        .create_link(&invitation, &entry)
        .await
        .expect("an invitation");
    let tries: Vec<_> = (0..6)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move {
                let person = new_person(&format!("p{number}"), PersonRole::Viewer);
                store
                    .use_invitation(
                        LinkPurpose::Invite,
                        &[7; 32],
                        &person,
                        &AuditEntry::default(),
                    )
                    .await
            })
        })
        .collect();
    let mut roles = Vec::new();
    for one in tries {
        match one.await.expect("no panic") {
            Ok(person) => roles.push(person.role),
            Err(error) => assert!(matches!(error, StoreError::LinkOver), "{error}"),
        }
    }
    assert_eq!(roles, [PersonRole::Admin], "the role of the invitation");
    let link = store
        .link(LinkPurpose::Invite, &[7; 32])
        .await
        .expect("an answer");
    assert!(link.is_none());
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn one_session_too_many_ends_the_oldest(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let ada = create(&store, "ada", PersonRole::Member).await;
    let bob = create(&store, "bob", PersonRole::Member).await;
    let others = session(0, 10_000);
    store
        .create_session(&bob, &others, &AuditEntry::default())
        .await
        .expect("a session");
    for token in 1..=52 {
        let begins = session(token, 10_000 + i64::from(token));
        store
            .create_session(&ada, &begins, &AuditEntry::default())
            .await
            .expect("a session");
    }
    for (token, is_there) in [(0, true), (1, false), (2, false), (3, true), (52, true)] {
        let found = store.session(&[token; 32], 10_100, 0).await;
        assert_eq!(found.expect("an answer").is_some(), is_there, "{token}");
    }
    let listed = store.sessions(&ada.id, 10_100).await.expect("sessions");
    assert_eq!(listed.len(), 50);
}
