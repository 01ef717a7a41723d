//! The queue of image tasks: submits them, and works on a few at a time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::job::ImageJob;
use super::submissions::{Submission, Submissions};
use super::task::{ImageTask, QueuedTasks, RETRY_AFTER, TaskProgress, milliseconds_now};
use super::task_store::TaskStore;
use crate::access::ConcurrencyPermit;
use crate::config;
use crate::metrics::InFlight;
use crate::model::{ApiError, ApiErrorKind};
use crate::runtime::Runtime;

/// How often the worker of a task sends a heartbeat, and after how many milliseconds without one
/// another process takes the task over.
const HEARTBEAT: Duration = Duration::from_secs(2);
const HEARTBEAT_TIMEOUT: i64 = 10_000;

/// How often the queue looks for tasks of other processes, and for expired ones.
const POLL: Duration = Duration::from_secs(1);
const EXPIRE: Duration = Duration::from_secs(10);

/// Runs image tasks in the background.
pub struct TaskQueue {
    runtime: Arc<Runtime>,
    tasks: TaskStore,
    /// Wakes the worker loop when a task was submitted.
    submitted: Notify,
    /// The tasks that are being created, by their keys.
    submissions: Submissions,
    /// The tasks that this process works on, each with the handle that stops it.
    running: Mutex<HashMap<String, Arc<Notify>>>,
}

/// Generates the images of a task.
#[async_trait]
pub trait ImageWorker: Send + Sync + 'static {
    /// Takes one of the requests that the key of the task may have at once. `None`: all of them are taken.
    async fn start(&self, task: &ImageTask, job: &ImageJob) -> Option<ConcurrencyPermit>;

    /// Runs the job of a task. `None`: it was stopped, or another process must run it again.
    async fn generate(&self, task: &ImageTask, job: ImageJob, stop: &Notify) -> Option<TaskResult>;
}

/// The response to the request of a task.
pub struct TaskResult {
    pub status: u16,
    pub body: Bytes,
    /// Held until the result is stored: a process that shuts down waits for it.
    pub in_flight: Option<InFlight>,
}

impl TaskQueue {
    pub fn new(runtime: Arc<Runtime>, tasks: TaskStore) -> TaskQueue {
        TaskQueue {
            runtime,
            tasks,
            submitted: Notify::new(),
            submissions: Submissions::default(),
            running: Mutex::default(),
        }
    }

    fn settings(&self) -> config::TasksConfig {
        self.runtime.snapshot().images.tasks
    }

    /// Queues a job as a task of the key.
    pub async fn submit(
        &self,
        key: &str,
        model: &str,
        job: &ImageJob,
    ) -> Result<ImageTask, ApiError> {
        let settings = self.settings();
        let request = job.encode();
        // It counts before the store has it: many that come at once are not all within the limit.
        let _submission = Submission::begin(&self.submissions, key, request.len());
        let mut queued = self.tasks.queued(key).await?;
        self.submissions.add_to(&mut queued, key);
        check_queue(queued, settings)?;
        let ttl = i64::try_from(settings.ttl.as_millis()).unwrap_or(i64::MAX);
        let others = self.submissions.bytes(key) - request.len();
        let limits = (others, settings.max_bytes_per_key);
        self.tasks.make_room(key, request.len(), limits).await?;
        let task = self.tasks.create(key, model, request, ttl).await?;
        self.submitted.notify_one();
        Ok(task)
    }

    /// Returns a task of the key.
    pub async fn task(&self, key: &str, id: &str) -> Result<ImageTask, ApiError> {
        let found = self.tasks.get(key, id).await?;
        found.ok_or_else(|| {
            let message = "there is no such task of this key (any more)";
            let mut api_error = ApiError::new(ApiErrorKind::NotFound, message);
            api_error.code = Some("task_not_found".to_owned());
            api_error
        })
    }

    /// Returns the latest tasks of the key.
    pub async fn list(&self, key: &str, limit: usize) -> Result<Vec<ImageTask>, ApiError> {
        self.tasks.list(key, limit).await
    }

    /// Cancels a task that has not ended, also while it runs.
    pub async fn cancel(&self, key: &str, id: &str) -> Result<ImageTask, ApiError> {
        if !self.tasks.cancel(key, id).await? {
            self.task(key, id).await?;
            let message = "the task has ended already";
            return Err(ApiError::new(ApiErrorKind::Conflict, message));
        }
        if let Some(stop) = self.running().get(id) {
            stop.notify_one();
        }
        self.task(key, id).await
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Notify>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs tasks until the process shuts down; tasks that run then may finish.
    pub async fn run(
        self: Arc<TaskQueue>,
        worker: Arc<dyn ImageWorker>,
        shutdown: impl Future<Output = ()> + Send,
    ) {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut running = JoinSet::new();
        let mut expire = interval(EXPIRE);
        expire.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.start_tasks(&worker, &mut running).await;
            tokio::select! {
                () = &mut shutdown => break,
                () = self.submitted.notified() => {}
                Some(_) = running.join_next() => {}
                () = sleep(POLL) => {}
                _ = expire.tick() => {
                    if let Err(api_error) = self.tasks.expire().await {
                        log::warn!("image tasks: {}", api_error.message);
                    }
                }
            }
        }
        while running.join_next().await.is_some() {}
    }

    /// Starts tasks until as many run as may. A task whose key has as many requests at once as it may
    /// have goes back to the queue.
    async fn start_tasks(
        self: &Arc<TaskQueue>,
        worker: &Arc<dyn ImageWorker>,
        running: &mut JoinSet<()>,
    ) {
        let limit = self.settings().at_once;
        let mut busy = Vec::new();
        while (running.len() as u64) < limit {
            let no_heartbeat_since = milliseconds_now() - HEARTBEAT_TIMEOUT;
            let task = match self.tasks.claim(no_heartbeat_since, &busy).await {
                Ok(Some(task)) => task,
                Ok(None) => return,
                Err(api_error) => return log::warn!("image tasks: {}", api_error.message),
            };
            let Some(job) = ImageJob::decode(&task.request) else {
                continue;
            };
            let Some(permit) = worker.start(&task, &job).await else {
                let queued = self.tasks.update(&task.id, TaskProgress::Queued).await;
                if let Err(api_error) = queued {
                    log::warn!("image task {}: {}", task.id, api_error.message);
                }
                busy.push(task.key);
                continue;
            };
            let (queue, worker) = (self.clone(), worker.clone());
            running.spawn(async move { queue.run_task(&*worker, task, job, permit).await });
        }
    }

    async fn run_task(
        &self,
        worker: &dyn ImageWorker,
        task: ImageTask,
        job: ImageJob,
        permit: ConcurrencyPermit,
    ) {
        let stop = Arc::new(Notify::new());
        self.running().insert(task.id.clone(), stop.clone());
        let work = worker.generate(&task, job, &stop);
        let result = self.supervise(work, &task, &stop).await;
        self.running().remove(&task.id);
        drop(permit);
        let Some(TaskResult {
            status,
            body,
            in_flight,
        }) = result
        else {
            return;
        };
        let size = body.len();
        let progress = match status {
            200 => TaskProgress::Succeeded(body),
            _ => TaskProgress::Failed(decode_error(&body)),
        };
        if let Err(api_error) = self.tasks.update(&task.id, progress).await {
            log::error!(
                "image task {}: the result could not be stored and is lost: {}",
                task.id,
                api_error.message
            );
        }
        let limit = self.settings().max_bytes_per_key;
        if let Err(api_error) = self.tasks.trim(&task, size, limit).await {
            log::warn!(
                "image task {}: older results could not be deleted: {}",
                task.id,
                api_error.message
            );
        }
        drop(in_flight);
    }

    /// Sends heartbeats while a task runs, and stops it when it was cancelled or has expired.
    async fn supervise(
        &self,
        work: impl Future<Output = Option<TaskResult>>,
        task: &ImageTask,
        stop: &Notify,
    ) -> Option<TaskResult> {
        // Concurrent with the work: a slow store must not delay it.
        let heartbeats = async {
            let mut ticks = interval(HEARTBEAT);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let reported = self.tasks.update(&task.id, TaskProgress::Heartbeat).await;
                // A store that cannot be reached is no reason to stop.
                if reported.is_ok_and(|runs| !runs) || task.expires <= milliseconds_now() {
                    stop.notify_one();
                }
            }
        };
        tokio::select! {
            result = work => result,
            () = heartbeats => None,
        }
    }
}

/// Refuses one task more than the key may have queued, or all keys together.
fn check_queue(queued: QueuedTasks, settings: config::TasksConfig) -> Result<(), ApiError> {
    let (kind, message) = if queued.all > settings.waiting {
        let message = "the queue of image tasks is full (images.tasks.waiting)";
        (ApiErrorKind::Overloaded, message.to_owned())
    } else if queued.of_key > settings.waiting_per_key {
        let most = settings.waiting_per_key;
        let message = format!(
            "this API key has {most} image tasks queued, and may have no more (images.tasks.waiting_per_key)"
        );
        (ApiErrorKind::RateLimited, message)
    } else {
        return Ok(());
    };
    let mut api_error = ApiError::new(kind, message);
    api_error.retry_after = Some(RETRY_AFTER);
    Err(api_error)
}

/// Decodes the `error` object of a response.
fn decode_error(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct ErrorBody<'a> {
        #[serde(borrow)]
        error: &'a RawValue,
    }
    match serde_json::from_slice::<ErrorBody<'_>>(body) {
        Ok(body) => body.error.get().to_owned(),
        Err(_) => serde_json::json!({"message": String::from_utf8_lossy(body)}).to_string(),
    }
}
