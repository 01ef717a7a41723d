//! The second factor: codes of an app on one's phone, and codes for who has lost it.

use std::time::Instant;

use super::attempt::SignInAttempt;
use super::session::{Begun, begin};
use crate::console::actor::{ConsoleCall, now};
use crate::console::refusal::Refusal;
use crate::console::tokens::token_hash;
use crate::console::totp;
use crate::console::views::{PersonView, SecondFactorSetup, SecondFactorView};
use crate::store::{LinkPurpose, Person};

/// Codes for who has lost the device, shown this once, and the session that goes on.
pub struct SecondFactorOn {
    pub recovery_codes: Vec<String>,
    pub begun: Begun,
}

/// Enters the code after the password, and begins the session. `pending` is what the sign-in returned.
pub async fn enter_code(call: &ConsoleCall, pending: &str, code: &str) -> Result<Begun, Refusal> {
    let (store, sha256) = (&call.console.store, token_hash(pending));
    let link = store.link(LinkPurpose::SecondFactor, &sha256).await?;
    let person = link.and_then(|link| link.person).ok_or(Refusal::LinkOver)?;
    let person = store.person(&person).await?;
    let person = person.filter(|person| person.disabled.is_none());
    let person = person.ok_or(Refusal::LinkOver)?;
    check_code(call, &person, code).await?;
    store.end_link(LinkPurpose::SecondFactor, &sha256).await?;
    begin(call, &person, now()).await
}

/// Goes on with a code that is valid now and was not used before, or with one for who has lost the device.
async fn check_code(call: &ConsoleCall, person: &Person, code: &str) -> Result<(), Refusal> {
    let codes = &call.console.failures_by_code;
    let attempt = SignInAttempt::begin(call)?;
    if let Err(wait) = codes.take(&person.id, Instant::now()) {
        attempt.give_back();
        return Err(Refusal::TooManyAttempts(wait));
    }
    let secret = person.totp.as_deref().ok_or(Refusal::LinkOver)?;
    let store = &call.console.store;
    let is_right = match totp::step_of(secret, code, seconds()) {
        Some(step) => store.use_totp_step(&person.id, step).await?,
        None => {
            let hash = totp::recovery_hash(code);
            store.use_recovery(&person.id, &hash).await?
        }
    };
    if !is_right {
        return Err(Refusal::WrongCode);
    }
    codes.give_back(&person.id);
    attempt.give_back();
    Ok(())
}

/// Whether one has a second factor, and how many recovery codes are left.
pub async fn get_second_factor(call: &ConsoleCall) -> Result<SecondFactorView, Refusal> {
    let person = &call.signed_in()?.person;
    Ok(SecondFactorView {
        enabled: person.totp.is_some(),
        recovery_codes_left: call.console.store.recovery_left(&person.id).await?,
    })
}

/// Makes the secret that an app reads. It counts once a code of it was entered.
pub async fn begin_setup(call: &ConsoleCall) -> Result<SecondFactorSetup, Refusal> {
    let person = &call.signed_in()?.person;
    call.check_stepped_up()?;
    if person.totp.is_some() {
        return Err(Refusal::SecondFactorOn);
    }
    let secret = totp::new_secret();
    let store = &call.console.store;
    store.set_pending_totp(&person.id, &secret).await?;
    Ok(setup(call, person, secret))
}

/// The secret that waits for its first code.
pub async fn find_setup(call: &ConsoleCall) -> Result<SecondFactorSetup, Refusal> {
    let person = &call.signed_in()?.person;
    call.check_stepped_up()?;
    let secret = call.console.store.pending_totp(&person.id).await?;
    Ok(setup(call, person, secret.ok_or(Refusal::NotFound)?))
}

fn setup(call: &ConsoleCall, person: &Person, secret: String) -> SecondFactorSetup {
    let public_url = &call.console.settings.public_url;
    let host = public_url.split("://").nth(1).unwrap_or_default();
    let url = totp::app_url(&secret, &person.handle, host);
    SecondFactorSetup {
        picture: totp::picture(&url).unwrap_or_default(),
        url,
        secret,
    }
}

/// Turns the second factor on with a code of the new secret; all other sessions end.
pub async fn confirm_setup(call: &ConsoleCall, code: &str) -> Result<SecondFactorOn, Refusal> {
    let person = &call.signed_in()?.person;
    call.check_stepped_up()?;
    let store = &call.console.store;
    let secret = store.pending_totp(&person.id).await?;
    let secret = secret.ok_or(Refusal::NotFound)?;
    let step = totp::step_of(&secret, code, seconds()).ok_or(Refusal::WrongCode)?;
    let recovery_codes = totp::new_recovery_codes();
    let hashes = hashes(&recovery_codes);
    let entry = call.audit("second_factor.on", &person.handle, String::new());
    let changed = store.set_totp(&person.id, Some((&secret, step)), &hashes, &entry);
    let person = changed.await?;
    Ok(SecondFactorOn {
        recovery_codes,
        begun: begin(call, &person, now()).await?,
    })
}

/// Turns one's own second factor off; all other sessions end.
pub async fn turn_off(call: &ConsoleCall) -> Result<Begun, Refusal> {
    let person = &call.signed_in()?.person;
    call.check_stepped_up()?;
    let entry = call.audit("second_factor.off", &person.handle, String::new());
    let changed = call.console.store.set_totp(&person.id, None, &[], &entry);
    begin(call, &changed.await?, now()).await
}

/// Makes new recovery codes; the old ones end.
pub async fn replace_recovery_codes(call: &ConsoleCall) -> Result<Vec<String>, Refusal> {
    let person = &call.signed_in()?.person;
    call.check_stepped_up()?;
    if person.totp.is_none() {
        return Err(Refusal::NotFound);
    }
    let codes = totp::new_recovery_codes();
    let entry = call.audit(
        "second_factor.recovery_codes",
        &person.handle,
        String::new(),
    );
    let store = &call.console.store;
    store
        .replace_recovery(&person.id, &hashes(&codes), &entry)
        .await?;
    Ok(codes)
}

/// Removes the second factor of somebody who has lost the device and the codes; all sessions end.
pub async fn remove_second_factor(call: &ConsoleCall, id: &str) -> Result<PersonView, Refusal> {
    call.check_admin()?;
    call.check_stepped_up()?;
    let person = call.console.store.person(id).await?;
    let person = person.ok_or(Refusal::NotFound)?;
    let entry = call.audit("second_factor.remove", &person.handle, String::new());
    let changed = call.console.store.set_totp(&person.id, None, &[], &entry);
    Ok(PersonView::from(&changed.await?))
}

fn hashes(codes: &[String]) -> Vec<[u8; 32]> {
    codes.iter().map(|code| totp::recovery_hash(code)).collect()
}

/// Seconds since 1970.
fn seconds() -> u64 {
    u64::try_from(now() / 1000).unwrap_or_default()
}
