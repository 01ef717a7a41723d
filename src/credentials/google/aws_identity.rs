//! A workload on AWS shows Google who it is: by a signed request to AWS that Google sends in its place.

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri};
use jiff::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use crate::credentials::aws::{self, RequestToSign};
use crate::credentials::token_client::TokenClient;
use crate::runtime::SigningScope;

/// It names the pool that the request is meant for, so that it is of no use at another.
const TARGET: HeaderName = HeaderName::from_static(aws::GOOGLE_TARGET);

/// The only version of the exchange that there is.
const VERSION: &str = "aws1";

/// The `credential_source` of a workload on AWS.
#[derive(Deserialize)]
pub(super) struct AwsIdentity {
    environment_id: String,
    /// Answers with the zone of the instance.
    region_url: Option<String>,
    /// The credentials of the instance's role. Its host is that of the metadata service.
    url: Option<String>,
    regional_cred_verification_url: String,
}

impl AwsIdentity {
    /// The token of the workload: the signed request, as JSON.
    pub(super) async fn token(
        &self,
        client: &TokenClient,
        audience: &str,
    ) -> Result<String, String> {
        if self.environment_id != VERSION {
            return Err(format!("credential_source.environment_id is not {VERSION}"));
        }
        let endpoint = self.metadata_endpoint();
        let region = self.region(client, endpoint.as_deref()).await?;
        let credentials = aws::workload_credentials(client, &region, endpoint).await?;
        let url = self
            .regional_cred_verification_url
            .replace("{region}", &region);
        let uri: Uri = url.parse().map_err(|_| wrong_url())?;
        let host = uri.host().filter(|_| uri.scheme_str() == Some("https"));
        let host = HeaderValue::from_str(host.ok_or_else(wrong_url)?).map_err(|_| wrong_url())?;
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host);
        let audience = HeaderValue::from_str(audience);
        headers.insert(
            TARGET,
            audience.map_err(|_| "no header can hold the audience")?,
        );
        let request = RequestToSign {
            method: "POST",
            target: uri.path_and_query().map_or("/", |target| target.as_str()),
            body_hash: aws::body_hash([b""]),
        };
        let scope = SigningScope {
            region,
            service: "sts".to_owned(),
        };
        let signed = aws::sign(
            &mut headers,
            &request,
            &credentials,
            &scope,
            Timestamp::now(),
        );
        signed.ok_or("no header can hold the credentials of AWS")?;
        Ok(encode(&url, &headers))
    }

    /// The metadata service that the file names.
    fn metadata_endpoint(&self) -> Option<String> {
        let url = Url::parse(self.url.as_deref()?).ok()?;
        Some(url.origin().ascii_serialization())
    }

    async fn region(&self, client: &TokenClient, endpoint: Option<&str>) -> Result<String, String> {
        let variables = ["AWS_REGION", "AWS_DEFAULT_REGION"];
        let named = variables.iter().find_map(|name| std::env::var(name).ok());
        if let Some(region) = named.filter(|region| !region.is_empty()) {
            return Ok(region);
        }
        let url = self.region_url.as_deref();
        let url = url.ok_or("credential_source has no region_url: set AWS_REGION")?;
        let mut request = Request::get(url);
        if let Some(endpoint) = endpoint {
            let (name, token) = aws::metadata_token(client, endpoint).await?;
            request = request.header(name, token);
        }
        let request = request.body(Bytes::new());
        let request = request.map_err(|_| "credential_source.region_url is not valid")?;
        let response = client.send(request).await?;
        let zone = String::from_utf8_lossy(response.body());
        // The zone is the region and a letter.
        let region = zone
            .trim()
            .trim_end_matches(|sign: char| sign.is_ascii_lowercase());
        match response.status() {
            StatusCode::OK if !region.is_empty() => Ok(region.to_owned()),
            status => {
                let status = status.as_u16();
                Err(format!("no region of AWS: status {status}; set AWS_REGION"))
            }
        }
    }
}

fn wrong_url() -> String {
    "credential_source.regional_cred_verification_url is no URL with https".to_owned()
}

/// The request as Google reads it, encoded as for a URL.
fn encode(url: &str, headers: &HeaderMap) -> String {
    let headers: Vec<_> = headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            json!({"key": name.as_str(), "value": value})
        })
        .collect();
    let request = json!({"url": url, "method": "POST", "headers": headers}).to_string();
    utf8_percent_encode(&request, NON_ALPHANUMERIC).to_string()
}
