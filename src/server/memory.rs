//! Returns unused memory to the system while the process is idle.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Duration;

use tokio::time::sleep;

/// Longer than the allocator keeps freed memory for reuse.
const INTERVAL: Duration = Duration::from_secs(2);

/// Large enough for a page of its own; it is never written to, so that it costs no memory.
const BLOCK: usize = 8 << 20;

/// Makes the allocator purge freed pages, which it does only when a page is allocated or freed; after many
/// large bodies that may not happen for hours.
pub(super) async fn purge() -> Infallible {
    loop {
        sleep(INTERVAL).await;
        drop(black_box(Vec::<u8>::with_capacity(BLOCK)));
    }
}
