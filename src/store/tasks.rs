//! Work that goes on after its request was answered: asynchronous image tasks.

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::{Store, StoreError, milliseconds_now};

const COLUMNS: &str = "id, key_name, model, status, progress, request, result, error, created, started, finished, expires";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskStatus {
    Queued,
    Running,
    Done,
    Failed,
    Cancelled,
}

const STATUSES: [(TaskStatus, &str); 5] = [
    (TaskStatus::Queued, "queued"),
    (TaskStatus::Running, "running"),
    (TaskStatus::Done, "done"),
    (TaskStatus::Failed, "failed"),
    (TaskStatus::Cancelled, "cancelled"),
];

impl TaskStatus {
    fn name(self) -> &'static str {
        let found = STATUSES.iter().find(|(status, _)| *status == self);
        found.map_or("", |(_, name)| name)
    }

    fn named(name: &str) -> Option<TaskStatus> {
        let found = STATUSES.iter().find(|(_, known)| *known == name);
        found.map(|(status, _)| *status)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTask {
    pub id: String,
    /// By name.
    pub key: String,
    pub model: String,
    pub status: TaskStatus,
    /// Of a hundred.
    pub progress: u8,
    pub request: Vec<u8>,
    pub result: Option<Vec<u8>>,
    pub error: Option<String>,
    /// These in milliseconds since 1970.
    pub created: i64,
    pub started: Option<i64>,
    pub finished: Option<i64>,
    pub expires: i64,
}

/// How the work on a task goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskUpdate {
    /// It goes on; of a hundred.
    Progress(u8),
    Done(Vec<u8>),
    Failed(String),
}

impl Store {
    /// A task that waits to be claimed. `expires`: when it and its result are forgotten.
    pub async fn create_task(
        &self,
        key: &str,
        model: &str,
        request: Vec<u8>,
        expires: i64,
    ) -> Result<StoredTask, StoreError> {
        let now = milliseconds_now();
        let task = StoredTask {
            id: format!("task_{}", Uuid::now_v7().simple()),
            key: key.to_owned(),
            model: model.to_owned(),
            status: TaskStatus::Queued,
            progress: 0,
            request,
            result: None,
            error: None,
            created: now,
            started: None,
            finished: None,
            expires,
        };
        let put = "INSERT INTO tasks (id, key_name, model, status, progress, request, created, touched, expires) \
             VALUES ($1, $2, $3, $4, 0, $5, $6, $6, $7)";
        sqlx::query(put)
            .bind(task.id.clone())
            .bind(task.key.clone())
            .bind(task.model.clone())
            .bind(task.status.name())
            .bind(task.request.clone())
            .bind(now)
            .bind(expires)
            .execute(&self.pool)
            .await?;
        Ok(task)
    }

    /// One of a key's own.
    pub async fn task(&self, key: &str, id: &str) -> Result<Option<StoredTask>, StoreError> {
        let one =
            format!("SELECT {COLUMNS} FROM tasks WHERE id = $1 AND key_name = $2 AND expires > $3");
        let row = sqlx::query(AssertSqlSafe(one))
            .bind(id.to_owned())
            .bind(key.to_owned())
            .bind(milliseconds_now())
            .fetch_optional(&self.pool)
            .await?;
        row.as_ref().map(StoredTask::read).transpose()
    }

    /// Those of a key, the latest first.
    pub async fn tasks(&self, key: &str, most: u32) -> Result<Vec<StoredTask>, StoreError> {
        let all = format!(
            "SELECT {COLUMNS} FROM tasks WHERE key_name = $1 AND expires > $2 ORDER BY created DESC, id DESC LIMIT $3"
        );
        let rows = sqlx::query(AssertSqlSafe(all))
            .bind(key.to_owned())
            .bind(milliseconds_now())
            .bind(i64::from(most))
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(StoredTask::read).collect()
    }

    /// How many wait to be claimed, of all keys.
    pub async fn queued_tasks(&self) -> Result<u64, StoreError> {
        let count = "SELECT COUNT(*) FROM tasks WHERE status = 'queued' AND expires > $1";
        let row = sqlx::query(count)
            .bind(milliseconds_now())
            .fetch_one(&self.pool)
            .await?;
        let count: i64 = row.try_get(0)?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// Takes the oldest task that waits, or that runs but has not been heard of since a moment:
    /// whoever ran it is gone. Nobody else gets the same.
    pub async fn claim_task(&self, unheard_since: i64) -> Result<Option<StoredTask>, StoreError> {
        let waits = "(status = 'queued' OR (status = 'running' AND touched < $2)) AND expires > $1";
        let next = format!("SELECT id FROM tasks WHERE {waits} ORDER BY created, id LIMIT 1");
        let claim = format!(
            "UPDATE tasks SET status = 'running', started = $1, touched = $1 \
             WHERE id = ({next}) AND {waits} RETURNING {COLUMNS}"
        );
        loop {
            let now = milliseconds_now();
            let row = sqlx::query(AssertSqlSafe(claim.clone()))
                .bind(now)
                .bind(unheard_since)
                .fetch_optional(&self.pool)
                .await?;
            if let Some(row) = row {
                return StoredTask::read(&row).map(Some);
            }
            // In PostgreSQL another may have taken the one that was found, and more may wait.
            let more = sqlx::query(AssertSqlSafe(next.clone()))
                .bind(now)
                .bind(unheard_since)
                .fetch_optional(&self.pool)
                .await?;
            if more.is_none() {
                return Ok(None);
            }
        }
    }

    /// `false`: it runs no more, because it was cancelled or has expired, and the work can stop.
    pub async fn update_task(&self, id: &str, news: TaskUpdate) -> Result<bool, StoreError> {
        let now = milliseconds_now();
        let (status, progress, result, error) = match news {
            TaskUpdate::Progress(progress) => (TaskStatus::Running, progress.min(100), None, None),
            TaskUpdate::Done(result) => (TaskStatus::Done, 100, Some(result), None),
            TaskUpdate::Failed(error) => {
                (TaskStatus::Failed, 100, None, Some(error.replace('\0', "")))
            }
        };
        let finished = (status != TaskStatus::Running).then_some(now);
        let put = "UPDATE tasks SET status = $2, progress = $3, result = $4, error = $5, touched = $6, finished = $7 \
             WHERE id = $1 AND status = 'running' AND expires > $6";
        let done = sqlx::query(put)
            .bind(id.to_owned())
            .bind(status.name())
            .bind(i64::from(progress))
            .bind(result)
            .bind(error)
            .bind(now)
            .bind(finished)
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// `false`: there is no such task of the key, or it has ended already.
    pub async fn cancel_task(&self, key: &str, id: &str) -> Result<bool, StoreError> {
        let cancel = "UPDATE tasks SET status = 'cancelled', finished = $3, touched = $3 \
             WHERE id = $1 AND key_name = $2 AND status IN ('queued', 'running')";
        let done = sqlx::query(cancel)
            .bind(id.to_owned())
            .bind(key.to_owned())
            .bind(milliseconds_now())
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Forgets what has expired; says how many those were.
    pub async fn delete_expired_tasks(&self) -> Result<u64, StoreError> {
        let done = sqlx::query("DELETE FROM tasks WHERE expires <= $1")
            .bind(milliseconds_now())
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected())
    }
}

impl StoredTask {
    fn read(row: &AnyRow) -> Result<StoredTask, StoreError> {
        let status: String = row.try_get(3)?;
        let progress: i64 = row.try_get(4)?;
        Ok(StoredTask {
            id: row.try_get(0)?,
            key: row.try_get(1)?,
            model: row.try_get(2)?,
            status: TaskStatus::named(&status).ok_or(StoreError::Corrupt("status"))?,
            progress: u8::try_from(progress).unwrap_or(100),
            request: row.try_get(5)?,
            result: row.try_get(6)?,
            error: row.try_get(7)?,
            created: row.try_get(8)?,
            started: row.try_get(9)?,
            finished: row.try_get(10)?,
            expires: row.try_get(11)?,
        })
    }
}
