//! Any order of writing, carrying and dying leaves every record in the sink once.

use std::io::Write as _;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Deed {
    Append(u8),
    Carry(SinkBehavior),
    /// The process dies, and perhaps in the middle of a line.
    Die(Option<u8>),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let behavior = prop_oneof![
        3 => Just(SinkBehavior::Take),
        1 => Just(SinkBehavior::Fail),
        1 => Just(SinkBehavior::LoseAnswer),
        1 => Just(SinkBehavior::Stall),
    ];
    let deed = prop_oneof![
        3 => (1..40u8).prop_map(Deed::Append),
        4 => behavior.prop_map(Deed::Carry),
        1 => proptest::option::of(any::<u8>()).prop_map(Deed::Die),
    ];
    proptest::collection::vec(deed, 1..40)
}

/// For some segments of sixteen records each; never full.
const ROOM: u64 = 1 << 20;

struct Life {
    journal: Arc<Journal>,
    flusher: Flusher,
}

impl Life {
    fn begin(folder: &Path, sink: &Arc<RecordingSink>) -> Life {
        let mut journal = Journal::open(folder, ROOM).expect("a journal");
        // The folder is that of a much smaller journal, so that segments are short.
        journal.segments.shorten_segments(4 << 10);
        let journal = Arc::new(journal);
        let flusher = Flusher::new(journal.clone(), sink.clone());
        sink.recorded_usage().answered.clear();
        Life { journal, flusher }
    }
}

/// What a write leaves that was not completed.
fn tear(folder: &Path, bytes: u8) {
    let newest = files(folder)
        .into_iter()
        .rfind(|name| name.ends_with(".receipts"));
    if let Some(newest) = newest {
        let mut line = Vec::new();
        super::super::record_line::encode(&record("torn"), &mut line);
        let file = fs::OpenOptions::new()
            .append(true)
            .open(folder.join(newest));
        let half = &line[..usize::from(bytes).min(line.len() - 1)];
        file.expect("a file").write_all(half).expect("some room");
    }
}

async fn live(deeds: Vec<Deed>) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    let sink = RecordingSink::with_behaviors(&[]);
    let mut life = Life::begin(folder.path(), &sink);
    let mut written = 0;
    for deed in deeds {
        match deed {
            Deed::Append(count) => {
                let ids = numbered(written..written + u32::from(count));
                // Each time by another thread, with a writer of its own.
                std::thread::scope(|scope| scope.spawn(|| append_all(&life.journal, &ids)).join())
                    .expect("no panic");
                written += u32::from(count);
            }
            Deed::Carry(behavior) => {
                sink.recorded_usage().behaviors = [behavior].into();
                // What fails comes again.
                let _ = life.flusher.step().await;
                sink.recorded_usage().behaviors.clear();
            }
            Deed::Die(torn) => {
                drop(life);
                if let Some(bytes) = torn {
                    tear(folder.path(), bytes);
                }
                life = Life::begin(folder.path(), &sink);
            }
        }
        let in_books = sink.recorded_usage().recorded.len() as u64;
        prop_assert!(life.journal.status().waiting + in_books >= u64::from(written));
        let twice = sink
            .recorded_usage()
            .answered
            .values()
            .any(|times| *times > 1);
        prop_assert!(!twice, "flushed twice in one life");
    }
    while life.flusher.step().await.expect("the sink is well") > 0 {}
    prop_assert_eq!(sink.ids(), numbered(0..written));
    let status = life.journal.status();
    prop_assert_eq!((status.waiting, status.lost, status.damaged), (0, 0, 0));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_receipt_is_recorded_once(deeds in deeds()) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        // UsageSink that stall are waited for, in no time.
        let runtime = runtime.enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(live(deeds))?;
    }
}
