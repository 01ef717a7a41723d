//! Workloads of other clouds at Google: a token that they have is exchanged for one of Google's.

use bytes::Bytes;
use http::Request;
use serde::Deserialize;
use serde_json::Value;

use super::aws_identity::AwsIdentity;
use super::impersonation::{CLOUD_SCOPE, impersonate};
use crate::credentials::new_credential::NewCredential;
use crate::credentials::token_client::TokenClient;
use crate::credentials::token_response::{form_request, refusal, token};

const EXCHANGE_GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";

#[derive(Deserialize)]
pub(super) struct ExternalAccount {
    audience: String,
    subject_token_type: String,
    token_url: String,
    service_account_impersonation_url: Option<String>,
    credential_source: SubjectSource,
}

/// Where the token of the other cloud is.
#[derive(Deserialize)]
#[serde(untagged)]
enum SubjectSource {
    Aws(AwsIdentity),
    Text(TextSource),
}

/// A token in a file, or one that a server on this machine or on the link answers with.
#[derive(Deserialize)]
struct TextSource {
    file: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: serde_json::Map<String, Value>,
    #[serde(default)]
    format: SubjectFormat,
}

#[derive(Deserialize, Default)]
struct SubjectFormat {
    #[serde(rename = "type")]
    kind: Option<String>,
    subject_token_field_name: Option<String>,
}

impl ExternalAccount {
    /// Exchanges the token of the other cloud, and becomes a service account where the file names one.
    pub(super) async fn fetch(
        &self,
        client: &TokenClient,
        scope: &str,
    ) -> Result<NewCredential, String> {
        let subject = self.credential_source.token(client, &self.audience).await?;
        let impersonation = self.service_account_impersonation_url.as_deref();
        let own_scope = impersonation.map_or(scope, |_| CLOUD_SCOPE);
        let form = [
            ("grant_type", EXCHANGE_GRANT),
            ("audience", &self.audience),
            ("scope", own_scope),
            ("requested_token_type", ACCESS_TOKEN_TYPE),
            ("subject_token", subject.trim()),
            ("subject_token_type", &self.subject_token_type),
        ];
        let own = token(&client.send(form_request(&self.token_url, &form)?).await?)?;
        match impersonation {
            Some(url) => impersonate(client, &own, url, scope).await,
            None => Ok(own),
        }
    }
}

impl SubjectSource {
    async fn token(&self, client: &TokenClient, audience: &str) -> Result<String, String> {
        match self {
            SubjectSource::Aws(identity) => identity.token(client, audience).await,
            SubjectSource::Text(source) => source.token(client).await,
        }
    }
}

impl TextSource {
    async fn token(&self, client: &TokenClient) -> Result<String, String> {
        let text = match (&self.file, &self.url) {
            (Some(file), _) => {
                let text = tokio::fs::read_to_string(file).await;
                text.map_err(|error| format!("{file} cannot be read: {error}"))?
            }
            (None, Some(url)) => {
                let mut request = Request::builder().uri(url);
                for (name, value) in &self.headers {
                    request = request.header(name, value.as_str().unwrap_or_default());
                }
                let request = request.body(Bytes::new());
                let request =
                    request.map_err(|_| "credential_source.url is not valid".to_owned())?;
                let response = client.send(request).await?;
                if response.status() != 200 {
                    return Err(refusal(response.status().as_u16(), response.body()));
                }
                String::from_utf8_lossy(response.body()).into_owned()
            }
            (None, None) => {
                return Err(
                    "credential_source has neither file nor url; use auth.command for others"
                        .to_owned(),
                );
            }
        };
        if self.format.kind.as_deref() != Some("json") {
            return Ok(text);
        }
        let name = self
            .format
            .subject_token_field_name
            .as_deref()
            .unwrap_or_default();
        let value: Value = serde_json::from_str(&text).unwrap_or_default();
        let found = value[name].as_str().map(str::to_owned);
        found.ok_or_else(|| format!("the subject token has no field {name:?}"))
    }
}
