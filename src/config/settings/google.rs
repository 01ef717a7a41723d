//! How access tokens of Google Cloud are fetched.

use std::path::PathBuf;

use super::secret::Secret;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GoogleSource {
    pub credentials: GoogleCredentials,
    pub scopes: Vec<String>,
}

/// Who the gateway is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GoogleCredentials {
    /// A file of credentials: a service account, a user, or a workload of another cloud.
    File(PathBuf),
    /// The content of such a file.
    Json(Secret),
    /// The file that `gcloud auth application-default login` writes, if it is there; else the metadata server.
    Default {
        file: Option<PathBuf>,
        metadata_host: String,
    },
}
