//! What the operations hold to, whoever asks: limits, links, roles and the audit log.

use std::path::Path;

use super::{Scene, input, word};
use crate::config::Reset;
use crate::console::actor::{Actor, now};
use crate::console::operations::people::PersonEdit;
use crate::console::operations::{inspect, invitations, keys, people, second_factor, session};
use crate::console::refusal::{InputProblem, Refusal};
use crate::model::Money;
use crate::store::{KeyChange, PersonRole};

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
    let above = InputProblem::CapAboveMax("50".to_owned());
    let raised = keys::change_key(&call, &more.id, cap("901")).await;
    assert_eq!(code(raised), refused(above.clone()));
    // The same amount each day would be more; without a period it is less.
    for (reset, expected) in [(Reset::Daily, refused(above)), (Reset::Never, Ok(()))] {
        let monthly = KeyChange {
            reset: Some(Reset::Monthly),
            ..KeyChange::default()
        };
        let given = keys::change_key(&admin, &more.id, monthly).await;
        assert!(given.is_ok());
        let change = KeyChange {
            reset: Some(reset),
            ..KeyChange::default()
        };
        let changed = keys::change_key(&call, &more.id, change).await;
        assert_eq!(code(changed), expected, "{reset:?}");
    }
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
    let url = invited.expect("an invitation").link.expect("a link").url;
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

/// Who has lost the right to let people in may have kept such a link for later.
#[tokio::test]
async fn links_of_a_former_administrator_end() {
    let scene = Scene::new("{sign_up: invite}").await;
    let (boss, admin) = (scene.call("boss").await, scene.call("admin").await);
    let nobody = scene.call("anonymous").await;
    let member = scene.person("member").await;
    let invited = invitations::invite(&boss, "", PersonRole::Admin).await;
    let invitation = invited.expect("an invitation").link.expect("its link");
    let made = people::create_setup_link(&boss, &member.id).await;
    let setup = made.expect("a link");
    let token =
        |link: &crate::console::LinkView| link.url.rsplit('/').next().expect("it").to_owned();
    let words = async || {
        let invited = invitations::find_invitation(&nobody, &token(&invitation)).await;
        let setup = people::find_setup_link(&nobody, &token(&setup)).await;
        (word(invited), word(setup))
    };
    assert_eq!(words().await, ("ok", "ok"));
    let demoted = PersonEdit {
        role: Some(PersonRole::Member),
        ..PersonEdit::default()
    };
    let id = scene.person("boss").await.id;
    let changed = people::change_person(&admin, &id, demoted).await;
    changed.expect("a member");
    assert_eq!(words().await, ("link_over", "link_over"));
    let used = people::use_setup_link(&nobody, &token(&setup), "long enough").await;
    assert_eq!(word(used), "link_over");
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

#[tokio::test]
async fn who_gets_a_key_does_not_get_its_inspection() {
    let scene = Scene::new("{}").await;
    let (key, inspection) = scene.inspection("member").await;
    let (member, other) = (scene.call("member").await, scene.call("other").await);
    let found = inspect::find_inspection(&member, &key).await;
    let found = found.expect("an answer").map(|found| found.id);
    assert_eq!(found.as_deref(), Some(&*inspection));
    let store = &scene.console.store;
    let stored = store.key_by_id(&key).await.expect("an answer");
    let moved = KeyChange {
        account: Some("other".to_owned()),
        ..KeyChange::default()
    };
    let name = stored.expect("the key").settings.name;
    store.change_key(&name, &moved).await.expect("it moves");
    let found = inspect::find_inspection(&other, &key).await;
    assert!(found.expect("an answer").is_none());
    let ended = inspect::end_inspection(&other, &key).await;
    assert_eq!(word(ended), "not_found");
    let started = inspect::start_inspection(&other, &key).await;
    let started = started.expect("an inspection");
    assert_eq!((&*started.account, started.left), ("other", 20));
    let inspector = &scene.console.runtime.as_ref().expect("it").state.inspector;
    assert!(inspector.find(&inspection).is_none(), "it is replaced");
    let again = inspect::start_inspection(&other, &key).await;
    assert_eq!(again.expect("the same").id, started.id);
    let ended = inspect::end_inspection(&other, &key).await;
    assert_eq!(word(ended), "ok");
}
