//! What one owner takes of what all share: a key, or a person with all of the keys of the account.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::large_body_places::LargeBodyPlaces;

/// How much one owner takes. Outlives reloads.
#[derive(Debug)]
pub struct OwnerShare {
    /// The requests that count towards the limit of all keys.
    pub(super) admitted: AtomicU64,
    /// The memory that the bodies of its requests take.
    pub(super) body_bytes: AtomicUsize,
    /// The requests that are finished though their clients have left.
    left: AtomicUsize,
    /// The places for work on its large bodies.
    pub(super) large_bodies: LargeBodyPlaces,
}

impl Default for OwnerShare {
    fn default() -> OwnerShare {
        OwnerShare {
            admitted: AtomicU64::default(),
            body_bytes: AtomicUsize::default(),
            left: AtomicUsize::default(),
            large_bodies: LargeBodyPlaces::of_owner(),
        }
    }
}

/// How many requests of one owner are finished at once though their clients have left: they take places that others need.
const MAX_LEFT: usize = 32;

/// One request that is finished without its client.
#[must_use = "the request counts as ended when this is dropped"]
pub struct LeftPermit(Arc<OwnerShare>);

impl Drop for LeftPermit {
    fn drop(&mut self) {
        self.0.left.fetch_sub(1, Ordering::AcqRel);
    }
}

impl OwnerShare {
    /// Lets one more request be finished without its client; `None`: there are as many as may be.
    pub fn admit_left(self: &Arc<OwnerShare>) -> Option<LeftPermit> {
        let below = |count: usize| (count < MAX_LEFT).then_some(count + 1);
        let counted = self
            .left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, below);
        counted.ok().map(|_| LeftPermit(self.clone()))
    }
}
