//! The pages: plain HTML with forms that work without JavaScript. They only call operations and render their views.

mod accounts;
mod administration;
mod alerts;
mod audit;
mod charts;
mod config_keys;
mod csv;
mod fidelity;
mod forms;
mod home;
mod identity;
mod inspect;
mod joining;
mod json_text;
mod keys;
mod link;
mod mail;
mod me;
mod members;
mod models;
mod people;
mod play;
mod preferences;
mod requests;
mod second_factor;
mod sign_in;
mod teams;
mod translate;
mod usage;
mod visit;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use super::security;
use super::state::Console;

pub fn routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/", get(home::show))
        .route("/sign-in", get(sign_in::show).post(sign_in::submit))
        .route(
            "/sign-up",
            get(sign_in::show_sign_up).post(sign_in::sign_up),
        )
        .route(
            "/sign-in/code",
            get(second_factor::show_code).post(second_factor::enter_code),
        )
        .route("/sign-out", post(sign_in::sign_out))
        .route("/forgot", get(mail::show_forgot).post(mail::request_reset))
        .route("/verify/{token}", get(mail::show_verify).post(mail::verify))
        .route(
            "/setup/{token}",
            get(sign_in::show_setup).post(sign_in::choose_password),
        )
        .route(
            "/reset/{token}",
            get(sign_in::show_setup).post(sign_in::choose_password),
        )
        .route(
            "/invitation/{token}",
            get(sign_in::show_invitation).post(sign_in::accept),
        )
        .route(
            "/confirm",
            get(sign_in::show_confirm).post(sign_in::confirm),
        )
        .route("/identity/{name}", get(identity::depart))
        .route("/identity/{name}/callback", get(identity::arrive))
        .route(
            "/welcome",
            get(identity::show_welcome).post(identity::welcome),
        )
        .route("/me/identities/{id}/unlink", post(identity::unlink))
        .route("/preferences", post(preferences::submit))
        .route("/keys", get(keys::list_own))
        .route("/keys/{id}", get(keys::show).post(keys::change))
        .route("/keys/{id}/rotate", post(keys::rotate))
        .route("/keys/{id}/revoke", post(keys::revoke))
        .route(
            "/accounts/{account}/keys",
            get(keys::list).post(keys::create),
        )
        .route("/accounts/{account}/new-key", get(keys::show_new))
        .route("/config-keys", get(config_keys::list))
        .route("/usage", get(usage::show))
        .route("/usage.csv", get(usage::download))
        .route("/requests", get(requests::list))
        .route("/requests/{id}", get(requests::show))
        .route("/me", get(me::show).post(me::change))
        .route("/me/password", post(me::change_password))
        .route("/me/verification", post(mail::request_verification))
        .route("/me/sessions/{id}/end", post(me::end_session))
        .route(
            "/me/second-factor",
            get(second_factor::show_setup).post(second_factor::confirm_setup),
        )
        .route("/me/second-factor/begin", post(second_factor::begin_setup))
        .route("/me/second-factor/off", post(second_factor::turn_off))
        .route(
            "/me/recovery-codes",
            post(second_factor::replace_recovery_codes),
        )
        .merge(alert_routes())
        .merge(team_routes())
        .merge(administration_routes())
        .merge(inspector_routes())
        .merge(public_routes())
        .fallback(get(sign_in::not_found))
}

/// Alerts of keys and accounts.
fn alert_routes() -> Router<Arc<Console>> {
    Router::new()
        .route(
            "/keys/{id}/alerts",
            get(alerts::show_of_key).post(alerts::create_of_key),
        )
        .route(
            "/accounts/{account}/alerts",
            get(alerts::show_of_account).post(alerts::create_of_account),
        )
        .route("/alerts/{id}", post(alerts::change))
        .route("/alerts/{id}/delete", post(alerts::delete))
        .route("/alerts/{id}/test", post(alerts::test))
}

/// Teams, and who belongs to them.
fn team_routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/teams", get(teams::list).post(teams::create))
        .route("/teams/{name}", get(teams::show))
        .route("/teams/{name}/state", post(teams::set_state))
        .route("/teams/{name}/members", post(members::add))
        .route("/teams/{name}/members/{handle}", post(members::change))
        .route(
            "/teams/{name}/members/{handle}/remove",
            post(members::remove),
        )
        .route("/teams/{name}/invitations", post(members::invite))
        .route(
            "/teams/{name}/invitations/{id}/withdraw",
            post(members::withdraw),
        )
        .route("/invitation/{token}/join", post(joining::join))
        .route("/me/invitations/{id}/join", post(joining::take_up))
        .route("/me/invitations/{id}/decline", post(joining::decline))
}

/// Pages for administrators.
fn administration_routes() -> Router<Arc<Console>> {
    Router::new()
        .route("/people", get(people::list))
        .route("/people/invite", post(people::invite))
        .route("/people/invitations/{id}/withdraw", post(people::withdraw))
        .route("/people/{id}", get(people::show).post(people::change))
        .route("/people/{id}/link", post(people::create_link))
        .route("/audit", get(audit::list))
        .route("/upstreams", get(administration::list_upstreams))
        .route("/config", get(administration::show_config))
        .route("/accounts/{account}/cap", post(accounts::set_cap))
        .route(
            "/people/{id}/second-factor/remove",
            post(second_factor::remove),
        )
}

/// What requests became, and requests that the console makes itself.
fn inspector_routes() -> Router<Arc<Console>> {
    // A conversation comes back with every message.
    let play = get(play::show).post(play::submit);
    Router::new()
        .route("/keys/{id}/inspection", post(inspect::start))
        .route("/keys/{id}/inspection/end", post(inspect::end))
        .route("/inspections/{id}", get(inspect::show))
        .route("/inspections/{id}/{number}", get(inspect::show_capture))
        .route("/play", play.layer(security::explorer_limit()))
}

/// Pages that may be for everybody.
fn public_routes() -> Router<Arc<Console>> {
    let explorer = get(translate::show).post(translate::submit);
    Router::new()
        .route("/translate", explorer.layer(security::explorer_limit()))
        .route("/models", get(models::list))
        .route("/fidelity", get(fidelity::show))
}
