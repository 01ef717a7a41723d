//! The credentials of an upstream: a secret of the config, or a source that they are fetched from.

use std::time::Duration;

use secrecy::SecretString;

use super::azure::AzureSource;
use super::google::GoogleSource;
use super::secret::Secret;

#[derive(Debug, Clone)]
pub enum Auth {
    Bearer(SecretString),
    Header {
        name: String,
        value: SecretString,
    },
    Query {
        name: String,
        value: SecretString,
    },
    /// Fetched by the gateway, and fetched again before it expires.
    Fetched(CredentialSource),
}

/// Where a credential is fetched from. Two upstreams with equal sources share the credential, which also outlives a
/// reload that leaves its source as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CredentialSource {
    Azure(AzureSource),
    Google(GoogleSource),
    Command(CommandSource),
    Aws(AwsSource),
}

/// A program that prints a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CommandSource {
    pub program: String,
    pub arguments: Vec<String>,
    /// How long a token is used that does not say so itself.
    pub ttl: Duration,
}

/// Credentials of AWS, which sign each request. What is absent is found as the tools of AWS find it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct AwsSource {
    pub region: String,
    /// The service that requests are signed for.
    pub service: String,
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<Secret>,
    pub session_token: Option<Secret>,
    pub profile: Option<String>,
    pub role_arn: Option<String>,
    pub role_session_name: Option<String>,
    pub external_id: Option<String>,
    pub web_identity_token_file: Option<String>,
}
