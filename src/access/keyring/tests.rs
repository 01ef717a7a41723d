//! Which keys are known, and for how long.

use super::*;
use crate::config;
use crate::store::{AuditEntry, KeyChange, NewPerson, PersonRole};

/// A store in a new folder, its keyring, and the runtime of both.
async fn open() -> (tempfile::TempDir, Store, Keyring, Runtime) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let text = format!("store: \"sqlite:{}\"", path.display());
    let config = config::parse("test.yaml", &text, &|_| None).expect("a good config");
    let settings = config.store.clone().expect("a store");
    let store = Store::open(&settings).await.expect("a store");
    let journal = Journal::open(folder.path(), 1 << 20).expect("a journal");
    let keyring = Keyring::new(store.clone(), Arc::new(journal), Arc::default());
    (folder, store, keyring, Runtime::new(config))
}

#[tokio::test]
async fn a_key_that_was_just_found_is_not_looked_up_again() {
    let (_folder, store, keyring, runtime) = open().await;
    let created = store.create_key("dev", &KeyChange::default()).await;
    let hash = created.expect("a key").0.settings.sha256;

    let snapshot = runtime.snapshot();
    let first = keyring.look_up(&runtime, &snapshot, &hash).await;
    // The second lookup began before the first one ended.
    let late = keyring.look_up(&runtime, &snapshot, &hash).await;
    let (first, late) = (first.expect("a key"), late.expect("a key"));
    assert!(Arc::ptr_eq(&first, &late));
}

/// An image task waits while its key gets another secret.
#[tokio::test]
async fn a_task_finds_its_key_whatever_the_secret_is_now() {
    let (_folder, store, keyring, runtime) = open().await;
    let created = store.create_key("dev", &KeyChange::default()).await;
    let (created, _) = created.expect("a key");
    let task = super::super::TaskKey {
        id: created.id.clone(),
        hash: created.settings.sha256,
    };
    let snapshot = runtime.snapshot();
    let find = async || match super::super::reauthenticate(&snapshot, Some(&keyring), &task) {
        Ok(super::super::KeyLookup::Found(key)) => Ok(key),
        Ok(super::super::KeyLookup::UnknownId(id)) => {
            keyring.look_up_id(&runtime, &snapshot, &id).await
        }
        Ok(_) => panic!("it is not asked for by its id"),
        Err(api_error) => Err(api_error),
    };
    let entry = AuditEntry::default();
    for _ in 0..2 {
        // Without any overlap: the old secret is over at once.
        store.rotate_key(&task.id, 1, &entry).await.expect("it");
        assert_eq!(*find().await.expect("the key").id, *task.id);
        keyring.sync(&runtime).await.expect("synced");
        assert_eq!(*find().await.expect("the key").id, *task.id);
    }
    let revoked = store.revoke_owned_key(&task.id, &entry).await;
    revoked.expect("revoked");
    keyring.sync(&runtime).await.expect("synced");
    let refused = find().await.err().expect("no key");
    assert_eq!(refused.kind, ApiErrorKind::Unauthenticated);
}

#[tokio::test]
async fn the_keys_of_a_person_or_a_team_have_one_share_together() {
    let (_folder, store, keyring, runtime) = open().await;
    let person = NewPerson {
        handle: "ada".to_owned(),
        display: "Ada".to_owned(),
        email: None,
        is_verified: false,
        password: None,
        role: PersonRole::Member,
    };
    let entry = AuditEntry::default();
    store
        .create_person(&person, &entry)
        .await
        .expect("a person");
    let ada = store.person_by_login("ada").await.expect("an answer");
    let ada = ada.expect("the person").id;
    let made = store.create_team("research", Some(&ada), &entry).await;
    made.expect("a team");
    let mut hashes = Vec::new();
    for (name, account) in [
        ("ada/one", Some("ada")),
        ("ada/two", Some("ada")),
        ("research/one", Some("research")),
        ("research/two", Some("research")),
        ("batch", None),
        ("web", None),
    ] {
        let change = KeyChange {
            account: account.map(str::to_owned),
            ..KeyChange::default()
        };
        let created = store.create_key(name, &change).await.expect("a key");
        hashes.push(created.0.settings.sha256);
    }
    let snapshot = runtime.snapshot();
    // Looked up one by one, and then all of them by their changes.
    for is_synced in [false, true] {
        if is_synced {
            keyring.sync(&runtime).await.expect("synced");
        }
        let mut keys = Vec::new();
        for hash in &hashes {
            let key = keyring.look_up(&runtime, &snapshot, hash).await;
            keys.push(key.expect("a key"));
        }
        let [one, two, shared, also_shared, batch, web] = &keys[..] else {
            panic!("six keys");
        };
        assert!(Arc::ptr_eq(&shared.share, &also_shared.share));
        assert_eq!(shared.owner_id, also_shared.owner_id);
        // Apart from those of its members.
        assert!(!Arc::ptr_eq(&shared.share, &one.share));
        assert!(Arc::ptr_eq(&one.share, &two.share));
        assert_eq!(one.owner_id, two.owner_id);
        assert!(!Arc::ptr_eq(&one.limiter, &two.limiter));
        // The operator has made these, in one account.
        assert!(!Arc::ptr_eq(&batch.share, &web.share));
        assert!(!Arc::ptr_eq(&batch.share, &one.share));
        assert_eq!(batch.owner_id, batch.id);
    }
}

#[tokio::test]
async fn a_rotated_key_is_one_key_with_two_secrets_and_forgets_older_ones() {
    const LATER: i64 = 4_000_000_000_000;
    let (_folder, store, keyring, runtime) = open().await;
    let (key, first) = store
        .create_key("dev", &KeyChange::default())
        .await
        .expect("a key");
    let snapshot = runtime.snapshot();
    let hash = |secret: &str| crate::runtime::key_hash(secret.as_bytes());
    let cached = |secret: &str| keyring.cached(&snapshot, &hash(secret));
    keyring.sync(&runtime).await.expect("synced");
    assert!(cached(&first).is_some_and(|key| key.is_ok()));

    // Twice between two syncs: the keyring never sees the first rotation.
    let entry = AuditEntry::default();
    let (_, second) = store.rotate_key(&key.id, LATER, &entry).await.expect("it");
    let (_, third) = store.rotate_key(&key.id, LATER, &entry).await.expect("it");
    keyring.sync(&runtime).await.expect("synced");
    assert!(cached(&first).is_none());
    let (one, other) = (cached(&second), cached(&third));
    let key_of = |cached: Option<Result<Arc<Key>, ApiError>>| {
        cached
            .expect("it is known")
            .map_err(|error| error.message.clone())
    };
    let (one, other) = (key_of(one).expect("a key"), key_of(other).expect("a key"));
    assert!(Arc::ptr_eq(&one, &other), "limits and spending are shared");

    let (_, last) = store.rotate_key(&key.id, 1, &entry).await.expect("it");
    keyring.sync(&runtime).await.expect("synced");
    assert!(cached(&second).is_none());
    assert!(
        cached(&third).is_some_and(|key| key.is_err()),
        "its time is over"
    );
    assert!(cached(&last).is_some_and(|key| key.is_ok()));
    store
        .revoke_owned_key(&key.id, &entry)
        .await
        .expect("revoked");
    keyring.sync(&runtime).await.expect("synced");
    assert!(cached(&last).is_none() && cached(&third).is_none());
}
