//! Credentials for AWS: where they come from, and how a request is signed with them.

mod chain;
mod documents;
mod fetch;
mod shared_files;
mod signature;

pub(super) use fetch::{fetch, metadata_token, workload_credentials};
pub(super) use signature::{GOOGLE_TARGET, RequestToSign, body_hash, sign};
