//! Decides whether a request may go on: its API key, the models of the key, its rate limits and its spending cap.

mod attempt_buckets;
mod authenticate;
mod cached_keys;
mod errors;
mod failed_attempts;
mod keyring;
mod leases;
mod limits;
mod reserve;
mod shared_limits;
mod temporary_secrets;

pub use attempt_buckets::AttemptBuckets;
pub use authenticate::{
    KEY_PARAMETER, KeyLookup, TaskKey, authenticate, authorize_model, presented_secret,
    reauthenticate, refuse_other_model,
};
pub use errors::invalid_key;
pub use failed_attempts::{FailedAttempts, client_network};
pub use keyring::Keyring;
pub use leases::Leases;
pub use limits::{
    Admission, ConcurrencyPermit, acquire_slot, admit, admit_image, admit_reading, admit_shared,
    admit_task, count_request,
};
pub use reserve::{PendingReservation, Reserve, SHORTER_ANSWER, reserve};
pub use shared_limits::SharedLimits;
