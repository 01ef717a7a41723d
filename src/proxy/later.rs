//! Images that are made later: requests handed in, tasks asked for, and the work itself.

use std::pin::pin;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderMap, HeaderName, Method};
use pingora_core::protocols::http::v1::client::HttpSession;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::RequestHeader;
use tokio::io::{DuplexStream, duplex};
use tokio::sync::Notify;

use super::context::RequestContext;
use super::{Gateway, Session, answer, files, settle};
use crate::formats::HeaderFields;
use crate::images::{self, ImageWorker, Job, TaskResult};
use crate::model::{ApiError, Format};

/// What is on its way between the two ends of a request of our own.
const PIPE: usize = 64 << 10;

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

const SHOWN: usize = 20;
const MOST_SHOWN: usize = 100;

/// What is asked of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TaskAsk {
    List,
    Show(String),
    Cancel(String),
}

/// Whether the reply is to be fetched later.
pub(super) fn is_wanted(exchange: &RequestContext, client: &HeaderMap) -> bool {
    if exchange.format != Format::Images || exchange.job.is_some() {
        return false;
    }
    let mut preferences = client.get_all("prefer").iter();
    let prefers = preferences.any(|value| {
        let value = value.to_str().unwrap_or_default();
        let mut wishes = value.split(',').map(str::trim);
        wishes.any(|wish| wish.eq_ignore_ascii_case("respond-async"))
    });
    let wanted = exchange.wanted.as_ref();
    prefers || wanted.is_some_and(|wanted| wanted.later)
}

impl Gateway {
    /// Hands a request in that could go on as well, and says where its result will be.
    pub(super) async fn accept(
        &self,
        session: &mut Session,
        exchange: &mut RequestContext,
    ) -> Result<()> {
        let task = match self.hand_in(session, exchange).await {
            Ok(task) => task,
            Err(api_error) => return Err(self.park(exchange, api_error)),
        };
        let mut extra = HeaderFields::default();
        extra.say(LOCATION, format_args!("/v1/images/tasks/{}", task.id));
        extra.say(PREFERENCE_APPLIED, "respond-async");
        exchange.attempts.clear();
        answer::json(session, exchange, 202, images::accepted(&task), extra).await
    }

    async fn hand_in(
        &self,
        session: &Session,
        exchange: &mut RequestContext,
    ) -> std::result::Result<images::Task, ApiError> {
        let (Some(wanted), Some(key)) = (&exchange.wanted, exchange.key.clone()) else {
            return Err(ApiError::invalid("nothing is asked for"));
        };
        if wanted.stream {
            let message = "stream: a reply that is fetched later is no stream";
            return Err(ApiError::invalid(message).at("stream"));
        }
        let header = session.req_header();
        let job = Job {
            path: header.uri.path().to_owned(),
            key: key.hash(),
            origin: files::origin(session, exchange),
            body: wanted.without_aside(&exchange.body),
        };
        let model = wanted.model.clone();
        // Whether there is money for it is known now; it is held again when the work begins.
        self.reserve(exchange).await?;
        exchange.hold = None;
        self.desk.hand_in(&key.name, &model, &job).await
    }

    /// What is asked of tasks that were handed in.
    pub(super) async fn tasks(
        &self,
        exchange: &RequestContext,
        ask: &TaskAsk,
        query: Option<&str>,
    ) -> std::result::Result<(u16, Vec<u8>), ApiError> {
        let key = exchange.key.as_ref().map_or("", |key| &*key.name);
        match ask {
            TaskAsk::List => {
                let tasks = self.desk.list(key, most(query)?).await?;
                Ok((200, images::listed(&tasks)))
            }
            TaskAsk::Show(id) => Ok(images::shown(&self.desk.task(key, id).await?)),
            TaskAsk::Cancel(id) => Ok(images::shown(&self.desk.cancel(key, id).await?)),
        }
    }

    /// A request whose client is this process.
    async fn work(&self, server: DuplexStream, task: &str, job: &Job) -> RequestContext {
        let mut session = Session::new_http1(Box::new(server));
        let mut exchange = self.exchange();
        // The same for every time that the work is begun: nothing of it is paid for twice.
        exchange.request_id = format!("req_{}", task.trim_start_matches("task_"));
        exchange.job = Some(job.key);
        exchange.origin = Some(job.origin.clone());
        let outcome = match session.read_request().await {
            Ok(true) => {
                let stop = pin!(self.stop.notified());
                self.handle(&mut session, &mut exchange, stop).await
            }
            Ok(false) => Error::e_explain(ErrorType::ConnectionClosed, "nothing was asked")
                .map_err(|error: Box<Error>| error.into_down()),
            Err(error) => Err(error.into_down()),
        };
        if let Err(error) = outcome {
            self.tell(&mut session, &error, &mut exchange).await;
        }
        settle::settle(self, &session, &mut exchange);
        exchange
    }
}

#[async_trait]
impl ImageWorker for Gateway {
    async fn paint(&self, task: &str, job: Job, stop: &Notify) -> Option<TaskResult> {
        let (client, server) = duplex(PIPE);
        let asking = async {
            // Without a client the upstream is left at once, as it would be by any other.
            tokio::select! {
                reply = ask(client, &job) => reply.ok(),
                () = stop.notified() => None,
            }
        };
        let (reply, mut exchange) = tokio::join!(asking, self.work(server, task, &job));
        let (status, body) = reply?;
        let busy = exchange.take_in_flight();
        // A process that leaves has not done the work: another will.
        let is_cut = status != 200 && self.is_leaving();
        (!is_cut).then_some(TaskResult { status, body, busy })
    }
}

async fn ask(client: DuplexStream, job: &Job) -> Result<(u16, Bytes)> {
    let mut session = HttpSession::new(Box::new(client));
    let mut header = RequestHeader::build(Method::POST, job.path.as_bytes(), Some(4))?;
    let kind = Format::Images.codec().content_type(&job.body);
    header.insert_header(CONTENT_TYPE, &*kind)?;
    header.insert_header(CONTENT_LENGTH, job.body.len())?;
    let (_, host) = job.origin.split_once("://").unwrap_or_default();
    header.insert_header(HOST, host)?;
    session.write_request_header(Box::new(header)).await?;
    for piece in job.body.chunks(PIPE) {
        session.write_body(piece).await?;
    }
    session.finish_body().await?;
    session.read_response().await?;
    let status = session.get_status().map_or(0, |status| status.as_u16());
    let mut body = BytesMut::new();
    while let Some(piece) = session.read_body_bytes().await? {
        body.extend_from_slice(&piece);
    }
    Ok((status, body.freeze()))
}

fn most(query: Option<&str>) -> std::result::Result<usize, ApiError> {
    let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let Some((_, limit)) = pairs.into_iter().find(|(name, _)| name == "limit") else {
        return Ok(SHOWN);
    };
    let limit = limit.parse().ok();
    let limit = limit.filter(|limit| (1..=MOST_SHOWN).contains(limit));
    let message = format!("limit: expected 1 to {MOST_SHOWN}");
    limit.ok_or_else(|| ApiError::invalid(message).at("limit"))
}
