//! A file of credentials of Google, and the token that each kind is asked for.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::Request;
use serde::Deserialize;
use serde_json::json;

use super::external_account::ExternalAccount;
use super::impersonation::{CLOUD_SCOPE, impersonate};
use crate::credentials::jwt;
use crate::credentials::new_credential::NewCredential;
use crate::credentials::token_client::TokenClient;
use crate::credentials::token_response::{form_request, token};

const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
const JWT_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// A file of credentials, by its `type`.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum CredentialFile {
    ServiceAccount(ServiceAccount),
    AuthorizedUser(AuthorizedUser),
    ExternalAccount(Box<ExternalAccount>),
    ImpersonatedServiceAccount {
        service_account_impersonation_url: String,
        source_credentials: Box<CredentialFile>,
    },
}

#[derive(Deserialize)]
pub(super) struct ServiceAccount {
    client_email: String,
    private_key: String,
    private_key_id: Option<String>,
    token_uri: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct AuthorizedUser {
    client_id: String,
    client_secret: String,
    refresh_token: String,
    token_uri: Option<String>,
}

impl CredentialFile {
    pub(super) fn decode(text: &str) -> Result<CredentialFile, String> {
        // What the parser quotes may be a secret.
        serde_json::from_str(text).map_err(|_| {
            "the credentials are not JSON of the type service_account, authorized_user, external_account or \
             impersonated_service_account with all of its fields"
                .to_owned()
        })
    }

    pub(super) async fn fetch(
        self,
        client: &TokenClient,
        scope: &str,
    ) -> Result<NewCredential, String> {
        match self {
            CredentialFile::ServiceAccount(account) => {
                let request = account.request(scope, SystemTime::now())?;
                token(&client.send(request).await?)
            }
            CredentialFile::AuthorizedUser(user) => token(&client.send(user.request()?).await?),
            CredentialFile::ExternalAccount(account) => account.fetch(client, scope).await,
            CredentialFile::ImpersonatedServiceAccount {
                service_account_impersonation_url: url,
                source_credentials,
            } => {
                let own = Box::pin(source_credentials.fetch(client, CLOUD_SCOPE)).await?;
                impersonate(client, &own, &url, scope).await
            }
        }
    }
}

impl ServiceAccount {
    /// A signed claim for a token.
    fn request(&self, scope: &str, now: SystemTime) -> Result<Request<Bytes>, String> {
        let url = self.token_uri.as_deref().unwrap_or(TOKEN_URL);
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let claims = json!({
            "iss": self.client_email, "scope": scope, "aud": url, "iat": now, "exp": now + 3600,
        });
        let key_id = self.private_key_id.as_deref();
        let assertion = jwt::sign(&self.private_key, key_id, &claims)?;
        form_request(url, &[("grant_type", JWT_GRANT), ("assertion", &assertion)])
    }
}

impl AuthorizedUser {
    fn request(&self) -> Result<Request<Bytes>, String> {
        let url = self.token_uri.as_deref().unwrap_or(TOKEN_URL);
        let form = [
            ("grant_type", "refresh_token"),
            ("client_id", &self.client_id),
            ("client_secret", &self.client_secret),
            ("refresh_token", &self.refresh_token),
        ];
        form_request(url, &form)
    }
}
