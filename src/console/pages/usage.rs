//! Usage: charts with their tables, and the same as CSV.

use askama::Template;
use axum::extract::Query;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use url::form_urlencoded;

use super::charts::{DayChart, UsageMeasure};
use super::csv;
use super::visit::{Page, Visit, render};
use crate::console::operations::keys;
use crate::console::operations::usage::{self, UsageInput};
use crate::console::refusal::Refusal;
use crate::console::texts::fill;
use crate::console::views::{AccountView, NamedUsage, UsageSumView, UsageView};
use crate::store::UsageSum;

pub const SECTION: &str = "usage";

/// The ranges that a click chooses, in days.
const RANGES: [i32; 3] = [7, 30, 90];

#[derive(Template)]
#[template(path = "usage.html")]
struct UsagePage {
    page: Page,
    input: UsageInput,
    accounts: Vec<AccountView>,
    keys: Vec<String>,
    usage: UsageView,
    measure: UsageMeasure,
    chart: DayChart,
}

/// A path with those fields that are not empty.
pub fn link(path: &str, fields: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        query.append_pair(name, value);
    }
    match query.finish() {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

impl UsagePage {
    fn link(&self, path: &str, from: &str, more: (&str, &str)) -> String {
        let input = &self.input;
        let until = if from.is_empty() { "" } else { &input.until };
        link(
            path,
            &[
                ("from", from),
                ("until", until),
                ("account", &input.account),
                ("key", &input.key),
                ("model", &input.model),
                more,
            ],
        )
    }

    fn measures(&self) -> Vec<(&'static str, String, bool)> {
        let links = UsageMeasure::ALL.into_iter().map(|measure| {
            let link = self.link("/usage", &self.input.from, ("measure", measure.word()));
            let label = measure.label(&self.page.texts.usage);
            (label, link, measure == self.measure)
        });
        links.collect()
    }

    /// The ranges, each with its link, and whether it is the one that is shown.
    fn ranges(&self) -> Vec<(String, String, bool)> {
        let ranges = RANGES.into_iter().map(|days| {
            let until = self.usage.days.last().map(|day| day.name.clone());
            let is_shown = self.usage.days.len() == days as usize && is_today(until.as_deref());
            let from = first_day(days);
            let fields = [
                ("from", from.as_str()),
                ("account", self.input.account.as_str()),
                ("key", self.input.key.as_str()),
                ("model", self.input.model.as_str()),
                ("measure", self.measure.word()),
            ];
            let label = fill(self.page.texts.usage.last_days, days);
            (label, link("/usage", &fields), is_shown)
        });
        ranges.collect()
    }

    fn csv(&self, by: &str) -> String {
        self.link("/usage.csv", &self.input.from, ("by", by))
    }

    fn requests(&self) -> String {
        self.link("/requests", &self.input.from, ("", ""))
    }

    /// The requests of one model, or of one key.
    fn requests_of(&self, field: &str, name: &str) -> String {
        let input = &self.input;
        let mut fields = vec![
            ("from", input.from.as_str()),
            ("until", input.until.as_str()),
            ("account", input.account.as_str()),
            ("key", input.key.as_str()),
            ("model", input.model.as_str()),
        ];
        fields.retain(|(known, _)| *known != field);
        fields.push((field, name));
        link("/requests", &fields)
    }

    fn share(&self, sum: &UsageSumView, all: &[NamedUsage]) -> String {
        self.measure.share(sum, all)
    }

    /// The two groups beside the days, with the word of their field.
    fn groups(&self) -> [(&'static str, &'static str, &'static str, &[NamedUsage]); 2] {
        let texts = &self.page.texts.usage;
        [
            ("model", texts.by_model, texts.model, &self.usage.models),
            ("key", texts.by_key, texts.key, &self.usage.keys),
        ]
    }

    fn chart_hint(&self) -> String {
        let texts = &self.page.texts.usage;
        fill(texts.chart_hint, self.measure.label(texts))
    }

    fn estimated_percent(&self) -> String {
        let total = &self.usage.total;
        match total.requests {
            0 => "0 %".to_owned(),
            requests => format!("{:.1} %", total.estimated as f64 / requests as f64 * 100.0),
        }
    }
}

fn today() -> jiff::civil::Date {
    let now = jiff::Timestamp::now();
    jiff::tz::TimeZone::UTC.to_datetime(now).date()
}

fn is_today(day: Option<&str>) -> bool {
    day == Some(&today().to_string())
}

/// The first of so many days, of which today is the last.
fn first_day(days: i32) -> String {
    use jiff::ToSpan as _;
    today().saturating_sub((days - 1).days()).to_string()
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ShownMeasure {
    measure: String,
}

pub async fn show(
    visit: Visit,
    Query(input): Query<UsageInput>,
    Query(shown): Query<ShownMeasure>,
) -> Response {
    let found = async {
        let usage = usage::get_usage(&visit.call, &input).await?;
        let keys = usage::list_key_names(&visit.call, &input).await?;
        let accounts = keys::list_accounts(&visit.call).await?;
        Ok::<_, Refusal>((usage, keys, accounts))
    };
    let (usage, keys, accounts) = match found.await {
        Ok(found) => found,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let measure = UsageMeasure::from_word(&shown.measure);
    let template = UsagePage {
        chart: DayChart::new(&usage.days, measure, visit.page.texts),
        page: visit.page.in_section(SECTION),
        input: UsageInput {
            from: usage.from.clone(),
            until: usage.until.clone(),
            ..input
        },
        accounts,
        keys,
        measure,
        usage,
    };
    render(&template, StatusCode::OK)
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct CsvGrouping {
    by: String,
}

pub async fn download(
    visit: Visit,
    Query(input): Query<UsageInput>,
    Query(grouping): Query<CsvGrouping>,
) -> Response {
    let usage = match usage::get_usage(&visit.call, &input).await {
        Ok(usage) => usage,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let (by, lines) = match grouping.by.as_str() {
        "model" => ("model", &usage.models),
        "key" => ("key", &usage.keys),
        _ => ("day", &usage.days),
    };
    let mut text = csv::line(std::iter::once(by).chain(UsageSum::COLUMNS));
    for line in lines {
        text += &csv_line(line);
    }
    let name = format!(
        "attachment; filename=\"usage-by-{by}-{}-{}.csv\"",
        usage.from, usage.until
    );
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CONTENT_DISPOSITION, &name),
    ];
    (headers, text).into_response()
}

fn csv_line(usage: &NamedUsage) -> String {
    let sum = &usage.sum;
    let counts = [
        sum.requests,
        sum.estimated,
        sum.input,
        sum.cached,
        sum.cache_written,
        sum.output,
        sum.thinking,
        sum.images,
    ];
    let counts = counts.map(|count| count.to_string());
    let cost = sum.cost.to_string();
    let cells = std::iter::once(usage.name.as_str());
    let cells = cells.chain(counts.iter().map(String::as_str));
    csv::line(cells.chain([cost.as_str()]))
}
