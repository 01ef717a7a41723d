//! From the journal to books that are not always well.

use super::*;

#[tokio::test(start_paused = true)]
async fn books_that_fail_stall_or_lose_their_answer_have_everything_once() {
    let folder = tempfile::tempdir().expect("a folder");
    // In one segment.
    let journal = Arc::new(Journal::open(folder.path(), 64 << 20).expect("a journal"));
    let books = Ledger::in_moods(&[Mood::Fail, Mood::LoseAnswer, Mood::Stall]);
    // More than a batch.
    let ids = numbered(0..2400);
    append_all(&journal, &ids);
    assert_eq!(journal.standing().waiting, 2400);
    let mut carrier = Flusher::new(journal.clone(), books.clone());
    for refused in ["no room", "the connection was lost", "no answer in 30s"] {
        assert_eq!(carrier.step().await, Err(refused.to_owned()));
        assert_eq!(journal.standing().waiting, 2400, "{refused}");
    }
    for lines in [1000, 1000, 400, 0] {
        assert_eq!(carrier.step().await, Ok(lines));
    }
    assert_eq!(books.ids(), ids);
    let pages = books.pages();
    assert!(pages.answered.values().all(|times| *times == 1));
    assert_eq!(pages.recorded["req_00007"], receipt("req_00007"));
    let standing = journal.standing();
    assert_eq!((standing.waiting, standing.carried), (0, 2400));
    assert_eq!((standing.lost, standing.damaged), (0, 0));
}

/// What is written meanwhile is not taken for it.
#[tokio::test]
async fn what_a_thread_writes_comes_in_its_order_over_many_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut journal = Journal::open(folder.path(), 64 << 20).expect("a journal");
    journal.pile.shorten_segments(256 << 10);
    let journal = Arc::new(journal);
    let books = Ledger::in_moods(&[]);
    let mut carrier = Flusher::new(journal.clone(), books.clone());
    append_all(&journal, &numbered(0..9000));
    let mut written = 9000;
    loop {
        let lines = carrier.step().await.expect("the books are well");
        let taken = u32::try_from(books.ids().len()).expect("few");
        assert_eq!(books.ids(), numbered(0..taken));
        if written < 15_000 {
            append_all(&journal, &numbered(written..written + 300));
            written += 300;
        } else if lines == 0 {
            break;
        }
    }
    assert_eq!(books.ids(), numbered(0..15_000));
    let pages = books.pages();
    assert!(pages.answered.values().all(|times| *times == 1));
    assert_eq!(pages.recorded["req_08765"], receipt("req_08765"));
    assert_eq!(journal.standing().waiting, 0);
}

#[tokio::test]
async fn what_is_left_from_before_comes_first_and_its_files_go() {
    let folder = tempfile::tempdir().expect("a folder");
    append_all(&open(folder.path()), &numbered(0..10));
    append_all(&open(folder.path()), &numbered(10..20));
    let journal = open(folder.path());
    assert_eq!(journal.standing().waiting, 20);
    append_all(&journal, &numbered(20..30));
    let books = Ledger::in_moods(&[]);
    let mut carrier = Flusher::new(journal.clone(), books.clone());
    for carried in [10, 20, 30] {
        assert!(journal.has_flushed_previous() == (carried > 20));
        assert_eq!(carrier.step().await, Ok(10));
        assert_eq!(books.ids(), numbered(0..carried));
    }
    assert_eq!(carrier.step().await, Ok(0));
    assert_eq!(files(folder.path()), ["lock"]);
    append_all(&journal, &numbered(30..31));
    assert_eq!(carrier.step().await, Ok(1));
    assert_eq!(books.ids(), numbered(0..31));
}

#[tokio::test]
async fn who_waits_for_what_was_left_is_told_when_the_last_of_it_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    // A new one has nothing to wait for.
    open(folder.path()).earlier_carried().await;
    append_all(&open(folder.path()), &numbered(0..700));
    let journal = open(folder.path());
    append_all(&journal, &numbered(700..701));
    let books = Ledger::in_moods(&[Mood::Fail]);
    let mut carrier = Flusher::new(journal.clone(), books.clone());
    let told = async {
        journal.earlier_carried().await;
        books.ids()
    };
    let carry = async {
        assert!(carrier.step().await.is_err());
        while carrier.step().await.expect("the books are well") > 0 {}
    };
    let (told, ()) = tokio::join!(told, carry);
    assert_eq!(told[..700], numbered(0..700));
}

#[tokio::test]
async fn many_threads_write_whole_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = open(folder.path());
    let books = Ledger::in_moods(&[]);
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let journal = journal.clone();
            let ids = numbered(number * 300..(number + 1) * 300);
            std::thread::spawn(move || append_all(&journal, &ids))
        })
        .collect();
    let mut carrier = Flusher::new(journal.clone(), books.clone());
    while !threads.iter().all(std::thread::JoinHandle::is_finished) {
        carrier.step().await.expect("the books are well");
    }
    while carrier.step().await.expect("the books are well") > 0 {}
    assert!(books.ids() == numbered(0..2400));
    assert_eq!(journal.standing().damaged, 0);
}

/// The carrying itself runs beside, as it does in a gateway.
async fn finish(books: Arc<Ledger>, count: u32) -> (tempfile::TempDir, Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = open(folder.path());
    append_all(&journal, &numbered(0..count));
    let started = tokio::time::Instant::now();
    tokio::select! {
        () = run_background(journal.clone(), books) => unreachable!("it goes on for ever"),
        () = journal.finish(Duration::from_secs(3600)) => {}
    }
    (folder, started.elapsed())
}

#[tokio::test]
async fn a_process_that_leaves_carries_the_rest_and_leaves_nothing_behind() {
    let books = Ledger::in_moods(&[]);
    let (folder, _) = finish(books.clone(), 1200).await;
    assert_eq!(books.ids(), numbered(0..1200));
    assert_eq!(files(folder.path()), ["lock"]);
}

#[tokio::test]
async fn a_process_that_leaves_does_not_wait_for_books_that_fail() {
    let books = Ledger::in_moods(&[Mood::Fail; 100]);
    let (folder, _) = finish(books.clone(), 3).await;
    assert_eq!(books.ids(), numbered(0..0));
    let journal = open(folder.path());
    assert_eq!(journal.standing().waiting, 3);
}

#[tokio::test(start_paused = true)]
async fn books_that_are_well_again_are_found_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = open(folder.path());
    append_all(&journal, &numbered(0..5));
    let books = Ledger::in_moods(&[Mood::Fail; 20]);
    let carried = async {
        while journal.standing().waiting > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let started = tokio::time::Instant::now();
    tokio::select! {
        () = run_background(journal.clone(), books.clone()) => unreachable!("it goes on for ever"),
        () = carried => {}
    }
    assert_eq!(books.ids(), numbered(0..5));
    // Twenty failures, most of them five seconds apart; without pauses this would be no time at all.
    let waited = started.elapsed();
    assert!(waited > Duration::from_secs(60) && waited < Duration::from_secs(100));
}
