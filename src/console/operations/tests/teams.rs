//! Teams: who may do what by the role there, and what nobody learns or gets by them.

use super::{Scene, input, new_handle, usage_of, word};
use crate::config::Reset;
use crate::console::actor::{Actor, ConsoleCall, now};
use crate::console::operations::accounts::AccountEdit;
use crate::console::operations::people::PersonEdit;
use crate::console::operations::usage::RequestsInput;
use crate::console::operations::{
    accounts, home, inspect, invitations, keys, people, play, team_invitations, teams, usage,
};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::CreatedInvitation;
use crate::model::Money;
use crate::store::{AuditFilter, KeyChange, MembershipRole, PersonRole};

const OWNER: MembershipRole = MembershipRole::Owner;
const MEMBER: MembershipRole = MembershipRole::Member;
const VIEWER: MembershipRole = MembershipRole::Viewer;

fn token(invitation: &CreatedInvitation) -> String {
    let link = invitation.link.as_ref().expect("a link");
    link.url.rsplit('/').next().expect("a token").to_owned()
}

async fn invite(call: &ConsoleCall, team: &str, email: &str) -> CreatedInvitation {
    let made = team_invitations::invite_to_team(call, team, email, MEMBER).await;
    made.expect("an invitation")
}

async fn new_key(call: &ConsoleCall, team: &str) -> Result<String, Refusal> {
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
async fn an_owner_does_not_learn_whose_an_address_is() {
    let scene = Scene::new("{sign_up: invite}").await;
    scene.create("proven", PersonRole::Member, true).await;
    let team = scene.team("member", &[]).await;
    let owner = scene.call("member").await;
    for email in ["proven@example.org", "nobody@example.org"] {
        let added = teams::add_member(&owner, &team, email, MEMBER).await;
        let added = added.expect("invited");
        let invitation = added.invitation.expect("an invitation");
        assert!(added.member.is_none(), "{email}");
        assert!(
            invitation.link.is_some() && invitation.mailed_to.is_none(),
            "{email}"
        );
    }
    let members = teams::list_members(&owner, &team).await.expect("members");
    assert_eq!(members.len(), 1, "nobody is in it yet");
    // An administrator knows all addresses anyway.
    let admin = scene.call("admin").await;
    let added = teams::add_member(&admin, &team, "Proven@example.org", VIEWER).await;
    let member = added.expect("added").member.expect("a member");
    assert_eq!((&*member.handle, member.role), ("proven", "viewer"));
    let unproven = teams::add_member(&admin, &team, "other@example.org", VIEWER).await;
    assert!(unproven.expect("invited").member.is_none());
    // A username is no secret, and is not tried out at the speed of the machine.
    let mut from_network = scene.call("member").await;
    from_network.remote = "203.0.113.9".parse().ok();
    let mut words = Vec::new();
    for number in 0..21 {
        let guess = format!("guess-{number}");
        words.push(word(
            teams::add_member(&from_network, &team, &guess, MEMBER).await,
        ));
    }
    assert_eq!((words[0], words[20]), ("invalid", "too_many_attempts"));
}

#[tokio::test]
async fn who_has_a_proven_address_finds_invitations_to_it() {
    let scene = Scene::new("{sign_up: invite}").await;
    scene.create("proven", PersonRole::Member, true).await;
    let owner = scene.call("member").await;
    let (one, other) = (
        scene.team("member", &[]).await,
        scene.team("member", &[]).await,
    );
    for team in [&one, &other] {
        invite(&owner, team, "proven@example.org").await;
    }
    // One whose address is not proven has none.
    invite(&owner, &one, "other@example.org").await;
    let unproven = scene.call("other").await;
    let none = team_invitations::list_own_invitations(&unproven).await;
    assert_eq!(none.expect("a list").len(), 0);
    let proven = scene.call("proven").await;
    let found = team_invitations::list_own_invitations(&proven).await;
    let found = found.expect("a list");
    assert_eq!(found.len(), 2);
    let id = |team: &str| {
        let of_team =
            |it: &&crate::console::views::InvitationView| it.team.as_deref() == Some(team);
        found.iter().find(of_team).expect("it").id.clone()
    };
    let foreign = team_invitations::take_up_invitation(&unproven, &id(&one)).await;
    assert_eq!(word(foreign), "not_found");
    let joined = team_invitations::take_up_invitation(&proven, &id(&one)).await;
    assert_eq!(joined.expect("joined").account, one);
    let again = team_invitations::take_up_invitation(&proven, &id(&one)).await;
    assert_eq!(word(again), "not_found");
    let declined = team_invitations::decline_invitation(&proven, &id(&other)).await;
    assert_eq!(word(declined), "ok");
    assert_eq!(word(keys::list_keys(&proven, &one).await), "ok");
    assert_eq!(word(keys::list_keys(&proven, &other).await), "not_found");
}

#[tokio::test]
async fn a_link_lets_one_person_in_with_an_account_or_a_new_one() {
    let scene = Scene::new("{sign_up: invite}").await;
    let team = scene.team("member", &[]).await;
    let owner = scene.call("member").await;
    let (first, second) = (
        invite(&owner, &team, "").await,
        invite(&owner, &team, "").await,
    );
    let other = scene.call("other").await;
    let joined = team_invitations::join_team(&other, &token(&first)).await;
    assert_eq!(joined.expect("joined").role, "member");
    let again = team_invitations::join_team(&scene.call("viewer").await, &token(&first)).await;
    assert_eq!(word(again), "link_over");
    // Who belongs to it already uses nothing up.
    let again = team_invitations::join_team(&other, &token(&second)).await;
    assert_eq!(word(again), "already_member");
    let nobody = scene.call("anonymous").await;
    let second = token(&second);
    let begun = invitations::accept(&nobody, &second, input("newcomer"), "long enough");
    let begun = begun
        .await
        .map_err(|refusal| refusal.code())
        .map(|begun| begun.person);
    assert_eq!(begun.expect("an account").role, "member", "of the console");
    let newcomer = scene.call("newcomer").await;
    assert!(new_key(&newcomer, &team).await.is_ok());
    assert!(new_key(&newcomer, "newcomer").await.is_ok());
    // An ordinary invitation joins nothing.
    let admin = scene.call("admin").await;
    let ordinary = invitations::invite(&admin, "", PersonRole::Member).await;
    let ordinary = ordinary.expect("an invitation");
    let joined = team_invitations::join_team(&other, &token(&ordinary)).await;
    assert_eq!(word(joined), "link_over");
}

#[tokio::test]
async fn invitations_end_with_the_right_to_invite() {
    let scene = Scene::new("{sign_up: invite}").await;
    let team = scene.team("member", &[("other", OWNER)]).await;
    let (owner, other) = (scene.call("member").await, scene.call("other").await);
    let invitation = invite(&other, &team, "").await;
    let works = async || {
        let nobody = scene.call("anonymous").await;
        word(invitations::find_invitation(&nobody, &token(&invitation)).await) == "ok"
    };
    let change = async |role| {
        let changed = teams::change_member(&owner, &team, "other", role).await;
        changed.expect("changed")
    };
    assert!(works().await);
    change(MEMBER).await;
    assert!(!works().await, "made by somebody who is no owner any more");
    let listed = team_invitations::list_team_invitations(&owner, &team).await;
    assert_eq!(listed.expect("a list").len(), 0);
    change(OWNER).await;
    assert!(works().await);
    let admin = scene.call("admin").await;
    let set_disabled = async |disabled| {
        let edit = AccountEdit {
            disabled: Some(disabled),
            ..AccountEdit::default()
        };
        let changed = accounts::change_account(&admin, &team, edit).await;
        changed.expect("changed")
    };
    set_disabled(true).await;
    assert!(!works().await, "the team is disabled");
    let another = team_invitations::invite_to_team(&owner, &team, "", MEMBER).await;
    assert_eq!(another.err(), Some(InputProblem::TeamDisabled.into()));
    let both = AccountEdit {
        disabled: Some(false),
        reset: Some(Reset::Daily),
        ..AccountEdit::default()
    };
    let refused = accounts::change_account(&admin, &team, both).await;
    assert_eq!(refused.err(), Some(InputProblem::ResetWithoutCap.into()));
    assert!(
        !works().await,
        "of a change that is refused nothing is done"
    );
    set_disabled(false).await;
    assert!(works().await);
    let edit = PersonEdit {
        disabled: Some(true),
        ..PersonEdit::default()
    };
    let id = scene.person("other").await.id;
    let changed = people::change_person(&admin, &id, edit).await;
    changed.expect("disabled");
    assert!(!works().await, "made by somebody who is disabled");
}

#[tokio::test]
async fn invitations_follow_the_rules_of_sign_up() {
    let invite = async |settings: &str, actor: &str, email: &str| {
        let scene = Scene::new(settings).await;
        let team = scene.team("member", &[]).await;
        let call = scene.call(actor).await;
        word(team_invitations::invite_to_team(&call, &team, email, MEMBER).await)
    };
    for (sign_up, actor, email, expected) in [
        ("closed", "member", "", "sign_up_closed"),
        ("closed", "admin", "", "sign_up_closed"),
        ("invite", "member", "", "ok"),
        (
            "{domains: [example.org]}, MAIL",
            "member",
            "a@example.org",
            "ok",
        ),
        (
            "{domains: [example.org]}, MAIL",
            "member",
            "a@example.com",
            "invalid",
        ),
        ("{domains: [example.org]}, MAIL", "member", "", "invalid"),
        (
            "{domains: [example.org]}, MAIL",
            "admin",
            "a@example.com",
            "ok",
        ),
    ] {
        let settings = format!("{{sign_up: {sign_up}}}");
        assert_eq!(
            invite(&settings, actor, email).await,
            expected,
            "{sign_up} {actor} {email}"
        );
    }
    // The number of those that are open is limited.
    let scene = Scene::new("{sign_up: invite}").await;
    let team = scene.team("member", &[]).await;
    let owner = scene.call("member").await;
    let mut last = "";
    for _ in 0..51 {
        last = word(team_invitations::invite_to_team(&owner, &team, "", MEMBER).await);
    }
    assert_eq!(last, "too_many_invitations");
}

#[tokio::test]
async fn only_the_owner_of_an_address_sees_what_is_sent_to_it() {
    let scene = Scene::new("{sign_up: invite, MAIL}").await;
    let team = scene.team("member", &[]).await;
    let owner = scene.call("member").await;
    let sent = invite(&owner, &team, "new@example.org").await;
    assert!(
        sent.link.is_none(),
        "it would prove an address that is another's"
    );
    assert_eq!(sent.mailed_to.as_deref(), Some("new@example.org"));
    let shown = invite(&owner, &team, "").await;
    assert!(shown.link.is_some());
    let admin = scene.call("admin").await;
    let both = invite(&admin, &team, "new@example.org").await;
    assert!(both.link.is_some() && both.mailed_to.is_some());
    let nobody = scene.call("anonymous").await;
    let mut made = input("newcomer");
    made.email = "ceo@example.org".to_owned();
    let begun = invitations::accept(&nobody, &token(&shown), made, "long enough").await;
    let person = begun
        .map_err(|refusal| refusal.code())
        .map(|begun| begun.person);
    let person = person.expect("an account");
    // Until it is proven, it stays free for who has it.
    assert_eq!((person.verified, person.email), (false, None));
    let mut last = "";
    for _ in 0..4 {
        let sent = team_invitations::invite_to_team(&owner, &team, "x@example.org", MEMBER);
        last = word(sent.await);
    }
    assert_eq!(last, "too_many_attempts", "nobody's mailbox is filled");
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
