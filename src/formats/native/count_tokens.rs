//! Counting tokens: `POST /v1beta/models/{model}:countTokens`.

use serde::Serialize;

use super::field_names::{self, resource_name};
use super::request::{NativeRequest, decode_fields, encode_fields};
use super::{Native, validation};
use crate::formats::json_bytes::to_json_bytes;
use crate::formats::{
    CountTokensRequest, ErrorCodec, InputInspection, RequestFindings, TokenCounter, UpstreamTarget,
    decode_model_name, decode_request_body, decode_response_body, decode_unique_fields,
    decode_unique_members, to_json_string,
};
use crate::json::{Edit, Present, RawJson, from_json, replace};
use crate::model::{ApiError, Losses, Request, truncated};

/// The token counter of the format.
pub(super) struct NativeTokenCounter;

/// The body of a request that counts more than `contents`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NativeCountTokensRequest<'a> {
    generate_content_request: CountedRequest<'a>,
}

/// The request whose tokens are counted. Upstreams require the model here besides the path.
#[derive(Serialize)]
struct CountedRequest<'a> {
    model: String,
    #[serde(flatten)]
    request: &'a NativeRequest<'a>,
}

from_json! {
    /// The response of an upstream, which leaves a count of zero out.
    struct UpstreamTokenCount {
        "totalTokens" => total_tokens: u64,
        "error" => error: Option<Present>,
    }
}

from_json! {
    struct RenamedRequest<'a> {
        "generateContentRequest" | "generate_content_request" => request: Option<RenamedModel<'a>>,
    }
}

from_json! {
    struct RenamedModel<'a> {
        "model" => model: Option<RawJson<'a>>,
    }
}

impl TokenCounter for NativeTokenCounter {
    fn decode_count_request<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<CountTokensRequest<'a>, ApiError> {
        let mut fields = validation::parse(body, false)?;
        let wrapped = field_names::take(&mut fields, field_names::GENERATE_CONTENT_REQUEST);
        let Some(wrapped) = wrapped else {
            let request = decode_fields(fields, losses)?;
            let within = None;
            return Ok(CountTokensRequest { request, within });
        };
        let request = wrapped.fields(|fields| decode_fields(fields, losses))?;
        if let Some(node) = fields.node("contents") {
            return Err(node.path.wrong("no generateContentRequest beside it"));
        }
        fields.finish(losses);
        let within = field_names::GENERATE_CONTENT_REQUEST.first().copied();
        Ok(CountTokensRequest { request, within })
    }

    fn encode_count_request(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError> {
        let body = encode_fields(request, target, losses)?;
        // Some upstreams accept no other field than `contents` here.
        if body.has_only_contents() {
            return Ok(to_json_bytes(&body, request.size()));
        }
        let counted = NativeCountTokensRequest {
            generate_content_request: CountedRequest {
                model: resource_name(target.model),
                request: &body,
            },
        };
        Ok(to_json_bytes(&counted, request.size()))
    }

    fn decode_count(&self, body: &[u8]) -> Result<u64, ApiError> {
        let response: UpstreamTokenCount = decode_response_body(body)?;
        match response.error {
            Some(_) => Err(Native.decode_error(200, body)),
            None => Ok(response.total_tokens),
        }
    }

    fn encode_count(&self, tokens: u64) -> Vec<u8> {
        format!(r#"{{"totalTokens":{tokens}}}"#).into_bytes()
    }

    fn count_path(&self) -> &'static str {
        "totalTokens"
    }

    fn check_model(&self, body: &[u8], path_model: &str) -> Result<(), ApiError> {
        let [wrapped] = decode_unique_fields(body, [field_names::GENERATE_CONTENT_REQUEST])?;
        let [model] = decode_unique_members(&wrapped, [&["model"]])?;
        let Some(named) = decode_model_name(body, &model)? else {
            return Ok(());
        };
        let name = named.name.strip_prefix("models/").unwrap_or(&named.name);
        if name == path_model {
            return Ok(());
        }
        let (path, expected, got) = (model.path(), truncated(path_model), truncated(name));
        let message =
            format!("`{path}` must be the model of the path, `models/{expected}`, got `{got}`");
        Err(ApiError::invalid(message).at(path))
    }

    fn findings(&self, body: &[u8]) -> Option<RequestFindings> {
        let [wrapped] = decode_unique_fields(body, [field_names::GENERATE_CONTENT_REQUEST]).ok()?;
        let request = wrapped.value()?;
        let around = Edit {
            range: request.range_in(body),
            with: b"null".to_vec(),
        };
        let around = Native.findings(&replace(body, &[around]));
        let within = Native.findings(request.get().as_bytes());
        let path = |field| format!("{}.{field}", wrapped.path());
        Some(RequestFindings {
            other_model: around.other_model.or(within.other_model.map(path)),
            unknown_field: around.unknown_field.or(within.unknown_field.map(path)),
            ..within
        })
    }

    fn rename_model(&self, body: &[u8], model: &str) -> Option<Edit> {
        let renamed: RenamedRequest<'_> = decode_request_body(body).ok()?;
        Some(Edit {
            range: renamed.request?.model?.range_in(body),
            with: to_json_string(&resource_name(model)),
        })
    }
}
