//! The bodies of clients, made those of the format: forms are written anew, and of clouds' clients the model is named in them, and
//! headers leave them.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use pingora_proxy::Session;

use crate::formats::{self, Operation, decode_bedrock_count, set_stream};
use crate::model::ApiError;
use crate::proxy::context::RequestContext;
use crate::proxy::endpoint::Endpoint;
use crate::proxy::gateway::Gateway;
use crate::proxy::large_body;

impl Gateway {
    /// Makes the body that was received one of the format. Returns the model of the path for formats whose bodies do not name
    /// one.
    pub(in crate::proxy) async fn prepare_body<'e>(
        &self,
        session: &mut Session,
        ctx: &mut RequestContext,
        endpoint: &'e Endpoint,
    ) -> Result<Option<&'e str>, ApiError> {
        let Endpoint::Model {
            operation,
            model,
            has_headers_in_body,
            bedrock_stream,
            ..
        } = endpoint
        else {
            return Ok(None);
        };
        let size = ctx.route.body.len();
        let _place = self.large_body_place(ctx, size).await;
        large_body::process(size, || {
            rewrite(ctx, *operation)?;
            if *has_headers_in_body {
                let headers = take_headers(ctx, *operation, *bedrock_stream)?;
                add_missing(session, headers)?;
            }
            to_plain_body(ctx, *operation, model.as_deref())
        })
    }
}

/// Writes a form anew, as every upstream reads it alike.
fn rewrite(ctx: &mut RequestContext, operation: Operation) -> Result<(), ApiError> {
    let body = &ctx.route.body;
    let rewritten = match operation {
        Operation::Passthrough(endpoint) => endpoint.rewrite_body(body)?,
        _ => ctx.client.codec().rewrite_body(body)?,
    };
    if let Some(rewritten) = rewritten {
        ctx.route.body = Bytes::from(rewritten);
    }
    Ok(())
}

/// Takes what belongs into headers out of the body of a cloud's client, and has it stream as its path says.
fn take_headers(
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
fn add_missing(
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
fn to_plain_body<'m>(
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
