//! Work that takes a processor for a while: on threads that may block, and few at once.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::refusal::Refusal;

/// The places for such work.
pub struct BlockingWork {
    permits: Arc<Semaphore>,
}

impl BlockingWork {
    pub fn new(at_once: usize) -> BlockingWork {
        BlockingWork {
            permits: Arc::new(Semaphore::new(at_once)),
        }
    }

    /// Runs some work as soon as there is a place.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.map_err(|_| Refusal::Unavailable)?;
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.map_err(|_| Refusal::Unavailable)
    }
}
