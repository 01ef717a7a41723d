//! Fetches a credential from its source.

use async_trait::async_trait;

use super::new_credential::NewCredential;
use super::token_client::TokenClient;
use super::{aws, azure, command, google};
use crate::config::{AzureGrant, CredentialSource, ManagedIdentity};

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
            CredentialSource::Azure(source) => azure::fetch(&self.client, source).await,
            CredentialSource::Command(source) => command::fetch(source).await,
            CredentialSource::Aws(source) => aws::fetch(source, &self.client).await,
            CredentialSource::Google(source) => google::fetch(&self.client, source).await,
        }
    }
}

/// The secrets of a source, which no message may show.
pub(super) fn secrets(source: &CredentialSource) -> Vec<&str> {
    match source {
        CredentialSource::Azure(source) => match &source.grant {
            AzureGrant::ClientSecret { secret, .. } => vec![secret.expose()],
            AzureGrant::FederatedToken { .. } => Vec::new(),
            AzureGrant::ManagedIdentity { identity, .. } => match identity {
                ManagedIdentity::Metadata { .. } => Vec::new(),
                ManagedIdentity::AppService { secret, .. } => vec![secret.expose()],
            },
        },
        // What is in its files stays there: no message quotes them.
        CredentialSource::Google(_) => Vec::new(),
        CredentialSource::Command(source) => source.arguments.iter().map(String::as_str).collect(),
        CredentialSource::Aws(source) => {
            let secrets = [&source.secret_access_key, &source.session_token];
            let secrets = secrets.into_iter().flatten().map(|secret| secret.expose());
            secrets.chain(source.access_key_id.as_deref()).collect()
        }
    }
}
