//! Makes the description of the API from the annotations of its handlers, and compares it with openapi.json.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use utoipa::OpenApi;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Omniglot console",
        description = "People and keys of an Omniglot gateway. Sign in with POST /api/v1/session; the cookie of the response is the session.",
        license(name = "Apache-2.0")
    ),
    nest((path = "/api/v1", api = ApiHandlers))
)]
struct Description;

#[derive(OpenApi)]
#[openapi(paths(
    super::accounts::change_account,
    super::accounts::get_account,
    super::accounts::list_accounts,
    super::administration::get_config,
    super::administration::list_changes,
    super::administration::list_upstreams,
    super::alerts::change_alert,
    super::alerts::create_alert,
    super::alerts::delete_alert,
    super::alerts::list_alerts,
    super::alerts::test_alert,
    super::catalog::list_models,
    super::fidelity::get_fidelity,
    super::home::get_home,
    super::identity::list_identities,
    super::identity::list_providers,
    super::identity::unlink,
    super::inspect::end_inspection,
    super::inspect::get_capture,
    super::inspect::get_inspection,
    super::inspect::start_inspection,
    super::keys::change_key,
    super::keys::create_key,
    super::keys::get_key,
    super::keys::list_config_keys,
    super::keys::list_keys,
    super::keys::revoke_key,
    super::keys::rotate_key,
    super::people::accept,
    super::people::change_person,
    super::people::create_person,
    super::people::create_setup_link,
    super::people::get_person,
    super::people::invite,
    super::people::list_invitations,
    super::people::list_people,
    super::people::withdraw,
    super::play::list_options,
    super::play::play,
    super::second_factor::begin_setup,
    super::second_factor::confirm_setup,
    super::second_factor::enter_code,
    super::second_factor::get_second_factor,
    super::second_factor::remove_second_factor,
    super::second_factor::replace_recovery_codes,
    super::second_factor::turn_off,
    super::session::change_me,
    super::session::change_password,
    super::session::choose_password,
    super::session::confirm_password,
    super::session::current,
    super::session::end_session,
    super::session::get_me,
    super::session::list_sessions,
    super::session::request_reset,
    super::session::request_sign_up,
    super::session::request_verification,
    super::session::sign_in,
    super::session::sign_out,
    super::session::verify,
    super::teams::add_member,
    super::teams::change_member,
    super::teams::create_team,
    super::teams::decline_invitation,
    super::teams::invite_to_team,
    super::teams::join_team,
    super::teams::list_members,
    super::teams::list_own_invitations,
    super::teams::list_team_invitations,
    super::teams::remove_member,
    super::teams::take_up_invitation,
    super::teams::withdraw_from_team,
    super::translate::translate,
    super::usage::get_request,
    super::usage::get_usage,
    super::usage::list_requests
))]
struct ApiHandlers;

/// Read while the test runs, so that it need not be built again for a new description.
fn description() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/console/openapi.json");
    fs::read_to_string(path).expect("the description")
}

#[test]
fn the_description_of_the_api_is_that_of_its_handlers() {
    let made = Description::openapi().to_pretty_json();
    let made = made.expect("a description") + "\n";
    if made != description() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/target/openapi.json");
        fs::write(path, made).expect("a file");
        panic!("src/console/openapi.json is not current; {path} is: copy it");
    }
}

/// Every handler that the router names, as `module::function`, is described.
#[test]
fn every_route_of_the_api_is_described() {
    let description: Value = serde_json::from_str(&description()).expect("JSON");
    let paths = description["paths"].as_object().expect("paths");
    let operations = paths
        .values()
        .flat_map(|path| path.as_object().expect("methods").values());
    let described: BTreeSet<&str> = operations
        .filter_map(|operation| operation["operationId"].as_str())
        .collect();
    let source = include_str!("../api.rs");
    let router = source.split_once("pub fn routes()").expect("the router").1;
    let router = router.split_once("/// Why").expect("its end").0;
    let routed: BTreeSet<&str> = ["get(", "post(", "put(", "patch(", "delete("]
        .into_iter()
        .flat_map(|method| router.split(method).skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .filter_map(|(handler, _)| handler.rsplit("::").next())
        .collect();
    assert_eq!(described, routed);
}
