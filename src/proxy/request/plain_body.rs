//! The bodies of clouds' clients, made those of the format: the model is named in them, and headers leave them.

use http::{HeaderName, HeaderValue};
use pingora_proxy::Session;

use crate::formats::{self, Operation, decode_bedrock_count, set_stream};
use crate::model::ApiError;
use crate::proxy::context::RequestContext;

/// Takes what belongs into headers out of the body of a cloud's client, and has it stream as its path says.
pub(in crate::proxy) fn take_headers(
    ctx: &mut RequestContext,
    operation: Operation,
    stream: Option<bool>,
) -> Result<Vec<(HeaderName, HeaderValue)>, ApiError> {
    if ctx.client.is_bedrock() && operation == Operation::CountTokens {
        ctx.route.body = decode_bedrock_count(&ctx.route.body)?;
    }
    let (mut body, headers) = formats::take_headers(&ctx.route.body)?;
    if let Some(stream) = stream {
        body = set_stream(&body, stream)?;
    }
    ctx.route.body = body;
    Ok(headers)
}

/// Adds headers that the client has sent in its body; those that it has sent as such count.
pub(in crate::proxy) fn add_missing(
    session: &mut Session,
    headers: Vec<(HeaderName, HeaderValue)>,
) -> Result<(), ApiError> {
    let header = session.req_header_mut();
    for (name, value) in headers {
        if !header.headers.contains_key(&name) {
            let inserted = header.insert_header(name, value);
            inserted.map_err(|error| ApiError::invalid(error.to_string()))?;
        }
    }
    Ok(())
}

/// Writes the model of the path into the body, in formats whose bodies name it: the path counts. Returns the model for the
/// other formats.
pub(in crate::proxy) fn to_plain_body<'m>(
    ctx: &mut RequestContext,
    operation: Operation,
    path_model: Option<&'m str>,
) -> Result<Option<&'m str>, ApiError> {
    let Some(model) = path_model else {
        return Ok(None);
    };
    let body = &ctx.route.body;
    let named = match operation {
        Operation::Passthrough(endpoint) => Some(endpoint.set_model(body, model)?),
        _ => ctx.client.codec().set_model(body, model)?,
    };
    Ok(match named {
        Some(body) => {
            ctx.route.body = body;
            None
        }
        None => path_model,
    })
}
