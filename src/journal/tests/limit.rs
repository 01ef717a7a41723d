//! A journal that must not grow any further.

use super::*;

/// For about sixty receipts.
const LITTLE: u64 = 16 << 10;

#[tokio::test]
async fn a_full_journal_keeps_what_it_has_and_counts_what_it_loses() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Arc::new(Journal::open(folder.path(), LITTLE).expect("a journal"));
    let mut kept = Vec::new();
    for id in numbered(0..200) {
        let before = journal.standing();
        journal.append(&receipt(&id));
        let after = journal.standing();
        assert_eq!(after.lost + after.waiting, before.lost + before.waiting + 1);
        assert!(after.bytes <= LITTLE);
        assert_eq!(after.is_nearly_full, after.bytes >= LITTLE / 5 * 4);
        if after.lost == 0 {
            kept.push(id);
        }
    }
    let full = journal.standing();
    assert!(full.is_nearly_full && kept.len() > 40 && full.lost == 200 - kept.len() as u64);
    let on_disk = files(folder.path()).into_iter();
    let on_disk = on_disk.map(|name| {
        fs::metadata(folder.path().join(name))
            .expect("a file")
            .len()
    });
    assert_eq!(on_disk.sum::<u64>(), full.bytes);
    let books = Ledger::in_moods(&[]);
    carry_all(&journal, &books).await;
    assert_eq!(books.ids(), kept);
    // There is room again.
    let lost = full.lost;
    append_all(&journal, &numbered(200..210));
    assert_eq!(journal.standing().lost, lost);
    assert!(!journal.standing().is_nearly_full);
}

/// However much passes through, what has been carried takes next to nothing.
#[tokio::test]
async fn what_is_carried_makes_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Arc::new(Journal::open(folder.path(), LITTLE).expect("a journal"));
    let books = Ledger::in_moods(&[]);
    let mut carrier = Flusher::new(journal.clone(), books.clone());
    for round in 0..100 {
        append_all(&journal, &numbered(round * 10..(round + 1) * 10));
        while carrier.step().await.expect("the books are well") > 0 {}
        assert!(journal.standing().bytes <= LITTLE / 4);
    }
    assert_eq!(books.ids(), numbered(0..1000));
    assert_eq!(journal.standing().lost, 0);
}
