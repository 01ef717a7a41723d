//! What a journal may look like after something went wrong.

use super::*;

fn line(id: &str) -> String {
    let mut line = Vec::new();
    super::super::record_line::encode(&record(id), &mut line);
    String::from_utf8(line).expect("text")
}

/// Flushes a segment with this content; returns the ids that the sink has.
async fn flushed(folder: &Path, content: &str) -> (Vec<String>, JournalStatus) {
    fs::write(folder.join("000000000007.receipts"), content).expect("a file");
    let journal = open(folder);
    let sink = RecordingSink::with_behaviors(&[]);
    let mut flusher = Flusher::new(journal.clone(), sink.clone());
    while flusher.step().await.expect("the sink is well") > 0 {}
    (sink.ids(), journal.status())
}

#[tokio::test]
async fn a_torn_last_line_is_left_out() {
    let (first, second) = (line("req_1"), line("req_2"));
    for cut in 1..second.len() {
        let folder = tempfile::tempdir().expect("a folder");
        let content = format!("{first}{}", &second[..second.len() - cut]);
        let (ids, status) = flushed(folder.path(), &content).await;
        assert_eq!(ids, ["req_1"]);
        assert_eq!((status.waiting, status.bytes), (0, 0));
        assert_eq!(files(folder.path()), ["lock"]);
    }
}

#[tokio::test]
async fn garbage_in_the_middle_costs_only_itself_and_is_kept_for_a_person() {
    let (first, second) = (line("req_1"), line("req_2"));
    let changed = line("req_3").replace("\"output\":7", "\"output\":8");
    for garbage in ["\n", "\0\0\0\0\n", "{}\n", "req_3\n", &changed] {
        let folder = tempfile::tempdir().expect("a folder");
        let content = format!("{first}{garbage}{second}");
        let (ids, status) = flushed(folder.path(), &content).await;
        assert_eq!(ids, ["req_1", "req_2"], "{garbage:?}");
        assert_eq!((status.waiting, status.damaged), (0, 1), "{garbage:?}");
        let left = ["000000000007.receipts.damaged", "lock"];
        assert_eq!(files(folder.path()), left);
        // The next one does not take its name.
        let journal = open(folder.path());
        journal.append(&record("req_4"));
        assert!(files(folder.path()).contains(&"000000000008.receipts".to_owned()));
    }
}

#[tokio::test]
async fn a_line_of_any_length_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut long = record("req_1");
    long.key = "k".repeat(600 << 10).into();
    let journal = open(folder.path());
    journal.append(&long);
    journal.append(&record("req_2"));
    let sink = RecordingSink::with_behaviors(&[]);
    flush_all(&journal, &sink).await;
    assert_eq!(sink.ids(), ["req_1", "req_2"]);
    assert_eq!(sink.recorded_usage().recorded["req_1"], long);
}

#[tokio::test]
async fn files_of_others_are_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let theirs = [
        "1.receipts",
        "000000000001.receipts.old",
        "notes",
        "+00000000001.receipts",
    ];
    for name in theirs {
        fs::write(folder.path().join(name), line("req_0")).expect("a file");
    }
    fs::create_dir(folder.path().join("000000000009.receipts")).expect("a folder");
    let (ids, status) = flushed(folder.path(), &line("req_1")).await;
    assert_eq!((ids, status.damaged), (vec!["req_1".to_owned()], 0));
    for name in theirs {
        let content = fs::read_to_string(folder.path().join(name)).expect("a file");
        assert_eq!(content, line("req_0"), "{name}");
    }
}

#[test]
fn a_folder_belongs_to_one_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = open(folder.path());
    let second = Journal::open(folder.path(), ROOM).map(drop);
    let refused = second.expect_err("it is taken").to_string();
    assert!(refused.contains("another process"), "{refused}");
    drop(journal);
    open(folder.path());
}
