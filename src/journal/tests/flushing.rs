//! From the journal to sink that are not always well.

use super::*;

#[tokio::test(start_paused = true)]
async fn books_that_fail_stall_or_lose_their_answer_have_everything_once() {
    let folder = tempfile::tempdir().expect("a folder");
    // In one segment.
    let journal = Arc::new(Journal::open(folder.path(), 64 << 20).expect("a journal"));
    let sink = RecordingSink::with_behaviors(&[
        SinkBehavior::Fail,
        SinkBehavior::LoseAnswer,
        SinkBehavior::Stall,
    ]);
    // More than a batch.
    let ids = numbered(0..2400);
    append_all(&journal, &ids);
    assert_eq!(journal.status().waiting, 2400);
    let mut flusher = Flusher::new(journal.clone(), sink.clone());
    for refused in ["no room", "the connection was lost", "no answer in 30s"] {
        assert_eq!(flusher.step().await, Err(refused.to_owned()));
        assert_eq!(journal.status().waiting, 2400, "{refused}");
    }
    for lines in [1000, 1000, 400, 0] {
        assert_eq!(flusher.step().await, Ok(lines));
    }
    assert_eq!(sink.ids(), ids);
    let recorded_usage = sink.recorded_usage();
    assert!(recorded_usage.answered.values().all(|times| *times == 1));
    assert_eq!(recorded_usage.recorded["req_00007"], record("req_00007"));
    let status = journal.status();
    assert_eq!((status.waiting, status.flushed), (0, 2400));
    assert_eq!((status.lost, status.damaged), (0, 0));
}

/// What is written meanwhile is not taken for it.
#[tokio::test]
async fn what_a_thread_writes_comes_in_its_order_over_many_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut journal = Journal::open(folder.path(), 64 << 20).expect("a journal");
    journal.segments.shorten_segments(256 << 10);
    let journal = Arc::new(journal);
    let sink = RecordingSink::with_behaviors(&[]);
    let mut flusher = Flusher::new(journal.clone(), sink.clone());
    append_all(&journal, &numbered(0..9000));
    let mut written = 9000;
    loop {
        let lines = flusher.step().await.expect("the sink is well");
        let taken = u32::try_from(sink.ids().len()).expect("few");
        assert_eq!(sink.ids(), numbered(0..taken));
        if written < 15_000 {
            append_all(&journal, &numbered(written..written + 300));
            written += 300;
        } else if lines == 0 {
            break;
        }
    }
    assert_eq!(sink.ids(), numbered(0..15_000));
    let recorded_usage = sink.recorded_usage();
    assert!(recorded_usage.answered.values().all(|times| *times == 1));
    assert_eq!(recorded_usage.recorded["req_08765"], record("req_08765"));
    assert_eq!(journal.status().waiting, 0);
}

#[tokio::test]
async fn what_is_left_from_before_comes_first_and_its_files_go() {
    let folder = tempfile::tempdir().expect("a folder");
    append_all(&open(folder.path()), &numbered(0..10));
    append_all(&open(folder.path()), &numbered(10..20));
    let journal = open(folder.path());
    assert_eq!(journal.status().waiting, 20);
    append_all(&journal, &numbered(20..30));
    let sink = RecordingSink::with_behaviors(&[]);
    let mut flusher = Flusher::new(journal.clone(), sink.clone());
    for flushed in [10, 20, 30] {
        assert!(journal.has_flushed_previous() == (flushed > 20));
        assert_eq!(flusher.step().await, Ok(10));
        assert_eq!(sink.ids(), numbered(0..flushed));
    }
    assert_eq!(flusher.step().await, Ok(0));
    assert_eq!(files(folder.path()), ["lock"]);
    append_all(&journal, &numbered(30..31));
    assert_eq!(flusher.step().await, Ok(1));
    assert_eq!(sink.ids(), numbered(0..31));
}

#[tokio::test]
async fn who_waits_for_what_was_left_is_told_when_the_last_of_it_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    // A new one has nothing to wait for.
    open(folder.path()).previous_flushed().await;
    append_all(&open(folder.path()), &numbered(0..700));
    let journal = open(folder.path());
    append_all(&journal, &numbered(700..701));
    let sink = RecordingSink::with_behaviors(&[SinkBehavior::Fail]);
    let mut flusher = Flusher::new(journal.clone(), sink.clone());
    let told = async {
        journal.previous_flushed().await;
        sink.ids()
    };
    let flush = async {
        assert!(flusher.step().await.is_err());
        while flusher.step().await.expect("the sink is well") > 0 {}
    };
    let (told, ()) = tokio::join!(told, flush);
    assert_eq!(told[..700], numbered(0..700));
}

#[tokio::test]
async fn many_threads_write_whole_lines() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = open(folder.path());
    let sink = RecordingSink::with_behaviors(&[]);
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let journal = journal.clone();
            let ids = numbered(number * 300..(number + 1) * 300);
            std::thread::spawn(move || append_all(&journal, &ids))
        })
        .collect();
    let mut flusher = Flusher::new(journal.clone(), sink.clone());
    while !threads.iter().all(std::thread::JoinHandle::is_finished) {
        flusher.step().await.expect("the sink is well");
    }
    while flusher.step().await.expect("the sink is well") > 0 {}
    assert!(sink.ids() == numbered(0..2400));
    assert_eq!(journal.status().damaged, 0);
}

/// The carrying itself runs beside, as it does in a gateway.
async fn finish(sink: Arc<RecordingSink>, count: u32) -> (tempfile::TempDir, Duration) {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = open(folder.path());
    append_all(&journal, &numbered(0..count));
    let started = tokio::time::Instant::now();
    tokio::select! {
        () = run_background(journal.clone(), sink) => unreachable!("it goes on for ever"),
        () = journal.finish(Duration::from_secs(3600)) => {}
    }
    (folder, started.elapsed())
}

#[tokio::test]
async fn a_process_that_leaves_carries_the_rest_and_leaves_nothing_behind() {
    let sink = RecordingSink::with_behaviors(&[]);
    let (folder, _) = finish(sink.clone(), 1200).await;
    assert_eq!(sink.ids(), numbered(0..1200));
    assert_eq!(files(folder.path()), ["lock"]);
}

#[tokio::test]
async fn a_process_that_leaves_does_not_wait_for_books_that_fail() {
    let sink = RecordingSink::with_behaviors(&[SinkBehavior::Fail; 100]);
    let (folder, _) = finish(sink.clone(), 3).await;
    assert_eq!(sink.ids(), numbered(0..0));
    let journal = open(folder.path());
    assert_eq!(journal.status().waiting, 3);
}

#[tokio::test(start_paused = true)]
async fn books_that_are_well_again_are_found_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = open(folder.path());
    append_all(&journal, &numbered(0..5));
    let sink = RecordingSink::with_behaviors(&[SinkBehavior::Fail; 20]);
    let flushed = async {
        while journal.status().waiting > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let started = tokio::time::Instant::now();
    tokio::select! {
        () = run_background(journal.clone(), sink.clone()) => unreachable!("it goes on for ever"),
        () = flushed => {}
    }
    assert_eq!(sink.ids(), numbered(0..5));
    // Twenty failures, most of them five seconds apart; without pauses this would be no time at all.
    let waited = started.elapsed();
    assert!(waited > Duration::from_secs(60) && waited < Duration::from_secs(100));
}
