//! A journal that must not grow any further.

use super::*;

/// For about sixty records.
const LITTLE: u64 = 16 << 10;

#[tokio::test]
async fn a_full_journal_keeps_what_it_has_and_counts_what_it_loses() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Arc::new(Journal::open(folder.path(), LITTLE).expect("a journal"));
    let mut kept = Vec::new();
    for id in numbered(0..200) {
        let before = journal.status();
        journal.append(&record(&id));
        let after = journal.status();
        assert_eq!(after.lost + after.waiting, before.lost + before.waiting + 1);
        assert!(after.bytes <= LITTLE);
        assert_eq!(after.is_nearly_full, after.bytes >= LITTLE / 5 * 4);
        if after.lost == 0 {
            kept.push(id);
        }
    }
    let full = journal.status();
    assert!(full.is_nearly_full && kept.len() > 40 && full.lost == 200 - kept.len() as u64);
    let on_disk = files(folder.path()).into_iter();
    let on_disk = on_disk.map(|name| {
        fs::metadata(folder.path().join(name))
            .expect("a file")
            .len()
    });
    assert_eq!(on_disk.sum::<u64>(), full.bytes);
    let sink = RecordingSink::with_behaviors(&[]);
    flush_all(&journal, &sink).await;
    assert_eq!(sink.ids(), kept);
    // There is room again.
    let lost = full.lost;
    append_all(&journal, &numbered(200..210));
    assert_eq!(journal.status().lost, lost);
    assert!(!journal.status().is_nearly_full);
}

/// However much passes through, what has been flushed takes next to nothing.
#[tokio::test]
async fn what_is_carried_makes_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Arc::new(Journal::open(folder.path(), LITTLE).expect("a journal"));
    let sink = RecordingSink::with_behaviors(&[]);
    let mut flusher = Flusher::new(journal.clone(), sink.clone());
    for round in 0..100 {
        append_all(&journal, &numbered(round * 10..(round + 1) * 10));
        while flusher.step().await.expect("the sink is well") > 0 {}
        assert!(journal.status().bytes <= LITTLE / 4);
    }
    assert_eq!(sink.ids(), numbered(0..1000));
    assert_eq!(journal.status().lost, 0);
}
