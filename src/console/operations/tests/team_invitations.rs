//! Invitations to teams: who may make them, whom they let in, when they end, and what nobody learns by them.

use super::teams::{MEMBER, OWNER, VIEWER, invite, new_key, token};
use super::{Scene, input, word};
use crate::config::Reset;
use crate::console::operations::accounts::AccountEdit;
use crate::console::operations::people::PersonEdit;
use crate::console::operations::{accounts, invitations, keys, people, team_invitations, teams};
use crate::console::refusal::InputProblem;
use crate::store::PersonRole;

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
