//! A store of usage records with a journal in front of it.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use omniglot::config;
use omniglot::model::Money;
use omniglot::store::{Store, UsageGrouping, UsageSum};
use omniglot_test_support::{FORMATS, Gateway, KEY, Mock, free_address, wait_until};
use sqlx::{AnyConnection, Connection as _, Row as _};

/// A format, and where it is spoken.
pub type Upstream = (&'static str, String);

/// Every format at a mock.
pub fn upstreams(mock: &Mock) -> Vec<Upstream> {
    let upstreams = FORMATS.map(|(format, prefix)| (format, mock.url(prefix)));
    upstreams.into()
}

/// Both are nobody else's.
pub struct UsageStore {
    /// As a config names it.
    store: String,
    directory: Arc<tempfile::TempDir>,
}

/// A row of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    pub id: String,
    pub stream: bool,
    pub status: i64,
    pub estimated: bool,
    pub input: i64,
    pub output: i64,
    pub cost: Money,
}

impl UsageStore {
    pub fn in_sqlite() -> UsageStore {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("store.db");
        UsageStore {
            store: format!("sqlite:{}", file.display()),
            directory: Arc::new(directory),
        }
    }

    pub fn at(store: String) -> UsageStore {
        let directory = tempfile::tempdir().expect("a directory");
        UsageStore {
            store,
            directory: Arc::new(directory),
        }
    }

    /// The store is never there: receipts stay in the journal.
    pub fn unreachable() -> UsageStore {
        UsageStore::at(format!("postgres://nobody@{}/none", free_address()))
    }

    /// The same journal, with a store.
    pub fn with_sqlite(&self) -> UsageStore {
        let file = self.directory.path().join("store.db");
        UsageStore {
            store: format!("sqlite:{}", file.display()),
            directory: self.directory.clone(),
        }
    }

    pub fn journal(&self) -> PathBuf {
        self.directory.path().join("journal")
    }

    /// A model `priced-…` at each of the upstreams.
    pub fn config(&self, upstreams: &[Upstream]) -> String {
        let (store, journal) = (&self.store, self.journal());
        let mut text = format!(
            "server: {{listen: LISTEN, admin: ADMIN}}\nstore: \"{store}\"\njournal: {{path: {journal:?}}}\n\
             keys: [{{name: all, secret: {KEY}, spending_cap: 1000000}}]\nupstreams:\n"
        );
        for (format, base) in upstreams {
            text += &format!("  - {{name: {format}, format: {format}, base_url: \"{base}\"}}\n");
        }
        text += "models:\n";
        for (format, _) in upstreams {
            text += &format!(
                "  - {{id: priced-{format}, pricing: {{input: 1.25, output: 10}}, upstreams: [{{name: {format}}}]}}\n"
            );
        }
        text
    }

    /// Every row, in the order of their ids. The sums that are kept beside them must be theirs.
    pub async fn rows(&self) -> Vec<UsageRow> {
        sqlx::any::install_default_drivers();
        let connected = AnyConnection::connect(&self.store).await;
        let mut connection = connected.expect("the store is there");
        let all =
            "SELECT id, stream, status, estimated, input, output, cost FROM usage ORDER BY id";
        let rows = sqlx::query(all).fetch_all(&mut connection).await;
        let rows = rows.expect("rows").into_iter().map(|row| UsageRow {
            id: row.get(0),
            stream: row.get::<i64, _>(1) != 0,
            status: row.get(2),
            estimated: row.get::<i64, _>(3) != 0,
            input: row.get(4),
            output: row.get(5),
            cost: Money::from_decimal(&row.get::<String, _>(6)).expect("an amount"),
        });
        let rows: Vec<UsageRow> = rows.collect();
        self.check_sums(&rows).await;
        rows
    }

    async fn check_sums(&self, rows: &[UsageRow]) {
        let text = format!("store: \"{}\"", self.store);
        let config = config::parse("test.yaml", &text, &|_| None).expect("a good config");
        let store = Store::open(&config.store.expect("a store")).await;
        let store = store.expect("it opens");
        let mut of_rows = UsageSum::default();
        for row in rows {
            let count = |number: i64| u64::try_from(number).expect("a count");
            of_rows.add(&UsageSum {
                requests: 1,
                estimated: u64::from(row.estimated),
                input: count(row.input),
                output: count(row.output),
                cost: row.cost,
                ..UsageSum::default()
            });
        }
        let sums = store
            .usage_sums(UsageGrouping::Key, None)
            .await
            .expect("sums");
        for (key, sum) in &sums {
            // What these tests do not look at.
            let sum = UsageSum {
                cached: 0,
                cache_written: 0,
                thinking: 0,
                ..*sum
            };
            assert_eq!((&**key, sum), ("all", of_rows));
        }
        assert_eq!(sums.is_empty(), rows.is_empty());
        let now = Timestamp::now();
        let spent = store.spending(None, now, now).await.expect("sums");
        // By the id of the key, of which there is one.
        assert!(spent.len() <= 1, "{spent:?}");
        let spent = spent.values().next();
        let spent = spent.map_or(Money::ZERO, |spent| spent.total);
        assert_eq!(spent, of_rows.cost);
    }
}

/// The value of a metric without labels.
pub async fn metric_value(gateway: &Gateway, name: &str) -> f64 {
    let lines = gateway.metric(name).await;
    let mut lines = lines.iter().filter_map(|line| line.split_once(' '));
    let found = lines.find(|(found, _)| *found == name);
    let (_, value) = found.unwrap_or_else(|| panic!("no metric {name}"));
    value.parse().expect("a number")
}

/// Waits until the store has everything, of which nothing was lost.
pub async fn wait_until_flushed(gateway: &Gateway) {
    wait_until("everything is carried", async || {
        metric_value(gateway, "omniglot_journal_waiting").await == 0.0
    })
    .await;
    for name in ["lost", "damaged"] {
        let name = format!("omniglot_journal_{name}_total");
        assert_eq!(metric_value(gateway, &name).await, 0.0, "{name}");
    }
}

/// Asks a gateway to stop, and waits until it has.
pub fn stop(mut gateway: Gateway) {
    gateway.process.signal("TERM");
    assert_eq!(gateway.process.wait().code(), Some(0));
}
