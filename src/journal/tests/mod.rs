//! What is appended is in the books once, whatever happens between.

mod carrying;
mod damage;
mod law;
mod room;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::*;
use crate::model::{Money, Usage};

pub(super) fn receipt(id: &str) -> UsageRecord<'static> {
    UsageRecord {
        id: id.to_owned().into(),
        at: 1_760_000_000_123,
        key: "dev".into(),
        model: "acme-large".into(),
        upstream: "acme".into(),
        format: "chat".into(),
        stream: false,
        status: 200,
        usage: Usage {
            input: 10,
            output: 7,
            ..Usage::default()
        },
        images: 0,
        estimated: false,
        cost: Money::parse("0.0000825").expect("an amount"),
    }
}

/// What books do when they are asked.
#[derive(Debug, Clone, Copy)]
enum Mood {
    Take,
    Fail,
    /// They take everything, and nobody hears of it.
    LoseAnswer,
    Stall,
}

/// UsageSink that are in every mood once, and then good.
#[derive(Default)]
struct Ledger(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    moods: VecDeque<Mood>,
    recorded: HashMap<String, UsageRecord<'static>>,
    /// How often each was taken and said to be so.
    answered: HashMap<String, u32>,
}

#[async_trait]
impl UsageSink for Ledger {
    async fn record(&self, receipts: &[UsageRecord<'_>]) -> Result<usize, String> {
        let mood = self.pages().moods.pop_front();
        let mood = mood.unwrap_or(Mood::Take);
        match mood {
            Mood::Fail => return Err("no room".to_owned()),
            Mood::Stall => std::future::pending().await,
            Mood::Take | Mood::LoseAnswer => {}
        }
        let mut pages = self.pages();
        let before = pages.recorded.len();
        for receipt in receipts {
            let id = receipt.id.to_string();
            let entry = pages.recorded.entry(id.clone());
            entry.or_insert_with(|| receipt.clone().into_owned());
            if matches!(mood, Mood::Take) {
                *pages.answered.entry(id).or_default() += 1;
            }
        }
        match mood {
            Mood::LoseAnswer => Err("the connection was lost".to_owned()),
            _ => Ok(pages.recorded.len() - before),
        }
    }
}

impl Ledger {
    fn in_moods(moods: &[Mood]) -> Arc<Ledger> {
        let ledger = Ledger::default();
        ledger.pages().moods = moods.iter().copied().collect();
        Arc::new(ledger)
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().expect("no panic")
    }

    fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.pages().recorded.keys().cloned().collect();
        ids.sort();
        ids
    }
}

const ROOM: u64 = 1 << 20;

fn open(folder: &Path) -> Arc<Journal> {
    Arc::new(Journal::open(folder, ROOM).expect("a journal"))
}

/// Until nothing is left, whatever the books say meanwhile.
async fn carry_all(journal: &Arc<Journal>, books: &Arc<Ledger>) {
    let mut carrier = Flusher::new(journal.clone(), books.clone());
    while journal.standing().waiting > 0 {
        // What fails comes again.
        let _ = carrier.step().await;
    }
}

fn numbered(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|number| format!("req_{number:05}")).collect()
}

fn append_all(journal: &Journal, ids: &[String]) {
    for id in ids {
        journal.append(&receipt(id));
    }
}

/// The names in a folder.
fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.into_string().expect("text"))
        .collect();
    names.sort();
    names
}
