//! What was used and what it cost: sums, requests, and the bill of one request.

use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _, Unit};
use serde::Deserialize;
use tokio::time::timeout;

use crate::console::actor::ConsoleCall;
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::{NamedUsage, RequestLineView, RequestView, RequestsView, UsageView};
use crate::runtime::config_key_id;
use crate::store::{RequestCursor, RequestFilter, StoreError, UsageFilter, UsageSum};

/// How many days are shown where none are given, and at most.
const DEFAULT_DAYS: i64 = 30;
const MAX_DAYS: i64 = 366;

/// Requests on a page.
const PAGE: usize = 50;

/// As long as a query may take.
const QUERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Whose usage is asked for, and of when. What is empty is absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(utoipa::IntoParams))]
#[serde(default)]
#[cfg_attr(test, into_params(parameter_in = Query))]
pub struct UsageInput {
    /// The first day (UTC), such as 2026-11-01. Absent: 29 days before the last one.
    pub from: String,
    /// The last day. Absent: today.
    pub until: String,
    /// Absent: all accounts for administrators, and one's own for everybody else.
    pub account: String,
    /// The name of a key.
    pub key: String,
    /// The id of a model.
    pub model: String,
}

/// Which requests are asked for.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(utoipa::IntoParams))]
#[serde(default)]
#[cfg_attr(test, into_params(parameter_in = Query))]
pub struct RequestsInput {
    /// The first day (UTC), such as 2026-11-01. Absent: 29 days before the last one.
    pub from: String,
    /// The last day. Absent: today.
    pub until: String,
    /// Absent: all accounts for administrators, and one's own for everybody else.
    pub account: String,
    /// The name of a key.
    pub key: String,
    /// The id of a model.
    pub model: String,
    /// Only those with a status of 400 and more.
    #[serde(deserialize_with = "switch")]
    pub failed: bool,
    /// Only those with an estimated usage.
    #[serde(deserialize_with = "switch")]
    pub estimated: bool,
    /// The `next` of the page before.
    pub after: String,
}

/// A checkbox of a form, or a boolean: anything but nothing and `false` is a yes.
fn switch<'de, D: serde::Deserializer<'de>>(input: D) -> Result<bool, D::Error> {
    let word = String::deserialize(input)?;
    Ok(!matches!(word.as_str(), "" | "false" | "0"))
}

impl RequestsInput {
    /// Whose usage it is, and of when.
    pub fn usage(&self) -> UsageInput {
        UsageInput {
            from: self.from.clone(),
            until: self.until.clone(),
            account: self.account.clone(),
            key: self.key.clone(),
            model: self.model.clone(),
        }
    }
}

fn given(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The days that are asked for.
fn days(input: &UsageInput) -> Result<(Date, Date), Refusal> {
    let day = |text: &str, field: &'static str| {
        let day = given(text).map(|text| text.parse::<Date>());
        day.transpose().map_err(|_| InputProblem::Day(field))
    };
    let today = TimeZone::UTC.to_datetime(Timestamp::now()).date();
    let until = day(&input.until, "until")?.unwrap_or(today);
    let first = until.saturating_sub((DEFAULT_DAYS - 1).days());
    let from = day(&input.from, "from")?.unwrap_or(first);
    let span = until.since((Unit::Day, from));
    let between = span.map_or(i64::MAX, |span| i64::from(span.get_days()));
    match (0..MAX_DAYS).contains(&between) {
        true => Ok((from, until)),
        false => Err(InputProblem::DayRange(MAX_DAYS as u32).into()),
    }
}

/// The account whose usage the actor may see; `None`: all of them.
async fn account(call: &ConsoleCall, input: &UsageInput) -> Result<Option<String>, Refusal> {
    let account = match (given(&input.account), call.is_admin()) {
        (None, true) => return Ok(None),
        (None, false) => call.signed_in()?.person.handle.clone(),
        (Some(account), _) => account,
    };
    call.check_may_read(&account).await?;
    Ok(Some(account))
}

async fn within<T>(query: impl Future<Output = Result<T, StoreError>>) -> Result<T, Refusal> {
    match timeout(QUERY_TIMEOUT, query).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Refusal::Unavailable),
    }
}

/// The usage of some days, added up by day, model and key.
pub async fn get_usage(call: &ConsoleCall, input: &UsageInput) -> Result<UsageView, Refusal> {
    call.check_known()?;
    let account = account(call, input).await?;
    let (from, until) = days(input)?;
    let filter = UsageFilter {
        from,
        until,
        account: account.clone(),
        key: given(&input.key),
        model: given(&input.model),
    };
    let report = within(call.console.store.usage_report(&filter)).await?;
    let days = from.series(1.day()).take_while(|day| *day <= until);
    let days = days.map(|day| {
        let name = day.to_string();
        let sum = report.days.get(&name).copied().unwrap_or_default();
        named((name, sum))
    });
    Ok(UsageView {
        account,
        from: from.to_string(),
        until: until.to_string(),
        total: report.total.into(),
        days: days.collect(),
        models: by_cost(report.models),
        keys: by_cost(report.keys),
    })
}

fn named((name, sum): (String, UsageSum)) -> NamedUsage {
    let sum = sum.into();
    NamedUsage { name, sum }
}

/// The most expensive first, then those with the most requests.
fn by_cost(sums: impl IntoIterator<Item = (String, UsageSum)>) -> Vec<NamedUsage> {
    let mut sums: Vec<(String, UsageSum)> = sums.into_iter().collect();
    sums.sort_by(|(one, left), (other, right)| {
        let order = (right.cost, right.requests).cmp(&(left.cost, left.requests));
        order.then_with(|| one.cmp(other))
    });
    sums.into_iter().map(named).collect()
}

/// The names of the keys whose usage the actor may see in an account, also of those that are revoked.
pub async fn list_key_names(
    call: &ConsoleCall,
    input: &UsageInput,
) -> Result<Vec<String>, Refusal> {
    call.check_known()?;
    let account = account(call, input).await?;
    let keys = within(call.console.store.key_names(account.as_deref(), None)).await?;
    let mut names: Vec<String> = keys.into_iter().map(|(_, name)| name).collect();
    if account.is_none() {
        names.extend(config_keys(call).into_iter().map(|(_, name)| name));
        names.sort();
    }
    names.dedup();
    Ok(names)
}

/// The id and the name of each key of the config.
fn config_keys(call: &ConsoleCall) -> Vec<(String, String)> {
    let snapshot = call
        .console
        .runtime
        .as_ref()
        .map(|runtime| runtime.snapshot());
    let keys = snapshot.iter().flat_map(|snapshot| &snapshot.config_keys);
    let keys = keys.map(|key| (config_key_id(&key.sha256).to_string(), key.name.clone()));
    keys.collect()
}

/// Some requests, the newest first.
pub async fn list_requests(
    call: &ConsoleCall,
    input: &RequestsInput,
) -> Result<RequestsView, Refusal> {
    call.check_known()?;
    let usage = input.usage();
    let account = account(call, &usage).await?;
    let (from, until) = days(&usage)?;
    let midnight = |day: Date| {
        let start = day.to_zoned(TimeZone::UTC);
        start.map_or(i64::MAX, |start| start.timestamp().as_millisecond())
    };
    let filter = RequestFilter {
        keys: key_ids(call, account.as_deref(), given(&input.key)).await?,
        model: given(&input.model),
        is_failed: input.failed,
        is_estimated: input.estimated,
        from: midnight(from),
        until: midnight(until.saturating_add(1.day())),
        after: given(&input.after).map(cursor).transpose()?,
    };
    let mut found = within(call.console.store.requests(&filter, PAGE + 1)).await?;
    let has_more = found.len() > PAGE;
    found.truncate(PAGE);
    let last = found.last().filter(|_| has_more);
    Ok(RequestsView {
        from: from.to_string(),
        until: until.to_string(),
        next: last.map(|last| format!("{}-{}", last.at, last.id)),
        requests: found.iter().map(RequestLineView::from).collect(),
    })
}

fn cursor(text: String) -> Result<RequestCursor, Refusal> {
    let parts = text.split_once('-');
    let parts = parts.and_then(|(ended, id)| Some((ended.parse().ok()?, id.to_owned())));
    let (ended, id) = parts.ok_or(InputProblem::Cursor)?;
    Ok(RequestCursor { ended, id })
}

/// The ids of the keys whose requests are asked for; `None`: all.
async fn key_ids(
    call: &ConsoleCall,
    account: Option<&str>,
    name: Option<String>,
) -> Result<Option<Vec<String>>, Refusal> {
    if account.is_none() && name.is_none() {
        return Ok(None);
    }
    let keys = within(call.console.store.key_names(account, name.as_deref())).await?;
    let mut ids: Vec<String> = keys.into_iter().map(|(id, _)| id).collect();
    if account.is_none() {
        let of_config = config_keys(call).into_iter();
        let of_config = of_config.filter(|(_, known)| Some(known) == name.as_ref());
        ids.extend(of_config.map(|(id, _)| id));
    }
    Ok(Some(ids))
}

/// One request with its bill. To who may not see its key it does not exist.
pub async fn get_request(call: &ConsoleCall, id: &str) -> Result<RequestView, Refusal> {
    call.check_known()?;
    let store = &call.console.store;
    let record = within(store.request(id)).await?.ok_or(Refusal::NotFound)?;
    if !call.is_admin() {
        let key = store.key_by_id(&record.key_id).await?;
        let key = key.ok_or(Refusal::NotFound)?;
        call.check_may_read(&key.account).await?;
    }
    Ok(RequestView::from(&record))
}
