//! The request for an upstream: its header (`upstream_request_filter`) and its translated body (`request_body_filter`).

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pingora_core::{Error, ErrorType, Result};
use pingora_http::RequestHeader;

use super::billing;
use super::context::RequestContext;
use super::downstream;
use super::gateway::Gateway;
use super::large_body;
use crate::access::KEY_PARAMETER;
use crate::config::{OnUnsupported, PathTemplate, StreamFraming};
use crate::formats::{
    Capabilities, CloudEmbeddings, Codec, EmbedMethod, FieldPlacement, Operation, RequestHead,
    UpstreamTarget, counting_model, encode_bedrock_count,
};
use crate::json::{ChunkedBytes, splice};
use crate::model::{
    Action, ApiError, ApiErrorKind, FieldLocation, Losses, Setting, Signature, TranslationState,
    truncated,
};
use crate::runtime::{Attempt, Conversations, Upstream, key_hash};
use crate::translate::{self, RequestSummary, TranslatedRequest};

pub(super) const USER_AGENT_VALUE: &str = concat!("omniglot/", env!("CARGO_PKG_VERSION"));

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
pub(super) fn upstream_header(method: Method, upstream: &Upstream) -> Result<RequestHeader> {
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
pub(super) fn set_headers(
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
    *header = parts.into();
    Ok(())
}

/// Completes the header with what follows from the translated body: the request target and the length.
pub(super) fn set_target_and_length(
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
pub(super) fn upstream_path(ctx: &RequestContext) -> Option<String> {
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
pub(super) fn place_fields(
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
        for name in codec.version_headers().into_iter().flatten() {
            parts.headers.remove(name);
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
    if let Some([version, betas]) = codec.version_headers() {
        if let Some(first) = &shape.version_in_body {
            let sent = parts.headers.remove(version);
            placement.version = Some(version_in_body(codec, sent, first));
        }
        if shape.betas_in_body {
            let sent = parts.headers.get_all(&betas).iter();
            let sent = sent.filter_map(|value| value.to_str().ok());
            let sent = sent.flat_map(|value| value.split(',')).map(str::trim);
            let sent = sent.filter(|beta| !beta.is_empty()).map(str::to_owned);
            placement.betas = sent.collect();
            parts.headers.remove(betas);
        }
    }
    let whole = match body {
        (first, rest) if rest.is_empty() => first,
        (first, rest) => Bytes::from([first, rest.into_bytes()].concat()),
    };
    let edits = match codec.place_fields(&whole, &placement) {
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

impl Gateway {
    /// Translates the client's body for the upstream of the attempt under way. The first chunk is
    /// returned, the others stay in the attempt's state.
    pub(super) fn translate_request(&self, ctx: &mut RequestContext) -> Result<Bytes> {
        let translate = || translated_body(&self.runtime.conversations, ctx);
        match large_body::process(ctx.route.body.len(), translate) {
            Ok((mut body, losses, translated)) => {
                ctx.attempt.set_translated(
                    losses,
                    translated.translation_state,
                    translated.operation,
                );
                let first = body.next_chunk().unwrap_or_default();
                ctx.attempt.set_rest_of_body(body);
                Ok(first)
            }
            Err(api_error) => Err(ctx.withdraw_attempt(api_error)),
        }
    }
}

/// The client's own bytes for its own format, a translation for any other.
fn translated_body(
    conversations: &Conversations,
    ctx: &RequestContext,
) -> Result<(ChunkedBytes, Losses, TranslatedRequest), ApiError> {
    let (Some(request), Some(attempt)) = (ctx.route.request(), ctx.route.current()) else {
        let message = "no attempt is under way";
        return Err(ApiError::new(ApiErrorKind::Internal, message));
    };
    let mut losses = Losses::default();
    let is_passthrough = attempt.upstream.format == ctx.client.format()
        && cloud_embeddings(request, attempt).is_none();
    let (body, mut translated) = if is_passthrough {
        ctx.route.conversation.check_owner(ctx.client.format())?;
        let body = passthrough_body(ctx, request, attempt, &mut losses)?;
        let translated = TranslatedRequest {
            body: Vec::new(),
            translation_state: TranslationState::default(),
            operation: request.operation,
        };
        (body, translated)
    } else {
        let mut translated = translate_body(conversations, ctx, request, attempt, &mut losses)?;
        let body = Bytes::from(std::mem::take(&mut translated.body)).into();
        (body, translated)
    };
    let dropped = downstream::loss_paths(ctx, &losses, |action| action == Action::Dropped);
    if ctx.snapshot.server.on_unsupported == OnUnsupported::Reject && !dropped.is_empty() {
        let message = format!(
            "the upstream's format cannot express: {dropped} (server.on_unsupported is reject)"
        );
        return Err(ApiError::invalid(message).at(dropped));
    }
    translated.translation_state.conversation = ctx.route.conversation.state_for(attempt);
    Ok((body, losses, translated))
}

/// The client's bytes with the upstream's name of the model, with the limit that was reserved, and without signatures that another
/// upstream issued: this one would refuse them.
fn passthrough_body(
    ctx: &RequestContext,
    request: &RequestSummary,
    attempt: &Attempt,
    losses: &mut Losses,
) -> Result<ChunkedBytes, ApiError> {
    let (upstream, codec, body) = (&attempt.upstream, ctx.client.codec(), &ctx.route.body);
    let limit = match (billing::reserved_output(ctx, attempt), request.operation) {
        (Some(limit), Operation::Passthrough(endpoint)) => endpoint.limit_output(body, limit)?,
        (Some(limit), _) => codec.limit_output(body, limit, &attempt.capabilities)?,
        (None, _) => Vec::new(),
    };
    if !limit.is_empty() {
        losses.added(match request.is_conversation() {
            true => FieldLocation::Setting(Setting::MaxTokens),
            false => FieldLocation::Path("max_tokens".into()),
        });
    }
    let edited = request.passthrough_body_with(codec, body, &attempt.model, &upstream.brand, limit);
    if !request.is_conversation() {
        return Ok(edited);
    }
    let edited = without_unsupported(codec, body, edited, &attempt.capabilities, losses);
    if !Signature::may_be_in(body) {
        return Ok(edited);
    }
    let whole = edited.into_bytes();
    let text = std::str::from_utf8(&whole).unwrap_or_default();
    let stripped = splice(&whole, &codec.strip_foreign_signatures(text, losses));
    Ok(stripped)
}

/// The edited body without the fields that the upstream refuses. Those of the client are reported, not those that the
/// edits added.
fn without_unsupported(
    codec: &dyn Codec,
    body: &[u8],
    edited: ChunkedBytes,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> ChunkedBytes {
    if !capabilities.changes_passthrough() {
        return edited;
    }
    let own = str::from_utf8(body).unwrap_or_default();
    codec.remove_unsupported(own, capabilities, &mut |path| {
        losses.dropped(FieldLocation::Path(path.into()));
    });
    let edited = edited.into_bytes();
    let text = str::from_utf8(&edited).unwrap_or_default();
    let shorter = codec.remove_unsupported(text, capabilities, &mut |_| {});
    shorter.map_or(edited, Bytes::from).into()
}

/// The words of a cloud in which the upstream of an attempt takes a request for embeddings.
fn cloud_embeddings(request: &RequestSummary, attempt: &Attempt) -> Option<CloudEmbeddings> {
    let shape = &attempt.upstream.shape;
    shape.embeddings.filter(|_| request.is_embedding())
}

fn translate_body(
    conversations: &Conversations,
    ctx: &RequestContext,
    request: &RequestSummary,
    attempt: &Attempt,
    losses: &mut Losses,
) -> Result<TranslatedRequest, ApiError> {
    let upstream = &attempt.upstream;
    let recall = conversations.signatures_of(ctx.client.owner());
    let head = RequestHead {
        keeps: conversations.is_enabled(),
        recall: Some(&recall),
        reserved_output: billing::reserved_output(ctx, attempt),
        ..request.head(&ctx.route.model_traits())
    };
    let target = UpstreamTarget {
        model: &attempt.model,
        stream: request.stream,
        max_output_tokens: attempt.settings.settings.max_output_tokens,
        capabilities: &attempt.capabilities,
        brand: &upstream.brand,
        images_only: attempt.settings.settings.is_image_model(),
    };
    let (from, to, body) = (ctx.client.format(), upstream.format, &ctx.route.body);
    if let Operation::Passthrough(endpoint) = request.operation {
        let message = format!(
            "the upstream of this model has the format {}, which has no /v1{}: use another model",
            to.name(),
            endpoint.path()
        );
        return Err(ApiError::invalid(message).at("model"));
    }
    let translated = if let Operation::Embed(method) = request.operation {
        let body = match cloud_embeddings(request, attempt) {
            Some(to) => {
                translate::cloud_embedding_request(from, to, method, body, &target, losses)?
            }
            None => translate::embedding_request(from, to, method, body, &target, losses)?,
        };
        TranslatedRequest {
            body,
            translation_state: TranslationState::default(),
            operation: Operation::Embed(EmbedMethod::Batch),
        }
    } else if request.operation == Operation::CountTokens {
        let question = translate::count_tokens_request(from, to, body, &target, losses)?;
        TranslatedRequest {
            // An upstream without a counter is not asked; then only the losses matter.
            body: question.unwrap_or_default(),
            translation_state: TranslationState::default(),
            operation: Operation::CountTokens,
        }
    } else {
        let translated = translate::request(from, to, &head, body, &target, losses);
        translated.map_err(|api_error| ctx.route.conversation.explain(api_error))?
    };
    ctx.route.conversation.retain_own(from, losses);
    Ok(translated)
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
