//! The header of the request for an upstream (`upstream_request_filter`), its target, and the fields that stand elsewhere there.

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pingora_core::{Error, ErrorType, Result};
use pingora_http::RequestHeader;

use super::upstream_body::cloud_embeddings;
use crate::access::KEY_PARAMETER;
use crate::config::{PathTemplate, StreamFraming};
use crate::formats::{
    self, Codec, FieldPlacement, Operation, counting_model, encode_bedrock_count,
};
use crate::json::{ChunkedBytes, splice};
use crate::model::{ApiError, FieldLocation, truncated};
use crate::proxy::context::RequestContext;
use crate::runtime::{Attempt, Upstream, key_hash};
use crate::translate::RequestSummary;

pub(in crate::proxy) const USER_AGENT_VALUE: &str = concat!("omniglot/", env!("CARGO_PKG_VERSION"));

/// Room for the headers that upstreams commonly get.
const HEADERS: usize = 16;

/// The query parameters that the gateway itself reads: the key, and the framing of a native stream.
const READ_PARAMETERS: [&str; 2] = [KEY_PARAMETER, "alt"];

/// An upstream answers a second request with the same key as the first one, whoever sends it: all
/// clients of the gateway are one to it.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The idempotency key of a client, as a value that no other client's can be.
fn scoped(owner: &str, value: &HeaderValue) -> HeaderValue {
    let hash = key_hash(&[owner.as_bytes(), b"\n", value.as_bytes()].concat());
    let digits: String = hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    HeaderValue::try_from(digits).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// A header with the fields that every request to this upstream has: credentials and configured headers.
pub(in crate::proxy) fn upstream_header(
    method: Method,
    upstream: &Upstream,
) -> Result<RequestHeader> {
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = method;
    let headers = &mut parts.headers;
    headers.reserve(HEADERS);
    let host = HeaderValue::from_str(&upstream.base.authority);
    headers.insert(
        HOST,
        host.map_err(|error| invalid_header("upstream address", error))?,
    );
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE));
    for (name, value) in &upstream.headers {
        headers.insert(name.clone(), value.clone());
    }
    Ok(parts.into())
}

/// Writes the header of the attempt under way. Only headers that are named here go to an upstream:
/// a client's key cannot leak by being forgotten.
pub(in crate::proxy) fn set_headers(
    client: &HeaderMap,
    header: &mut RequestHeader,
    ctx: &RequestContext,
) -> Result<()> {
    let attempt = ctx.route.current().ok_or_else(no_attempt)?;
    let upstream = &attempt.upstream;
    let mut parts: http::request::Parts = upstream_header(Method::POST, upstream)?.into();
    let headers = &mut parts.headers;
    let is_configured = |name: &HeaderName| upstream.headers.iter().any(|(known, _)| known == name);
    let codec = upstream.format.codec();
    let is_passthrough = upstream.format == ctx.client.format();
    let client_body = if is_passthrough {
        &ctx.route.body[..]
    } else {
        &[]
    };
    // What was translated is JSON; only the client's own bytes can be a form.
    let operation = ctx.route.request().map(|request| request.operation);
    let form = match operation {
        Some(Operation::Passthrough(endpoint)) => endpoint.content_type(client_body),
        _ => None,
    };
    match form.map_or_else(|| codec.content_type(client_body), Cow::Owned) {
        Cow::Borrowed(_) if headers.contains_key(CONTENT_TYPE) => {}
        Cow::Borrowed(json) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(json));
        }
        Cow::Owned(form) => {
            let form = HeaderValue::try_from(form);
            let form = form.map_err(|error| invalid_header("content type of a form", error))?;
            headers.insert(CONTENT_TYPE, form);
        }
    }
    if is_passthrough {
        for name in codec
            .passthrough_headers()
            .iter()
            .filter(|name| !is_configured(name))
        {
            for value in client.get_all(name) {
                let value = match *name == IDEMPOTENCY_KEY {
                    true => scoped(ctx.client.owner(), value),
                    false => value.clone(),
                };
                headers.append(name.clone(), value);
            }
        }
    }
    // Also where a client of the same format left it out.
    let capabilities = (!is_passthrough).then_some(&*attempt.capabilities);
    if let Some((name, value)) = codec.required_header(capabilities)
        && !headers.contains_key(&name)
    {
        headers.append(name, HeaderValue::from_static(value));
    }
    if let Some(spans) = &ctx.spans {
        spans.add_headers(headers, is_configured);
    }
    *header = parts.into();
    Ok(())
}

/// Completes the header with what follows from the translated body: the request target and the length.
pub(in crate::proxy) fn set_target_and_length(
    client: &RequestHeader,
    header: RequestHeader,
    ctx: &mut RequestContext,
    length: usize,
) -> Result<RequestHeader> {
    let target = target(ctx, client.uri.query())?;
    let mut parts: http::request::Parts = header.into();
    let uri = target.parse();
    parts.uri = uri.map_err(|error| invalid_header("upstream address", error))?;
    parts.headers.insert(CONTENT_LENGTH, length.into());
    Ok(parts.into())
}

/// The request target: the path of the operation, and the query. Of the client's query only what its
/// format needs goes to an upstream of the same format: a parameter such as `fields` could take the
/// usage out of a response. The rest is reported as dropped.
fn target(ctx: &mut RequestContext, client_query: Option<&str>) -> Result<String> {
    let attempt = ctx.route.current().ok_or_else(no_attempt)?;
    let request = ctx.route.request().ok_or_else(no_attempt)?;
    let codec = attempt.upstream.format.codec();
    let is_passthrough = attempt.upstream.format == ctx.client.format();
    let operation = upstream_operation(ctx, request, attempt);
    let mut target = match upstream_path(ctx) {
        Some(target) => target,
        None => {
            let message = format!("the model {:?} cannot be part of a path", &*attempt.model);
            let api_error = ApiError::invalid(message).at("model");
            return Err(ctx.withdraw_attempt(api_error));
        }
    };
    let own_query = Some(attempt.upstream.query.as_str()).filter(|query| !query.is_empty());
    let allowed = ctx.client.codec().passthrough_query();
    let client_pairs = client_query.unwrap_or_default().split('&');
    let passed = client_pairs.clone().filter(|pair| allowed.contains(pair));
    let passed = passed.filter(|_| is_passthrough);
    for (number, pair) in codec
        .upstream_query(operation)
        .into_iter()
        .chain(passed)
        .chain(own_query)
        .enumerate()
    {
        target.push(if number == 0 { '?' } else { '&' });
        target.push_str(pair);
    }
    for pair in client_pairs.filter(|pair| !pair.is_empty() && !allowed.contains(pair)) {
        let name = pair.split('=').next().unwrap_or(pair);
        if !READ_PARAMETERS.contains(&name) {
            let path = format!("?{}", truncated(name));
            ctx.attempt.losses.dropped(FieldLocation::Path(path.into()));
        }
    }
    Ok(target)
}

/// What the upstream of the attempt under way is asked to do.
fn upstream_operation(
    ctx: &RequestContext,
    request: &RequestSummary,
    attempt: &Attempt,
) -> Operation {
    match attempt.upstream.format == ctx.client.format() {
        true => request.operation,
        false => ctx.attempt.operation().unwrap_or(request.operation),
    }
}

/// The path that the upstream of the attempt under way is asked for. `None`: the name of the model cannot be part of one.
pub(in crate::proxy) fn upstream_path(ctx: &RequestContext) -> Option<String> {
    let attempt = ctx.route.current()?;
    let request = ctx.route.request()?;
    let operation = upstream_operation(ctx, request, attempt);
    let mut path = attempt.upstream.base.prefix.clone();
    let codec = attempt.upstream.format.codec();
    match template(attempt, operation, request.stream) {
        Some(template) => path.push_str(&template.fill(model_in_path(attempt, operation))?),
        None => path.push_str(&codec.upstream_path(operation, &attempt.model)),
    }
    Some(path)
}

/// The model as the path of an operation names it.
fn model_in_path(attempt: &Attempt, operation: Operation) -> &str {
    match (attempt.upstream.shape.framing, operation) {
        (StreamFraming::AwsEventStream, Operation::CountTokens) => counting_model(&attempt.model),
        _ => &attempt.model,
    }
}

/// The path of an operation at an upstream that has others than its format.
fn template(attempt: &Attempt, operation: Operation, stream: bool) -> Option<&PathTemplate> {
    let paths = attempt.upstream.paths.as_ref()?;
    paths.of(operation, stream)
}

/// Moves fields of the body and headers to where the upstream of the attempt under way takes them.
pub(in crate::proxy) fn place_fields(
    header: RequestHeader,
    body: (Bytes, ChunkedBytes),
    ctx: &mut RequestContext,
) -> Result<(RequestHeader, (Bytes, ChunkedBytes))> {
    let (Some(request), Some(attempt)) = (ctx.route.request(), ctx.route.current()) else {
        return Err(no_attempt());
    };
    let shape = &attempt.upstream.shape;
    if !shape.changes_body() {
        return Ok((header, body));
    }
    let codec = attempt.upstream.format.codec();
    if cloud_embeddings(request, attempt).is_some() {
        let mut parts: http::request::Parts = header.into();
        if let Some(names) = codec.version_fields() {
            parts.headers.remove(names.version_header);
            parts.headers.remove(names.betas_header);
        }
        return Ok((parts.into(), body));
    }
    let operation = upstream_operation(ctx, request, attempt);
    let template = template(attempt, operation, request.stream);
    let mut placement = FieldPlacement {
        without_model: shape.model_in_path && template.is_some_and(PathTemplate::has_model),
        without_stream: shape.stream_in_path,
        ..FieldPlacement::default()
    };
    let mut parts: http::request::Parts = header.into();
    let names = codec.version_fields();
    if let Some(names) = &names {
        if let Some(first) = &shape.version_in_body {
            let sent = parts.headers.remove(&names.version_header);
            placement.version = Some(version_in_body(codec, sent, first));
        }
        if shape.betas_in_body {
            let sent = parts.headers.get_all(&names.betas_header).iter();
            let sent = sent.filter_map(|value| value.to_str().ok());
            let sent = sent.flat_map(|value| value.split(',')).map(str::trim);
            let sent = sent.filter(|beta| !beta.is_empty()).map(str::to_owned);
            placement.betas = sent.collect();
            parts.headers.remove(&names.betas_header);
        }
    }
    let whole = match body {
        (first, rest) if rest.is_empty() => first,
        (first, rest) => Bytes::from([first, rest.into_bytes()].concat()),
    };
    let edits = match formats::place_fields(&whole, &placement, names.as_ref()) {
        Ok(edits) => edits,
        Err(api_error) => return Err(ctx.withdraw_attempt(api_error)),
    };
    let mut placed = splice(&whole, &edits);
    if operation == Operation::CountTokens && shape.framing == StreamFraming::AwsEventStream {
        match encode_bedrock_count(&placed.into_bytes()) {
            Ok(wrapped) => placed = Bytes::from(wrapped).into(),
            Err(api_error) => return Err(ctx.withdraw_attempt(api_error)),
        }
    }
    let first = placed.next_chunk().unwrap_or_default();
    Ok((parts.into(), (first, placed)))
}

/// The version as it stands in the body: the first one is called otherwise there.
fn version_in_body(codec: &dyn Codec, sent: Option<HeaderValue>, first: &str) -> String {
    let own_first = codec.required_header(None).map(|(_, version)| version);
    let sent = sent.as_ref().and_then(|version| version.to_str().ok());
    match sent {
        Some(version) if Some(version) != own_first => version.to_owned(),
        _ => first.to_owned(),
    }
}

fn invalid_header(
    what: &'static str,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> Box<Error> {
    Error::because(ErrorType::InvalidHTTPHeader, what, error)
}

fn no_attempt() -> Box<Error> {
    Error::explain(ErrorType::InternalError, "no attempt is under way")
}
