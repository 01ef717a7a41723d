//! Service accounts of Google that the owner of another token may act as.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request, Response};
use serde::Deserialize;
use serde_json::json;

use crate::credentials::new_credential::NewCredential;
use crate::credentials::token_client::TokenClient;
use crate::credentials::token_response::{left_until, refusal};
use crate::runtime::CredentialValue;

/// What a token is for that is only used to ask for another one.
pub(super) const CLOUD_SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";

/// A token of a service account that the owner of another token may act as.
pub(super) async fn impersonate(
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
