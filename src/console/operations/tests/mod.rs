//! Who may do what: people of every role with things of their own, who try the operations.

mod alert_rules;
mod matrix;
mod rules;
mod team_invitations;
mod teams;

use std::sync::Arc;

use super::people::PersonInput;
use super::usage::UsageInput;
use crate::config;
use crate::console::actor::{Actor, ConsoleCall, SignedIn, Via, now};
use crate::console::refusal::Refusal;
use crate::console::state::Console;
use crate::model::{Money, Usage, UsageDetails, UsageRecord};
use crate::runtime::{InspectedKey, Runtime};
use crate::store::{
    AlertSubject, AlertTarget, AuditEntry, KeyChange, MembershipRole, NewAlert, NewPerson, Person,
    PersonRole, Store, StoredSession,
};

/// A console with one person of every role, and another member whose things are not theirs.
struct Scene {
    console: Arc<Console>,
    _folder: tempfile::TempDir,
}

impl Scene {
    async fn new(settings: &str) -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("store.db");
        // Messages become files.
        let outbox = folder.path().display();
        let mail = format!("mail: {{from: a@example.org, file: \"{outbox}\"}}");
        let settings = settings.replace("MAIL", &mail);
        // Nobody listens there.
        let nowhere =
            "identity: [{name: nowhere, issuer: \"http://127.0.0.1:1\", client_id: omniglot}]";
        let settings = settings.replace("IDENTITY", nowhere);
        let text = format!("store: \"sqlite:{}\"\nconsole: {settings}", path.display());
        let config = config::parse("test.yaml", &text, &|_| None).expect("a good config");
        let store = Store::open(config.store.as_ref().expect("a store")).await;
        let settings = config.console.clone().expect("it");
        let runtime = Arc::new(Runtime::new(config));
        let console = Console::new(store.expect("it opens"), settings, Some(runtime));
        let scene = Scene {
            console: Arc::new(console),
            _folder: folder,
        };
        for (handle, role) in [
            ("viewer", PersonRole::Viewer),
            ("member", PersonRole::Member),
            ("admin", PersonRole::Admin),
            ("boss", PersonRole::Admin),
            ("other", PersonRole::Member),
        ] {
            scene.create(handle, role, false).await;
        }
        scene
    }

    /// Creates a person, whose address is proven or not.
    async fn create(&self, handle: &str, role: PersonRole, is_verified: bool) -> Person {
        let person = NewPerson {
            handle: handle.to_owned(),
            display: handle.to_owned(),
            email: Some(format!("{handle}@example.org")),
            is_verified,
            // The hash of nothing: nobody signs in with it.
            password: Some("$".to_owned()),
            role,
        };
        let entry = AuditEntry::default();
        let made = self.console.store.create_person(&person, &entry).await;
        made.expect("a person")
    }

    /// A new team with an owner and others, by its name.
    async fn team(&self, owner: &str, others: &[(&str, MembershipRole)]) -> String {
        let name = new_handle("t");
        let (store, entry) = (&self.console.store, AuditEntry::default());
        let owner = self.person(owner).await;
        let made = store.create_team(&name, Some(&owner.id), &entry).await;
        made.expect("a team");
        let account = store.account(&name).await.expect("an answer");
        let account = account.expect("the team");
        for (handle, role) in others {
            let person = self.person(handle).await.id;
            let added = store.add_member(&account, &person, *role, &entry).await;
            added.expect("a member");
        }
        name
    }

    async fn person(&self, handle: &str) -> Person {
        let found = self.console.store.person_by_login(handle).await;
        found.expect("an answer").expect("the person")
    }

    /// A call of somebody with a session of this moment.
    async fn call(&self, actor: &str) -> ConsoleCall {
        let mut call = ConsoleCall::on_command_line(self.console.clone());
        match actor {
            "command line" => return call,
            "anonymous" => call.actor = Actor::Anonymous,
            handle => {
                let person = self.person(handle).await;
                let session = StoredSession {
                    id: format!("session of {handle}"),
                    created: now(),
                    seen: now(),
                    expires: now() + 1000,
                    stepped_up: now(),
                    remote: String::new(),
                    agent: String::new(),
                };
                call.actor = Actor::Person(Box::new(SignedIn { person, session }));
            }
        }
        call.via = Via::Pages;
        call
    }

    /// A new key of an account, by its id.
    async fn key(&self, account: &str) -> String {
        let label = format!("k{}", uuid::Uuid::now_v7());
        let change = KeyChange {
            account: Some(account.to_owned()),
            spending_cap: Some(Money::parse("5")),
            ..KeyChange::default()
        };
        let name = format!("{account}/{label}");
        let entry = AuditEntry::default();
        let made = self
            .console
            .store
            .create_owned_key(&name, &change, None, &entry);
        made.await.expect("a key").0.id
    }

    /// An alert of a new key of an account, by its id.
    async fn alert(&self, account: &str) -> String {
        let alert = NewAlert {
            subject: AlertSubject::Key(self.key(account).await),
            percents: vec![80],
            target: AlertTarget::Email("ops@example.org".to_owned()),
            secret: None,
            language: "en",
        };
        let entry = AuditEntry::default();
        let made = self.console.store.create_alert(&alert, 10, &entry).await;
        made.expect("an alert")
    }

    /// An inspection of a new key of an account with one request: the ids of both.
    async fn inspection(&self, account: &str) -> (String, String) {
        let key = InspectedKey {
            id: self.key(account).await,
            name: format!("{account}/k"),
            account: account.to_owned(),
            by: account.to_owned(),
        };
        let id = key.id.clone();
        let state = &self.console.runtime.as_ref().expect("a gateway").state;
        let switch = state.inspection_switch(&id);
        let inspection = state.inspector.start(key, switch.clone());
        assert!(switch.begin("req_1").is_some());
        (id, inspection.id.clone())
    }

    /// A new request with a key of an account, by its id.
    async fn request(&self, account: &str) -> String {
        let id = format!("req_{}", uuid::Uuid::now_v7());
        let record = UsageRecord {
            id: id.clone().into(),
            at: now(),
            key_id: self.key(account).await.into(),
            key: account.to_owned().into(),
            model: "m".into(),
            upstream: "up".into(),
            format: "chat".into(),
            stream: false,
            status: 200,
            usage: Usage::default(),
            images: 0,
            estimated: false,
            cost: Money::ZERO,
            details: UsageDetails::default(),
        };
        let recorded = self.console.store.record(&[record]).await;
        assert_eq!(recorded.expect("recorded"), 1);
        id
    }
}

/// A username or the name of a team that nobody has.
fn new_handle(kind: &str) -> String {
    let unique = uuid::Uuid::now_v7().simple().to_string();
    format!("{kind}{}", &unique[8..])
}

/// Whose usage is asked for.
fn usage_of(owner: &str) -> UsageInput {
    UsageInput {
        account: owner.to_owned(),
        ..UsageInput::default()
    }
}

fn input(handle: &str) -> PersonInput {
    PersonInput {
        handle: handle.to_owned(),
        ..PersonInput::default()
    }
}

/// What an operation said: `ok`, or the code of the refusal.
fn word<T>(outcome: Result<T, Refusal>) -> &'static str {
    match outcome {
        Ok(_) => "ok",
        Err(refusal) => refusal.code(),
    }
}
