//! The rows of usage records.
//!
//! Rows are inserted with a few fixed statements, which the database prepares once. Values that many rows have in
//! common are bound once for all of them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use sqlx::any::AnyArguments;
use sqlx::error::BoxDynError;
use sqlx::{Arguments as _, AssertSqlSafe, Row as _};

use super::database::{DatabaseKind, WriteTransaction, to_column};
use super::error::StoreError;
use crate::model::UsageRecord;

/// Rows per statement, with and without values in common.
const ALIKE: [usize; 2] = [100, 10];
const MIXED: [usize; 3] = [100, 10, 1];

/// Ids per lookup.
const IDS_PER_LOOKUP: usize = 100;

/// Columns that differ in every row.
const OWN: [&str; 10] = [
    "id",
    "ended",
    "input",
    "cached",
    "cache_written",
    "output",
    "thinking",
    "cost",
    "took_ms",
    "first_ms",
];

/// Columns that are mostly the same in many rows.
const COMMON: [&str; 19] = [
    "key_id",
    "key_name",
    "model",
    "upstream",
    "format",
    "stream",
    "status",
    "estimated",
    "audio_input",
    "audio_output",
    "image_output",
    "images",
    "prices",
    "priced_ms",
    "audio_ms",
    "upstream_format",
    "earlier",
    "dropped",
    "adjusted",
];

/// The statements for one kind of database.
struct Statements {
    alike: [String; ALIKE.len()],
    mixed: [String; MIXED.len()],
    look: String,
}

static OF_SQLITE: LazyLock<Statements> = LazyLock::new(|| Statements::of(DatabaseKind::Sqlite));
static OF_POSTGRES: LazyLock<Statements> = LazyLock::new(|| Statements::of(DatabaseKind::Postgres));

impl Statements {
    fn of(kind: DatabaseKind) -> Statements {
        let insert = |rows: &str| {
            let (own, common) = (OWN.join(", "), COMMON.join(", "));
            format!("INSERT INTO usage ({own}, {common}) {rows} ON CONFLICT (id) DO NOTHING")
        };
        let alike = |rows| {
            let own = placeholders(kind, 0, rows, OWN.len());
            let common = placeholders(kind, rows * OWN.len(), 1, COMMON.len());
            // Without a condition, SQLite would take the conflict for one of the join.
            insert(&format!(
                "SELECT own.*, common.* FROM (VALUES {own}) AS own CROSS JOIN (VALUES {common}) AS common WHERE true"
            ))
        };
        let mixed = |rows| {
            let values = placeholders(kind, 0, rows, OWN.len() + COMMON.len());
            insert(&format!("VALUES {values}"))
        };
        let ids = placeholders(kind, 0, 1, IDS_PER_LOOKUP);
        Statements {
            alike: ALIKE.map(alike),
            mixed: MIXED.map(mixed),
            look: format!("SELECT id FROM usage WHERE id IN {ids}"),
        }
    }

    fn known(kind: DatabaseKind) -> &'static Statements {
        match kind {
            DatabaseKind::Sqlite => &OF_SQLITE,
            DatabaseKind::Postgres => &OF_POSTGRES,
        }
    }
}

/// The placeholders of rows, behind `before` others. SQLite treats `$1` as a name and searches all names for each, which
/// would be most of the work.
pub(super) fn placeholders(
    kind: DatabaseKind,
    before: usize,
    rows: usize,
    columns: usize,
) -> String {
    let mut placeholders = String::with_capacity(rows * columns * 6);
    for number in 0..rows * columns {
        placeholders.push_str(match number % columns {
            0 if number == 0 => "(",
            0 => "), (",
            _ => ", ",
        });
        match kind {
            DatabaseKind::Sqlite => placeholders.push('?'),
            // Writing to a string does not fail.
            DatabaseKind::Postgres => _ = write!(placeholders, "${}", before + number + 1),
        }
    }
    placeholders.push(')');
    placeholders
}

/// Inserts records. `false`: not all of them were new, and the transaction must be rolled back.
pub(super) async fn insert(
    transaction: &mut WriteTransaction,
    kind: DatabaseKind,
    records: &[UsageRecord<'_>],
) -> Result<bool, StoreError> {
    let statements = Statements::known(kind);
    let mut sorted: Vec<&UsageRecord<'_>> = records.iter().collect();
    sorted.sort_by(|one, other| common(one).cmp(&common(other)));
    let mut others: Vec<&UsageRecord<'_>> = Vec::new();
    for mut alike in sorted.chunk_by(|one, next| common(one) == common(next)) {
        for (length, statement) in ALIKE.iter().zip(&statements.alike) {
            while let Some((rows, rest)) = alike.split_at_checked(*length) {
                if !put(transaction, statement, rows, true).await? {
                    return Ok(false);
                }
                alike = rest;
            }
        }
        others.extend(alike);
    }
    let mut others = &*others;
    for (length, statement) in MIXED.iter().zip(&statements.mixed) {
        while let Some((rows, rest)) = others.split_at_checked(*length) {
            if !put(transaction, statement, rows, false).await? {
                return Ok(false);
            }
            others = rest;
        }
    }
    Ok(true)
}

/// The sort key by which records with the same common columns come together.
fn common(record: &UsageRecord<'_>) -> impl Ord {
    let (usage, details) = (&record.usage, &record.details);
    (
        (&record.key_id, &record.key, &record.model),
        (&record.upstream, &record.format),
        (record.stream, record.status, record.estimated),
        (usage.audio_input, usage.audio_output),
        (usage.image_output, record.images),
        (&details.prices, details.priced, details.audio),
        (&details.upstream_format, &details.earlier),
        (&details.dropped, &details.adjusted),
    )
}

/// Inserts rows with one statement; returns whether all were new.
async fn put(
    transaction: &mut WriteTransaction,
    statement: &'static str,
    rows: &[&UsageRecord<'_>],
    are_alike: bool,
) -> Result<bool, StoreError> {
    let values = values(rows, are_alike).map_err(sqlx::Error::Encode)?;
    let query = sqlx::query_with(AssertSqlSafe(statement), values);
    let inserted = query.execute(&mut **transaction).await?.rows_affected();
    Ok(inserted == rows.len() as u64)
}

fn values(rows: &[&UsageRecord<'_>], are_alike: bool) -> Result<AnyArguments, BoxDynError> {
    let mut values = AnyArguments::default();
    values.reserve(rows.len() * (OWN.len() + COMMON.len()), 0);
    for record in rows {
        add_own(&mut values, record)?;
        if !are_alike {
            add_common(&mut values, record)?;
        }
    }
    if let Some(record) = rows.first().filter(|_| are_alike) {
        add_common(&mut values, record)?;
    }
    Ok(values)
}

fn add_own(values: &mut AnyArguments, record: &UsageRecord<'_>) -> Result<(), BoxDynError> {
    let usage = &record.usage;
    values.add(text(&record.id).into_owned())?;
    values.add(record.at)?;
    values.add(to_column(usage.input))?;
    values.add(to_column(usage.cached))?;
    values.add(to_column(usage.cache_written))?;
    values.add(to_column(usage.output))?;
    values.add(to_column(usage.thinking))?;
    values.add(record.cost.to_string())?;
    values.add(to_column(record.details.took))?;
    values.add(to_column(record.details.first_byte))
}

fn add_common(values: &mut AnyArguments, record: &UsageRecord<'_>) -> Result<(), BoxDynError> {
    let usage = &record.usage;
    values.add(text(&record.key_id).into_owned())?;
    values.add(text(&record.key).into_owned())?;
    values.add(text(&record.model).into_owned())?;
    values.add(text(&record.upstream).into_owned())?;
    values.add(text(&record.format).into_owned())?;
    values.add(i64::from(record.stream))?;
    values.add(i64::from(record.status))?;
    values.add(i64::from(record.estimated))?;
    values.add(to_column(usage.audio_input))?;
    values.add(to_column(usage.audio_output))?;
    values.add(to_column(usage.image_output))?;
    values.add(to_column(record.images))?;
    let details = &record.details;
    values.add(text(&details.prices).into_owned())?;
    values.add(to_column(details.priced))?;
    values.add(to_column(details.audio))?;
    values.add(text(&details.upstream_format).into_owned())?;
    values.add(text(&details.earlier).into_owned())?;
    values.add(text(&details.dropped).into_owned())?;
    values.add(text(&details.adjusted).into_owned())
}

/// The ids that exist already.
pub(super) async fn known(
    transaction: &mut WriteTransaction,
    kind: DatabaseKind,
    records: &[UsageRecord<'_>],
) -> Result<HashSet<String>, StoreError> {
    let look = Statements::known(kind).look.as_str();
    let mut known = HashSet::new();
    for some in records.chunks(IDS_PER_LOOKUP) {
        let mut query = sqlx::query(AssertSqlSafe(look));
        // The last lookup is filled up with repeated ids.
        for record in some.iter().cycle().take(IDS_PER_LOOKUP) {
            query = query.bind(text(&record.id).into_owned());
        }
        for row in query.fetch_all(&mut **transaction).await? {
            known.insert(row.try_get(0)?);
        }
    }
    Ok(known)
}

/// Removes NUL, which PostgreSQL does not store in a text.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    match memchr::memchr(0, text.as_bytes()) {
        None => text.into(),
        Some(_) => text.replace('\0', "").into(),
    }
}
