//! Makes the HTTP response to a request; its bytes are complete before the first one is sent.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};

use super::body_hash::{BodyHash, CREATED};
use super::content::{ContentOptions, make_response};
use super::count_tokens;
use super::endpoint::MockEndpoint;
use super::images::{self, MockImageRequest};
use super::plan::{DeliveryPlan, PlannedFailure, PlannedFinish, ResponsePlan};
use super::request::MockRequest;
use super::signatures;
use super::stream::{encode_chunks, planned_error};
use crate::formats::{Framing, Operation, RequestHead, ResponseOptions};
use crate::model::{ApiError, ApiErrorKind, Format, Losses, TranslationState};
use crate::sse::SseWriter;

pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";
const HTML: &str = "text/html; charset=utf-8";
const PAGE: &str = "<!doctype html><title>Mock</title><h1>This is a page, not an answer</h1>\n";
const BROKEN: &str = r#"{"mock": "broken"#;
const PREVIOUS_RESPONSE: &str = "previous_response_id";
const RETRY_AFTER: Duration = Duration::from_secs(7);

/// A response of the mock.
pub(super) struct MockResponse {
    pub status: StatusCode,
    pub content_type: &'static str,
    pub header: Option<(HeaderName, HeaderValue)>,
    pub body: MockBody,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum MockBody {
    Whole(Bytes),
    /// Each chunk is sent on its own.
    Chunks(Vec<Bytes>),
}

impl MockResponse {
    fn whole(
        status: StatusCode,
        content_type: &'static str,
        body: impl Into<Bytes>,
    ) -> MockResponse {
        MockResponse {
            status,
            content_type,
            header: None,
            body: MockBody::Whole(body.into()),
        }
    }

    pub(super) fn json(body: impl Into<Bytes>) -> MockResponse {
        MockResponse::whole(StatusCode::OK, JSON, body)
    }

    pub(super) fn api_error(
        format: Format,
        api_error: &ApiError,
        request_id: &str,
    ) -> MockResponse {
        let (_, body) = format.codec().encode_error(api_error, request_id);
        let status = StatusCode::from_u16(api_error.status);
        let mut response = MockResponse::json(body);
        // The planned status, even where the format would choose another.
        response.status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.header = api_error
            .retry_after
            .map(|delay| (header::RETRY_AFTER, HeaderValue::from(delay.as_secs())));
        response
    }
}

/// Makes the response to a request in one of the formats with conversations.
pub(super) fn generate(
    endpoint: &MockEndpoint,
    received: &MockRequest,
) -> (MockResponse, DeliveryPlan) {
    let body_hash = BodyHash::of(&received.body);
    plan_conversation(endpoint, received, &body_hash).unwrap_or_else(|api_error| {
        let response =
            MockResponse::api_error(endpoint.format, &api_error, &body_hash.id(endpoint.format));
        (response, DeliveryPlan::default())
    })
}

/// Explains why a response cannot be continued: the format's own error is that of a gateway with its settings.
fn explain_stored_state(mut api_error: ApiError) -> ApiError {
    if api_error.param.as_deref() == Some(PREVIOUS_RESPONSE) {
        api_error.message = format!(
            "{PREVIOUS_RESPONSE}: the mock stores no responses; send the whole conversation in `input`"
        );
    }
    api_error
}

fn plan_conversation(
    endpoint: &MockEndpoint,
    received: &MockRequest,
    body_hash: &BodyHash,
) -> Result<(MockResponse, DeliveryPlan), ApiError> {
    let codec = endpoint.format.codec();
    let fields = codec.decode_routing_fields(&received.body)?;
    let (stream, framing) = match endpoint.operation {
        Operation::Generate | Operation::Edit => (fields.stream, Framing::Sse),
        Operation::Stream(framing) => (true, framing),
        Operation::CountTokens | Operation::Embed(_) | Operation::Passthrough(_) => {
            (false, Framing::Sse)
        }
    };
    let head = RequestHead {
        path_model: endpoint.path_model.as_deref(),
        stream,
        text_only: false,
        ..RequestHead::default()
    };
    let counter = count_tokens::counter_of(endpoint);
    let request = match counter {
        Some(counter) => count_tokens::decode(counter, endpoint, &received.body)?,
        None => {
            let decoded = codec.decode_request(&head, &received.body, &mut Losses::default());
            decoded.map_err(explain_stored_state)?
        }
    };
    let body_model = fields.model.as_ref().map(|model| model.name.as_ref());
    let model = head.path_model.or(body_model).unwrap_or("mock");
    let plan = ResponsePlan::for_request(&request, model)?;
    let signatures = signatures::count(&request, endpoint.format)?;
    let created = if plan.now { unix_now() } else { CREATED };
    let options = ResponseOptions {
        model: model.to_owned(),
        stream,
        framing,
        include_usage: fields.include_usage_edit.is_none(),
        request_id: body_hash.id(endpoint.format),
        created_at: created,
        translation_state: TranslationState::of_tools(&request.tools),
    };
    let make = || {
        let content_options = ContentOptions {
            format: endpoint.format,
            request: &request,
            model,
            body_hash,
            created,
            signatures,
            echo: &|| received.echo(),
        };
        make_response(&content_options, &plan)
    };
    let conversation = ConversationResponse {
        format: endpoint.format,
        options: &options,
        plan: &plan,
    };
    let response = match (&plan.failure, counter) {
        (Some(failure), _) => conversation.failure(failure, &make),
        (None, Some(counter)) => {
            MockResponse::json(counter.encode_count(count_tokens::count(&request)))
        }
        (None, None) => conversation.response(&make),
    };
    Ok((response, plan.delivery))
}

/// Makes the response to a conversation.
struct ConversationResponse<'c> {
    format: Format,
    options: &'c ResponseOptions,
    plan: &'c ResponsePlan,
}

type MakeResponse<'m> = dyn Fn() -> crate::model::Response<'static> + 'm;

impl ConversationResponse<'_> {
    fn response(&self, make: &MakeResponse<'_>) -> MockResponse {
        if self.options.stream {
            return self.stream(self.chunks(make));
        }
        if self.plan.stream_error.is_some() {
            return MockResponse::api_error(
                self.format,
                &planned_error(),
                &self.options.request_id,
            );
        }
        MockResponse::json(self.format.codec().encode_response(
            &make(),
            self.options,
            &mut crate::model::Losses::default(),
        ))
    }

    fn chunks(&self, make: &MakeResponse<'_>) -> Vec<Bytes> {
        encode_chunks(self.format.codec(), &make(), self.options, self.plan)
    }

    fn stream(&self, chunks: Vec<Bytes>) -> MockResponse {
        MockResponse {
            status: StatusCode::OK,
            content_type: match self.options.framing {
                Framing::Sse => EVENTS,
                Framing::Array => JSON,
            },
            header: None,
            body: MockBody::Chunks(chunks),
        }
    }

    fn failure(&self, failure: &PlannedFailure, make: &MakeResponse<'_>) -> MockResponse {
        let streamed = self.options.stream;
        match failure {
            PlannedFailure::ErrorAsSuccess if streamed => {
                let mut writer = SseWriter::default();
                let mut encoder = self.format.codec().stream_encoder(self.options);
                encoder.encode_error(&planned_error(), &mut writer);
                self.stream(vec![writer.take()])
            }
            PlannedFailure::Garbage { after } if streamed => {
                let mut chunks = self.chunks(make);
                chunks.truncate(*after);
                chunks.push(match self.options.framing {
                    Framing::Sse => format!("data: {BROKEN}\n\n").into(),
                    Framing::Array => BROKEN.into(),
                });
                self.stream(chunks)
            }
            PlannedFailure::Empty if streamed => self.stream(Vec::new()),
            other => json_failure(other, self.format, &self.options.request_id),
        }
    }
}

pub(super) fn json_failure(
    failure: &PlannedFailure,
    format: Format,
    request_id: &str,
) -> MockResponse {
    match failure {
        PlannedFailure::Error { status, message } => {
            let api_error = api_error(*status, message.as_deref());
            MockResponse::api_error(format, &api_error, request_id)
        }
        PlannedFailure::ErrorAsSuccess => {
            let mut response = MockResponse::api_error(format, &planned_error(), request_id);
            response.status = StatusCode::OK;
            response
        }
        PlannedFailure::Html => MockResponse::whole(StatusCode::OK, HTML, PAGE),
        PlannedFailure::Garbage { .. } => MockResponse::json(BROKEN),
        PlannedFailure::Empty => MockResponse::json(Bytes::new()),
        PlannedFailure::Redirect => {
            let mut response = MockResponse::whole(StatusCode::FOUND, HTML, PAGE);
            let elsewhere = HeaderValue::from_static("/mock/elsewhere");
            response.header = Some((header::LOCATION, elsewhere));
            response
        }
    }
}

fn api_error(status: u16, message: Option<&str>) -> ApiError {
    let kind = ApiErrorKind::from_status(status);
    let message = message.unwrap_or(match kind {
        ApiErrorKind::Unauthenticated => "The API key is not valid.",
        ApiErrorKind::Forbidden => "This key may not use this model.",
        ApiErrorKind::NotFound => "There is no such model.",
        ApiErrorKind::TooLarge => "The request is too large.",
        ApiErrorKind::RateLimited => "Too many requests, try again later.",
        ApiErrorKind::OverQuota => "The quota is used up.",
        ApiErrorKind::Overloaded => "The model is overloaded, try again later.",
        ApiErrorKind::Timeout => "The model took too long.",
        ApiErrorKind::Internal | ApiErrorKind::BadGateway => "Something went wrong inside.",
        _ => "The mock does not like this request.",
    });
    let mut api_error = ApiError::new(kind, message);
    api_error.status = status;
    api_error.retry_after = (status == 429).then_some(RETRY_AFTER);
    api_error
}

/// Makes the response to an image request.
pub(super) fn generate_images(received: &MockRequest) -> (MockResponse, DeliveryPlan) {
    let body_hash = BodyHash::of(&received.body);
    let id = body_hash.id(Format::Images);
    let refuse = |api_error: &ApiError, delivery| {
        (
            MockResponse::api_error(Format::Images, api_error, &id),
            delivery,
        )
    };
    let planned =
        MockImageRequest::decode(received.content_type(), &received.body).and_then(|request| {
            Ok((
                ResponsePlan::for_prompt(&request.prompt, &request.model)?,
                request,
            ))
        });
    let (plan, image_request) = match planned {
        Ok(planned) => planned,
        Err(api_error) => return refuse(&api_error, DeliveryPlan::default()),
    };
    if let Some(failure) = &plan.failure {
        let response = json_failure(failure, Format::Images, &id);
        return (response, plan.delivery);
    }
    if plan.finish == PlannedFinish::Filtered {
        return refuse(&images::moderation_error(), plan.delivery);
    }
    let image_response = images::MockImageResponse {
        image_request: &image_request,
        plan: &plan,
        body_hash: &body_hash,
        created: if plan.now { unix_now() } else { CREATED },
        request: received,
    };
    let response = match image_request.stream {
        false => MockResponse::json(image_response.encode_json()),
        true => MockResponse {
            status: StatusCode::OK,
            content_type: EVENTS,
            header: None,
            body: MockBody::Chunks(image_response.encode_events()),
        },
    };
    (response, plan.delivery)
}

fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(CREATED, |since| {
        i64::try_from(since.as_secs()).unwrap_or(CREATED)
    })
}
