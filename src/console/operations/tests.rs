//! Who may do what: every operation with every role, on what is one's own and on what is another's.

mod alert_rules;

use std::path::Path;
use std::sync::Arc;

use super::accounts::AccountEdit;
use super::audit::AuditInput;
use super::people::{PersonEdit, PersonInput};
use super::play::PlayInput;
use super::usage::{RequestsInput, UsageInput};
use super::{
    accounts, alerts, audit, catalog, config_keys, fidelity, home, identities, identity, inspect,
    invitations, keys, loaded_config, people, play, reset, second_factor, session, sign_up,
    translate, upstreams, usage, verification,
};
use crate::config;
use crate::console::actor::{Actor, ConsoleCall, SignedIn, Via, now};
use crate::console::identity::ProviderAnswer;
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::sessions;
use crate::console::state::Console;
use crate::model::{Money, Usage, UsageDetails, UsageRecord};
use crate::runtime::{InspectedKey, Runtime};
use crate::store::{
    AlertSubject, AlertTarget, AuditEntry, KeyChange, NewAlert, NewPerson, Person, PersonRole,
    Store, StoredSession,
};

/// A console with one person of every role, and another member whose things are not theirs.
struct Scene {
    console: Arc<Console>,
    _folder: tempfile::TempDir,
}

/// Who tries an operation.
const ACTORS: [&str; 5] = ["anonymous", "viewer", "member", "admin", "command line"];

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
            let person = NewPerson {
                handle: handle.to_owned(),
                display: handle.to_owned(),
                email: Some(format!("{handle}@example.org")),
                is_verified: false,
                // The hash of nothing: nobody signs in with it.
                password: Some("$".to_owned()),
                role,
            };
            let entry = AuditEntry::default();
            let made = scene.console.store.create_person(&person, &entry).await;
            made.expect("a person");
        }
        scene
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

/// The outcome of every operation for each actor: `ok`, or the code of the refusal; on what is one's own, or another's.
const MATRIX: &str = "
operation                     on    anonymous      viewer         member         admin          command_line
session::sign_in              -     wrong_login    wrong_login    wrong_login    wrong_login    wrong_login
session::current              -     sign_in_needed ok             ok             ok             sign_in_needed
session::sign_out             -     sign_in_needed ok             ok             ok             sign_in_needed
session::confirm_password     -     sign_in_needed wrong_login    wrong_login    wrong_login    sign_in_needed
session::list_sessions        -     sign_in_needed ok             ok             ok             sign_in_needed
session::end_session          other sign_in_needed not_found      not_found      not_found      sign_in_needed
sign_up::sign_up              -     sign_up_closed sign_up_closed sign_up_closed sign_up_closed sign_up_closed
sign_up::request_sign_up      -     sign_up_closed sign_up_closed sign_up_closed sign_up_closed sign_up_closed
reset::request_reset          -     ok             ok             ok             ok             ok
verification::request_verification - sign_in_needed ok           ok             ok             sign_in_needed
verification::find_verification -   link_over      link_over      link_over      link_over      link_over
verification::verify          -     link_over      link_over      link_over      link_over      link_over
second_factor::enter_code     -     link_over      link_over      link_over      link_over      link_over
second_factor::get_second_factor -  sign_in_needed ok             ok             ok             sign_in_needed
second_factor::begin_setup    -     sign_in_needed ok             ok             ok             sign_in_needed
second_factor::find_setup     -     sign_in_needed ok             ok             ok             sign_in_needed
second_factor::confirm_setup  -     sign_in_needed wrong_code     wrong_code     wrong_code     sign_in_needed
second_factor::turn_off       -     sign_in_needed ok             ok             ok             sign_in_needed
second_factor::replace_recovery_codes - sign_in_needed not_found  not_found      not_found      sign_in_needed
second_factor::remove_second_factor own   sign_in_needed forbidden  forbidden      ok             ok
second_factor::remove_second_factor other sign_in_needed forbidden  forbidden      ok             ok
identity::depart              -     sign_in_needed identity_failed identity_failed identity_failed sign_in_needed
identity::arrive              -     identity_failed identity_failed identity_failed identity_failed identity_failed
identity::find_welcome        -     link_over      link_over      link_over      link_over      link_over
identity::welcome             -     link_over      link_over      link_over      link_over      link_over
identities::own_providers     -     sign_in_needed ok             ok             ok             sign_in_needed
identities::list_identities   -     sign_in_needed ok             ok             ok             sign_in_needed
identities::unlink            -     sign_in_needed not_found      not_found      not_found      sign_in_needed
people::create_person         -     sign_in_needed forbidden      forbidden      ok             ok
people::create_setup_link     own   sign_in_needed forbidden      forbidden      ok             ok
people::create_setup_link     other sign_in_needed forbidden      forbidden      ok             ok
people::find_setup_link       -     link_over      link_over      link_over      link_over      link_over
people::use_setup_link        -     link_over      link_over      link_over      link_over      link_over
people::change_password       -     sign_in_needed wrong_login    wrong_login    wrong_login    sign_in_needed
people::change_me             -     sign_in_needed ok             ok             ok             sign_in_needed
people::list_people           -     sign_in_needed forbidden      forbidden      ok             ok
people::get_person            own   sign_in_needed forbidden      forbidden      ok             ok
people::get_person            other sign_in_needed forbidden      forbidden      ok             ok
people::change_person         own   sign_in_needed forbidden      forbidden      ok             ok
people::change_person         other sign_in_needed forbidden      forbidden      ok             ok
people::find_person           -     forbidden      forbidden      forbidden      forbidden      ok
invitations::invite           -     sign_in_needed forbidden      forbidden      ok             ok
invitations::list_invitations -     sign_in_needed forbidden      forbidden      ok             ok
invitations::withdraw         -     sign_in_needed forbidden      forbidden      not_found      not_found
invitations::find_invitation  -     link_over      link_over      link_over      link_over      link_over
invitations::accept           -     link_over      link_over      link_over      link_over      link_over
keys::list_accounts           -     sign_in_needed ok             ok             ok             ok
config_keys::list_config_keys -     sign_in_needed forbidden      forbidden      ok             ok
accounts::get_account         own   sign_in_needed ok             ok             ok             ok
accounts::get_account         other sign_in_needed not_found      not_found      ok             ok
accounts::change_account      own   sign_in_needed forbidden      forbidden      ok             ok
accounts::change_account      other sign_in_needed forbidden      forbidden      ok             ok
alerts::list_alerts           own   sign_in_needed ok             ok             ok             ok
alerts::list_alerts           other sign_in_needed not_found      not_found      ok             ok
alerts::list_recipients       own   sign_in_needed forbidden      ok             ok             ok
alerts::list_recipients       other sign_in_needed not_found      not_found      ok             ok
alerts::create_alert          own   sign_in_needed forbidden      ok             ok             ok
alerts::create_alert          other sign_in_needed not_found      not_found      ok             ok
alerts::change_alert          own   sign_in_needed forbidden      ok             ok             ok
alerts::change_alert          other sign_in_needed not_found      not_found      ok             ok
alerts::delete_alert          own   sign_in_needed forbidden      ok             ok             ok
alerts::delete_alert          other sign_in_needed not_found      not_found      ok             ok
alerts::test_alert            own   sign_in_needed forbidden      ok             ok             ok
alerts::test_alert            other sign_in_needed not_found      not_found      ok             ok
keys::list_keys               own   sign_in_needed ok             ok             ok             ok
keys::list_keys               other sign_in_needed not_found      not_found      ok             ok
keys::get_key                 own   sign_in_needed ok             ok             ok             ok
keys::get_key                 other sign_in_needed not_found      not_found      ok             ok
keys::create_key              own   sign_in_needed forbidden      ok             ok             ok
keys::create_key              other sign_in_needed not_found      not_found      ok             ok
keys::change_key              own   sign_in_needed forbidden      ok             ok             ok
keys::change_key              other sign_in_needed not_found      not_found      ok             ok
keys::rotate_key              own   sign_in_needed forbidden      ok             ok             ok
keys::rotate_key              other sign_in_needed not_found      not_found      ok             ok
keys::revoke_key              own   sign_in_needed forbidden      ok             ok             ok
keys::revoke_key              other sign_in_needed not_found      not_found      ok             ok
inspect::start_inspection     own   sign_in_needed forbidden      ok             ok             sign_in_needed
inspect::start_inspection     other sign_in_needed not_found      not_found      forbidden      sign_in_needed
inspect::end_inspection       own   sign_in_needed forbidden      ok             ok             sign_in_needed
inspect::end_inspection       other sign_in_needed not_found      not_found      forbidden      sign_in_needed
inspect::find_inspection      own   sign_in_needed forbidden      ok             ok             sign_in_needed
inspect::find_inspection      other sign_in_needed not_found      not_found      forbidden      sign_in_needed
inspect::get_inspection       own   sign_in_needed not_found      ok             ok             sign_in_needed
inspect::get_inspection       other sign_in_needed not_found      not_found      not_found      sign_in_needed
inspect::watch_inspection     own   sign_in_needed not_found      ok             ok             sign_in_needed
inspect::watch_inspection     other sign_in_needed not_found      not_found      not_found      sign_in_needed
inspect::get_capture          own   sign_in_needed not_found      ok             ok             sign_in_needed
inspect::get_capture          other sign_in_needed not_found      not_found      not_found      sign_in_needed
play::list_options            -     sign_in_needed ok             ok             ok             sign_in_needed
play::play                    own   sign_in_needed forbidden      play_unavailable play_unavailable sign_in_needed
play::play                    other sign_in_needed not_found      not_found      forbidden      sign_in_needed
audit::list_changes           -     sign_in_needed forbidden      forbidden      ok             ok
upstreams::list_upstreams     -     sign_in_needed forbidden      forbidden      ok             ok
loaded_config::get_config     -     sign_in_needed forbidden      forbidden      ok             ok
home::get_home                -     sign_in_needed ok             ok             ok             sign_in_needed
catalog::list_models          -     ok             ok             ok             ok             ok
fidelity::get_fidelity        -     ok             ok             ok             ok             ok
translate::translate          -     ok             ok             ok             ok             ok
usage::get_usage              own   sign_in_needed ok             ok             ok             ok
usage::get_usage              other sign_in_needed not_found      not_found      ok             ok
usage::list_key_names         own   sign_in_needed ok             ok             ok             ok
usage::list_key_names         other sign_in_needed not_found      not_found      ok             ok
usage::list_requests          own   sign_in_needed ok             ok             ok             ok
usage::list_requests          other sign_in_needed not_found      not_found      ok             ok
usage::get_request            own   sign_in_needed ok             ok             ok             ok
usage::get_request            other sign_in_needed not_found      not_found      ok             ok
";

/// The rows of the table: an operation, whose thing it is done to, and the outcomes.
fn matrix() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    let lines = MATRIX.lines().filter(|line| line.contains("::"));
    let rows = lines.map(|line| {
        let mut words = line.split_whitespace();
        let operation = words.next().unwrap_or_default();
        (operation, words.next().unwrap_or_default(), words.collect())
    });
    rows.collect()
}

/// Tries one operation, on what belongs to `owner`.
async fn attempt(scene: &Scene, operation: &str, call: &ConsoleCall, owner: &str) -> &'static str {
    let label = format!("new {}", uuid::Uuid::now_v7());
    let person = scene.person(owner).await.id;
    match operation {
        "session::sign_in" => word(session::sign_in(call, owner, "a wrong password").await),
        "session::current" => word(session::current(call).await),
        "session::sign_out" => word(session::sign_out(call).await),
        "session::confirm_password" => word(session::confirm_password(call, "wrong").await),
        "session::list_sessions" => word(session::list_sessions(call).await),
        "session::end_session" => {
            let owner = scene.person(owner).await;
            let token = sessions::begin(call, &owner, now())
                .await
                .expect("a session");
            assert_eq!(token.len(), 43);
            let of_owner = scene.console.store.sessions(&owner.id, now()).await;
            word(session::end_session(call, &of_owner.expect("sessions")[0].id).await)
        }
        "sign_up::sign_up" => word(sign_up::sign_up(call, input("new"), "long enough").await),
        "sign_up::request_sign_up" => word(sign_up::request_sign_up(call, "n@example.org").await),
        "reset::request_reset" => word(reset::request_reset(call, &label).await),
        "verification::request_verification" => {
            word(verification::request_verification(call).await)
        }
        "verification::find_verification" => {
            word(verification::find_verification(call, "guess").await)
        }
        "second_factor::enter_code" => {
            word(second_factor::enter_code(call, "guess", "123456").await)
        }
        "second_factor::get_second_factor" => word(second_factor::get_second_factor(call).await),
        "second_factor::begin_setup" => word(second_factor::begin_setup(call).await),
        "second_factor::find_setup" => word(second_factor::find_setup(call).await),
        "second_factor::confirm_setup" => word(second_factor::confirm_setup(call, "wrong").await),
        "second_factor::turn_off" => word(second_factor::turn_off(call).await),
        "second_factor::replace_recovery_codes" => {
            word(second_factor::replace_recovery_codes(call).await)
        }
        "second_factor::remove_second_factor" => {
            word(second_factor::remove_second_factor(call, &person).await)
        }
        "identity::depart" => {
            let purpose = identity::FlowPurpose::Link;
            word(identity::depart(call, "nowhere", purpose, "/").await)
        }
        "identity::arrive" => {
            let answer = ProviderAnswer::default();
            word(identity::arrive(call, "nowhere", "", &answer).await)
        }
        "identity::find_welcome" => word(identity::find_welcome(call, "guess").await),
        "identity::welcome" => word(identity::welcome(call, "guess", input("new")).await),
        "identities::own_providers" => word(identities::own_providers(call).await),
        "identities::list_identities" => word(identities::list_identities(call).await),
        "identities::unlink" => word(identities::unlink(call, "guess").await),
        "verification::verify" => word(verification::verify(call, "guess").await),
        "people::create_person" => {
            let handle = format!("p{}", call.audit("", "", String::new()).actor.len());
            word(people::create_person(call, input(&handle), PersonRole::Viewer).await)
        }
        "people::create_setup_link" => word(people::create_setup_link(call, &person).await),
        "people::find_setup_link" => word(people::find_setup_link(call, "guess").await),
        "people::use_setup_link" => {
            word(people::use_setup_link(call, "guess", "long enough").await)
        }
        "people::change_password" => {
            word(people::change_password(call, "wrong", "long enough").await)
        }
        "people::change_me" => word(people::change_me(call, PersonEdit::default()).await),
        "people::list_people" => word(people::list_people(call).await),
        "people::get_person" => word(people::get_person(call, &person).await),
        "people::change_person" => {
            word(people::change_person(call, &person, PersonEdit::default()).await)
        }
        "people::find_person" => word(people::find_person(call, owner).await),
        "invitations::invite" => word(invitations::invite(call, "", PersonRole::Member).await),
        "invitations::list_invitations" => word(invitations::list_invitations(call).await),
        "invitations::withdraw" => word(invitations::withdraw(call, "none").await),
        "invitations::find_invitation" => word(invitations::find_invitation(call, "guess").await),
        "invitations::accept" => {
            word(invitations::accept(call, "guess", input("new"), "long enough").await)
        }
        "keys::list_accounts" => word(keys::list_accounts(call).await),
        "config_keys::list_config_keys" => word(config_keys::list_config_keys(call).await),
        "accounts::get_account" => word(accounts::get_account(call, owner).await),
        "accounts::change_account" => {
            word(accounts::change_account(call, owner, AccountEdit::default()).await)
        }
        "keys::list_keys" => word(keys::list_keys(call, owner).await),
        "keys::get_key" => word(keys::get_key(call, &scene.key(owner).await).await),
        "keys::create_key" => {
            word(keys::create_key(call, owner, &label, KeyChange::default()).await)
        }
        "keys::change_key" => {
            let id = scene.key(owner).await;
            word(keys::change_key(call, &id, KeyChange::default()).await)
        }
        "keys::rotate_key" => word(keys::rotate_key(call, &scene.key(owner).await, 0).await),
        "keys::revoke_key" => word(keys::revoke_key(call, &scene.key(owner).await).await),
        "inspect::start_inspection" => {
            word(inspect::start_inspection(call, &scene.key(owner).await).await)
        }
        "inspect::end_inspection" => {
            let (key, _) = scene.inspection(owner).await;
            word(inspect::end_inspection(call, &key).await)
        }
        "inspect::find_inspection" => {
            word(inspect::find_inspection(call, &scene.key(owner).await).await)
        }
        "inspect::get_inspection" => {
            let (_, id) = scene.inspection(owner).await;
            word(inspect::get_inspection(call, &id).await)
        }
        "inspect::watch_inspection" => {
            let (_, id) = scene.inspection(owner).await;
            word(inspect::watch_inspection(call, &id).await)
        }
        "inspect::get_capture" => {
            let (_, id) = scene.inspection(owner).await;
            word(inspect::get_capture(call, &id, 1).await)
        }
        "play::list_options" => word(play::list_options(call).await),
        "play::play" => {
            let input = PlayInput {
                key: scene.key(owner).await,
                format: "chat".to_owned(),
                turns: vec!["hi".to_owned()],
                ..PlayInput::default()
            };
            word(play::play(call, &input).await)
        }
        "audit::list_changes" => word(audit::list_changes(call, &AuditInput::default()).await),
        "upstreams::list_upstreams" => word(upstreams::list_upstreams(call).await),
        "loaded_config::get_config" => word(loaded_config::get_config(call).await),
        "home::get_home" => word(home::get_home(call, &home::HomeInput::default()).await),
        "catalog::list_models" => {
            word(catalog::list_models(call, &catalog::ModelsInput::default()).await)
        }
        "fidelity::get_fidelity" => word(fidelity::get_fidelity(call).await),
        "alerts::list_alerts" => {
            word(alerts::list_alerts(call, &alert_rules::of_account(owner)).await)
        }
        "alerts::list_recipients" => word(alerts::list_recipients(call, owner).await),
        "alerts::create_alert" => {
            let of = alert_rules::of_key(scene.key(owner).await);
            let target = alert_rules::webhook("https://hooks.example.org/x");
            word(alerts::create_alert(call, &of, None, &target).await)
        }
        "alerts::change_alert" => {
            let id = scene.alert(owner).await;
            word(alerts::change_alert(call, &id, Some(&[90]), None).await)
        }
        "alerts::delete_alert" => word(alerts::delete_alert(call, &scene.alert(owner).await).await),
        "alerts::test_alert" => word(alerts::test_alert(call, &scene.alert(owner).await).await),
        "translate::translate" => {
            let input = translate::TranslationInput {
                from: "chat".to_owned(),
                to: "messages".to_owned(),
                ..translate::TranslationInput::default()
            };
            word(translate::translate(call, input).await)
        }
        "usage::get_usage" => word(usage::get_usage(call, &usage_of(owner)).await),
        "usage::list_key_names" => word(usage::list_key_names(call, &usage_of(owner)).await),
        "usage::list_requests" => {
            let input = RequestsInput {
                account: owner.to_owned(),
                ..RequestsInput::default()
            };
            word(usage::list_requests(call, &input).await)
        }
        "usage::get_request" => word(usage::get_request(call, &scene.request(owner).await).await),
        _ => panic!("{operation} is not tried"),
    }
}

#[tokio::test]
async fn every_operation_checks_its_own_actor() {
    let scene = Scene::new("{sign_up: invite, member_keys: {max: 1000}, MAIL, IDENTITY}").await;
    for (operation, owner, expected) in matrix() {
        for (actor, expected) in ACTORS.into_iter().zip(expected) {
            let call = scene.call(actor).await;
            let has_account = !matches!(actor, "anonymous" | "command line");
            let owner = match owner {
                "own" if has_account => actor,
                _ => "other",
            };
            let found = attempt(&scene, operation, &call, owner).await;
            assert_eq!(
                found, expected,
                "{operation} by {actor} on what is of {owner}"
            );
        }
    }
}

#[test]
fn every_operation_has_a_row() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console/operations");
    let mut missing = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("a name");
        if !path.is_file() || stem == "tests" {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("text");
        for found in text.split("pub async fn ").skip(1) {
            let name = found.split('(').next().unwrap_or_default();
            let operation = format!("{stem}::{name}");
            count += 1;
            if !matrix().iter().any(|(row, ..)| *row == operation) {
                missing.push(operation);
            }
        }
    }
    assert!(count > 25, "the operations were found");
    assert_eq!(missing, Vec::<String>::new());
}

#[tokio::test]
async fn members_give_their_keys_no_more_than_they_may() {
    let settings = "{member_keys: {max: 2, cap_max: 50, cap_default: 5, expires_max: 30d}}";
    let scene = Scene::new(settings).await;
    let call = scene.call("member").await;
    let create = async |label: &str, change: KeyChange| {
        keys::create_key(&call, "member", label, change)
            .await
            .map(|made| made.key)
    };
    let cap = |text: &str| KeyChange {
        spending_cap: Some(Money::parse(text)),
        ..KeyChange::default()
    };
    let unlimited = KeyChange {
        spending_cap: Some(None),
        ..KeyChange::default()
    };
    let refused = |problem: InputProblem| Err(Refusal::Invalid(problem));
    let code = |outcome: Result<crate::console::views::KeyView, Refusal>| outcome.map(|_| ());
    assert_eq!(
        code(create("a", unlimited.clone()).await),
        refused(InputProblem::CapNeeded)
    );
    let above = refused(InputProblem::CapAboveMax("50".to_owned()));
    assert_eq!(code(create("a", cap("50.01")).await), above);
    let late = KeyChange {
        expires: Some(Some(now() + 32 * 24 * 3600 * 1000)),
        ..KeyChange::default()
    };
    assert_eq!(
        code(create("a", late).await),
        refused(InputProblem::ExpiryAboveMax(30))
    );
    let never = KeyChange {
        expires: Some(None),
        ..KeyChange::default()
    };
    assert_eq!(
        code(create("a", never).await),
        refused(InputProblem::ExpiryAboveMax(30))
    );
    let made = create("a", KeyChange::default()).await.expect("a key");
    assert_eq!(
        made.spending_cap.map(|cap| cap.to_string()).as_deref(),
        Some("5")
    );
    assert!(made.expires.is_some(), "the longest that may be");
    assert_eq!(made.name, "member/a");
    assert_eq!(
        code(create("a", KeyChange::default()).await),
        Err(Refusal::LabelTaken)
    );
    create("b", cap("50")).await.expect("a key");
    assert_eq!(
        code(create("c", cap("1")).await),
        Err(Refusal::TooManyKeys(2))
    );

    // What an administrator gave stays when the member changes something else, and does not grow.
    let admin = scene.call("admin").await;
    let more = keys::change_key(&admin, &made.id, cap("900"))
        .await
        .expect("changed");
    let mut rest = cap("900");
    rest.concurrency = Some(Some(4));
    let changed = keys::change_key(&call, &more.id, rest)
        .await
        .expect("changed");
    assert_eq!(
        changed.spending_cap.map(|cap| cap.to_string()).as_deref(),
        Some("900")
    );
    assert_eq!(changed.concurrency, Some(4));
    let raised = keys::change_key(&call, &more.id, cap("901")).await;
    assert_eq!(
        code(raised),
        refused(InputProblem::CapAboveMax("50".to_owned()))
    );
}

#[tokio::test]
async fn unlimited_quota_and_roles_need_a_password_that_was_entered_lately() {
    let scene = Scene::new("{}").await;
    let mut call = scene.call("admin").await;
    if let Actor::Person(signed_in) = &mut call.actor {
        signed_in.session.stepped_up = now() - 16 * 60 * 1000;
    }
    let unlimited = KeyChange {
        spending_cap: Some(None),
        ..KeyChange::default()
    };
    let other = scene.person("other").await.id;
    let edit = PersonEdit {
        role: Some(PersonRole::Admin),
        ..PersonEdit::default()
    };
    let outcomes = [
        word(keys::create_key(&call, "admin", "a", unlimited).await),
        word(people::change_person(&call, &other, edit).await),
        word(people::create_setup_link(&call, &other).await),
        word(invitations::invite(&call, "", PersonRole::Admin).await),
        word(second_factor::begin_setup(&call).await),
        word(second_factor::turn_off(&call).await),
        word(second_factor::replace_recovery_codes(&call).await),
        word(second_factor::remove_second_factor(&call, &other).await),
    ];
    assert_eq!(outcomes, ["confirm_password"; 8]);
    assert_eq!(
        word(invitations::invite(&call, "", PersonRole::Member).await),
        "ok"
    );
    assert_eq!(
        word(keys::create_key(&call, "admin", "a", KeyChange::default()).await),
        "ok"
    );
}

#[test]
fn nothing_changes_a_line_of_the_audit_log() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        for statement in ["UPDATE audit", "DELETE FROM audit", "INTO audit"] {
            let is_append = path.ends_with("audit.rs") && statement == "INTO audit";
            let found = text.contains(statement);
            assert_eq!(found, is_append, "{}: {statement}", path.display());
        }
    }
}

#[tokio::test]
async fn the_last_administrator_stays_one() {
    let scene = Scene::new("{}").await;
    let call = scene.call("command line").await;
    let disable = || PersonEdit {
        disabled: Some(true),
        ..PersonEdit::default()
    };
    let (admin, boss) = (
        scene.person("admin").await.id,
        scene.person("boss").await.id,
    );
    assert_eq!(
        word(people::change_person(&call, &boss, disable()).await),
        "ok"
    );
    let last = people::change_person(&call, &admin, disable()).await;
    assert_eq!(word(last), "last_administrator");
    let member = PersonEdit {
        role: Some(PersonRole::Member),
        ..PersonEdit::default()
    };
    let last = people::change_person(&call, &admin, member).await;
    assert_eq!(word(last), "last_administrator");
}

#[tokio::test]
async fn a_link_works_once_and_is_not_used_up_by_looking() {
    let scene = Scene::new("{sign_up: invite}").await;
    let admin = scene.call("admin").await;
    let nobody = scene.call("anonymous").await;
    let invited = invitations::invite(&admin, "New@Example.org", PersonRole::Viewer).await;
    let url = invited.expect("an invitation").link.url;
    let token = url.rsplit('/').next().expect("a token");
    for _ in 0..2 {
        let looked = invitations::find_invitation(&nobody, token)
            .await
            .expect("it works");
        assert_eq!(looked.email.as_deref(), Some("new@example.org"));
    }
    let short = invitations::accept(&nobody, token, input("newcomer"), "short").await;
    assert_eq!(word(short), "invalid");
    let taken = invitations::accept(&nobody, token, input("other"), "long enough").await;
    assert_eq!(word(taken), "handle_taken");
    let begun = invitations::accept(&nobody, token, input("newcomer"), "long enough").await;
    let person = begun
        .map_err(|refusal| refusal.code())
        .map(|begun| begun.person);
    let person = person.expect("an account");
    assert_eq!(
        (person.role, person.email.as_deref()),
        ("viewer", Some("new@example.org"))
    );
    let again = invitations::accept(&nobody, token, input("second"), "long enough").await;
    assert_eq!(word(again), "link_over");

    let link = people::create_setup_link(&admin, &person.id)
        .await
        .expect("a link");
    let next = people::create_setup_link(&admin, &person.id)
        .await
        .expect("a link");
    let token =
        |link: &crate::console::LinkView| link.url.rsplit('/').next().expect("it").to_owned();
    assert_eq!(
        word(people::use_setup_link(&nobody, &token(&link), "another one").await),
        "link_over"
    );
    assert_eq!(
        word(people::use_setup_link(&nobody, &token(&next), "another one").await),
        "ok"
    );
    assert_eq!(
        word(people::use_setup_link(&nobody, &token(&next), "another one").await),
        "link_over"
    );
    assert_eq!(
        word(session::sign_in(&nobody, "newcomer", "another one").await),
        "ok"
    );
    assert_eq!(
        word(session::sign_in(&nobody, "NEW@example.org", "another one").await),
        "ok"
    );
    assert_eq!(
        word(session::sign_in(&nobody, "newcomer", "long enough").await),
        "wrong_login"
    );
}

#[tokio::test]
async fn failed_sign_ins_are_slowed_down() {
    let scene = Scene::new("{}").await;
    let mut call = scene.call("anonymous").await;
    call.remote = "203.0.113.7".parse().ok();
    let mut words = Vec::new();
    for _ in 0..11 {
        words.push(word(
            session::sign_in(&call, "member", "a wrong password").await,
        ));
    }
    assert_eq!(words[..10], ["wrong_login"; 10]);
    assert_eq!(words[10], "too_many_attempts");
    assert_eq!(
        word(session::sign_in(&call, "nobody", "a wrong password").await),
        "wrong_login"
    );
}
