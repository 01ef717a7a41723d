//! Teams: who may do what by the role there, and what nobody learns or gets by them.

use super::{Scene, input, new_handle, usage_of, word};
use crate::console::actor::{Actor, ConsoleCall, now};
use crate::console::operations::accounts::AccountEdit;
use crate::console::operations::usage::RequestsInput;
use crate::console::operations::{
    accounts, home, inspect, keys, people, play, team_invitations, teams, usage,
};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::CreatedInvitation;
use crate::model::Money;
use crate::store::{AuditFilter, KeyChange, MembershipRole, PersonRole};

pub(super) const OWNER: MembershipRole = MembershipRole::Owner;
pub(super) const MEMBER: MembershipRole = MembershipRole::Member;
pub(super) const VIEWER: MembershipRole = MembershipRole::Viewer;

pub(super) fn token(invitation: &CreatedInvitation) -> String {
    let link = invitation.link.as_ref().expect("a link");
    link.url.rsplit('/').next().expect("a token").to_owned()
}

pub(super) async fn invite(call: &ConsoleCall, team: &str, email: &str) -> CreatedInvitation {
    let made = team_invitations::invite_to_team(call, team, email, MEMBER).await;
    made.expect("an invitation")
}

pub(super) async fn new_key(call: &ConsoleCall, team: &str) -> Result<String, Refusal> {
    let made = keys::create_key(call, team, &new_handle("k"), KeyChange::default()).await;
    made.map(|made| made.key.id)
}

#[tokio::test]
async fn a_team_shares_the_names_of_people() {
    let scene = Scene::new("{}").await;
    let admin = scene.call("admin").await;
    let made = teams::create_team(&admin, " Research ", "member").await;
    let made = made.expect("a team").account;
    assert_eq!(
        (&*made.name, &*made.kind, made.members),
        ("research", "team", 1)
    );
    for taken in ["research", "member", "default"] {
        let again = teams::create_team(&admin, taken, "").await;
        assert_eq!(word(again), "handle_taken", "{taken}");
    }
    let person = people::create_person(&admin, input("research"), PersonRole::Member).await;
    assert_eq!(word(person), "handle_taken");
    let wrong = teams::create_team(&admin, "a team", "").await;
    assert_eq!(word(wrong), "invalid");
    let unknown = teams::create_team(&admin, "design", "nobody").await;
    assert_eq!(unknown.err(), Some(InputProblem::PersonUnknown.into()));
    // Who makes it owns it, unless it is made on the command line.
    let own = teams::create_team(&admin, "design", "").await;
    assert_eq!(own.expect("a team").account.role, Some("owner"));
    let line = scene.call("command line").await;
    let none = teams::create_team(&line, "empty", "").await;
    assert_eq!(none.expect("a team").account.members, 0);
    // The account of a person is none, and has no members.
    let refused = teams::add_member(&admin, "member", "other", MEMBER).await;
    assert_eq!(refused.err(), Some(InputProblem::TeamNeeded.into()));
    let disable = AccountEdit {
        disabled: Some(true),
        ..AccountEdit::default()
    };
    let refused = accounts::change_account(&admin, "member", disable).await;
    assert_eq!(refused.err(), Some(InputProblem::TeamNeeded.into()));
    let filter = AuditFilter {
        target: "research".to_owned(),
        ..AuditFilter::default()
    };
    let lines = scene.console.store.audit_lines(&filter, 9).await;
    let lines = lines.expect("lines");
    let line = lines.last().expect("a line");
    assert_eq!(
        (&*line.action, &*line.change),
        ("team.create", "owner member")
    );
}

#[tokio::test]
async fn a_team_keeps_an_owner_unless_an_administrator_decides() {
    let scene = Scene::new("{}").await;
    let team = scene
        .team("member", &[("other", MEMBER), ("viewer", OWNER)])
        .await;
    let owner = scene.call("member").await;
    // The other one may only look, wherever it is.
    let left = teams::remove_member(&owner, &team, "member").await;
    assert_eq!(word(left), "last_owner");
    let lowered = teams::change_member(&owner, &team, "member", VIEWER).await;
    assert_eq!(word(lowered), "last_owner");
    assert_eq!(
        word(teams::change_member(&owner, &team, "other", OWNER).await),
        "ok"
    );
    assert_eq!(
        word(teams::remove_member(&owner, &team, "member").await),
        "ok"
    );
    assert_eq!(word(teams::list_members(&owner, &team).await), "not_found");
    let admin = scene.call("admin").await;
    assert_eq!(
        word(teams::remove_member(&admin, &team, "other").await),
        "ok"
    );
    assert_eq!(
        word(teams::remove_member(&admin, &team, "other").await),
        "not_found"
    );
    // Everybody leaves by herself, also who only looks.
    let viewer = scene.call("viewer").await;
    assert_eq!(
        word(teams::remove_member(&viewer, &team, "viewer").await),
        "ok"
    );
}

#[tokio::test]
async fn who_is_an_owner_is_decided_with_a_password_that_was_entered_lately() {
    let scene = Scene::new("{sign_up: invite}").await;
    scene.create("rival", PersonRole::Member, true).await;
    let others = [("viewer", VIEWER), ("rival", OWNER)];
    let team = scene.team("member", &others).await;
    let mut owner = scene.call("member").await;
    if let Actor::Person(signed_in) = &mut owner.actor {
        signed_in.session.stepped_up = now() - 16 * 60 * 1000;
    }
    let outcomes = [
        word(teams::add_member(&owner, &team, "other", OWNER).await),
        word(teams::change_member(&owner, &team, "viewer", OWNER).await),
        word(team_invitations::invite_to_team(&owner, &team, "", OWNER).await),
        word(teams::change_member(&owner, &team, "rival", MEMBER).await),
        word(teams::remove_member(&owner, &team, "rival").await),
    ];
    assert_eq!(outcomes, ["confirm_password"; 5]);
    let outcomes = [
        word(teams::remove_member(&owner, &team, "viewer").await),
        word(teams::change_member(&owner, &team, "member", MEMBER).await),
    ];
    assert_eq!(outcomes, ["ok"; 2]);
    let owner = scene.call("rival").await;
    assert_eq!(
        word(teams::add_member(&owner, &team, "other", MEMBER).await),
        "ok"
    );
    let mut admin = scene.call("admin").await;
    if let Actor::Person(signed_in) = &mut admin.actor {
        signed_in.session.stepped_up = 0;
    }
    let made = teams::create_team(&admin, "research", "").await;
    assert_eq!(word(made), "confirm_password");
}

#[tokio::test]
async fn who_leaves_a_team_loses_sight_of_it_at_once() {
    let scene = Scene::new("{member_keys: {max: 1}}").await;
    let team = scene
        .team("other", &[("member", OWNER), ("boss", MEMBER)])
        .await;
    let member = scene.call("member").await;
    let key = new_key(&member, &team).await.expect("a key");
    assert_eq!(new_key(&member, &team).await, Err(Refusal::TooManyKeys(1)));
    // Others of the team make as many.
    assert!(new_key(&scene.call("other").await, &team).await.is_ok());
    let (inspected, inspection) = scene.inspection(&team).await;
    let request = scene.request(&team).await;
    let outcomes = async || {
        let requests = RequestsInput {
            account: team.clone(),
            ..RequestsInput::default()
        };
        let options = play::list_options(&member).await.expect("options");
        let home = home::get_home(&member, &home::HomeInput::default()).await;
        let played = options.keys.iter().any(|it| it.id == key);
        let shown = home.expect("a page").teams.len() == 1;
        let outcomes = [
            word(keys::get_key(&member, &key).await),
            word(usage::get_usage(&member, &usage_of(&team)).await),
            word(usage::list_requests(&member, &requests).await),
            word(usage::get_request(&member, &request).await),
            word(inspect::find_inspection(&member, &inspected).await),
            word(inspect::get_inspection(&member, &inspection).await),
            word(accounts::get_account(&member, &team).await),
        ];
        (outcomes, played, shown)
    };
    assert_eq!(outcomes().await, (["ok"; 7], true, true));
    let other = scene.call("other").await;
    let removed = teams::remove_member(&other, &team, "member").await;
    assert_eq!(word(removed), "ok");
    assert_eq!(outcomes().await, (["not_found"; 7], false, false));
}

#[tokio::test]
async fn a_decision_about_a_member_ends_earlier_invitations() {
    let scene = Scene::new("{sign_up: invite}").await;
    scene.create("proven", PersonRole::Member, true).await;
    let team = scene.team("member", &[]).await;
    let owner = scene.call("member").await;
    let proven = scene.call("proven").await;
    let invited = async || {
        let found = team_invitations::list_own_invitations(&proven).await;
        found.expect("a list").len()
    };
    invite(&owner, &team, "proven@example.org").await;
    assert_eq!(invited().await, 1);
    let added = teams::add_member(&owner, &team, "proven", VIEWER).await;
    assert!(added.is_ok());
    assert_eq!(invited().await, 0, "added");
    invite(&owner, &team, "proven@example.org").await;
    let lowered = teams::change_member(&owner, &team, "proven", VIEWER).await;
    assert!(lowered.is_ok());
    assert_eq!(invited().await, 0, "changed");
    invite(&owner, &team, "proven@example.org").await;
    let removed = teams::remove_member(&owner, &team, "proven").await;
    assert_eq!(word(removed), "ok");
    assert_eq!(invited().await, 0, "removed");
}

#[tokio::test]
async fn the_role_in_each_team_counts() {
    let scene = Scene::new("{}").await;
    let member = scene.call("member").await;
    let mut found = Vec::new();
    for role in MembershipRole::ALL {
        let team = scene.team("other", &[("member", role)]).await;
        let key = scene.key(&team).await;
        let options = play::list_options(&member).await.expect("options");
        found.push((
            word(keys::revoke_key(&member, &scene.key(&team).await).await),
            word(inspect::start_inspection(&member, &key).await),
            options.keys.iter().any(|it| it.id == key),
            word(teams::list_members(&member, &team).await),
        ));
    }
    let expected = [
        ("ok", "ok", true, "ok"),
        ("ok", "forbidden", true, "ok"),
        ("forbidden", "forbidden", false, "ok"),
    ];
    assert_eq!(found, expected);
    let accounts = keys::list_accounts(&member).await.expect("accounts");
    let mut roles: Vec<_> = accounts.iter().map(|account| account.role).collect();
    roles.sort_unstable();
    assert_eq!(
        roles,
        [Some("member"), Some("owner"), Some("owner"), Some("viewer")]
    );
    // The cap of a team is that of an account, and an administrator's to set.
    let team = scene.team("member", &[]).await;
    let edit = || AccountEdit {
        spending_cap: Some(Money::parse("40")),
        ..AccountEdit::default()
    };
    let refused = accounts::change_account(&member, &team, edit()).await;
    assert_eq!(word(refused), "forbidden");
    let set = accounts::change_account(&scene.call("admin").await, &team, edit()).await;
    let left = set.expect("a cap").left.map(|left| left.to_string());
    assert_eq!(left.as_deref(), Some("40"));
}
