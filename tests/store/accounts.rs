//! Proven addresses, identities and second factors in the store.

use omniglot::store::{
    AuditEntry, ExternalIdentity, LinkPurpose, NewLink, NewPerson, Person, PersonRole, Store,
    StoreError,
};
use omniglot_test_support::Database;
use rstest::rstest;

use crate::TestStore;

/// Far in the future.
const LATER: i64 = 4_000_000_000_000;

async fn create(store: &Store, handle: &str) -> Person {
    let person = NewPerson {
        handle: handle.to_owned(),
        display: handle.to_owned(),
        email: Some(format!("{handle}@example.org")),
        is_verified: false,
        password: Some("hash".to_owned()),
        role: PersonRole::Member,
    };
    let made = store.create_person(&person, &AuditEntry::default()).await;
    made.expect("a person")
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn an_address_is_proven_once_and_by_one(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (ada, bob) = (create(&store, "ada").await, create(&store, "bob").await);
    let entry = AuditEntry::default();
    let link = |person: &Person, token: u8, email: &str| NewLink {
        person: Some(person.id.clone()),
        email: Some(email.to_owned()),
        ..NewLink::new(LinkPurpose::Verify, [token; 32], LATER)
    };
    for (person, token) in [(&ada, 1), (&ada, 2), (&bob, 3)] {
        let link = link(person, token, "new@example.org");
        store.create_link(&link, &entry).await.expect("a link");
    }
    // A further link ends the one before, of the same person.
    let over = store.use_verification(&[1; 32], &entry).await;
    assert!(matches!(over, Err(StoreError::LinkOver)));
    let proven = store
        .use_verification(&[2; 32], &entry)
        .await
        .expect("proven");
    assert_eq!(proven.email.as_deref(), Some("new@example.org"));
    assert!(proven.verified.is_some());
    let taken = store.use_verification(&[3; 32], &entry).await;
    assert!(matches!(taken, Err(StoreError::EmailTaken(_))));
    // What was refused was not used up.
    let left = store.link(LinkPurpose::Verify, &[3; 32]).await;
    assert!(left.expect("an answer").is_some());
    // A new password ends the links to choose one.
    let reset = NewLink {
        person: Some(ada.id.clone()),
        ..NewLink::new(LinkPurpose::Reset, [4; 32], LATER)
    };
    store.create_link(&reset, &entry).await.expect("a link");
    store
        .set_password(&ada.id, "other", &entry)
        .await
        .expect("set");
    let over = store.use_password_link(LinkPurpose::Reset, &[4; 32], "third", &entry);
    assert!(matches!(over.await, Err(StoreError::LinkOver)));
    // Links of an address end each other too, and what has expired is gone.
    let sign_up = |token: u8, expires: i64| NewLink {
        email: Some("eve@example.org".to_owned()),
        role: Some(PersonRole::Member),
        ..NewLink::new(LinkPurpose::SignUp, [token; 32], expires)
    };
    for (token, expires) in [(5, LATER), (6, LATER), (7, 1)] {
        let link = sign_up(token, expires);
        store.create_link(&link, &entry).await.expect("a link");
    }
    for token in [5, 6, 7] {
        let link = store.link(LinkPurpose::SignUp, &[token; 32]).await;
        assert!(link.expect("an answer").is_none(), "{token}");
    }
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn an_identity_belongs_to_one_person(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (ada, bob) = (create(&store, "ada").await, create(&store, "bob").await);
    let entry = AuditEntry::default();
    let identity = |subject: &str| ExternalIdentity {
        issuer: "https://id.example.com".to_owned(),
        subject: subject.to_owned(),
    };
    let one = identity("one");
    assert!(
        store
            .person_of_identity(&one)
            .await
            .expect("an answer")
            .is_none()
    );
    let linked = store.link_identity(&ada.id, &one, Some("a@example.org"), &entry);
    linked.await.expect("linked");
    let taken = store.link_identity(&bob.id, &one, None, &entry).await;
    assert!(matches!(taken, Err(StoreError::IdentityTaken)));
    let found = store.person_of_identity(&one).await.expect("an answer");
    assert_eq!(found.expect("a person").id, ada.id);
    let all = store.identities(&ada.id).await.expect("identities");
    assert_eq!(all[0].email.as_deref(), Some("a@example.org"));
    assert!(
        !store
            .unlink_identity(&bob.id, &all[0].id, &entry)
            .await
            .expect("an answer")
    );
    assert!(
        store
            .unlink_identity(&ada.id, &all[0].id, &entry)
            .await
            .expect("an answer")
    );

    // The account of somebody who comes by a provider.
    let welcome = NewLink {
        role: Some(PersonRole::Viewer),
        identity: Some(identity("two")),
        display: Some("Eve".to_owned()),
        ..NewLink::new(LinkPurpose::Welcome, [1; 32], LATER)
    };
    store.create_link(&welcome, &entry).await.expect("a link");
    let link = store
        .link(LinkPurpose::Welcome, &[1; 32])
        .await
        .expect("an answer");
    let link = link.expect("a link");
    assert_eq!(
        (link.identity, link.display.as_deref()),
        (Some(identity("two")), Some("Eve"))
    );
    let eve = NewPerson {
        handle: "eve".to_owned(),
        display: "Eve".to_owned(),
        email: None,
        is_verified: false,
        password: None,
        role: PersonRole::Admin,
    };
    let made = store.use_invitation(LinkPurpose::Welcome, &[1; 32], &eve, &entry);
    let made = made.await.expect("a person");
    assert_eq!(made.role, PersonRole::Viewer);
    let found = store
        .person_of_identity(&identity("two"))
        .await
        .expect("an answer");
    assert_eq!(found.expect("a person").id, made.id);
    // She has no password: it stays.
    let only = store.identities(&made.id).await.expect("identities");
    let kept = store.unlink_identity(&made.id, &only[0].id, &entry).await;
    assert!(matches!(kept, Err(StoreError::LastIdentity)));
    let kept = store.identities(&made.id).await.expect("identities");
    assert_eq!(kept.len(), 1);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn codes_of_a_second_factor_are_used_once(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let ada = create(&store, "ada").await;
    let entry = AuditEntry::default();
    store
        .set_pending_totp(&ada.id, "SECRET")
        .await
        .expect("set");
    let pending = store.pending_totp(&ada.id).await.expect("an answer");
    assert_eq!(pending.as_deref(), Some("SECRET"));
    let codes = [[1; 32], [2; 32]];
    let on = store.set_totp(&ada.id, Some(("SECRET", 7)), &codes, &entry);
    let on = on.await.expect("on");
    assert_eq!(
        (on.totp.as_deref(), on.epoch),
        (Some("SECRET"), ada.epoch + 1)
    );
    assert!(
        store
            .pending_totp(&ada.id)
            .await
            .expect("an answer")
            .is_none()
    );
    // The code that confirmed it, and older ones, are used.
    for (step, is_new) in [(7, false), (6, false), (8, true), (8, false), (9, true)] {
        let used = store.use_totp_step(&ada.id, step).await.expect("an answer");
        assert_eq!(used, is_new, "{step}");
    }
    let tries: Vec<_> = (0..6)
        .map(|_| {
            let (store, id) = (store.clone(), ada.id.clone());
            tokio::spawn(async move { store.use_recovery(&id, &[1; 32]).await })
        })
        .collect();
    let mut used = 0;
    for one in tries {
        used += u32::from(one.await.expect("no panic").expect("an answer"));
    }
    assert_eq!(used, 1);
    assert_eq!(store.recovery_left(&ada.id).await.expect("a count"), 1);
    store
        .replace_recovery(&ada.id, &[[3; 32]], &entry)
        .await
        .expect("replaced");
    assert!(
        !store
            .use_recovery(&ada.id, &[2; 32])
            .await
            .expect("an answer")
    );
    let off = store
        .set_totp(&ada.id, None, &[], &entry)
        .await
        .expect("off");
    assert_eq!(off.totp, None);
    assert_eq!(store.recovery_left(&ada.id).await.expect("a count"), 0);
}
