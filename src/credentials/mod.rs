//! Credentials for upstreams that are valid for a while: fetched, kept fresh, and put on requests.

mod aws;
mod azure;
mod command;
mod google;
mod jwt;
mod new_credential;
mod refresher;
mod source;
mod token_client;
mod token_response;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;

pub use new_credential::NewCredential;
pub use refresher::CredentialRefresher;
pub use source::{CredentialFetcher, SourceFetcher};
pub use token_client::TokenClient;

use crate::formats::{AWS_ERROR_TYPE, is_expired_credential};
use crate::runtime::{Credential, CredentialValue};

/// Puts a credential on a request that is otherwise complete: target, headers and body are what will be sent. The chunks of
/// the body are for credentials that sign it; others leave them alone.
pub fn apply(
    credential: &Credential,
    request: &mut http::request::Parts,
    body: &mut dyn Iterator<Item = Bytes>,
) {
    match &credential.value {
        CredentialValue::Bearer(value) => {
            request.headers.insert(AUTHORIZATION, value.clone());
        }
        CredentialValue::Aws { credentials, scope } => {
            let target = request.uri.path_and_query();
            let signed = aws::RequestToSign {
                method: request.method.as_str(),
                target: target.map_or("/", |target| target.as_str()),
                body_hash: aws::body_hash(body),
            };
            let now = Timestamp::now();
            // Credentials that no header can hold leave a request unsigned, and AWS refuses it.
            let _ = aws::sign(&mut request.headers, &signed, credentials, scope, now);
        }
    }
}

/// Whether a response means that the credential is not valid any more, so that another one may help.
pub fn is_refused(credential: &Credential, status: StatusCode, headers: &HeaderMap) -> bool {
    match &credential.value {
        CredentialValue::Bearer(_) => status == StatusCode::UNAUTHORIZED,
        CredentialValue::Aws { .. } => {
            let name = headers.get(AWS_ERROR_TYPE);
            let name = name.and_then(|name| name.to_str().ok());
            matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
                && name.is_none_or(is_expired_credential)
        }
    }
}
