//! What a provider says of itself: its endpoints and its keys.

use std::time::Instant;

use jsonwebtoken::decode_header;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::{Host, Url};

/// The claims of an identity, or what a provider says of itself: a JSON object.
pub type Claims = Map<String, Value>;

#[derive(Debug, Deserialize)]
pub struct Metadata {
    issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub jwks_uri: String,
    pub userinfo_endpoint: Option<String>,
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

impl Metadata {
    pub fn parse(object: Claims, issuer: &str) -> Result<Metadata, String> {
        let metadata: Metadata = serde_json::from_value(Value::Object(object))
            .map_err(|error| format!("openid-configuration cannot be used: {error}"))?;
        if metadata.issuer != issuer {
            return Err(format!(
                "openid-configuration is of the issuer {:?}, the config has {issuer:?}",
                metadata.issuer
            ));
        }
        let endpoints = [
            Some(&metadata.authorization_endpoint),
            Some(&metadata.token_endpoint),
            Some(&metadata.jwks_uri),
            metadata.userinfo_endpoint.as_ref(),
        ];
        for endpoint in endpoints.into_iter().flatten() {
            if !is_safe(endpoint, issuer) {
                return Err(format!(
                    "openid-configuration names {endpoint:?}, without TLS"
                ));
            }
        }
        Ok(metadata)
    }

    /// Whether the secret of the client goes into a header; that is so where nothing else is said.
    pub fn takes_basic(&self) -> bool {
        let methods = self.token_endpoint_auth_methods_supported.as_ref();
        methods.is_none_or(|methods| methods.iter().any(|method| method == "client_secret_basic"))
    }
}

/// https; or on this machine, for an issuer that is there too: no other leads requests here.
fn is_safe(endpoint: &str, issuer: &str) -> bool {
    let is_local = |text: &str| {
        Url::parse(text).is_ok_and(|url| {
            let is_loopback = match url.host() {
                Some(Host::Domain(host)) => host == "localhost",
                Some(Host::Ipv4(address)) => address.is_loopback(),
                Some(Host::Ipv6(address)) => address.is_loopback(),
                None => false,
            };
            url.scheme() == "http" && is_loopback
        })
    };
    let is_https = Url::parse(endpoint).is_ok_and(|url| url.scheme() == "https");
    is_https || is_local(endpoint) && is_local(issuer)
}

/// The public keys of a provider.
pub struct ProviderKeys {
    keys: Vec<Jwk>,
    /// When they were asked for again; absent: they came with the metadata.
    pub replaced: Option<Instant>,
}

impl ProviderKeys {
    /// Keys that are not known here, and those for encryption, are left out.
    pub fn parse(mut object: Claims) -> ProviderKeys {
        let keys = object.remove("keys");
        let keys = match keys {
            Some(Value::Array(keys)) => keys,
            _ => Vec::new(),
        };
        let keys = keys
            .into_iter()
            .filter_map(|key| serde_json::from_value::<Jwk>(key).ok());
        let is_signing = |key: &Jwk| key.common.public_key_use != Some(PublicKeyUse::Encryption);
        ProviderKeys {
            keys: keys.filter(is_signing).collect(),
            replaced: None,
        }
    }

    pub fn replaced_now(self) -> ProviderKeys {
        ProviderKeys {
            replaced: Some(Instant::now()),
            ..self
        }
    }

    /// The keys that may have signed a token: the one it names, or all.
    pub fn named(&self, id: Option<&str>) -> impl Iterator<Item = &Jwk> {
        let is_it = move |key: &&Jwk| id.is_none() || key.common.key_id.as_deref() == id;
        self.keys.iter().filter(is_it)
    }

    pub fn has_key_of(&self, token: &str) -> bool {
        decode_header(token).is_ok_and(|header| self.named(header.kid.as_deref()).next().is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_issuer_of_this_machine_names_endpoints_without_tls() {
        let (here, there) = ("http://127.0.0.1:9000", "https://id.example.com");
        for (endpoint, issuer, is_fine) in [
            ("https://keys.example.net/jwks", there, true),
            ("https://keys.example.net/jwks", here, true),
            ("http://127.0.0.1:1/keys", here, true),
            ("http://localhost:1/keys", here, true),
            ("http://[::1]:1/keys", here, true),
            ("http://127.0.0.1:8081/metrics", there, false),
            ("http://localhost/keys", there, false),
            ("http://169.254.169.254/latest", here, false),
            ("http://id.example.com/keys", there, false),
            ("file:///etc/passwd", here, false),
            ("/keys", there, false),
        ] {
            assert_eq!(is_safe(endpoint, issuer), is_fine, "{endpoint} of {issuer}");
        }
    }
}
