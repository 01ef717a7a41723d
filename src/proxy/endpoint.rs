//! From method and path to the endpoint, and the format that it is answered in.

pub(super) mod cloud_path;

use http::header::UPGRADE;
use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;

use crate::formats::{EmbedMethod, Framing, Operation, PassthroughEndpoint};
use crate::model::{ApiError, ApiErrorKind, Format, truncated};
use cloud_path::{is_bedrock, plain_path};

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// A model is to answer.
    Model {
        format: Format,
        operation: Operation,
        /// Where the path names the model.
        model: Option<String>,
        /// Whether the body may hold what other clients send in headers.
        has_headers_in_body: bool,
        /// Where a path of Bedrock says whether the response is a stream.
        bedrock_stream: Option<bool>,
    },
    /// A stored response of the responses format, by its id.
    StoredResponse(StoredResponseAction, String),
    /// A stored image, by its id.
    ImageFile(String),
    ImageTasks(ImageTaskAction),
    ListModels(Format),
    GetModel(Format, String),
    Catalog,
    /// The key of the request itself: its cap and what is left of it.
    OwnKey,
    /// A request of the key, by its id: what it cost.
    OwnRequest(String),
}

/// What is asked of a stored response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredResponseAction {
    Get,
    ListInput,
    Delete,
}

/// What is asked of the image tasks of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ImageTaskAction {
    List,
    Get(String),
    Cancel(String),
}

/// Where clients of the native format upload files.
const UPLOAD: &str = "/upload";
const FILES: &str = "/v1beta/files";

const OPERATORS: [&str; 5] = [
    "generateContent",
    "streamGenerateContent",
    "countTokens",
    "embedContent",
    "batchEmbedContents",
];

impl Endpoint {
    /// The name in logs, metrics and usage records, where it is not that of the format.
    pub(super) const fn label(&self) -> Option<&'static str> {
        match self {
            Endpoint::Model { operation, .. } => operation.label(),
            _ => None,
        }
    }

    /// On native paths the key may stand in the query too.
    pub(super) fn key_in_query(&self) -> bool {
        matches!(
            self,
            Endpoint::Model {
                format: Format::Native,
                ..
            } | Endpoint::ListModels(Format::Native)
                | Endpoint::GetModel(Format::Native, _)
        )
    }
}

/// The format that errors are encoded in, known from the path alone.
pub(super) fn error_format(path: &str) -> Format {
    let path = &*plain_path(path).path;
    if is_below(path, "/v1/messages") || is_bedrock(path) {
        Format::Messages
    } else if is_below(path, "/v1/responses") {
        Format::Responses
    } else if is_below(path, "/v1/images") {
        Format::Images
    } else if is_below(path, "/v1beta")
        || is_below(path, UPLOAD)
        || (path.starts_with("/v1/models/") && operator(path).is_some())
    {
        Format::Native
    } else {
        Format::Chat
    }
}

fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Finds the endpoint of a request; the error is 404 for the path or 405 for the method.
pub(super) fn parse(
    method: &Method,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Endpoint, ApiError> {
    let plain = plain_path(path);
    let mut endpoint = parse_plain(method, &plain.path, query, headers)?;
    if let Endpoint::Model {
        model,
        has_headers_in_body,
        bedrock_stream,
        ..
    } = &mut endpoint
    {
        *has_headers_in_body = plain.has_headers_in_body;
        *bedrock_stream = plain.bedrock_stream;
        if let Some(segment) = plain.model {
            *model = Some(decode_model_id(segment)?);
        }
    }
    Ok(endpoint)
}

fn parse_plain(
    method: &Method,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Endpoint, ApiError> {
    refuse_upgrade(method, path, headers)?;
    if let Some(rest) = path.strip_prefix("/v1/responses/")
        && !matches!(rest, "" | "input_tokens")
    {
        return stored_response(method, path, rest);
    }
    if let Some(rest) = path.strip_prefix("/v1/images/tasks/") {
        return image_task(method, path, rest);
    }
    if let Some(endpoint) = readable_by_id(path) {
        return match *method {
            Method::GET => Ok(endpoint),
            _ => Err(not_allowed(method, "GET")),
        };
    }
    let endpoints = PassthroughEndpoint::ALL.into_iter();
    let mut endpoints =
        endpoints.filter(|endpoint| path.strip_prefix("/v1") == Some(endpoint.path()));
    if let Some(endpoint) = endpoints.next() {
        return match *method {
            Method::POST => Ok(model_endpoint(
                Format::Chat,
                Operation::Passthrough(endpoint),
            )),
            _ => Err(not_allowed(method, "POST")),
        };
    }
    let (endpoint, allowed) = match path {
        "/v1/chat/completions" => (
            model_endpoint(Format::Chat, Operation::Generate),
            Method::POST,
        ),
        "/v1/messages" => (
            model_endpoint(Format::Messages, Operation::Generate),
            Method::POST,
        ),
        "/v1/messages/count_tokens" => (
            model_endpoint(Format::Messages, Operation::CountTokens),
            Method::POST,
        ),
        "/v1/responses" => (
            model_endpoint(Format::Responses, Operation::Generate),
            Method::POST,
        ),
        "/v1/responses/input_tokens" => (
            model_endpoint(Format::Responses, Operation::CountTokens),
            Method::POST,
        ),
        "/v1/embeddings" => (
            model_endpoint(Format::Chat, Operation::Embed(EmbedMethod::Batch)),
            Method::POST,
        ),
        "/v1/images/generations" => (
            model_endpoint(Format::Images, Operation::Generate),
            Method::POST,
        ),
        "/v1/images/edits" => (
            model_endpoint(Format::Images, Operation::Edit),
            Method::POST,
        ),
        "/v1/images/tasks" => (Endpoint::ImageTasks(ImageTaskAction::List), Method::GET),
        "/api/models" => (Endpoint::Catalog, Method::GET),
        "/api/key" => (Endpoint::OwnKey, Method::GET),
        "/v1/models" => (Endpoint::ListModels(list_format(headers)), Method::GET),
        "/v1beta/models" => (Endpoint::ListModels(Format::Native), Method::GET),
        _ => below_models(method, path, query, headers)?,
    };
    if *method == allowed {
        return Ok(endpoint);
    }
    Err(not_allowed(method, allowed.as_str()))
}

/// What can only be read, by its id.
fn readable_by_id(path: &str) -> Option<Endpoint> {
    let file = path.strip_prefix("/v1/images/files/");
    let file = file.map(|id| Endpoint::ImageFile(id.to_owned()));
    let request = path.strip_prefix("/api/requests/");
    file.or_else(|| request.map(|id| Endpoint::OwnRequest(id.to_owned())))
}

fn not_allowed(method: &Method, allowed: &str) -> ApiError {
    let message = format!("{method} is not allowed here, use {allowed}");
    let mut api_error = ApiError::new(ApiErrorKind::MethodNotAllowed, message);
    api_error.allowed = Some(allowed.to_owned());
    api_error
}

/// Refuses a websocket: some clients of the responses format try one first, and use POST when it is refused.
fn refuse_upgrade(method: &Method, path: &str, headers: &HeaderMap) -> Result<(), ApiError> {
    let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    let is_websocket = upgrade.is_some_and(|word| word.eq_ignore_ascii_case("websocket"));
    if *method == Method::GET && path == "/v1/responses" && is_websocket {
        let message = "there is no websocket here, use POST";
        let mut api_error = ApiError::new(ApiErrorKind::MethodNotAllowed, message);
        api_error.status = 426;
        return Err(api_error);
    }
    Ok(())
}

fn stored_response(method: &Method, path: &str, rest: &str) -> Result<Endpoint, ApiError> {
    let (id, below) = rest.split_once('/').unwrap_or((rest, ""));
    let action = match (below, method) {
        ("", &Method::GET) => StoredResponseAction::Get,
        ("", &Method::DELETE) => StoredResponseAction::Delete,
        ("", _) => return Err(not_allowed(method, "GET, DELETE")),
        ("input_items", &Method::GET) => StoredResponseAction::ListInput,
        ("input_items", _) => return Err(not_allowed(method, "GET")),
        _ => return Err(unknown_path(path)),
    };
    Ok(Endpoint::StoredResponse(action, decode_id(id, path)?))
}

fn image_task(method: &Method, path: &str, id: &str) -> Result<Endpoint, ApiError> {
    if id.is_empty() || id.contains('/') {
        return Err(unknown_path(path));
    }
    let id = decode_id(id, path)?;
    match *method {
        Method::GET => Ok(Endpoint::ImageTasks(ImageTaskAction::Get(id))),
        Method::DELETE => Ok(Endpoint::ImageTasks(ImageTaskAction::Cancel(id))),
        _ => Err(not_allowed(method, "GET, DELETE")),
    }
}

/// Decodes an id. The gateway gives out none with characters that a store refuses.
fn decode_id(segment: &str, path: &str) -> Result<String, ApiError> {
    let id = percent_decode_str(segment).decode_utf8_lossy();
    if id.chars().any(char::is_control) {
        return Err(unknown_path(path));
    }
    Ok(id.into_owned())
}

fn model_endpoint(format: Format, operation: Operation) -> Endpoint {
    Endpoint::Model {
        format,
        operation,
        model: None,
        has_headers_in_body: false,
        bedrock_stream: None,
    }
}

/// The format of a model list. Three formats share `/v1/models`; their clients differ in the headers they send.
fn list_format(headers: &HeaderMap) -> Format {
    if headers.contains_key("anthropic-version") {
        Format::Messages
    } else if headers.contains_key("x-goog-api-key") || headers.contains_key("x-goog-api-client") {
        Format::Native
    } else {
        Format::Chat
    }
}

fn below_models(
    method: &Method,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<(Endpoint, Method), ApiError> {
    let (rest, shape) = if let Some(rest) = path.strip_prefix("/v1beta/models/") {
        (rest, Format::Native)
    } else if let Some(rest) = path.strip_prefix("/v1/models/") {
        (rest, list_format(headers))
    } else if is_below(path, UPLOAD) || is_below(path, FILES) {
        return Err(no_file_storage());
    } else {
        return Err(unknown_path(path));
    };
    // GET is for a model, whose id may end like `:latest`; POST has an operator.
    let known = |verb: &&str| *method != Method::GET || OPERATORS.contains(verb);
    let Some(verb) = operator(path).filter(known) else {
        let id = decode_model_id(rest)?;
        return Ok((Endpoint::GetModel(shape, id), Method::GET));
    };
    let (model, _) = split_operator(rest).ok_or_else(|| unknown_path(path))?;
    let operation = match verb {
        "generateContent" => json_only(Operation::Generate, query)?,
        "streamGenerateContent" => Operation::Stream(framing(query)?),
        "countTokens" => json_only(Operation::CountTokens, query)?,
        "embedContent" => json_only(Operation::Embed(EmbedMethod::Single), query)?,
        "batchEmbedContents" => json_only(Operation::Embed(EmbedMethod::Batch), query)?,
        other => {
            let known = OPERATORS.join(", ");
            let other = truncated(other);
            let message = format!("unknown operator `{other}`: use one of {known}");
            return Err(ApiError::new(ApiErrorKind::NotFound, message));
        }
    };
    let model = decode_model_id(model)?;
    let endpoint = Endpoint::Model {
        format: Format::Native,
        operation,
        // Some clients write the resource name in full.
        model: Some(model.strip_prefix("models/").unwrap_or(&model).to_owned()),
        has_headers_in_body: false,
        bedrock_stream: None,
    };
    Ok((endpoint, Method::POST))
}

/// Splits `{model}:{operator}`, where some clients write the colon as `%3A`.
fn split_operator(path: &str) -> Option<(&str, &str)> {
    let upper = path.rsplit_once("%3A");
    let lower = path.rsplit_once("%3a");
    [path.rsplit_once(':'), upper, lower]
        .into_iter()
        .flatten()
        .min_by_key(|(_, verb)| verb.len())
}

/// What looks like an operator; ids may hold colons too, but none that reads like one.
fn operator(path: &str) -> Option<&str> {
    let (_, verb) = split_operator(path)?;
    let starts_small = verb.starts_with(|letter: char| letter.is_ascii_lowercase());
    (starts_small && verb.bytes().all(|byte| byte.is_ascii_alphabetic())).then_some(verb)
}

/// Refuses `alt=sse` for an operation that answers with one JSON document.
fn json_only(operation: Operation, query: Option<&str>) -> Result<Operation, ApiError> {
    match framing(query)? {
        Framing::Array => Ok(operation),
        Framing::Sse => {
            let message = "alt: sse goes with streamGenerateContent only";
            Err(ApiError::invalid(message).at("alt"))
        }
    }
}

fn framing(query: Option<&str>) -> Result<Framing, ApiError> {
    match parameter(query, "alt").as_deref() {
        Some("sse") => Ok(Framing::Sse),
        None | Some("json") => Ok(Framing::Array),
        Some(other) => {
            let other = truncated(other);
            Err(ApiError::invalid(format!("alt: `{other}` is unknown, use sse or json")).at("alt"))
        }
    }
}

fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    url::form_urlencoded::parse(query.unwrap_or("").as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}

fn decode_model_id(segment: &str) -> Result<String, ApiError> {
    let text = percent_decode_str(segment)
        .decode_utf8()
        .map_err(|_| ApiError::invalid("the model id in the path is not valid text").at("model"))?;
    if text.is_empty() || text.chars().any(char::is_control) {
        return Err(ApiError::invalid("the path does not name a model").at("model"));
    }
    Ok(text.into_owned())
}

fn no_file_storage() -> ApiError {
    let message = "files cannot be stored here: send media in the request, as inlineData, \
                   or as a public https URL in fileData.fileUri";
    ApiError::new(ApiErrorKind::Unsupported, message)
}

pub(super) fn unknown_path(path: &str) -> ApiError {
    let message = format!("unknown path {}", truncated(path));
    let mut api_error = ApiError::new(ApiErrorKind::NotFound, message);
    api_error.code = Some("unknown_path".to_owned());
    api_error
}

#[cfg(test)]
mod tests;
