//! What the hosts of Azure, Google Cloud and AWS refuse: paths, versions, credentials, and fields in the wrong place.

use http::HeaderMap;
use serde_json::Value;
use url::form_urlencoded;

use super::request::MockRequest;
use crate::model::{ApiError, ApiErrorKind};

/// What the cloud of a host refuses a request for. `None`: nothing, or the host is that of no cloud.
pub(super) fn refusal(host: &str, received: &MockRequest) -> Option<ApiError> {
    if host.ends_with(".openai.azure.com") {
        return azure(received);
    }
    if host.ends_with(".services.ai.azure.com") {
        return foundry(received);
    }
    if let Some(location) = vertex_location(host) {
        return vertex(location, received);
    }
    if host == "generativelanguage.googleapis.com" {
        let key = credential(&received.head.headers, "x-goog-api-key");
        return key.is_none().then(|| unauthenticated("x-goog-api-key"));
    }
    let (service, rest) = ["bedrock-runtime.", "bedrock-mantle."]
        .iter()
        .find_map(|prefix| Some((prefix.trim_end_matches('.'), host.strip_prefix(prefix)?)))?;
    let region = rest.split('.').next().unwrap_or_default();
    aws(service, region, received)
}

fn unauthenticated(wanted: &str) -> ApiError {
    let message = format!("the request has no credential in {wanted}");
    ApiError::new(ApiErrorKind::Unauthenticated, message)
}

fn parameter(received: &MockRequest, name: &str) -> Option<String> {
    let query = received.head.uri.query().unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let found = pairs.find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

fn has_any(headers: &HeaderMap, names: &[&str]) -> bool {
    let mut names = names.iter();
    names.any(|name| credential(headers, name).is_some())
}

fn azure(received: &MockRequest) -> Option<ApiError> {
    let path = received.head.uri.path();
    if !has_any(&received.head.headers, &["api-key", "authorization"]) {
        return Some(unauthenticated("api-key or authorization"));
    }
    let version = parameter(received, "api-version");
    if path.starts_with("/openai/v1/") {
        let message = "api-version query parameter is not allowed when using /v1 path";
        return version.map(|_| ApiError::invalid(message));
    }
    let is_date = |version: &str| version.len() >= 10 && version.starts_with("20");
    let has_version = version.as_deref().is_some_and(is_date);
    let is_known = path.starts_with("/openai/deployments/") && has_version;
    (!is_known).then(|| not_found(path))
}

fn foundry(received: &MockRequest) -> Option<ApiError> {
    let (path, headers) = (received.head.uri.path(), &received.head.headers);
    if !path.starts_with("/anthropic/v1/messages") || parameter(received, "api-version").is_some() {
        return Some(not_found(path));
    }
    if !has_any(headers, &["x-api-key", "api-key", "authorization"]) {
        return Some(unauthenticated("x-api-key or authorization"));
    }
    without_version_header(headers)
}

fn without_version_header(headers: &HeaderMap) -> Option<ApiError> {
    let is_there = headers.contains_key("anthropic-version");
    (!is_there).then(|| ApiError::invalid("anthropic-version: header is required"))
}

/// The location that a host of Vertex AI is for.
fn vertex_location(host: &str) -> Option<&str> {
    if host == "aiplatform.googleapis.com" {
        return Some("global");
    }
    let regional = host.strip_suffix("-aiplatform.googleapis.com");
    let several = || {
        let rest = host.strip_prefix("aiplatform.")?;
        rest.strip_suffix(".rep.googleapis.com")
    };
    regional.or_else(several)
}

fn vertex(location: &str, received: &MockRequest) -> Option<ApiError> {
    let (path, headers) = (received.head.uri.path(), &received.head.headers);
    if path.starts_with("/v1beta1/publishers/google/") || path.starts_with("/v1/publishers/google/")
    {
        let is_right = location == "global" && has_any(headers, &["x-goog-api-key"]);
        return (!is_right).then(|| unauthenticated("x-goog-api-key of the global host"));
    }
    if !path.contains(&format!("/locations/{location}/")) {
        return Some(not_found(path));
    }
    if !has_any(headers, &["authorization"]) || headers.contains_key("x-goog-api-key") {
        return Some(unauthenticated("authorization alone"));
    }
    let body: Value = serde_json::from_slice(&received.body).unwrap_or_default();
    if path.ends_with("/endpoints/openapi/chat/completions") {
        let model = body["model"].as_str().unwrap_or_default();
        let message = "model: must be PUBLISHER/MODEL";
        return (!model.contains('/')).then(|| ApiError::invalid(message));
    }
    if !path.contains("/publishers/anthropic/") {
        return None;
    }
    let version = body["anthropic_version"].as_str();
    let known = ["vertex-2023-10-16", "2026-10-21"];
    let is_right = version.is_some_and(|version| known.contains(&version));
    let refused = !is_right || headers.contains_key("anthropic-version");
    refused.then(|| ApiError::invalid("anthropic_version: must be in the body, and only there"))
}

fn aws(service: &str, region: &str, received: &MockRequest) -> Option<ApiError> {
    let (path, headers) = (received.head.uri.path(), &received.head.headers);
    let is_mantle = service == "bedrock-mantle";
    let bases: &[&str] = match is_mantle {
        true => &["/v1/", "/openai/v1/", "/anthropic/v1/messages"],
        false => &["/model/", "/openai/v1/"],
    };
    if !bases.iter().any(|base| path.starts_with(base)) {
        return Some(not_found(path));
    }
    let signed_for = if is_mantle { service } else { "bedrock" };
    if credential(headers, "authorization").is_none()
        && !is_signed(headers, &format!("/{region}/{signed_for}/aws4_request"))
    {
        return Some(unauthenticated("authorization"));
    }
    match path.starts_with("/anthropic/") {
        true => without_version_header(headers),
        false => None,
    }
}

/// Whether a request has a signature for a scope. The signature itself is verified by the tests with the SDKs.
fn is_signed(headers: &HeaderMap, scope: &str) -> bool {
    let value = headers.get("authorization");
    let value = value.and_then(|value| value.to_str().ok());
    let fields = value.and_then(|value| value.strip_prefix("AWS4-HMAC-SHA256 "));
    let field = |name: &str| {
        let fields = fields?.split(", ");
        fields
            .into_iter()
            .find_map(|field| field.strip_prefix(name))
    };
    let signed = field("SignedHeaders=").unwrap_or_default();
    let signed: Vec<&str> = signed.split(';').collect();
    let covers = |name: &str| signed.contains(&name);
    let token = !headers.contains_key("x-amz-security-token") || covers("x-amz-security-token");
    let scoped = field("Credential=").is_some_and(|credential| credential.ends_with(scope));
    let has_signature = field("Signature=").is_some_and(|signature| signature.len() == 64);
    scoped && has_signature && token && covers("host") && covers("x-amz-date")
}

pub(super) fn not_found(path: &str) -> ApiError {
    let message = format!("Resource not found: {path}");
    ApiError::new(ApiErrorKind::NotFound, message)
}

/// The credential in a header: what stands behind `Bearer`, or all of it.
pub(super) fn credential<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let value = headers.get(name)?.to_str().ok()?;
    let value = match name {
        "authorization" => value.strip_prefix("Bearer ")?,
        _ => value,
    };
    Some(value).filter(|value| !value.is_empty())
}
