//! Alerts: who is told when a key or an account has spent so much of its cap.

use std::time::Instant;

use serde::Deserialize;

use super::{accounts, input, keys};
use crate::console::actor::{Actor, ConsoleCall, now};
use crate::console::alerts::{AlertEvent, send_alert};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::{
    AlertRecipientView, AlertTestView, AlertView, AlertWithSecret, url_host,
};
use crate::console::webhook::new_webhook_secret;
use crate::store::{AlertFilter, AlertSubject, AlertTarget, NewAlert, StoredAlert};

/// How many alerts one key or account may have.
const MAX_ALERTS: usize = 10;
/// How many thresholds an alert may have.
const MAX_PERCENTS: usize = 5;
const DEFAULT_PERCENTS: [u8; 3] = [50, 80, 100];

/// Whose alerts are asked for. Without either: those of all accounts that one belongs to, and of their keys.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(utoipa::IntoParams))]
#[serde(default)]
#[cfg_attr(test, into_params(parameter_in = Query))]
pub struct AlertsInput {
    /// The id of a key.
    pub key: String,
    /// The name of an account: the alerts of its cap.
    pub account: String,
}

/// Where an alert goes: one of the three.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct AlertTargetInput {
    /// The username of a person of the account, who gets mail at the proven address.
    pub person: Option<String>,
    /// Any address; for administrators.
    pub email: Option<String>,
    /// The URL of a webhook: https, on the public network.
    pub webhook: Option<String>,
}

/// Some alerts, the oldest first.
pub async fn list_alerts(
    call: &ConsoleCall,
    input: &AlertsInput,
) -> Result<Vec<AlertView>, Refusal> {
    let store = &call.console.store;
    let found = match (input.key.as_str(), input.account.as_str()) {
        ("", "") => {
            let person = &call.signed_in()?.person.id;
            store.alerts(AlertFilter::Member(person)).await?
        }
        (key, "") => {
            keys::readable(call, key).await?;
            store.alerts(AlertFilter::Key(key)).await?
        }
        ("", account) => {
            call.check_may_read(account).await?;
            let account = accounts::find(call, account).await?;
            store.alerts(AlertFilter::Account(&account.id)).await?
        }
        _ => return Err(InputProblem::AlertSubject.into()),
    };
    let mut views = Vec::with_capacity(found.len());
    for alert in found {
        let may_change = check_may_change(call, &alert).await.is_ok();
        views.push(AlertView::new(alert, may_change));
    }
    Ok(views)
}

/// Who of an account can be told by mail, for who may make alerts.
pub async fn list_recipients(
    call: &ConsoleCall,
    account: &str,
) -> Result<Vec<AlertRecipientView>, Refusal> {
    call.check_may_write(account).await?;
    let people = call.console.store.alert_recipients(account).await?;
    let own = match &call.actor {
        Actor::Person(signed_in) => signed_in.person.id.as_str(),
        Actor::Anonymous | Actor::CommandLine => "",
    };
    let views = people
        .into_iter()
        .map(|person| AlertRecipientView::new(person, own));
    Ok(views.collect())
}

/// Makes an alert of a key or of an account. The secret of a webhook is told once.
pub async fn create_alert(
    call: &ConsoleCall,
    of: &AlertsInput,
    percents: Option<&[u8]>,
    target: &AlertTargetInput,
) -> Result<AlertWithSecret, Refusal> {
    let (subject, name, account) = match (of.key.as_str(), of.account.as_str()) {
        (key, "") if !key.is_empty() => {
            let key = keys::writable(call, key).await?;
            (AlertSubject::Key(key.id), key.settings.name, key.account)
        }
        ("", name) if !name.is_empty() => {
            call.check_may_manage(name).await?;
            let account = accounts::find(call, name).await?;
            if !account.has_owner() {
                return Err(InputProblem::AccountWithoutOwner.into());
            }
            (
                AlertSubject::Account(account.id),
                account.name.clone(),
                account.name,
            )
        }
        _ => {
            call.check_known()?;
            return Err(InputProblem::AlertSubject.into());
        }
    };
    let target = check_target(call, &account, target).await?;
    let percents = check_percents(percents.unwrap_or(&DEFAULT_PERCENTS))?;
    let change = format!("{} to {}", in_words(&percents), target_in_words(&target));
    let alert = NewAlert {
        secret: secret_of(&target),
        subject,
        percents,
        target,
        language: call.texts.tag,
    };
    let entry = call.audit("alert.create", &name, change);
    let store = &call.console.store;
    let id = store.create_alert(&alert, MAX_ALERTS, &entry).await?;
    changed(call, &id, alert.secret).await
}

/// Changes the thresholds of an alert, or where it goes; what is absent stays.
pub async fn change_alert(
    call: &ConsoleCall,
    id: &str,
    percents: Option<&[u8]>,
    target: Option<&AlertTargetInput>,
) -> Result<AlertWithSecret, Refusal> {
    let alert = find(call, id).await?;
    check_may_change(call, &alert).await?;
    let percents = percents.map(check_percents).transpose()?;
    let target = match target {
        Some(target) => Some(check_target(call, &alert.account, target).await?),
        None => None,
    };
    let secret = target.as_ref().and_then(secret_of);
    let words = percents.iter().map(|percents| in_words(percents));
    let words = words.chain(
        target
            .iter()
            .map(|target| format!("to {}", target_in_words(target))),
    );
    let change = words.collect::<Vec<String>>().join(" ");
    let entry = call.audit("alert.change", name_of(&alert), change);
    let target = target.as_ref().map(|target| (target, secret.as_deref()));
    let store = &call.console.store;
    store
        .change_alert(id, percents.as_deref(), target, &entry)
        .await?;
    changed(call, id, secret).await
}

/// Deletes an alert. Who gets it by mail may do so too.
pub async fn delete_alert(call: &ConsoleCall, id: &str) -> Result<(), Refusal> {
    let alert = find(call, id).await?;
    let is_own = match (&call.actor, &alert.target) {
        (Actor::Person(signed_in), AlertTarget::Person(person)) => signed_in.person.id == *person,
        _ => false,
    };
    if !is_own {
        check_may_change(call, &alert).await?;
    }
    let change = format!(
        "{} to {}",
        in_words(&alert.percents),
        target_in_words(&alert.target)
    );
    let entry = call.audit("alert.delete", name_of(&alert), change);
    Ok(call.console.store.delete_alert(id, &entry).await?)
}

/// Sends a test message once, and tells what became of it.
pub async fn test_alert(call: &ConsoleCall, id: &str) -> Result<AlertTestView, Refusal> {
    let alert = find(call, id).await?;
    check_may_change(call, &alert).await?;
    let by = match &call.actor {
        Actor::Person(signed_in) => signed_in.person.id.as_str(),
        Actor::Anonymous | Actor::CommandLine => "",
    };
    let taken = call.console.alert_tests.take(by, Instant::now());
    taken.map_err(Refusal::TooManyAttempts)?;
    let entry = call.audit(
        "alert.test",
        name_of(&alert),
        target_in_words(&alert.target),
    );
    // What is not in the audit log does not happen.
    call.console.store.append_audit(&entry).await?;
    let event = AlertEvent::test(&call.console, &alert);
    let sent = send_alert(&call.console, &alert, &event, &event.to_json()).await;
    let view = AlertTestView::new(sent.err());
    let outcome = view.reason.as_deref().unwrap_or("sent");
    let store = &call.console.store;
    store.note_alert_test(id, now(), outcome).await?;
    Ok(view)
}

/// The alert as it is now, with a secret that is told once; it is looked at right away.
async fn changed(
    call: &ConsoleCall,
    id: &str,
    secret: Option<String>,
) -> Result<AlertWithSecret, Refusal> {
    call.console.alerts_changed.notify_one();
    let alert = stored(call, id).await?;
    Ok(AlertWithSecret {
        alert: AlertView::new(alert, true),
        secret,
    })
}

/// An alert that the actor may see; to others it does not exist.
async fn find(call: &ConsoleCall, id: &str) -> Result<StoredAlert, Refusal> {
    call.check_known()?;
    let alert = stored(call, id).await?;
    call.check_may_read(&alert.account).await?;
    Ok(alert)
}

async fn stored(call: &ConsoleCall, id: &str) -> Result<StoredAlert, Refusal> {
    let found = call.console.store.alerts(AlertFilter::One(id)).await?;
    found.into_iter().next().ok_or(Refusal::NotFound)
}

/// Who may change a key changes its alerts, and who owns an account those of its cap.
async fn check_may_change(call: &ConsoleCall, alert: &StoredAlert) -> Result<(), Refusal> {
    match alert.subject {
        AlertSubject::Key(_) => call.check_may_write(&alert.account).await,
        AlertSubject::Account(_) => call.check_may_manage(&alert.account).await,
    }
}

/// Where an alert of an account may go: nobody has mail sent to strangers.
async fn check_target(
    call: &ConsoleCall,
    account: &str,
    target: &AlertTargetInput,
) -> Result<AlertTarget, Refusal> {
    let AlertTargetInput {
        person,
        email,
        webhook,
    } = target;
    match (person, email, webhook) {
        (Some(handle), None, None) => {
            call.console.mailer()?;
            let people = call.console.store.alert_recipients(account).await?;
            let person = people.into_iter().find(|person| person.handle == *handle);
            let person = person.ok_or(InputProblem::AlertPerson)?;
            Ok(AlertTarget::Person(person.person))
        }
        (None, Some(email), None) => {
            call.check_admin()?;
            call.console.mailer()?;
            let email = input::email(email)?.ok_or(InputProblem::Email)?;
            Ok(AlertTarget::Email(email))
        }
        (None, None, Some(url)) => match call.console.webhooks.may_be_asked(url.trim()) {
            true => Ok(AlertTarget::Webhook(url.trim().to_owned())),
            false => Err(InputProblem::Webhook.into()),
        },
        _ => Err(InputProblem::AlertTarget.into()),
    }
}

fn check_percents(percents: &[u8]) -> Result<Vec<u8>, Refusal> {
    let mut percents = percents.to_vec();
    percents.sort_unstable();
    percents.dedup();
    let fits = (1..=MAX_PERCENTS).contains(&percents.len());
    match fits && percents.iter().all(|percent| (1..=100).contains(percent)) {
        true => Ok(percents),
        false => Err(InputProblem::Percents(MAX_PERCENTS).into()),
    }
}

fn secret_of(target: &AlertTarget) -> Option<String> {
    matches!(target, AlertTarget::Webhook(_)).then(new_webhook_secret)
}

/// What the alert is about, in the audit log.
fn name_of(alert: &StoredAlert) -> &str {
    alert.key.as_deref().unwrap_or(&alert.account)
}

fn in_words(percents: &[u8]) -> String {
    let percents = percents.iter().map(|percent| format!("{percent} %"));
    percents.collect::<Vec<String>>().join(", ")
}

/// A target in the audit log: the path of a webhook may be a secret.
fn target_in_words(target: &AlertTarget) -> String {
    match target {
        AlertTarget::Person(_) => "a person of the account".to_owned(),
        AlertTarget::Email(email) => email.clone(),
        AlertTarget::Webhook(url) => format!("the webhook of {}", url_host(url)),
    }
}
