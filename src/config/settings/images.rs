//! Image tasks and image files.

use std::time::Duration;

/// Asynchronous image tasks, and image files that are served by URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagesConfig {
    pub tasks: TasksConfig,
    /// Whether images that come as URLs are fetched at once and served by the gateway.
    pub persist: bool,
    pub files: FilesConfig,
    /// The start of file URLs; absent: the gateway's address as the client used it.
    pub public_url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TasksConfig {
    /// Maximum number of tasks that run at the same time.
    pub at_once: u64,
    /// Maximum number of queued tasks.
    pub waiting: u64,
    /// Maximum number of queued tasks of one key.
    pub waiting_per_key: u64,
    /// Time from the request until the result is deleted.
    pub ttl: Duration,
    /// Maximum size of the requests and results of one key.
    pub max_bytes_per_key: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesConfig {
    /// Maximum size of one file.
    pub limit: usize,
    /// Maximum size of all files.
    pub size: usize,
    pub ttl: Duration,
    /// Time limit for fetching a file.
    pub timeout: Duration,
    /// Hosts, with an optional port, that may be fetched from although they have private addresses.
    pub hosts: Vec<String>,
}
