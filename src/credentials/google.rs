//! Access tokens of Google Cloud: of a service account, a user, a workload of another cloud, or the metadata server.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::jwt;
use super::new_credential::NewCredential;
use super::token_client::TokenClient;
use super::token_response::{form_request, left_until, refusal, token};
use crate::config::{GoogleCredentials, GoogleSource};
use crate::runtime::CredentialValue;

const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";
const JWT_GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const EXCHANGE_GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";
/// What a token is exchanged for that is only used to ask for another one.
const CLOUD_SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// A file of credentials, by its `type`.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CredentialFile {
    ServiceAccount(ServiceAccount),
    AuthorizedUser(AuthorizedUser),
    ExternalAccount(Box<ExternalAccount>),
    ImpersonatedServiceAccount {
        service_account_impersonation_url: String,
        source_credentials: Box<CredentialFile>,
    },
}

#[derive(Deserialize)]
struct ServiceAccount {
    client_email: String,
    private_key: String,
    private_key_id: Option<String>,
    token_uri: Option<String>,
}

#[derive(Deserialize)]
struct AuthorizedUser {
    client_id: String,
    client_secret: String,
    refresh_token: String,
    token_uri: Option<String>,
}

#[derive(Deserialize)]
struct ExternalAccount {
    audience: String,
    subject_token_type: String,
    token_url: String,
    service_account_impersonation_url: Option<String>,
    credential_source: SubjectSource,
}

/// Where the token of the other cloud is.
#[derive(Deserialize)]
struct SubjectSource {
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
            None => return from_metadata(client, metadata_host, &source.scopes).await,
        },
    };
    from_file(client, decode(&text)?, &scope).await
}

async fn read(file: &Path) -> Result<String, String> {
    let text = tokio::fs::read_to_string(file).await;
    text.map_err(|error| format!("{} cannot be read: {error}", file.display()))
}

fn decode(text: &str) -> Result<CredentialFile, String> {
    // What the parser quotes may be a secret.
    serde_json::from_str(text).map_err(|_| {
        "the credentials are not JSON of the type service_account, authorized_user, external_account or \
         impersonated_service_account with all of its fields"
            .to_owned()
    })
}

async fn from_file(
    client: &TokenClient,
    file: CredentialFile,
    scope: &str,
) -> Result<NewCredential, String> {
    match file {
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
            let own = Box::pin(from_file(client, *source_credentials, CLOUD_SCOPE)).await?;
            impersonate(client, &own, &url, scope).await
        }
    }
}

async fn from_metadata(
    client: &TokenClient,
    host: &str,
    scopes: &[String],
) -> Result<NewCredential, String> {
    let query = Serializer::new(String::new())
        .append_pair("scopes", &scopes.join(","))
        .finish();
    let request = Request::builder()
        .uri(format!(
            "http://{host}/computeMetadata/v1/instance/service-accounts/default/token?{query}"
        ))
        .header("metadata-flavor", "Google")
        .body(Bytes::new());
    let response = client
        .send(request.map_err(|error| error.to_string())?)
        .await?;
    // Another server at this address must not be taken for it.
    if response.headers().get("metadata-flavor") != Some(&HeaderValue::from_static("Google")) {
        return Err(format!("{host} is no metadata server of Google"));
    }
    token(&response)
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

impl ExternalAccount {
    /// Exchanges the token of the other cloud, and becomes a service account where the file names one.
    async fn fetch(&self, client: &TokenClient, scope: &str) -> Result<NewCredential, String> {
        let subject = self.credential_source.token(client).await?;
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
    async fn token(&self, client: &TokenClient) -> Result<String, String> {
        let text = match (&self.file, &self.url) {
            (Some(file), _) => read(Path::new(file)).await?,
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

/// A token of a service account that the owner of another token may act as.
async fn impersonate(
    client: &TokenClient,
    own: &NewCredential,
    url: &str,
    scope: &str,
) -> Result<NewCredential, String> {
    let scopes: Vec<&str> = scope.split(' ').collect();
    let body = json!({"scope": scopes, "lifetime": "3600s"});
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(url)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json")
        .body(Bytes::from(body.to_string()))
        .map_err(|_| "service_account_impersonation_url is not valid".to_owned())?;
    if let CredentialValue::Bearer(bearer) = &own.value {
        request.headers_mut().insert(AUTHORIZATION, bearer.clone());
    }
    impersonated(&client.send(request).await?)
}

fn impersonated(response: &Response<Bytes>) -> Result<NewCredential, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Impersonated {
        access_token: String,
        expire_time: String,
    }
    if response.status() != 200 {
        return Err(refusal(response.status().as_u16(), response.body()));
    }
    let found: Result<Impersonated, _> = serde_json::from_slice(response.body());
    let found = found.map_err(|_| "the response has no accessToken and expireTime".to_owned())?;
    let at: jiff::Timestamp = found
        .expire_time
        .parse()
        .map_err(|_| "expireTime is no point in time".to_owned())?;
    let at = u64::try_from(at.as_second()).unwrap_or_default();
    let life = left_until(Duration::from_secs(at), SystemTime::now());
    NewCredential::bearer(&found.access_token, life)
}
