//! Counting tokens: `POST /v1beta/models/{model}:countTokens`.

use serde::Serialize;

use super::field_paths::{self, Body};
use super::{error, field_names, request, rules};
use crate::formats::written::written;
use crate::formats::{Counter, Question, UpstreamTarget, quoted, read_reply, read_request};
use crate::json::{Edit, Present, RawJson, from_json};
use crate::model::{ApiError, Losses, Request};

pub(super) struct Count;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Wrapping<'a> {
    generate_content_request: Named<'a>,
}

/// The name stands in the path too, but a counter insists on it here.
#[derive(Serialize)]
struct Named<'a> {
    model: String,
    #[serde(flatten)]
    body: &'a Body<'a>,
}

fn resource_name(model: &str) -> String {
    format!("models/{model}")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Counted {
    total_tokens: u64,
}

from_json! {
    /// A count of zero is left out.
    struct Answer {
        "totalTokens" => total_tokens: u64,
        "error" => error: Option<Present>,
    }
}

impl Counter for Count {
    fn decode_question<'a>(
        &self,
        body: &'a [u8],
        losses: &mut Losses,
    ) -> Result<Question<'a>, ApiError> {
        let mut fields = rules::read(body, false)?;
        let Some(inner) = field_names::node(&mut fields, field_names::WRAPPED) else {
            let request = request::read(fields, losses)?;
            let within = None;
            return Ok(Question { request, within });
        };
        let request = inner.fields(|fields| request::read(fields, losses))?;
        if let Some(node) = fields.node("contents") {
            return Err(node.path.wrong("no generateContentRequest beside it"));
        }
        fields.finish(losses);
        let within = field_names::WRAPPED.first().copied();
        Ok(Question { request, within })
    }

    fn encode_question(
        &self,
        request: &Request<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError> {
        let body = field_paths::body(request, target, losses)?;
        // Some counters of this format know no other shape than this one.
        if body.is_bare() {
            return Ok(written(&body, request.size()));
        }
        let model = resource_name(target.model);
        let generate_content_request = Named { model, body: &body };
        let wrapping = Wrapping {
            generate_content_request,
        };
        Ok(written(&wrapping, request.size()))
    }

    fn decode_count(&self, body: &[u8]) -> Result<u64, ApiError> {
        let answer: Answer = read_reply(body)?;
        match answer.error {
            Some(_) => Err(error::decode(200, body)),
            None => Ok(answer.total_tokens),
        }
    }

    fn encode_count(&self, tokens: u64) -> Vec<u8> {
        let counted = Counted {
            total_tokens: tokens,
        };
        serde_json::to_vec(&counted).expect("a number always serialises")
    }

    fn count_path(&self) -> &'static str {
        "totalTokens"
    }

    fn rename(&self, body: &[u8], model: &str) -> Option<Edit> {
        from_json! {
            struct Outer<'a> {
                "generateContentRequest" | "generate_content_request" => wrapped: Option<Inner<'a>>,
            }
        }
        from_json! {
            struct Inner<'a> {
                "model" => model: Option<RawJson<'a>>,
            }
        }
        let outer: Outer<'_> = read_request(body).ok()?;
        Some(Edit {
            range: outer.wrapped?.model?.range_in(body),
            with: quoted(&resource_name(model)),
        })
    }
}
