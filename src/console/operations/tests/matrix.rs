//! Every operation with every role, on what is one's own and on what is another's.

use std::path::Path;

use super::{Scene, alert_rules, input, new_handle, usage_of, word};
use crate::console::actor::{ConsoleCall, now};
use crate::console::identity::ProviderAnswer;
use crate::console::operations::accounts::AccountEdit;
use crate::console::operations::audit::AuditInput;
use crate::console::operations::people::PersonEdit;
use crate::console::operations::play::PlayInput;
use crate::console::operations::usage::RequestsInput;
use crate::console::operations::{
    accounts, alerts, audit, catalog, config_keys, fidelity, home, identities, identity, inspect,
    invitations, keys, loaded_config, people, play, reset, second_factor, session, sign_up,
    team_invitations, teams, translate, upstreams, usage, verification,
};
use crate::console::sessions;
use crate::store::{KeyChange, MembershipRole, PersonRole};

/// Who tries an operation.
const ACTORS: [&str; 5] = ["anonymous", "viewer", "member", "admin", "command line"];

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
teams::create_team            -     sign_in_needed forbidden      forbidden      ok             ok
teams::list_members           own   sign_in_needed ok             ok             ok             ok
teams::list_members          joined sign_in_needed ok             ok             ok             ok
teams::list_members           other sign_in_needed not_found      not_found      ok             ok
teams::add_member             own   sign_in_needed forbidden      ok             ok             ok
teams::add_member            joined sign_in_needed forbidden      forbidden      ok             ok
teams::add_member             other sign_in_needed not_found      not_found      ok             ok
teams::change_member          own   sign_in_needed forbidden      ok             ok             ok
teams::change_member         joined sign_in_needed forbidden      forbidden      ok             ok
teams::change_member          other sign_in_needed not_found      not_found      ok             ok
teams::remove_member          own   sign_in_needed forbidden      ok             ok             ok
teams::remove_member         joined sign_in_needed forbidden      forbidden      ok             ok
teams::remove_member          other sign_in_needed not_found      not_found      ok             ok
team_invitations::invite_to_team own   sign_in_needed forbidden   ok             ok             ok
team_invitations::invite_to_team joined sign_in_needed forbidden  forbidden      ok             ok
team_invitations::invite_to_team other sign_in_needed not_found   not_found      ok             ok
team_invitations::list_team_invitations own   sign_in_needed forbidden ok        ok             ok
team_invitations::list_team_invitations joined sign_in_needed forbidden forbidden ok            ok
team_invitations::list_team_invitations other sign_in_needed not_found not_found ok             ok
team_invitations::withdraw_from_team own   sign_in_needed forbidden ok           ok             ok
team_invitations::withdraw_from_team joined sign_in_needed forbidden forbidden   ok             ok
team_invitations::withdraw_from_team other sign_in_needed not_found not_found    ok             ok
team_invitations::join_team   -     sign_in_needed ok             ok             ok             sign_in_needed
team_invitations::list_own_invitations - sign_in_needed ok        ok             ok             sign_in_needed
team_invitations::take_up_invitation - sign_in_needed not_found   not_found      not_found      sign_in_needed
team_invitations::decline_invitation - sign_in_needed not_found   not_found      not_found      sign_in_needed
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

/// A team of somebody, with `boss` in it and, if not the owner, who tries the operation.
async fn team_of(scene: &Scene, owner: &str, joined: Option<&str>) -> String {
    let joined = joined.map(|actor| (actor, MembershipRole::Member));
    let mut others = vec![("boss", MembershipRole::Viewer)];
    others.extend(joined);
    scene.team(owner, &others).await
}

/// An invitation to a team, made by an administrator: its id, and the token of its link.
async fn invitation_to(scene: &Scene, team: &str) -> (String, String) {
    let boss = scene.call("admin").await;
    let role = MembershipRole::Viewer;
    let made = team_invitations::invite_to_team(&boss, team, "", role).await;
    let made = made.expect("an invitation");
    let link = made.link.expect("a link").url;
    (
        made.id,
        link.rsplit('/').next().expect("a token").to_owned(),
    )
}

/// Tries one operation on a team.
async fn attempt_on_team(
    scene: &Scene,
    operation: &str,
    call: &ConsoleCall,
    team: &str,
) -> &'static str {
    let role = MembershipRole::Member;
    match operation {
        "teams::create_team" => word(teams::create_team(call, &new_handle("n"), "").await),
        "teams::list_members" => word(teams::list_members(call, team).await),
        "teams::add_member" => {
            let new = new_handle("p");
            scene.create(&new, PersonRole::Member, false).await;
            word(teams::add_member(call, team, &new, role).await)
        }
        "teams::change_member" => word(teams::change_member(call, team, "boss", role).await),
        "teams::remove_member" => word(teams::remove_member(call, team, "boss").await),
        "team_invitations::invite_to_team" => {
            word(team_invitations::invite_to_team(call, team, "", role).await)
        }
        "team_invitations::list_team_invitations" => {
            word(team_invitations::list_team_invitations(call, team).await)
        }
        "team_invitations::withdraw_from_team" => {
            let (id, _) = invitation_to(scene, team).await;
            word(team_invitations::withdraw_from_team(call, team, &id).await)
        }
        "team_invitations::join_team" => {
            let (_, token) = invitation_to(scene, team).await;
            word(team_invitations::join_team(call, &token).await)
        }
        "team_invitations::list_own_invitations" => {
            word(team_invitations::list_own_invitations(call).await)
        }
        // Of an address that is not proven to be the actor's.
        "team_invitations::take_up_invitation" => {
            let (id, _) = invitation_to(scene, team).await;
            word(team_invitations::take_up_invitation(call, &id).await)
        }
        "team_invitations::decline_invitation" => {
            let (id, _) = invitation_to(scene, team).await;
            word(team_invitations::decline_invitation(call, &id).await)
        }
        _ => panic!("{operation} is not tried"),
    }
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
            let edit = AccountEdit {
                spending_cap: Some(None),
                ..AccountEdit::default()
            };
            word(accounts::change_account(call, owner, edit).await)
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
    for (operation, on, expected) in matrix() {
        for (actor, expected) in ACTORS.into_iter().zip(expected) {
            let call = scene.call(actor).await;
            let has_account = !matches!(actor, "anonymous" | "command line");
            let owner = match on {
                "own" if has_account => actor,
                _ => "other",
            };
            let found = match operation.starts_with("team") {
                true => {
                    let joined = (on == "joined" && has_account).then_some(actor);
                    let team = team_of(&scene, owner, joined).await;
                    attempt_on_team(&scene, operation, &call, &team).await
                }
                false => attempt(&scene, operation, &call, owner).await,
            };
            assert_eq!(
                found, expected,
                "{operation} by {actor} on what is of {owner} ({on})"
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
        if !path.is_file() {
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
