//! Where tasks are handed in, worked on a few at a time, and asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::job::Job;
use super::tasks::{News, Task, Tasks, milliseconds_now};
use crate::config;
use crate::metrics::InFlight;
use crate::model::{ApiError, ApiErrorKind};
use crate::runtime::Runtime;

/// How often whoever works on a task says so, and after which silence another takes it over.
const HEARTBEAT: Duration = Duration::from_secs(2);
const SILENCE: i64 = 10_000;

/// How often one looks for tasks that were handed in elsewhere, and for those to forget.
const LOOK: Duration = Duration::from_secs(1);
const SWEEP: Duration = Duration::from_secs(10);

const ASK_AGAIN: Duration = Duration::from_secs(5);

pub struct TaskQueue {
    runtime: Arc<Runtime>,
    tasks: Tasks,
    /// Something has been handed in.
    arrived: Notify,
    /// Those that this process works on, each with the way to stop it.
    running: Mutex<HashMap<String, Arc<Notify>>>,
}

/// Whoever can do the work.
#[async_trait]
pub trait ImageWorker: Send + Sync + 'static {
    /// `None`: it was stopped, or has to be done again by another process.
    async fn paint(&self, task: &str, job: Job, stop: &Notify) -> Option<TaskResult>;
}

/// A reply that nobody waited for.
pub struct TaskResult {
    pub status: u16,
    pub body: Bytes,
    /// Held until the result is written down: a process that leaves waits for it.
    pub busy: Option<InFlight>,
}

impl TaskQueue {
    pub fn new(runtime: Arc<Runtime>, tasks: Tasks) -> TaskQueue {
        TaskQueue {
            runtime,
            tasks,
            arrived: Notify::new(),
            running: Mutex::default(),
        }
    }

    fn settings(&self) -> config::TasksConfig {
        self.runtime.snapshot().images.tasks
    }

    pub async fn hand_in(&self, key: &str, model: &str, job: &Job) -> Result<Task, ApiError> {
        let settings = self.settings();
        if self.tasks.waiting().await? >= settings.waiting {
            let message = "as many image tasks are waiting as may (images.tasks.waiting)";
            let mut api_error = ApiError::new(ApiErrorKind::Overloaded, message);
            api_error.retry_after = Some(ASK_AGAIN);
            return Err(api_error);
        }
        let ttl = i64::try_from(settings.ttl.as_millis()).unwrap_or(i64::MAX);
        let task = self.tasks.create(key, model, job.to_bytes(), ttl).await?;
        self.arrived.notify_one();
        Ok(task)
    }

    pub async fn task(&self, key: &str, id: &str) -> Result<Task, ApiError> {
        let found = self.tasks.get(key, id).await?;
        found.ok_or_else(|| {
            let message = "there is no such task of this key (any more)";
            let mut api_error = ApiError::new(ApiErrorKind::NotFound, message);
            api_error.code = Some("task_not_found".to_owned());
            api_error
        })
    }

    pub async fn list(&self, key: &str, most: usize) -> Result<Vec<Task>, ApiError> {
        self.tasks.list(key, most).await
    }

    /// Ends a task that has not ended by itself, also while it runs.
    pub async fn cancel(&self, key: &str, id: &str) -> Result<Task, ApiError> {
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

    /// Works until it is told to leave; what runs then may come to its end.
    pub async fn work(
        self: Arc<TaskQueue>,
        painter: Arc<dyn ImageWorker>,
        leaving: impl Future<Output = ()> + Send,
    ) {
        let mut leaving = std::pin::pin!(leaving);
        let mut at_work = JoinSet::new();
        let mut sweep = interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.begin(&painter, &mut at_work).await;
            tokio::select! {
                () = &mut leaving => break,
                () = self.arrived.notified() => {}
                Some(_) = at_work.join_next() => {}
                () = sleep(LOOK) => {}
                _ = sweep.tick() => {
                    if let Err(api_error) = self.tasks.expire().await {
                        log::warn!("image tasks: {}", api_error.message);
                    }
                }
            }
        }
        while at_work.join_next().await.is_some() {}
    }

    /// As many as may run at once.
    async fn begin(
        self: &Arc<TaskQueue>,
        painter: &Arc<dyn ImageWorker>,
        at_work: &mut JoinSet<()>,
    ) {
        let most = self.settings().at_once;
        while (at_work.len() as u64) < most {
            match self.tasks.claim(milliseconds_now() - SILENCE).await {
                Ok(Some(task)) => {
                    let (desk, painter) = (self.clone(), painter.clone());
                    at_work.spawn(async move { desk.run(&*painter, task).await });
                }
                Ok(None) => return,
                Err(api_error) => return log::warn!("image tasks: {}", api_error.message),
            }
        }
    }

    async fn run(&self, painter: &dyn ImageWorker, task: Task) {
        let stop = Arc::new(Notify::new());
        self.running().insert(task.id.clone(), stop.clone());
        let painted = match Job::of_bytes(&task.request) {
            Some(job) => {
                self.watch(painter.paint(&task.id, job, &stop), &task, &stop)
                    .await
            }
            None => None,
        };
        self.running().remove(&task.id);
        let Some(TaskResult { status, body, busy }) = painted else {
            return;
        };
        let news = match status {
            200 => News::Succeeded(body),
            _ => News::Failed(error_in(&body)),
        };
        if let Err(api_error) = self.tasks.update(&task.id, news).await {
            log::error!(
                "image task {}: its result is lost: {}",
                task.id,
                api_error.message
            );
        }
        drop(busy);
    }

    /// Says that the work goes on, and stops it when nobody wants it any more.
    async fn watch(
        &self,
        painting: impl Future<Output = Option<TaskResult>>,
        task: &Task,
        stop: &Notify,
    ) -> Option<TaskResult> {
        // Beside the work: a store that is slow to answer must not hold it up.
        let beating = async {
            let mut heart = interval(HEARTBEAT);
            heart.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                heart.tick().await;
                let said = self.tasks.update(&task.id, News::Alive).await;
                // One that cannot be reached is no reason to stop.
                if said.is_ok_and(|runs| !runs) || task.expires <= milliseconds_now() {
                    stop.notify_one();
                }
            }
        };
        tokio::select! {
            painted = painting => painted,
            () = beating => None,
        }
    }
}

/// What the body of an error says.
fn error_in(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        error: &'a RawValue,
    }
    match serde_json::from_slice::<Body<'_>>(body) {
        Ok(body) => body.error.get().to_owned(),
        Err(_) => serde_json::json!({"message": String::from_utf8_lossy(body)}).to_string(),
    }
}
