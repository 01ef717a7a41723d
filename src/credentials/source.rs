//! Fetches a credential from its source.

use async_trait::async_trait;

use super::aws;
use super::command;
use super::new_credential::NewCredential;
use super::token_client::TokenClient;
use crate::config::CredentialSource;

/// Fetches credentials. An error says in words for the log what went wrong, without secrets.
#[async_trait]
pub trait CredentialFetcher: Send + Sync + 'static {
    async fn fetch(&self, source: &CredentialSource) -> Result<NewCredential, String>;
}

/// Fetches from the sources of the config.
#[derive(Default)]
pub struct SourceFetcher {
    client: TokenClient,
}

#[async_trait]
impl CredentialFetcher for SourceFetcher {
    async fn fetch(&self, source: &CredentialSource) -> Result<NewCredential, String> {
        match source {
            CredentialSource::Command(source) => command::fetch(source).await,
            CredentialSource::Aws(source) => aws::fetch(source, &self.client).await,
        }
    }
}

/// The secrets of a source, which no message may show.
pub(super) fn secrets(source: &CredentialSource) -> Vec<&str> {
    match source {
        CredentialSource::Command(source) => source.arguments.iter().map(String::as_str).collect(),
        CredentialSource::Aws(source) => {
            let secrets = [&source.secret_access_key, &source.session_token];
            let secrets = secrets.into_iter().flatten().map(|secret| secret.expose());
            secrets.chain(source.access_key_id.as_deref()).collect()
        }
    }
}
