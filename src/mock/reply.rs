//! A request made into the reply that will be sent, its bytes complete before the first one leaves.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};

use super::answer::{Asking, CREATED, Fingerprint, answer};
use super::counters;
use super::images::{self, Wanted};
use super::proofs;
use super::received::Received;
use super::script::{Delivery, Ending, Instead, Plan};
use super::stream::{broken_off, pieces};
use crate::formats::{Framing, Operation, RequestHead, ResponseOptions};
use crate::model::{ApiError, ApiErrorKind, Format, Losses, TranslationState};
use crate::sse::SseWriter;

pub(super) const JSON: &str = "application/json";
pub(super) const EVENTS: &str = "text/event-stream";
const HTML: &str = "text/html; charset=utf-8";
const PAGE: &str = "<!doctype html><title>Mock</title><h1>This is a page, not an answer</h1>\n";
const BROKEN: &str = r#"{"mock": "broken"#;
const RETRY_AFTER: Duration = Duration::from_secs(7);

pub(super) struct Reply {
    pub status: StatusCode,
    pub content_type: &'static str,
    pub header: Option<(HeaderName, HeaderValue)>,
    pub body: Payload,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Whole(Bytes),
    /// Each piece travels on its own.
    Pieces(Vec<Bytes>),
}

impl Reply {
    fn whole(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
        Reply {
            status,
            content_type,
            header: None,
            body: Payload::Whole(body.into()),
        }
    }

    pub(super) fn json(body: impl Into<Bytes>) -> Reply {
        Reply::whole(StatusCode::OK, JSON, body)
    }

    pub(super) fn api_error(format: Format, api_error: &ApiError, request_id: &str) -> Reply {
        let (_, body) = format.codec().encode_error(api_error, request_id);
        let status = StatusCode::from_u16(api_error.status);
        let mut reply = Reply::json(body);
        // The status that was asked for, even where the format would have chosen its own.
        reply.status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        reply.header = api_error
            .retry_after
            .map(|delay| (header::RETRY_AFTER, HeaderValue::from(delay.as_secs())));
        reply
    }
}

/// What the path says of a conversation.
pub(super) struct Entry {
    pub format: Format,
    pub operation: Operation,
    pub path_model: Option<String>,
}

pub(super) fn converse(entry: &Entry, received: &Received) -> (Reply, Delivery) {
    let key_hash = Fingerprint::of(&received.body);
    plan_conversation(entry, received, &key_hash).unwrap_or_else(|api_error| {
        let reply = Reply::api_error(entry.format, &api_error, &key_hash.id(entry.format));
        (reply, Delivery::default())
    })
}

fn plan_conversation(
    entry: &Entry,
    received: &Received,
    key_hash: &Fingerprint,
) -> Result<(Reply, Delivery), ApiError> {
    let codec = entry.format.codec();
    let fields = codec.decode_routing_fields(&received.body)?;
    let (stream, framing) = match entry.operation {
        Operation::Generate | Operation::Edit => (fields.stream, Framing::Sse),
        Operation::Stream(framing) => (true, framing),
        Operation::CountTokens => (false, Framing::Sse),
    };
    let head = RequestHead {
        path_model: entry.path_model.as_deref(),
        stream,
        text_only: false,
        ..RequestHead::default()
    };
    let counter = counters::of(entry);
    let request = match counter {
        Some(counter) => counters::read(counter, entry, &received.body)?,
        None => codec.decode_request(&head, &received.body, &mut Losses::default())?,
    };
    let body_model = fields.model.as_ref().map(|named| named.name.as_ref());
    let model = head.path_model.or(body_model).unwrap_or("mock");
    let plan = Plan::for_request(&request, model)?;
    let proofs = proofs::count(&request, entry.format)?;
    let created = if plan.now { unix_now() } else { CREATED };
    let asked = ResponseOptions {
        model: model.to_owned(),
        stream,
        framing,
        include_usage: fields.include_usage_edit.is_none(),
        request_id: key_hash.id(entry.format),
        created_at: created,
        translation_state: TranslationState::of_tools(&request.tools),
    };
    let make = || {
        let asking = Asking {
            format: entry.format,
            request: &request,
            model,
            key_hash,
            created,
            proofs,
            echo: &|| received.echo(),
        };
        answer(&asking, &plan)
    };
    let conversation = Conversation {
        format: entry.format,
        asked: &asked,
        plan: &plan,
    };
    let reply = match (&plan.instead, counter) {
        (Some(instead), _) => conversation.instead(instead, &make),
        (None, Some(counter)) => Reply::json(counter.encode_count(counters::count(&request))),
        (None, None) => conversation.reply(&make),
    };
    Ok((reply, plan.delivery))
}

/// A conversation about to be answered.
struct Conversation<'c> {
    format: Format,
    asked: &'c ResponseOptions,
    plan: &'c Plan,
}

type Make<'m> = dyn Fn() -> crate::model::Response<'static> + 'm;

impl Conversation<'_> {
    fn reply(&self, make: &Make<'_>) -> Reply {
        if self.asked.stream {
            return self.stream(self.pieces(make));
        }
        if self.plan.stream_error.is_some() {
            return Reply::api_error(self.format, &broken_off(), &self.asked.request_id);
        }
        Reply::json(self.format.codec().encode_response(
            &make(),
            self.asked,
            &mut crate::model::Losses::default(),
        ))
    }

    fn pieces(&self, make: &Make<'_>) -> Vec<Bytes> {
        pieces(self.format.codec(), &make(), self.asked, self.plan)
    }

    fn stream(&self, pieces: Vec<Bytes>) -> Reply {
        Reply {
            status: StatusCode::OK,
            content_type: match self.asked.framing {
                Framing::Sse => EVENTS,
                Framing::Array => JSON,
            },
            header: None,
            body: Payload::Pieces(pieces),
        }
    }

    fn instead(&self, instead: &Instead, make: &Make<'_>) -> Reply {
        let streamed = self.asked.stream;
        match instead {
            Instead::ErrorAsSuccess if streamed => {
                let mut writer = SseWriter::default();
                let mut encoder = self.format.codec().stream_encoder(self.asked);
                encoder.encode_error(&broken_off(), &mut writer);
                self.stream(vec![writer.take()])
            }
            Instead::Garbage { after } if streamed => {
                let mut pieces = self.pieces(make);
                pieces.truncate(*after);
                pieces.push(match self.asked.framing {
                    Framing::Sse => format!("data: {BROKEN}\n\n").into(),
                    Framing::Array => BROKEN.into(),
                });
                self.stream(pieces)
            }
            Instead::Empty if streamed => self.stream(Vec::new()),
            other => instead_of_json(other, self.format, &self.asked.request_id),
        }
    }
}

fn instead_of_json(instead: &Instead, format: Format, request_id: &str) -> Reply {
    match instead {
        Instead::Error { status, message } => {
            let api_error = api_error(*status, message.as_deref());
            Reply::api_error(format, &api_error, request_id)
        }
        Instead::ErrorAsSuccess => {
            let mut reply = Reply::api_error(format, &broken_off(), request_id);
            reply.status = StatusCode::OK;
            reply
        }
        Instead::Html => Reply::whole(StatusCode::OK, HTML, PAGE),
        Instead::Garbage { .. } => Reply::json(BROKEN),
        Instead::Empty => Reply::json(Bytes::new()),
        Instead::Redirect => {
            let mut reply = Reply::whole(StatusCode::FOUND, HTML, PAGE);
            let elsewhere = HeaderValue::from_static("/mock/elsewhere");
            reply.header = Some((header::LOCATION, elsewhere));
            reply
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

/// Images, whose wire shape the mock knows by itself.
pub(super) fn paint(received: &Received) -> (Reply, Delivery) {
    let key_hash = Fingerprint::of(&received.body);
    let id = key_hash.id(Format::Images);
    let refuse = |api_error: &ApiError, delivery| {
        (Reply::api_error(Format::Images, api_error, &id), delivery)
    };
    let planned = Wanted::read(received.content_type(), &received.body)
        .and_then(|wanted| Ok((Plan::for_prompt(&wanted.prompt, &wanted.model)?, wanted)));
    let (plan, wanted) = match planned {
        Ok(planned) => planned,
        Err(api_error) => return refuse(&api_error, Delivery::default()),
    };
    if let Some(instead) = &plan.instead {
        let reply = instead_of_json(instead, Format::Images, &id);
        return (reply, plan.delivery);
    }
    if plan.ending == Ending::Filtered {
        return refuse(&images::refused(), plan.delivery);
    }
    let painting = images::Painting {
        wanted: &wanted,
        plan: &plan,
        key_hash: &key_hash,
        created: if plan.now { unix_now() } else { CREATED },
        received,
    };
    let reply = match wanted.stream {
        false => Reply::json(painting.whole()),
        true => Reply {
            status: StatusCode::OK,
            content_type: EVENTS,
            header: None,
            body: Payload::Pieces(painting.pieces()),
        },
    };
    (reply, plan.delivery)
}

fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(CREATED, |since| {
        i64::try_from(since.as_secs()).unwrap_or(CREATED)
    })
}
