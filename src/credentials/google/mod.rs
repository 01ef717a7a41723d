//! Access tokens of Google Cloud: of a service account, a user, a workload of another cloud, or the metadata server.

mod aws_identity;
mod credential_file;
mod external_account;
mod impersonation;
mod metadata;

use std::path::Path;

use credential_file::CredentialFile;

use super::new_credential::NewCredential;
use super::token_client::TokenClient;
use crate::config::{GoogleCredentials, GoogleSource};

pub(super) async fn fetch(
    client: &TokenClient,
    source: &GoogleSource,
) -> Result<NewCredential, String> {
    let scope = source.scopes.join(" ");
    let text = match &source.credentials {
        GoogleCredentials::Json(json) => json.expose().to_owned(),
        GoogleCredentials::File(file) => read(file).await?,
        GoogleCredentials::Default {
            file,
            metadata_host,
        } => match file.as_deref().filter(|file| file.exists()) {
            Some(file) => read(file).await?,
            None => return metadata::fetch(client, metadata_host, &source.scopes).await,
        },
    };
    CredentialFile::decode(&text)?.fetch(client, &scope).await
}

async fn read(file: &Path) -> Result<String, String> {
    let text = tokio::fs::read_to_string(file).await;
    text.map_err(|error| format!("{} cannot be read: {error}", file.display()))
}
