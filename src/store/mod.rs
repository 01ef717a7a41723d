//! What outlives the process, in SQLite or PostgreSQL: keys, usage, spending, stored responses, image tasks.

mod accounts;
mod database;
mod error;
mod free_disk;
mod key_changes;
mod keys;
mod lease_holder;
mod leases;
mod migrate;
mod owners;
mod query;
mod record_usage;
mod responses;
mod spending;
mod tasks;
mod usage_rows;
mod usage_sums;

pub use accounts::DEFAULT as DEFAULT_ACCOUNT;
pub use database::Store;
pub use error::StoreError;
pub use key_changes::KeyChanges;
pub use keys::{KeyChange, StoredKey, may_be_stored_key};
pub use lease_holder::LeaseHolder;
pub use leases::{KeyLeaseRequest, LEASED_FOR};
pub use responses::StoredResponse;
pub use tasks::{StoredTask, TaskStatus, TaskUpdate};
pub use usage_sums::{UsageGrouping, UsageSum};
