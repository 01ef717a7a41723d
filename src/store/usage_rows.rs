//! A row for every request that has been paid for.
//!
//! Rows are written by statements of a few fixed shapes: a database that knows a statement already
//! does nothing but what it says. What many rows have in common is said once for all of them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use sqlx::any::AnyArguments;
use sqlx::error::BoxDynError;
use sqlx::{Any, Arguments as _, AssertSqlSafe, Row as _, Transaction};

use super::{Kind, StoreError, stored};
use crate::model::UsageRecord;

/// Rows of a statement, with and without something in common.
const ALIKE: [usize; 2] = [100, 10];
const MIXED: [usize; 3] = [100, 10, 1];

/// Ids that are looked for at once.
const LOOKS: usize = 100;

/// What every row has of its own.
const OWN: [&str; 8] = [
    "id",
    "ended",
    "input",
    "cached",
    "cache_written",
    "output",
    "thinking",
    "cost",
];

/// What is mostly the same in many of them.
const COMMON: [&str; 11] = [
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
];

/// What is asked of one of the databases.
struct Statements {
    alike: [String; ALIKE.len()],
    mixed: [String; MIXED.len()],
    look: String,
}

static OF_SQLITE: LazyLock<Statements> = LazyLock::new(|| Statements::of(Kind::Sqlite));
static OF_POSTGRES: LazyLock<Statements> = LazyLock::new(|| Statements::of(Kind::Postgres));

impl Statements {
    fn of(kind: Kind) -> Statements {
        let insert = |rows: &str| {
            let (own, common) = (OWN.join(", "), COMMON.join(", "));
            format!("INSERT INTO usage ({own}, {common}) {rows} ON CONFLICT (id) DO NOTHING")
        };
        let alike = |rows| {
            let own = places(kind, 0, rows, OWN.len());
            let common = places(kind, rows * OWN.len(), 1, COMMON.len());
            // Without a condition, SQLite would take the conflict for one of the join.
            insert(&format!(
                "SELECT own.*, common.* FROM (VALUES {own}) AS own CROSS JOIN (VALUES {common}) AS common WHERE true"
            ))
        };
        let mixed = |rows| {
            let places = places(kind, 0, rows, OWN.len() + COMMON.len());
            insert(&format!("VALUES {places}"))
        };
        let ids = places(kind, 0, 1, LOOKS);
        Statements {
            alike: ALIKE.map(alike),
            mixed: MIXED.map(mixed),
            look: format!("SELECT id FROM usage WHERE id IN {ids}"),
        }
    }

    fn known(kind: Kind) -> &'static Statements {
        match kind {
            Kind::Sqlite => &OF_SQLITE,
            Kind::Postgres => &OF_POSTGRES,
        }
    }
}

/// Where the values of so many rows go, behind so many others. SQLite takes `$1` for a name, and
/// looks through all the others for every one of them: among hundreds, that is most of the work.
fn places(kind: Kind, before: usize, rows: usize, columns: usize) -> String {
    let mut places = String::with_capacity(rows * columns * 6);
    for number in 0..rows * columns {
        places.push_str(match number % columns {
            0 if number == 0 => "(",
            0 => "), (",
            _ => ", ",
        });
        match kind {
            Kind::Sqlite => places.push('?'),
            // A string takes whatever is written to it.
            Kind::Postgres => _ = write!(places, "${}", before + number + 1),
        }
    }
    places.push(')');
    places
}

type Writing = Transaction<'static, Any>;

/// `false`: not all of them were new, and what has been written must be taken back.
pub(super) async fn insert(
    writing: &mut Writing,
    kind: Kind,
    receipts: &[UsageRecord<'_>],
) -> Result<bool, StoreError> {
    let statements = Statements::known(kind);
    let mut sorted: Vec<&UsageRecord<'_>> = receipts.iter().collect();
    sorted.sort_by(|one, other| common(one).cmp(&common(other)));
    let mut others: Vec<&UsageRecord<'_>> = Vec::new();
    for mut alike in sorted.chunk_by(|one, next| common(one) == common(next)) {
        for (length, statement) in ALIKE.iter().zip(&statements.alike) {
            while let Some((rows, rest)) = alike.split_at_checked(*length) {
                if !put(writing, statement, rows, true).await? {
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
            if !put(writing, statement, rows, false).await? {
                return Ok(false);
            }
            others = rest;
        }
    }
    Ok(true)
}

/// By this, those that have it in common come together.
fn common(receipt: &UsageRecord<'_>) -> impl Ord {
    let usage = &receipt.usage;
    (
        (&receipt.key, &receipt.model),
        (&receipt.upstream, &receipt.format),
        (receipt.stream, receipt.status, receipt.estimated),
        (usage.audio_input, usage.audio_output),
        (usage.image_output, receipt.images),
    )
}

/// Whether all rows were new.
async fn put(
    writing: &mut Writing,
    statement: &'static str,
    rows: &[&UsageRecord<'_>],
    are_alike: bool,
) -> Result<bool, StoreError> {
    let values = values(rows, are_alike).map_err(sqlx::Error::Encode)?;
    let query = sqlx::query_with(AssertSqlSafe(statement), values);
    let inserted = query.execute(&mut **writing).await?.rows_affected();
    Ok(inserted == rows.len() as u64)
}

fn values(rows: &[&UsageRecord<'_>], are_alike: bool) -> Result<AnyArguments, BoxDynError> {
    let mut values = AnyArguments::default();
    values.reserve(rows.len() * (OWN.len() + COMMON.len()), 0);
    for receipt in rows {
        add_own(&mut values, receipt)?;
        if !are_alike {
            add_common(&mut values, receipt)?;
        }
    }
    if let Some(receipt) = rows.first().filter(|_| are_alike) {
        add_common(&mut values, receipt)?;
    }
    Ok(values)
}

fn add_own(values: &mut AnyArguments, receipt: &UsageRecord<'_>) -> Result<(), BoxDynError> {
    let usage = &receipt.usage;
    values.add(text(&receipt.id).into_owned())?;
    values.add(receipt.at)?;
    values.add(stored(usage.input))?;
    values.add(stored(usage.cached))?;
    values.add(stored(usage.cache_written))?;
    values.add(stored(usage.output))?;
    values.add(stored(usage.thinking))?;
    values.add(receipt.cost.to_string())
}

fn add_common(values: &mut AnyArguments, receipt: &UsageRecord<'_>) -> Result<(), BoxDynError> {
    let usage = &receipt.usage;
    values.add(text(&receipt.key).into_owned())?;
    values.add(text(&receipt.model).into_owned())?;
    values.add(text(&receipt.upstream).into_owned())?;
    values.add(text(&receipt.format).into_owned())?;
    values.add(i64::from(receipt.stream))?;
    values.add(i64::from(receipt.status))?;
    values.add(i64::from(receipt.estimated))?;
    values.add(stored(usage.audio_input))?;
    values.add(stored(usage.audio_output))?;
    values.add(stored(usage.image_output))?;
    values.add(stored(receipt.images))
}

/// The ids of those that are there.
pub(super) async fn known(
    writing: &mut Writing,
    kind: Kind,
    receipts: &[UsageRecord<'_>],
) -> Result<HashSet<String>, StoreError> {
    let look = Statements::known(kind).look.as_str();
    let mut known = HashSet::new();
    for some in receipts.chunks(LOOKS) {
        let mut query = sqlx::query(AssertSqlSafe(look));
        // Those that are missing in the last are looked for again instead.
        for receipt in some.iter().cycle().take(LOOKS) {
            query = query.bind(text(&receipt.id).into_owned());
        }
        for row in query.fetch_all(&mut **writing).await? {
            known.insert(row.try_get(0)?);
        }
    }
    Ok(known)
}

/// PostgreSQL takes no NUL in a text, and one odd name must not stop all the others.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    match memchr::memchr(0, text.as_bytes()) {
        None => text.into(),
        Some(_) => text.replace('\0', "").into(),
    }
}
