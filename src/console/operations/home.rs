//! What a person sees first.

use globset::{Glob, GlobSet, GlobSetBuilder};
use jiff::Timestamp;
use serde::Deserialize;

use super::catalog::named_models;
use super::usage::{UsageInput, get_usage};
use super::{accounts, keys, snippets};
use crate::config::model_glob;
use crate::console::actor::ConsoleCall;
use crate::console::refusal::Refusal;
use crate::console::state::Console;
use crate::console::views::{
    AccountSpendingView, ErrorCountView, HomeView, KeyView, Moment, TodayView,
};
use crate::formats::Operation;
use crate::model::ApiErrorKind;

/// How many models are offered for the snippets.
const MAX_MODELS: usize = 500;

/// What the snippets are for. What is empty is absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(utoipa::IntoParams))]
#[serde(default)]
#[cfg_attr(test, into_params(parameter_in = Query))]
pub struct HomeInput {
    /// The model of the snippets. Absent, or none of one's own: the first one.
    pub model: String,
}

/// What is left of one's caps, how today went, and how to set up a client.
pub async fn get_home(call: &ConsoleCall, input: &HomeInput) -> Result<HomeView, Refusal> {
    let account = call.signed_in()?.person.handle.clone();
    let mut keys = keys::list_keys(call, &account).await?;
    keys.sort_by_key(|key| std::cmp::Reverse((!key.unlimited_quota, key.percent())));
    let models = own_models(&call.console, &keys);
    let wanted = input.model.trim();
    let model = models.iter().find(|model| *model == wanted);
    let model = model.or(models.first()).cloned();
    let gateway_url = gateway_url(&call.console);
    let snippets = model
        .as_deref()
        .map(|model| snippets::snippets(&gateway_url, model));
    Ok(HomeView {
        spending: accounts::get_account(call, &account).await?,
        teams: own_teams(call).await?,
        today: today(call, &account, &keys).await?,
        account,
        keys,
        gateway_url,
        models,
        snippets: snippets.unwrap_or_default(),
        model,
    })
}

/// What is left of the caps of one's teams.
async fn own_teams(call: &ConsoleCall) -> Result<Vec<AccountSpendingView>, Refusal> {
    let person = &call.signed_in()?.person.id;
    let mut teams = Vec::new();
    for account in call.console.store.accounts(Some(person)).await? {
        if account.is_team() {
            teams.push(accounts::view(call, account).await?);
        }
    }
    Ok(teams)
}

async fn today(call: &ConsoleCall, account: &str, keys: &[KeyView]) -> Result<TodayView, Refusal> {
    let now = Timestamp::now();
    let day = Moment(now.as_millisecond()).day();
    let input = UsageInput {
        from: day.clone(),
        until: day,
        account: account.to_owned(),
        ..UsageInput::default()
    };
    let total = get_usage(call, &input).await?.total;
    let mut counts: Vec<(ApiErrorKind, u64)> = Vec::new();
    if let Some(runtime) = &call.console.runtime {
        let errors = &runtime.state.key_errors;
        for (kind, count) in keys.iter().flat_map(|key| errors.of(&key.id, now)) {
            match counts.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, sum)) => *sum += count,
                None => counts.push((kind, count)),
            }
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let errors = counts.into_iter().map(|(kind, count)| ErrorCountView {
        kind: kind.name(),
        count,
    });
    Ok(TodayView {
        requests: total.requests,
        cost: total.cost,
        errors: errors.collect(),
    })
}

/// The models for conversations that one of these keys may use; without a key all of them.
fn own_models(console: &Console, keys: &[KeyView]) -> Vec<String> {
    let Some(runtime) = &console.runtime else {
        return Vec::new();
    };
    let allowed: Option<Vec<&String>> = keys
        .iter()
        .map(|key| key.models.as_ref())
        .collect::<Option<Vec<_>>>()
        .filter(|_| !keys.is_empty())
        .map(|globs| globs.into_iter().flatten().collect());
    let allowed = allowed.map(|globs| glob_set(&globs));
    let models = named_models(&runtime.snapshot());
    let own = models.into_iter().filter(|(name, model)| {
        let is_allowed = allowed.as_ref().is_none_or(|set| set.is_match(name));
        is_allowed && model.settings.serves(Operation::Generate)
    });
    own.map(|(name, _)| name).take(MAX_MODELS).collect()
}

fn glob_set(globs: &[&String]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    let globs = globs.iter().filter(|glob| model_glob(glob).is_ok());
    for glob in globs.filter_map(|glob| Glob::new(glob).ok()) {
        set.add(glob);
    }
    set.build().unwrap_or_else(|_| GlobSet::empty())
}

/// Where clients reach the gateway: as the config says, or by the first of its listeners. One on all addresses has the host of the
/// console.
fn gateway_url(console: &Console) -> String {
    if let Some(url) = &console.settings.gateway_url {
        return url.clone();
    }
    let runtime = console.runtime.as_ref();
    let snapshot = runtime.map(|runtime| runtime.snapshot());
    let listen = snapshot.as_ref().and_then(|it| it.server.listen.first());
    let Some(listen) = listen else {
        return console.settings.public_url.clone();
    };
    let scheme = if listen.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let public = url::Url::parse(&console.settings.public_url).ok();
    let public = public.as_ref().and_then(|url| url.host_str());
    match public.filter(|_| listen.addr.ip().is_unspecified()) {
        Some(host) => format!("{scheme}://{host}:{}", listen.addr.port()),
        None => format!("{scheme}://{}", listen.addr),
    }
}
