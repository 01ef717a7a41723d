//! Image generation in the background, and the files that clients fetch afterwards.

mod database_store;
mod files;
mod job;
mod memory_store;
mod queue;
mod response;
mod submissions;
mod task;
mod task_store;

pub use files::{FileStore, StoredFile};
pub use job::ImageJob;
pub use queue::{ImageWorker, TaskQueue, TaskResult};
pub use response::{encode_accepted, encode_task, encode_task_list};
pub use task::{ImageTask, ImageTaskStatus, TaskProgress};
pub use task_store::TaskStore;
