//! Images that are made after their request was answered, and files that are kept for a while.

mod desk;
mod files;
mod job;
mod remembered;
mod shown;
mod stored;
mod tasks;

pub use desk::{ImageWorker, TaskQueue, TaskResult};
pub use files::{File, Files};
pub use job::Job;
pub use shown::{accepted, listed, shown};
pub use tasks::{News, Status, Task, Tasks};
