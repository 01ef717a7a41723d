//! Image tasks in the store: claimed by one worker, updated, cancelled, taken over and expired.

use std::collections::HashSet;

use jiff::Timestamp;
use omniglot::store::{Store, TaskStatus, TaskUpdate};
use omniglot_test_support::Database;
use rstest::rstest;

use crate::TestStore;

const HOUR: i64 = 3_600_000;

fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

async fn create(store: &Store, key: &str, expires: i64) -> String {
    let request = b"{\"prompt\":\"\0\"}".to_vec();
    let task = store.create_task(key, "m", request, expires).await;
    task.expect("a task").id
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_task_goes_from_its_request_to_its_result(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let id = create(&store, "dev", now() + HOUR).await;
    let task = store.task("dev", &id).await.expect("an answer");
    let task = task.expect("the task");
    assert_eq!((task.status, task.progress), (TaskStatus::Queued, 0));
    assert!(task.request.is_empty(), "only who works on it needs it");
    assert!(store.task("ops", &id).await.expect("an answer").is_none());
    // Nothing is told of one that nobody works at.
    let early = store.update_task(&id, TaskUpdate::Done(Vec::new())).await;
    assert!(!early.expect("an answer"));
    assert_eq!(store.queued_tasks("dev").await.expect("a count"), (1, 1));
    assert_eq!(store.queued_tasks("ops").await.expect("a count"), (1, 0));

    let claimed = store.claim_task(0, &[]).await.expect("an answer");
    let claimed = claimed.expect("the task");
    assert_eq!((&claimed.id, claimed.status), (&id, TaskStatus::Running));
    assert!(claimed.started.is_some());
    assert_eq!(claimed.request, b"{\"prompt\":\"\0\"}");
    assert_eq!(store.queued_tasks("dev").await.expect("a count"), (0, 0));
    assert_eq!(store.claim_task(0, &[]).await.expect("an answer"), None);
    assert!(
        store
            .update_task(&id, TaskUpdate::Progress(40))
            .await
            .expect("told")
    );
    let task = store
        .task("dev", &id)
        .await
        .expect("an answer")
        .expect("it");
    assert_eq!((task.status, task.progress), (TaskStatus::Running, 40));
    let done = store.update_task(&id, TaskUpdate::Done(vec![0, 255])).await;
    assert!(done.expect("told"));
    let task = store
        .task("dev", &id)
        .await
        .expect("an answer")
        .expect("it");
    assert_eq!((task.status, task.progress), (TaskStatus::Done, 100));
    assert_eq!(task.result, Some(vec![0, 255]));
    let listed = store.tasks("dev", 10).await.expect("tasks");
    let listed = listed.first().expect("the task");
    assert_eq!((&listed.id, listed.status), (&id, TaskStatus::Done));
    assert_eq!(listed.result, None, "a list reads no results");
    assert!(task.finished.is_some() && task.error.is_none());
    assert!(!store.cancel_task("dev", &id).await.expect("an answer"));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn cancelled_and_failed_tasks_have_ended(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let first = create(&store, "dev", now() + HOUR).await;
    let second = create(&store, "dev", now() + HOUR).await;
    assert!(!store.cancel_task("ops", &first).await.expect("an answer"));
    assert!(store.cancel_task("dev", &first).await.expect("an answer"));
    let claimed = store.claim_task(0, &[]).await.expect("an answer");
    assert_eq!(claimed.map(|task| task.id), Some(second.clone()));
    let failed = TaskUpdate::Failed("too \0 odd".to_owned());
    assert!(store.update_task(&second, failed).await.expect("told"));
    let listed = store.tasks("dev", 10).await.expect("tasks");
    let listed: Vec<_> = listed
        .iter()
        .map(|task| (&task.id, task.status, task.error.as_deref()))
        .collect();
    let expected = [
        (&second, TaskStatus::Failed, Some("too  odd")),
        (&first, TaskStatus::Cancelled, None),
    ];
    assert_eq!(listed, expected);
    assert_eq!(store.tasks("dev", 1).await.expect("tasks").len(), 1);
    let third = create(&store, "dev", now() + HOUR).await;
    store
        .claim_task(0, &[])
        .await
        .expect("an answer")
        .expect("it");
    assert!(store.cancel_task("dev", &third).await.expect("an answer"));
    let late = store.update_task(&third, TaskUpdate::Progress(50)).await;
    assert!(!late.expect("an answer"), "the work can stop");
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_workers_claim_different_tasks(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    for _ in 0..40 {
        create(&store, "dev", now() + HOUR).await;
    }
    let workers: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut mine = Vec::new();
                while let Some(task) = store.claim_task(0, &[]).await.expect("an answer") {
                    mine.push(task.id);
                }
                mine
            })
        })
        .collect();
    let mut claimed = Vec::new();
    for worker in workers {
        claimed.extend(worker.await.expect("no panic"));
    }
    let different: HashSet<_> = claimed.iter().collect();
    assert_eq!((claimed.len(), different.len()), (40, 40));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_task_of_a_dead_worker_is_taken_over_and_an_expired_one_is_not(
    #[case] database: Database,
) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let id = create(&store, "dev", now() + HOUR).await;
    create(&store, "dev", now() - 1).await;
    store
        .claim_task(0, &[])
        .await
        .expect("an answer")
        .expect("it");
    let again = store
        .claim_task(now() + 1000, &[])
        .await
        .expect("an answer");
    assert_eq!(again.map(|task| task.id), Some(id));
    assert_eq!(store.tasks("dev", 10).await.expect("tasks").len(), 1);
    assert_eq!(store.delete_expired_tasks().await.expect("done"), 1);
    assert_eq!(store.delete_expired_tasks().await.expect("done"), 0);
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn keys_take_turns_and_a_busy_one_waits(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let mut many = Vec::new();
    for _ in 0..3 {
        many.push(create(&store, "dev", now() + HOUR).await);
    }
    let one = create(&store, "ops", now() + HOUR).await;
    let claim = async |busy: &[&str]| {
        let busy: Vec<String> = busy.iter().map(|key| (*key).to_owned()).collect();
        let claimed = store.claim_task(0, &busy).await.expect("an answer");
        claimed.map(|task| task.id)
    };
    assert_eq!(claim(&[]).await.as_ref(), Some(&many[0]));
    assert_eq!(claim(&["ops", "x"]).await.as_ref(), Some(&many[1]));
    assert_eq!(claim(&[]).await.as_ref(), Some(&one));
    assert_eq!(claim(&["dev"]).await, None);
    let waits = store.update_task(&many[1], TaskUpdate::Queued).await;
    assert!(waits.expect("an answer"));
    let task = store.task("dev", &many[1]).await.expect("an answer");
    let task = task.expect("the task");
    assert_eq!((task.status, task.finished), (TaskStatus::Queued, None));
    assert_eq!(store.queued_tasks("dev").await.expect("a count"), (2, 2));
    assert_eq!(claim(&[]).await.as_ref(), Some(&many[1]));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn the_oldest_results_of_a_key_are_trimmed(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let mut ids = Vec::new();
    for key in ["dev", "dev", "dev", "ops"] {
        ids.push(create(&store, key, now() + HOUR).await);
    }
    let bytes = async |key: &str| store.task_bytes(key).await.expect("sums");
    let request = b"{\"prompt\":\"\0\"}".len() as u64;
    assert_eq!(bytes("dev").await, (3 * request, 0));
    for _ in &ids {
        let task = store.claim_task(0, &[]).await.expect("an answer");
        let id = task.expect("a task").id;
        let done = store.update_task(&id, TaskUpdate::Done(vec![7; 100])).await;
        assert!(done.expect("told"));
    }
    // A task that has ended needs its request no more.
    assert_eq!(bytes("dev").await, (0, 300));
    let open = create(&store, "dev", now() + HOUR).await;
    assert_eq!(bytes("dev").await, (request, 300));
    store.trim_task_results("dev", "", 200).await.expect("done");
    assert_eq!(bytes("dev").await, (request, 200));
    assert_eq!(bytes("ops").await, (0, 100));
    // The newest stays, however large.
    store
        .trim_task_results("dev", &ids[2], 0)
        .await
        .expect("done");
    assert_eq!(bytes("dev").await, (request, 100));
    let task = async |id: &str| {
        let task = store.task("dev", id).await.expect("an answer");
        task.expect("it is remembered")
    };
    assert_eq!(task(&ids[2]).await.result, Some(vec![7; 100]));
    assert_eq!(task(&open).await.status, TaskStatus::Queued);
    assert!(store.cancel_task("dev", &open).await.expect("an answer"));
    assert_eq!(bytes("dev").await, (0, 100));
    let task = task(&open).await;
    assert!(task.request.is_empty() && task.status == TaskStatus::Cancelled);
}
