//! Access tokens of the metadata server of a machine at Google.

use bytes::Bytes;
use http::{HeaderValue, Request};
use url::form_urlencoded::Serializer;

use crate::credentials::new_credential::NewCredential;
use crate::credentials::token_client::TokenClient;
use crate::credentials::token_response::token;

pub(super) async fn fetch(
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
