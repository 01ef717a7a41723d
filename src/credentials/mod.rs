//! Credentials for upstreams that are valid for a while: fetched, kept fresh, and put on requests.

mod command;
mod new_credential;
mod refresher;
mod source;
mod token_client;
mod token_response;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};

pub use new_credential::NewCredential;
pub use refresher::CredentialRefresher;
pub use source::{CredentialFetcher, SourceFetcher};
pub use token_client::TokenClient;

use crate::runtime::{Credential, CredentialValue};

/// Puts a credential on a request that is otherwise complete: target, headers and body are what will be sent. The chunks of
/// the body are for credentials that sign it; others leave them alone.
pub fn apply(
    credential: &Credential,
    request: &mut http::request::Parts,
    _body: &mut dyn Iterator<Item = Bytes>,
) {
    match &credential.value {
        CredentialValue::Bearer(value) => {
            request.headers.insert(AUTHORIZATION, value.clone());
        }
    }
}

/// Whether a response means that the credential is not valid any more, so that another one may help.
pub fn is_refused(credential: &Credential, status: StatusCode, _headers: &HeaderMap) -> bool {
    match &credential.value {
        CredentialValue::Bearer(_) => status == StatusCode::UNAUTHORIZED,
    }
}
