//! Measures the queries of the console on a store with millions of usage records, in SQLite and PostgreSQL.

mod table;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};
use omniglot::config::{self, StoreConfig};
use omniglot::store::{RequestCursor, RequestFilter, Store, UsageFilter};
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Executor};
use tempfile::TempDir;

use table::{format_number, new_table};

/// No page may take longer.
const AIM: Duration = Duration::from_millis(200);
/// How often each query runs; the first of them finds nothing in memory that it read itself.
const TIMES: usize = 5;
/// The usage records are of so many days.
const DAYS: i64 = 90;
/// The rows of one INSERT.
const BATCH: u64 = 1_000_000;
/// As many as a page of the console shows, and one to know whether there are more.
const PAGE: usize = 51;

/// Measures the queries of the console on a store with generated usage records.
///
/// `cargo bench --bench receipts` measures SQLite in a temporary folder, and with --postgres also a database that it
/// fills: give it an empty one. 10 million rows take about 3 GB and some minutes. Without the --bench that
/// `cargo bench` passes, there are few rows.
#[derive(Parser)]
#[command(override_usage = "cargo bench --bench receipts -- [OPTIONS]")]
struct Options {
    /// Usage records in the store
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1000..=100_000_000))]
    rows: u64,
    /// An empty database: postgres://user@host/name
    #[arg(long)]
    postgres: Option<String>,
    #[arg(long, hide = true)]
    bench: bool,
}

/// The generated usage: 200 keys, of which one has a third of all requests, and five models that all are used by; few requests
/// failed or were estimated, and one model is hardly used.
struct Receipts {
    rows: u64,
    first_day: Date,
    /// The time of the first request, and the time between two, in milliseconds.
    start: i64,
    step: i64,
}

impl Receipts {
    fn new(rows: u64) -> Result<Receipts> {
        let first_day = Timestamp::now().to_zoned(TimeZone::UTC).date() - DAYS.days();
        let start = first_day.to_zoned(TimeZone::UTC)?.timestamp();
        Ok(Receipts {
            rows,
            first_day,
            start: start.as_millisecond(),
            step: (DAYS * 86_400_000 / i64::try_from(rows)?).max(1),
        })
    }

    /// Numbers from one to another, as a table `numbers (i)`.
    fn numbers(is_server: bool, from: u64, until: u64) -> String {
        match is_server {
            true => {
                format!("numbers AS (SELECT generate_series({from}, {until} - 1)::BIGINT AS i)")
            }
            false => format!(
                "RECURSIVE numbers (i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < {until})"
            ),
        }
    }

    fn insert(&self, is_server: bool, from: u64, until: u64) -> String {
        let numbers = Receipts::numbers(is_server, from, until);
        let (start, step) = (self.start, self.step);
        // In PostgreSQL, WITH stands behind INSERT as well.
        format!(
            "INSERT INTO usage (id, ended, key_id, key_name, model, upstream, format, stream, status, input, cached, \
             cache_written, output, thinking, audio_input, audio_output, image_output, images, estimated, cost, prices, \
             took_ms, first_ms, upstream_format) WITH {numbers} SELECT 'request-' || (1000000000 + i), {start} + i * {step}, \
             'key-' || {KEY}, 'team-' || {KEY}, CASE WHEN i % 1000000 = 7 THEN 'rare' ELSE 'model-' || (i / 200 % 5) END, \
             'openai', 'chat', 1, CASE WHEN i % 10000 = 3 THEN 502 ELSE 200 END, 900 + i % 1000, 100, 0, 300, 20, 0, 0, 0, 0, \
             CASE WHEN i % 10000 = 5 THEN 1 ELSE 0 END, '4125000', 'input=1.25 output=10', 1500, 300, 'chat' FROM numbers"
        )
    }

    fn insert_daily(&self, is_server: bool) -> String {
        let numbers = Receipts::numbers(is_server, 0, DAYS.unsigned_abs() * 1000);
        let day = match is_server {
            true => format!("(DATE '{}' + (i / 1000)::INT)::TEXT", self.first_day),
            false => format!("date('{}', '+' || (i / 1000) || ' days')", self.first_day),
        };
        format!(
            "INSERT INTO daily (day, key_name, model, requests, estimated, input, cached, cache_written, output, thinking, \
             images, cost) WITH {numbers} SELECT {day}, 'team-' || (i % 200), 'model-' || (i / 200 % 5), 111, 0, 99900, 11100, \
             0, 33300, 2220, 0, '457875000' FROM numbers"
        )
    }

    async fn fill(&self, url: &str) -> Result<()> {
        let is_server = url.starts_with("postgres");
        let mut connection = AnyConnection::connect(url).await?;
        let mut from = 0;
        while from < self.rows {
            let until = self.rows.min(from + BATCH);
            let insert = self.insert(is_server, from, until);
            connection.execute(AssertSqlSafe(insert)).await?;
            eprintln!("{until} rows");
            from = until;
        }
        let daily = self.insert_daily(is_server);
        connection.execute(AssertSqlSafe(daily)).await?;
        if is_server {
            connection.execute("ANALYZE").await?;
        }
        Ok(connection.close().await?)
    }

    /// All requests of the time.
    fn all(&self) -> RequestFilter {
        RequestFilter {
            keys: None,
            model: None,
            is_failed: false,
            is_estimated: false,
            from: self.start,
            until: self.start + (DAYS + 1) * 86_400_000,
            after: None,
        }
    }

    /// The filters of the list, each with a title.
    fn filters(&self) -> Vec<(&'static str, RequestFilter)> {
        let keys =
            |numbers: std::ops::Range<u64>| numbers.map(|key| format!("key-{key}")).collect();
        let model = |name: &str| Some(name.to_owned());
        let half = self.start + DAYS * 43_200_000;
        let after = |ended| {
            Some(RequestCursor {
                ended,
                id: String::new(),
            })
        };
        let all = || self.all();
        vec![
            ("the newest", all()),
            (
                "a page from the middle",
                RequestFilter {
                    after: after(half),
                    ..all()
                },
            ),
            (
                "of one key",
                RequestFilter {
                    keys: Some(keys(7..8)),
                    ..all()
                },
            ),
            (
                "of twenty keys",
                RequestFilter {
                    keys: Some(keys(0..20)),
                    ..all()
                },
            ),
            (
                "of one model",
                RequestFilter {
                    model: model("model-3"),
                    ..all()
                },
            ),
            (
                "of a rare model",
                RequestFilter {
                    model: model("rare"),
                    ..all()
                },
            ),
            (
                "of a model that nobody used",
                RequestFilter {
                    model: model("none"),
                    ..all()
                },
            ),
            (
                "failed",
                RequestFilter {
                    is_failed: true,
                    ..all()
                },
            ),
            (
                "estimated",
                RequestFilter {
                    is_estimated: true,
                    ..all()
                },
            ),
            (
                "of the busiest key, failed",
                RequestFilter {
                    keys: Some(keys(0..1)),
                    is_failed: true,
                    ..all()
                },
            ),
            (
                "of the busiest key, a rare model",
                RequestFilter {
                    keys: Some(keys(0..1)),
                    model: model("rare"),
                    ..all()
                },
            ),
        ]
    }

    /// The filters of the charts, each with a title.
    fn reports(&self) -> Vec<(&'static str, UsageFilter)> {
        let until = self.first_day + DAYS.days();
        let days = |days: i64| UsageFilter {
            from: until - days.days(),
            until,
            account: None,
            key: None,
            model: None,
        };
        vec![
            ("usage of 30 days", days(30)),
            ("usage of 90 days", days(90)),
            (
                "usage of one key, 90 days",
                UsageFilter {
                    key: Some("team-7".to_owned()),
                    ..days(90)
                },
            ),
            (
                "usage of one model, 90 days",
                UsageFilter {
                    model: Some("model-3".to_owned()),
                    ..days(90)
                },
            ),
        ]
    }
}

/// Which key a request is of.
const KEY: &str = "(CASE WHEN i % 10 < 3 THEN 0 ELSE i % 200 END)";

/// How long a query took, each time, and how many rows it found.
struct Timing {
    title: String,
    rows: usize,
    times: Vec<Duration>,
}

async fn measure<T>(
    title: &str,
    count: impl Fn(&T) -> usize,
    mut query: impl AsyncFnMut() -> Result<T>,
) -> Result<Timing> {
    let (mut rows, mut times) = (0, Vec::new());
    for _ in 0..TIMES {
        let begin = Instant::now();
        let found = query().await.with_context(|| title.to_owned())?;
        times.push(begin.elapsed());
        rows = count(&found);
    }
    Ok(Timing {
        title: title.to_owned(),
        rows,
        times,
    })
}

async fn measure_store(store: &Store, receipts: &Receipts) -> Result<Vec<Timing>> {
    let mut timings = Vec::new();
    for (title, filter) in receipts.reports() {
        let query = async || Ok(store.usage_report(&filter).await?);
        timings.push(measure(title, |report| report.days.len(), query).await?);
    }
    for (title, filter) in receipts.filters() {
        let query = async || Ok(store.requests(&filter, PAGE).await?);
        timings.push(measure(&format!("requests {title}"), Vec::len, query).await?);
    }
    let id = format!("request-{}", 1_000_000_000 + receipts.rows / 2);
    let query = async || Ok(store.request(&id).await?);
    timings.push(measure("one request", |found| usize::from(found.is_some()), query).await?);
    Ok(timings)
}

fn report(name: &str, rows: u64, timings: &[Timing]) {
    let milliseconds =
        |time: Option<&Duration>| format_number(time.map(|time| time.as_secs_f64() * 1e3), 1);
    let mut table = new_table(
        1,
        &[
            "query",
            "rows found",
            "first ms",
            "slowest ms",
            "within 200 ms",
        ],
    );
    for timing in timings {
        let slowest = timing.times.iter().max();
        let is_met = slowest.is_some_and(|time| *time <= AIM);
        table.add_row([
            timing.title.clone(),
            timing.rows.to_string(),
            milliseconds(timing.times.first()),
            milliseconds(slowest),
            if is_met { "yes" } else { "NO" }.to_owned(),
        ]);
    }
    println!("\n## {name}, {rows} usage records\n\n{table}");
}

fn settings(url: &str) -> Result<StoreConfig> {
    let parsed = config::parse("receipts.yaml", &format!("store: {url:?}"), &|_| None);
    let config = parsed.map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    config.store.clone().context("no store")
}

async fn run(options: &Options) -> Result<()> {
    let rows = if options.bench { options.rows } else { 1000 };
    let folder = TempDir::new()?;
    let sqlite = format!("sqlite:{}", folder.path().join("store.db").display());
    let databases = [
        ("SQLite", Some(&sqlite)),
        ("PostgreSQL", options.postgres.as_ref()),
    ];
    for (name, url) in databases {
        let Some(url) = url else { continue };
        let store = Store::open(&settings(url)?).await?;
        let receipts = Receipts::new(rows)?;
        receipts.fill(url).await?;
        let begin = Instant::now();
        let days = store.sum_up_days(Timestamp::now()).await?;
        let took = begin.elapsed().as_millis();
        println!("\n{name}: {days} days added up in {took} ms, once for each day");
        report(name, rows, &measure_store(&store, &receipts).await?);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    run(&Options::parse()).await
}
