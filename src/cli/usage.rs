//! `omniglot usage`: what was used and what it cost, by key, model or day.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use comfy_table::CellAlignment;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::config_file::ConfigFile;
use super::output::print;
use super::store_session::{StoreSession, plain_table};
use super::time_argument::{Direction, parse_time};
use crate::store::{UsageGrouping, UsageSum};

#[derive(Debug, Args)]
pub(super) struct UsageOptions {
    /// What a line sums up
    #[arg(long, value_enum, default_value = "key")]
    by: GroupBy,
    /// From this day (UTC) on: 7d ago, or a DATE [default: all usage]
    #[arg(long, value_name = "WHEN", value_parser = parse_since)]
    since: Option<Timestamp>,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print a JSON array with one object per line
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum GroupBy {
    Key,
    Model,
    Day,
}

fn parse_since(text: &str) -> Result<Timestamp, String> {
    parse_time(text, Direction::Past, Timestamp::now())
}

pub(super) fn run(options: &UsageOptions, file: ConfigFile) -> Result<ExitCode> {
    let (by, name) = match options.by {
        GroupBy::Key => (UsageGrouping::Key, "key"),
        GroupBy::Model => (UsageGrouping::Model, "model"),
        GroupBy::Day => (UsageGrouping::Day, "day"),
    };
    let since = options
        .since
        .map(|since| TimeZone::UTC.to_datetime(since).date());
    let session = match StoreSession::open(file)? {
        Ok(session) => session,
        Err(code) => return Ok(code),
    };
    let sums = session.run(async |store| store.usage_sums(by, since).await)?;
    let text = if options.json {
        json(name, &sums)?
    } else if options.csv {
        csv(name, &sums)
    } else {
        table(name, &sums)
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn values(sum: &UsageSum) -> [String; 9] {
    [
        sum.requests.to_string(),
        sum.estimated.to_string(),
        sum.input.to_string(),
        sum.cached.to_string(),
        sum.cache_written.to_string(),
        sum.output.to_string(),
        sum.thinking.to_string(),
        sum.images.to_string(),
        sum.cost.to_string(),
    ]
}

fn table(name: &str, sums: &[(String, UsageSum)]) -> String {
    let columns: Vec<&str> = std::iter::once(name).chain(UsageSum::COLUMNS).collect();
    let mut table = plain_table(&columns);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut all = UsageSum::default();
    for (of, sum) in sums {
        all.add(sum);
        table.add_row(std::iter::once(of.clone()).chain(values(sum)));
    }
    table.add_row(std::iter::once("all".to_owned()).chain(values(&all)));
    table.trim_fmt()
}

fn csv(name: &str, sums: &[(String, UsageSum)]) -> String {
    let head = std::iter::once(name)
        .chain(UsageSum::COLUMNS)
        .collect::<Vec<_>>();
    let mut lines = vec![head.join(",")];
    for (of, sum) in sums {
        let quoted = if of.contains(['"', ',']) {
            format!("\"{}\"", of.replace('"', "\"\""))
        } else {
            of.clone()
        };
        let line: Vec<String> = std::iter::once(quoted).chain(values(sum)).collect();
        lines.push(line.join(","));
    }
    lines.join("\n")
}

/// One object per line; the cost is a number with all its digits.
fn json(name: &str, sums: &[(String, UsageSum)]) -> Result<String> {
    let lines = sums.iter().map(|(of, sum)| {
        let of = serde_json::to_string(of).context("the name cannot be written")?;
        let numbers = UsageSum::COLUMNS.iter().zip(values(sum));
        let numbers = numbers.map(|(column, number)| format!(",\"{column}\":{number}"));
        Ok(format!(
            "{{\"{name}\":{of}{}}}",
            numbers.collect::<String>()
        ))
    });
    let lines: Vec<String> = lines.collect::<Result<_>>()?;
    Ok(format!("[{}]", lines.join(",\n ")))
}
