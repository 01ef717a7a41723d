//! Asynchronous image tasks.

use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::database::{Store, from_column, milliseconds_now, to_column};
use super::error::StoreError;

/// All but the request and the result, which may be large: a query names the one of them that it needs.
const COLUMNS: &str =
    "id, key_id, model, status, progress, error, created, started, finished, expires";

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

    fn from_name(name: &str) -> Option<TaskStatus> {
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
    /// In percent.
    pub progress: u8,
    /// Of a task that is claimed; empty otherwise.
    pub request: Vec<u8>,
    /// Of a task that is asked for by its id.
    pub result: Option<Vec<u8>>,
    pub error: Option<String>,
    /// These in milliseconds since 1970.
    pub created: i64,
    pub started: Option<i64>,
    pub finished: Option<i64>,
    pub expires: i64,
}

/// A change of a running task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskUpdate {
    /// In percent.
    Progress(u8),
    /// It did not begin, and waits again.
    Queued,
    Done(Vec<u8>),
    Failed(String),
}

impl Store {
    /// Queues a task. `expires`: when it and its result are deleted.
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
        let put = "INSERT INTO tasks (id, key_id, model, status, progress, request, created, touched, expires, bytes) \
             VALUES ($1, $2, $3, $4, 0, $5, $6, $6, $7, $8)";
        sqlx::query(put)
            .bind(task.id.clone())
            .bind(task.key.clone())
            .bind(task.model.clone())
            .bind(task.status.name())
            .bind(task.request.clone())
            .bind(now)
            .bind(expires)
            .bind(to_column(task.request.len() as u64))
            .execute(&self.pool)
            .await?;
        Ok(task)
    }

    /// A task of a key, with its result.
    pub async fn task(&self, key: &str, id: &str) -> Result<Option<StoredTask>, StoreError> {
        let one = format!(
            "SELECT {COLUMNS}, result FROM tasks WHERE id = $1 AND key_id = $2 AND expires > $3"
        );
        let row = sqlx::query(AssertSqlSafe(one))
            .bind(id.to_owned())
            .bind(key.to_owned())
            .bind(milliseconds_now())
            .fetch_optional(&self.pool)
            .await?;
        let Some(row) = row else {
            return Ok(None);
        };
        Ok(Some(StoredTask {
            result: row.try_get("result")?,
            ..StoredTask::from_row(&row)?
        }))
    }

    /// The tasks of a key, the latest first, without their results.
    pub async fn tasks(&self, key: &str, most: u32) -> Result<Vec<StoredTask>, StoreError> {
        let all = format!(
            "SELECT {COLUMNS} FROM tasks WHERE key_id = $1 AND expires > $2 ORDER BY created DESC, id DESC LIMIT $3"
        );
        let rows = sqlx::query(AssertSqlSafe(all))
            .bind(key.to_owned())
            .bind(milliseconds_now())
            .bind(i64::from(most))
            .fetch_all(&self.pool)
            .await?;
        rows.iter().map(StoredTask::from_row).collect()
    }

    /// The number of queued tasks of all keys, and of one.
    pub async fn queued_tasks(&self, key: &str) -> Result<(u64, u64), StoreError> {
        let count = "SELECT COUNT(*), COUNT(CASE WHEN key_id = $2 THEN 1 END) FROM tasks \
             WHERE status = 'queued' AND expires > $1";
        let row = sqlx::query(count)
            .bind(milliseconds_now())
            .bind(key.to_owned())
            .fetch_one(&self.pool)
            .await?;
        Ok((from_column(row.try_get(0)?), from_column(row.try_get(1)?)))
    }

    /// Claims a task that is queued, or that is running but was not touched since `untouched_since` because its
    /// process is gone: the oldest of the key with the fewest running tasks, which had its turn longest ago, but none
    /// of a key that is busy. No two processes get the same.
    pub async fn claim_task(
        &self,
        untouched_since: i64,
        busy: &[String],
    ) -> Result<Option<StoredTask>, StoreError> {
        let mut waits =
            "(status = 'queued' OR (status = 'running' AND touched < $2)) AND expires > $1"
                .to_owned();
        for number in 0..busy.len() {
            waits += &format!(" AND key_id <> ${}", number + 3);
        }
        let of_key = "FROM tasks AS others WHERE others.key_id = tasks.key_id";
        let next = format!(
            "SELECT id FROM tasks WHERE {waits} ORDER BY \
             (SELECT COUNT(*) {of_key} AND others.status = 'running'), \
             (SELECT COALESCE(MAX(others.started), 0) {of_key}), created, id LIMIT 1"
        );
        let claim = format!(
            "UPDATE tasks SET status = 'running', started = $1, touched = $1 \
             WHERE id = ({next}) AND {waits} RETURNING {COLUMNS}, request"
        );
        loop {
            let now = milliseconds_now();
            let mut claiming = sqlx::query(AssertSqlSafe(claim.clone()))
                .bind(now)
                .bind(untouched_since);
            for key in busy {
                claiming = claiming.bind(key.clone());
            }
            let row = claiming.fetch_optional(&self.pool).await?;
            if let Some(row) = row {
                return Ok(Some(StoredTask {
                    request: row.try_get("request")?,
                    ..StoredTask::from_row(&row)?
                }));
            }
            // In PostgreSQL another process may have claimed it first, and more may be queued.
            let mut more = sqlx::query(AssertSqlSafe(next.clone()))
                .bind(now)
                .bind(untouched_since);
            for key in busy {
                more = more.bind(key.clone());
            }
            if more.fetch_optional(&self.pool).await?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Updates a running task. `false`: it was cancelled or has expired, and the work can stop.
    pub async fn update_task(&self, id: &str, update: TaskUpdate) -> Result<bool, StoreError> {
        let now = milliseconds_now();
        let (status, progress, result, error) = match update {
            TaskUpdate::Progress(progress) => (TaskStatus::Running, progress.min(100), None, None),
            TaskUpdate::Queued => (TaskStatus::Queued, 0, None, None),
            TaskUpdate::Done(result) => (TaskStatus::Done, 100, Some(result), None),
            TaskUpdate::Failed(error) => {
                (TaskStatus::Failed, 100, None, Some(error.replace('\0', "")))
            }
        };
        let is_open = matches!(status, TaskStatus::Running | TaskStatus::Queued);
        let finished = (!is_open).then_some(now);
        // A task that has ended needs its request no more.
        let bytes = result.as_ref().map_or(0, Vec::len);
        let put = match is_open {
            true => {
                "UPDATE tasks SET status = $2, progress = $3, result = $4, error = $5, touched = $6, finished = $7 \
                 WHERE id = $1 AND status = 'running' AND expires > $6"
            }
            false => {
                "UPDATE tasks SET status = $2, progress = $3, result = $4, error = $5, touched = $6, finished = $7, \
                 request = $9, bytes = $8 WHERE id = $1 AND status = 'running' AND expires > $6"
            }
        };
        let mut updating = sqlx::query(put)
            .bind(id.to_owned())
            .bind(status.name())
            .bind(i64::from(progress))
            .bind(result)
            .bind(error)
            .bind(now)
            .bind(finished);
        if !is_open {
            updating = updating
                .bind(to_column(bytes as u64))
                .bind(Vec::<u8>::new());
        }
        let done = updating.execute(&self.pool).await?;
        Ok(done.rows_affected() > 0)
    }

    /// Cancels a task. `false`: the key has no such task, or it has ended.
    pub async fn cancel_task(&self, key: &str, id: &str) -> Result<bool, StoreError> {
        let cancel = "UPDATE tasks SET status = 'cancelled', finished = $3, touched = $3, request = $4, bytes = 0 \
             WHERE id = $1 AND key_id = $2 AND status IN ('queued', 'running')";
        let done = sqlx::query(cancel)
            .bind(id.to_owned())
            .bind(key.to_owned())
            .bind(milliseconds_now())
            .bind(Vec::<u8>::new())
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// How many bytes the requests of a key's tasks take that have not ended, and how many the results of the others.
    pub async fn task_bytes(&self, key: &str) -> Result<(u64, u64), StoreError> {
        let sums = "SELECT \
             CAST(COALESCE(SUM(CASE WHEN status IN ('queued', 'running') THEN bytes END), 0) AS BIGINT), \
             CAST(COALESCE(SUM(CASE WHEN status IN ('queued', 'running') THEN 0 ELSE bytes END), 0) AS BIGINT) \
             FROM tasks WHERE key_id = $1";
        let row = sqlx::query(sums)
            .bind(key.to_owned())
            .fetch_one(&self.pool)
            .await?;
        Ok((from_column(row.try_get(0)?), from_column(row.try_get(1)?)))
    }

    /// Deletes the oldest results of a key, except for one, until the others take no more than `bytes`. Their tasks
    /// stay for as long as they were there, with an expiry in the middle of it.
    pub async fn trim_task_results(
        &self,
        key: &str,
        except: &str,
        bytes: u64,
    ) -> Result<(), StoreError> {
        let trim = "UPDATE tasks SET result = NULL, bytes = 0, expires = $4 + ($4 - created) WHERE id IN (SELECT id FROM \
             (SELECT id, SUM(bytes) OVER (ORDER BY created DESC, id DESC) AS newer FROM tasks \
             WHERE key_id = $1 AND status = 'done' AND bytes > 0 AND id <> $2) AS sums \
             WHERE newer > CAST($3 AS BIGINT))";
        sqlx::query(trim)
            .bind(key.to_owned())
            .bind(except.to_owned())
            .bind(to_column(bytes))
            .bind(milliseconds_now())
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Deletes expired tasks, and returns how many.
    pub async fn delete_expired_tasks(&self) -> Result<u64, StoreError> {
        let done = sqlx::query("DELETE FROM tasks WHERE expires <= $1")
            .bind(milliseconds_now())
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected())
    }
}

impl StoredTask {
    fn from_row(row: &AnyRow) -> Result<StoredTask, StoreError> {
        let status: String = row.try_get(3)?;
        let progress: i64 = row.try_get(4)?;
        Ok(StoredTask {
            id: row.try_get(0)?,
            key: row.try_get(1)?,
            model: row.try_get(2)?,
            status: TaskStatus::from_name(&status).ok_or(StoreError::Corrupt("status"))?,
            progress: u8::try_from(progress).unwrap_or(100),
            request: Vec::new(),
            result: None,
            error: row.try_get(5)?,
            created: row.try_get(6)?,
            started: row.try_get(7)?,
            finished: row.try_get(8)?,
            expires: row.try_get(9)?,
        })
    }
}
