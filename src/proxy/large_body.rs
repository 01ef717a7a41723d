//! Work on large bodies leaves the threads that serve all requests.

/// Below this size, the work takes about a millisecond at most.
pub(super) const LARGE: usize = 256 << 10;

/// Does the work for a body of this size. While the work for a large one goes on, another thread serves
/// the requests that would have to wait for it.
pub(super) fn process<T>(size: usize, work: impl FnOnce() -> T) -> T {
    match size < LARGE {
        true => work(),
        false => tokio::task::block_in_place(work),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// The work waits for another task of the same thread.
    fn other_tasks_go_on(size: usize, patience: Duration) -> bool {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).build().expect("a runtime");
        let (sender, receiver) = mpsc::channel();
        let working = runtime.spawn(async move {
            tokio::spawn(async move { sender.send(()) });
            process(size, || receiver.recv_timeout(patience).is_ok())
        });
        runtime.block_on(working).expect("the work is done")
    }

    #[test]
    fn other_requests_go_on_while_a_large_body_is_processed() {
        assert!(other_tasks_go_on(LARGE, Duration::from_secs(60)));
        assert!(!other_tasks_go_on(LARGE - 1, Duration::from_millis(50)));
    }
}
