//! The Response object, in a JSON response and in the events of a stream.

use serde::Serialize;

use super::error;
use super::output_items::OutputItem;
use super::status::{FAILED, IN_PROGRESS, IncompleteDetails, OutputFlags, decode_finish};
use super::usage::{ReceivedUsage, ResponsesUsage, decode_usage};
use crate::json::{Present, RawJson, decode_json, from_json};
use crate::model::{ApiError, Finish, Json, Text, Usage};

from_json! {
    /// The Response object as an upstream sends it.
    pub(super) struct ReceivedResponse<'a> {
        "id" => pub id: Option<Text<'a>>,
        "model" => pub model: Option<Text<'a>>,
        "created_at" => created_at: Option<f64>,
        "status" => status: Option<Text<'a>>,
        "incomplete_details" => incomplete_details: Option<ReceivedIncompleteDetails<'a>>,
        "error" => pub error: Option<Present>,
        "output" => pub output: Option<RawJson<'a>>,
        "usage" => usage: Option<ReceivedUsage>,
        "tool_usage" => tool_usage: Option<RawJson<'a>>,
    }
}

from_json! {
    struct ReceivedIncompleteDetails<'a> {
        "reason" => reason: Option<Text<'a>>,
    }
}

impl<'a> ReceivedResponse<'a> {
    /// The items of `output`; none where it is no list.
    pub(super) fn items(&self) -> Vec<Json<'a>> {
        match self.output.map(|raw| decode_json(raw.get())) {
            Some(Ok(Json::Array(items))) => items,
            _ => Vec::new(),
        }
    }

    /// When the response was created, in Unix seconds.
    pub(super) fn created(&self) -> i64 {
        self.created_at.map_or(0, |seconds| seconds as i64)
    }

    /// The token counts, where the upstream sends them.
    pub(super) fn usage(&self) -> Option<Usage> {
        decode_usage(self.usage.as_ref(), self.tool_usage)
    }

    /// Decodes how the response ended; `data` is the upstream's JSON.
    pub(super) fn finish(
        &self,
        output: OutputFlags,
        data: &str,
    ) -> Result<Finish<'static>, ApiError> {
        let details = self.incomplete_details.as_ref();
        let reason = details.and_then(|details| details.reason.as_deref());
        decode_finish(self.status.as_deref(), reason, output, data)
    }
}

/// The Response object as it is encoded, with every key that the SDKs' types require. Of the request it repeats the
/// conversation only.
#[derive(Serialize)]
pub(super) struct ResponseObject<'a> {
    pub id: &'a str,
    pub object: &'static str,
    pub created_at: i64,
    pub status: &'static str,
    pub error: Option<ResponseError<'a>>,
    pub incomplete_details: Option<IncompleteDetails>,
    pub model: &'a str,
    pub output: &'a [OutputItem<'a>],
    pub parallel_tool_calls: bool,
    pub tool_choice: &'static str,
    pub tools: [(); 0],
    pub usage: Option<ResponsesUsage>,
    #[serde(flatten)]
    pub conversation: Option<ConversationFields<'a>>,
}

/// The fields of a Response object that repeat the conversation of its request.
#[derive(Serialize, Clone, Copy)]
pub(super) struct ConversationFields<'a> {
    pub previous_response_id: Option<&'a str>,
    pub store: bool,
}

impl<'a> ResponseObject<'a> {
    /// Builds a response that has just begun.
    pub(super) const fn new(id: &'a str, created_at: i64, model: &'a str) -> ResponseObject<'a> {
        ResponseObject {
            id,
            object: "response",
            created_at,
            status: IN_PROGRESS,
            error: None,
            incomplete_details: None,
            model,
            output: &[],
            parallel_tool_calls: true,
            tool_choice: "auto",
            tools: [],
            usage: None,
            conversation: None,
        }
    }

    /// Builds a response that ended with an error.
    pub(super) fn failed(
        id: &'a str,
        created_at: i64,
        model: &'a str,
        api_error: &'a ApiError,
    ) -> ResponseObject<'a> {
        ResponseObject {
            status: FAILED,
            error: Some(ResponseError {
                code: error::encode_code(api_error.kind),
                message: &api_error.message,
            }),
            ..ResponseObject::new(id, created_at, model)
        }
    }
}

/// The error of a failed response as it is encoded.
#[derive(Serialize)]
pub(super) struct ResponseError<'a> {
    pub code: &'static str,
    pub message: &'a str,
}
