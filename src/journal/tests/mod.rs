//! Every record that is appended arrives in the sink exactly once.

mod damage;
mod flushing;
mod limit;
mod properties;

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;

use super::*;
use crate::model::{Money, Usage, UsageDetails, UsageRecord};

pub(super) fn record(id: &str) -> UsageRecord<'static> {
    UsageRecord {
        id: id.to_owned().into(),
        at: 1_760_000_000_123,
        key_id: "dev-id".into(),
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
        details: UsageDetails::default(),
    }
}

/// What the sink does with the next batch.
#[derive(Debug, Clone, Copy)]
enum SinkBehavior {
    Take,
    Fail,
    /// It stores the batch, but the answer is lost.
    LoseAnswer,
    Stall,
}

/// A sink that shows each behavior once, and then stores everything.
#[derive(Default)]
struct RecordingSink(Mutex<RecordedUsage>);

#[derive(Default)]
struct RecordedUsage {
    behaviors: VecDeque<SinkBehavior>,
    recorded: HashMap<String, UsageRecord<'static>>,
    /// How often each record was stored and confirmed.
    answered: HashMap<String, u32>,
}

#[async_trait]
impl UsageSink for RecordingSink {
    async fn record(&self, records: &[UsageRecord<'_>]) -> Result<usize, String> {
        let behavior = self.recorded_usage().behaviors.pop_front();
        let behavior = behavior.unwrap_or(SinkBehavior::Take);
        match behavior {
            SinkBehavior::Fail => return Err("no room".to_owned()),
            SinkBehavior::Stall => std::future::pending().await,
            SinkBehavior::Take | SinkBehavior::LoseAnswer => {}
        }
        let mut recorded_usage = self.recorded_usage();
        let before = recorded_usage.recorded.len();
        for record in records {
            let id = record.id.to_string();
            let entry = recorded_usage.recorded.entry(id.clone());
            entry.or_insert_with(|| record.clone().into_owned());
            if matches!(behavior, SinkBehavior::Take) {
                *recorded_usage.answered.entry(id).or_default() += 1;
            }
        }
        match behavior {
            SinkBehavior::LoseAnswer => Err("the connection was lost".to_owned()),
            _ => Ok(recorded_usage.recorded.len() - before),
        }
    }
}

impl RecordingSink {
    fn with_behaviors(behaviors: &[SinkBehavior]) -> Arc<RecordingSink> {
        let sink = RecordingSink::default();
        sink.recorded_usage().behaviors = behaviors.iter().copied().collect();
        Arc::new(sink)
    }

    fn recorded_usage(&self) -> MutexGuard<'_, RecordedUsage> {
        self.0.lock().expect("no panic")
    }

    fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.recorded_usage().recorded.keys().cloned().collect();
        ids.sort();
        ids
    }
}

const ROOM: u64 = 1 << 20;

fn open(folder: &Path) -> Arc<Journal> {
    Arc::new(Journal::open(folder, ROOM).expect("a journal"))
}

/// Flushes until nothing is left, whatever the sink answers.
async fn flush_all(journal: &Arc<Journal>, sink: &Arc<RecordingSink>) {
    let mut flusher = Flusher::new(journal.clone(), sink.clone());
    while journal.status().waiting > 0 {
        // What fails comes again.
        let _ = flusher.step().await;
    }
}

fn numbered(range: std::ops::Range<u32>) -> Vec<String> {
    range.map(|number| format!("req_{number:05}")).collect()
}

fn append_all(journal: &Journal, ids: &[String]) {
    for id in ids {
        journal.append(&record(id));
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
