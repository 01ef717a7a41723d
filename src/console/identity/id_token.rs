//! ID tokens: signature, issuer, audience, expiry and nonce, then the claims that say who it is.

use jiff::Timestamp;
use jsonwebtoken::{DecodingKey, Validation, decode, decode_header};
use serde_json::Value;
use subtle::ConstantTimeEq as _;

use super::metadata::{Claims, ProviderKeys};
use super::signatures::{ALGORITHMS, install};
use crate::config::IdentityConfig;

/// How far clocks may differ, in seconds.
const CLOCK_SKEW: u64 = 60;

/// Longer names and subjects are no such thing.
const MAX_TEXT: usize = 255;

/// What a token must say.
pub struct Expected<'e> {
    pub issuer: &'e str,
    pub client_id: &'e str,
    pub nonce: &'e str,
}

/// Somebody, as a provider knows them.
#[derive(Debug, Clone)]
pub struct ProvenIdentity {
    pub issuer: String,
    pub subject: String,
    /// In lower case.
    pub email: Option<String>,
    /// The provider has proven the address.
    pub is_email_verified: bool,
    pub name: Option<String>,
    pub username: Option<String>,
    pub groups: Vec<String>,
    /// When the person signed in there, in milliseconds since 1970.
    pub signed_in_at: Option<i64>,
}

/// Verifies a token, and returns its claims.
pub fn verify(token: &str, keys: &ProviderKeys, expected: &Expected<'_>) -> Result<Claims, String> {
    install();
    let header = decode_header(token).map_err(|error| format!("the ID token: {error}"))?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(format!("the ID token is signed with {:?}", header.alg));
    }
    let mut validation = Validation::new(header.alg);
    validation.leeway = CLOCK_SKEW;
    validation.validate_nbf = true;
    validation.set_issuer(&[expected.issuer]);
    validation.set_audience(&[expected.client_id]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    let mut reason = "no key of the provider has this id".to_owned();
    for key in keys.named(header.kid.as_deref()) {
        let alike = key.common.key_algorithm.as_ref();
        if alike.is_some_and(|algorithm| algorithm.to_string() != format!("{:?}", header.alg)) {
            "the key is for another algorithm".clone_into(&mut reason);
            continue;
        }
        let Ok(key) = DecodingKey::from_jwk(key) else {
            continue;
        };
        match decode::<Claims>(token, &key, &validation) {
            Ok(data) => return check(data.claims, expected),
            Err(error) => reason = error.to_string(),
        }
    }
    Err(format!("the ID token: {reason}"))
}

/// What only OpenID Connect asks for.
fn check(claims: Claims, expected: &Expected<'_>) -> Result<Claims, String> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    let nonce = text("nonce").unwrap_or_default();
    if !bool::from(nonce.as_bytes().ct_eq(expected.nonce.as_bytes())) {
        return Err("the ID token has another nonce".to_owned());
    }
    let party = text("azp");
    let has_several = matches!(claims.get("aud"), Some(Value::Array(all)) if all.len() > 1);
    if has_several && party.is_none() || party.is_some_and(|party| party != expected.client_id) {
        return Err("the ID token was issued for another client (azp)".to_owned());
    }
    let issued = claims.get("iat").and_then(Value::as_f64);
    let latest = Timestamp::now().as_second() as f64 + CLOCK_SKEW as f64;
    if issued.is_none_or(|issued| issued > latest) {
        return Err("the ID token is issued in the future (iat)".to_owned());
    }
    Ok(claims)
}

impl ProvenIdentity {
    pub(super) fn of(claims: Claims, settings: &IdentityConfig) -> Result<ProvenIdentity, String> {
        let text = |name: &str| {
            let text = claims.get(name).and_then(Value::as_str).map(str::trim);
            let text = text.filter(|text| !text.is_empty() && text.len() <= MAX_TEXT);
            text.map(str::to_owned)
        };
        let is_true = |value: &Value| *value == Value::Bool(true) || *value == "true";
        let groups = claims.get(&settings.groups_claim);
        let groups = match groups {
            Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).collect(),
            Some(Value::String(group)) => vec![group.as_str()],
            _ => Vec::new(),
        };
        let signed_in_at = claims.get("auth_time").and_then(Value::as_f64);
        Ok(ProvenIdentity {
            issuer: settings.issuer.clone(),
            subject: text("sub").ok_or("the ID token has no subject")?,
            email: text("email").map(|email| email.to_lowercase()),
            is_email_verified: claims.get("email_verified").is_some_and(is_true),
            name: text("name"),
            username: text("preferred_username"),
            groups: groups.into_iter().map(str::to_owned).collect(),
            signed_in_at: signed_in_at.map(|seconds| (seconds * 1000.0) as i64),
        })
    }
}
