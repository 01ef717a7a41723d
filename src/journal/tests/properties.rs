//! Any order of writing, carrying and dying leaves every receipt in the books once.

use std::io::Write as _;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Deed {
    Append(u8),
    Carry(Mood),
    /// The process dies, and perhaps in the middle of a line.
    Die(Option<u8>),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let mood = prop_oneof![
        3 => Just(Mood::Take),
        1 => Just(Mood::Fail),
        1 => Just(Mood::LoseAnswer),
        1 => Just(Mood::Stall),
    ];
    let deed = prop_oneof![
        3 => (1..40u8).prop_map(Deed::Append),
        4 => mood.prop_map(Deed::Carry),
        1 => proptest::option::of(any::<u8>()).prop_map(Deed::Die),
    ];
    proptest::collection::vec(deed, 1..40)
}

/// For some segments of sixteen receipts each; never full.
const ROOM: u64 = 1 << 20;

struct Life {
    journal: Arc<Journal>,
    carrier: Flusher,
}

impl Life {
    fn begin(folder: &Path, books: &Arc<Ledger>) -> Life {
        let mut journal = Journal::open(folder, ROOM).expect("a journal");
        // The folder is that of a much smaller journal, so that segments are short.
        journal.pile.shorten_segments(4 << 10);
        let journal = Arc::new(journal);
        let carrier = Flusher::new(journal.clone(), books.clone());
        books.pages().answered.clear();
        Life { journal, carrier }
    }
}

/// What a write leaves that was not completed.
fn tear(folder: &Path, bytes: u8) {
    let newest = files(folder)
        .into_iter()
        .rfind(|name| name.ends_with(".receipts"));
    if let Some(newest) = newest {
        let mut line = Vec::new();
        super::super::line::write(&receipt("torn"), &mut line);
        let file = fs::OpenOptions::new()
            .append(true)
            .open(folder.join(newest));
        let half = &line[..usize::from(bytes).min(line.len() - 1)];
        file.expect("a file").write_all(half).expect("some room");
    }
}

async fn live(deeds: Vec<Deed>) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().expect("a folder");
    let books = Ledger::in_moods(&[]);
    let mut life = Life::begin(folder.path(), &books);
    let mut written = 0;
    for deed in deeds {
        match deed {
            Deed::Append(count) => {
                let ids = numbered(written..written + u32::from(count));
                // Each time by another thread, with a pen of its own.
                std::thread::scope(|scope| scope.spawn(|| append_all(&life.journal, &ids)).join())
                    .expect("no panic");
                written += u32::from(count);
            }
            Deed::Carry(mood) => {
                books.pages().moods = [mood].into();
                // What fails comes again.
                let _ = life.carrier.step().await;
                books.pages().moods.clear();
            }
            Deed::Die(torn) => {
                drop(life);
                if let Some(bytes) = torn {
                    tear(folder.path(), bytes);
                }
                life = Life::begin(folder.path(), &books);
            }
        }
        let in_books = books.pages().recorded.len() as u64;
        prop_assert!(life.journal.standing().waiting + in_books >= u64::from(written));
        let twice = books.pages().answered.values().any(|times| *times > 1);
        prop_assert!(!twice, "carried twice in one life");
    }
    while life.carrier.step().await.expect("the books are well") > 0 {}
    prop_assert_eq!(books.ids(), numbered(0..written));
    let standing = life.journal.standing();
    prop_assert_eq!(
        (standing.waiting, standing.lost, standing.damaged),
        (0, 0, 0)
    );
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
