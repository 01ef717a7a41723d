//! Keys: listed, created, changed, rotated and revoked, within what their maker may give.

use std::collections::HashMap;

use jiff::Timestamp;

use super::input;
use crate::config::{Reset, model_glob};
use crate::console::actor::{ConsoleCall, now};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::{AccountView, KeyUse, KeyView, KeyWithSecret};
use crate::model::{Money, Spending};
use crate::store::{KeyChange, StoredKey};

/// The longest overlap of two secrets, in milliseconds.
const MAX_OVERLAP: i64 = 30 * DAY;
const DAY: i64 = 24 * 3600 * 1000;

/// From so many keys on, the spending of all is loaded with one query.
const BULK_LOAD_FROM: usize = 30;

const MAX_MODELS: usize = 100;

/// The accounts that the actor may see.
pub async fn list_accounts(call: &ConsoleCall) -> Result<Vec<AccountView>, Refusal> {
    let accounts = match call.is_admin() {
        true => call.console.store.accounts(None).await?,
        false => {
            let person = &call.signed_in()?.person.id;
            call.console.store.accounts(Some(person)).await?
        }
    };
    let roles = call.own_roles().await?;
    let views = accounts.into_iter().map(|account| {
        let role = roles.get(&account.id).copied();
        AccountView::new(account, role)
    });
    Ok(views.collect())
}

/// The keys of an account.
pub async fn list_keys(call: &ConsoleCall, account: &str) -> Result<Vec<KeyView>, Refusal> {
    call.check_may_read(account).await?;
    let keys = call.console.store.keys_of_account(account).await?;
    let mut spent = match keys.len() > BULK_LOAD_FROM {
        true => spending(call, None).await?,
        false => HashMap::new(),
    };
    let is_loaded = keys.len() > BULK_LOAD_FROM;
    let mut views = Vec::with_capacity(keys.len());
    for key in keys {
        let used = match is_loaded {
            true => KeyUse {
                spending: spent.remove(&key.id).unwrap_or_default(),
                held: held(call, &key.id),
                last_used: None,
            },
            false => usage(call, &key.id).await?,
        };
        views.push(KeyView::new(key, used, now()));
    }
    Ok(views)
}

pub async fn get_key(call: &ConsoleCall, id: &str) -> Result<KeyView, Refusal> {
    let key = readable(call, id).await?;
    view(call, key).await
}

/// Creates a key of an account. Without a cap in the change it gets the default one; `Some(None)` is Unlimited Quota.
pub async fn create_key(
    call: &ConsoleCall,
    account: &str,
    label: &str,
    mut change: KeyChange,
) -> Result<KeyWithSecret, Refusal> {
    call.check_may_write(account).await?;
    let name = format!("{account}/{}", input::label(label)?);
    let allowed = &call.console.settings.member_keys;
    let cap = change.spending_cap;
    change.spending_cap = Some(cap.unwrap_or(Some(allowed.cap_default.money)));
    if change.expires.is_none() && !call.is_admin() {
        let longest = allowed.expires_max.map(milliseconds);
        change.expires = longest.map(|longest| Some(now() + longest));
    }
    check(call, &change)?;
    change.account = Some(account.to_owned());
    let max = (!call.is_admin()).then_some(allowed.max);
    let entry = call.audit("key.create", &name, change.describe());
    let store = &call.console.store;
    let (key, secret) = store.create_owned_key(&name, &change, max, &entry).await?;
    Ok(KeyWithSecret {
        key: KeyView::new(key, KeyUse::default(), now()),
        secret,
    })
}

/// Changes a key; what the change does not name stays.
pub async fn change_key(
    call: &ConsoleCall,
    id: &str,
    change: KeyChange,
) -> Result<KeyView, Refusal> {
    let key = writable(call, id).await?;
    let change = without_repetition(&key, change);
    check(call, &change)?;
    check_kept_cap(call, &key, &change)?;
    let entry = call.audit("key.change", &key.settings.name, change.describe());
    let store = &call.console.store;
    let key = store.change_owned_key(id, &change, &entry).await?;
    view(call, key).await
}

/// Gives a key a new secret. The present one works for `overlap` more milliseconds.
pub async fn rotate_key(
    call: &ConsoleCall,
    id: &str,
    overlap: i64,
) -> Result<KeyWithSecret, Refusal> {
    let key = writable(call, id).await?;
    if !(0..=MAX_OVERLAP).contains(&overlap) {
        return Err(InputProblem::Overlap.into());
    }
    let change = format!("overlap {} s", overlap / 1000);
    let entry = call.audit("key.rotate", &key.settings.name, change);
    let rotated = call.console.store.rotate_key(id, now() + overlap, &entry);
    let (key, secret) = rotated.await?;
    Ok(KeyWithSecret {
        key: view(call, key).await?,
        secret,
    })
}

/// Revokes a key; this cannot be undone.
pub async fn revoke_key(call: &ConsoleCall, id: &str) -> Result<(), Refusal> {
    let key = writable(call, id).await?;
    let entry = call.audit("key.revoke", &key.settings.name, String::new());
    Ok(call.console.store.revoke_owned_key(id, &entry).await?)
}

/// A key that the actor may see; to everybody else it does not exist.
pub(super) async fn readable(call: &ConsoleCall, id: &str) -> Result<StoredKey, Refusal> {
    call.check_known()?;
    let key = call.console.store.key_by_id(id).await?;
    let key = key.filter(|key| key.revoked.is_none());
    let key = key.ok_or(Refusal::NotFound)?;
    call.check_may_read(&key.account).await?;
    Ok(key)
}

pub(super) async fn writable(call: &ConsoleCall, id: &str) -> Result<StoredKey, Refusal> {
    let key = readable(call, id).await?;
    call.check_may_write(&key.account).await?;
    Ok(key)
}

/// What a change really changes: what an administrator gave a key stays when a member changes something else.
fn without_repetition(key: &StoredKey, mut change: KeyChange) -> KeyChange {
    let settings = &key.settings;
    let cap = settings.spending_cap.as_ref().map(|cap| cap.money);
    change.spending_cap = change.spending_cap.filter(|new| *new != cap);
    change.models = change.models.filter(|new| *new != settings.models);
    let day = |moment: i64| moment.div_euclid(DAY);
    change.expires = change
        .expires
        .filter(|new| new.map(day) != key.expires.map(day));
    change
}

/// Refuses what cannot be, and what the actor may not give.
fn check(call: &ConsoleCall, change: &KeyChange) -> Result<(), Refusal> {
    if let Some(Some(models)) = &change.models {
        let is_glob = |glob: &String| model_glob(glob).is_ok();
        if models.is_empty() || models.len() > MAX_MODELS || !models.iter().all(is_glob) {
            return Err(InputProblem::Models.into());
        }
    }
    for (limit, field) in [
        (change.requests_per_minute, "requests_per_minute"),
        (change.tokens_per_minute, "tokens_per_minute"),
        (change.concurrency, "concurrency"),
    ] {
        if limit == Some(Some(0)) {
            return Err(InputProblem::Count(field).into());
        }
    }
    if let Some(Some(expires)) = change.expires
        && expires <= now()
    {
        return Err(InputProblem::ExpiryPast.into());
    }
    if change.spending_cap == Some(None)
        && matches!(change.reset, Some(Reset::Daily | Reset::Monthly))
    {
        return Err(InputProblem::ResetWithoutCap.into());
    }
    if !call.is_admin() {
        check_member(call, change)?;
    }
    match change.spending_cap {
        Some(None) => call.check_stepped_up(),
        Some(Some(_)) | None => Ok(()),
    }
}

/// Refuses a member a shorter period for a cap that only an administrator may give: each day anew, it would be more.
fn check_kept_cap(call: &ConsoleCall, key: &StoredKey, change: &KeyChange) -> Result<(), Refusal> {
    let most = &call.console.settings.member_keys.cap_max;
    let kept = key.settings.spending_cap.as_ref();
    let is_above = kept.is_some_and(|kept| kept.money > most.money);
    let is_shorter = matches!(
        (key.settings.reset, change.reset),
        (Reset::Never, Some(Reset::Daily | Reset::Monthly)) | (Reset::Monthly, Some(Reset::Daily))
    );
    match is_above && is_shorter && change.spending_cap.is_none() && !call.is_admin() {
        true => Err(InputProblem::CapAboveMax(most.written.clone()).into()),
        false => Ok(()),
    }
}

/// Refuses what only an administrator may give.
fn check_member(call: &ConsoleCall, change: &KeyChange) -> Result<(), Refusal> {
    let allowed = &call.console.settings.member_keys;
    match change.spending_cap {
        Some(None) if !allowed.unlimited => return Err(InputProblem::CapNeeded.into()),
        Some(Some(cap)) if cap > allowed.cap_max.money => {
            let most = allowed.cap_max.written.clone();
            return Err(InputProblem::CapAboveMax(most).into());
        }
        _ => {}
    }
    if let (Some(expires), Some(longest)) = (change.expires, allowed.expires_max) {
        let latest = now() + milliseconds(longest);
        // The end of the last day, however late it is now.
        if expires.is_none_or(|expires| expires > latest + DAY) {
            let days = longest.as_secs() / (24 * 3600);
            return Err(InputProblem::ExpiryAboveMax(days).into());
        }
    }
    Ok(())
}

fn milliseconds(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4)
}

async fn view(call: &ConsoleCall, key: StoredKey) -> Result<KeyView, Refusal> {
    let used = usage(call, &key.id).await?;
    Ok(KeyView::new(key, used, now()))
}

pub(super) async fn usage(call: &ConsoleCall, id: &str) -> Result<KeyUse, Refusal> {
    let mut spent = spending(call, Some(id)).await?;
    Ok(KeyUse {
        spending: spent.remove(id).unwrap_or_default(),
        held: held(call, id),
        last_used: call.console.store.last_used(id).await?,
    })
}

async fn spending(
    call: &ConsoleCall,
    id: Option<&str>,
) -> Result<HashMap<String, Spending>, Refusal> {
    // The end of time as the start: nothing is subtracted.
    let spent = call
        .console
        .store
        .spending(id, Timestamp::MAX, Timestamp::now());
    Ok(spent.await?)
}

/// What this gateway holds for requests in flight, of a key or an account.
pub(super) fn held(call: &ConsoleCall, id: &str) -> Money {
    let runtime = call.console.runtime.as_ref();
    let account = runtime.and_then(|runtime| runtime.state.find_account(id));
    account.map_or(Money::ZERO, |account| account.reserved())
}
