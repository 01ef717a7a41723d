//! Memory that is not used any more goes back to the system, even where nothing else happens.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Duration;

use tokio::time::sleep;

/// Longer than the allocator keeps what was freed in case it is asked for again.
const PAUSE: Duration = Duration::from_secs(2);

/// So large that it gets a page of its own; nobody writes to it, so that it costs no memory.
const BLOCK: usize = 8 << 20;

/// The allocator looks after what was freed when it hands out or takes back a page. After the
/// last of many large bodies it may do neither for hours.
pub(super) async fn give_back() -> Infallible {
    loop {
        sleep(PAUSE).await;
        drop(black_box(Vec::<u8>::with_capacity(BLOCK)));
    }
}
