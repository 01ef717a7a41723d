//! Tokens of Microsoft Entra: with a client secret, with the token of a workload, or as a managed identity.

use bytes::Bytes;
use http::{HeaderName, Request};
use url::form_urlencoded::Serializer;

use super::new_credential::NewCredential;
use super::token_client::TokenClient;
use super::token_response::{form_request, token};
use crate::config::{AzureGrant, AzureSource, ManagedIdentity};

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const METADATA_VERSION: &str = "2018-02-01";
const APP_SERVICE_VERSION: &str = "2019-08-01";

pub(super) async fn fetch(
    client: &TokenClient,
    source: &AzureSource,
) -> Result<NewCredential, String> {
    let response = client.send(request(source).await?).await?;
    token(&response)
}

async fn request(source: &AzureSource) -> Result<Request<Bytes>, String> {
    let scope = source.scope.as_str();
    match &source.grant {
        AzureGrant::ClientSecret { app, secret } => {
            let form = [
                ("grant_type", "client_credentials"),
                ("client_id", &app.client_id),
                ("client_secret", secret.expose()),
                ("scope", scope),
            ];
            form_request(&app.token_url(), &form)
        }
        AzureGrant::FederatedToken { app, file } => {
            // The platform replaces it now and then.
            let assertion = tokio::fs::read_to_string(file).await;
            let assertion =
                assertion.map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
            let form = [
                ("grant_type", "client_credentials"),
                ("client_id", &app.client_id),
                ("client_assertion_type", ASSERTION_TYPE),
                ("client_assertion", assertion.trim()),
                ("scope", scope),
            ];
            form_request(&app.token_url(), &form)
        }
        AzureGrant::ManagedIdentity {
            identity,
            client_id,
        } => identity_request(identity, client_id.as_deref(), scope),
    }
}

fn identity_request(
    identity: &ManagedIdentity,
    client_id: Option<&str>,
    scope: &str,
) -> Result<Request<Bytes>, String> {
    let resource = scope.strip_suffix("/.default").unwrap_or(scope);
    let (url, version, header) = match identity {
        ManagedIdentity::Metadata { host } => (
            format!("{host}/metadata/identity/oauth2/token"),
            METADATA_VERSION,
            (HeaderName::from_static("metadata"), "true"),
        ),
        ManagedIdentity::AppService { endpoint, secret } => (
            endpoint.clone(),
            APP_SERVICE_VERSION,
            (
                HeaderName::from_static("x-identity-header"),
                secret.expose(),
            ),
        ),
    };
    let mut query = Serializer::new(String::new());
    query.append_pair("api-version", version);
    query.append_pair("resource", resource);
    query.extend_pairs(client_id.map(|client_id| ("client_id", client_id)));
    let request = Request::builder()
        .uri(format!("{url}?{}", query.finish()))
        .header(header.0, header.1)
        .body(Bytes::new());
    request.map_err(|error| error.to_string())
}
