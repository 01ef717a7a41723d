//! Image tasks: requests whose response is fetched later, and the requests that run them.

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderMap, HeaderName, Method};
use pingora_core::protocols::http::v1::client::HttpSession;
use pingora_core::{Error, ErrorType, Result};
use pingora_http::RequestHeader;
use pingora_proxy::{ProxyHttp as _, Session};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::Notify;

use super::image_files;
use crate::access::{self, ConcurrencyPermit, TaskKey};
use crate::formats::HeaderFields;
use crate::images::{self, ImageJob, ImageTask, ImageWorker, TaskResult};
use crate::model::{ApiError, Format};
use crate::proxy::context::RequestContext;
use crate::proxy::endpoint::ImageTaskAction;
use crate::proxy::gateway::Gateway;
use crate::proxy::large_body;
use crate::proxy::local;
use crate::proxy::request::request_body;

/// How much is buffered between the two ends of a task's request.
const PIPE: usize = 64 << 10;

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// Headers that the request of a task has itself, or that would make another task of it.
const TASK_HEADERS: [&str; 5] = [
    "content-encoding",
    "content-type",
    "expect",
    "origin",
    "prefer",
];

/// How many tasks a list shows, by default and at most.
const DEFAULT_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;

/// Whether the client wants to fetch the response later.
pub(in crate::proxy) fn is_requested(ctx: &RequestContext, client: &HeaderMap) -> bool {
    if ctx.client.format() != Format::Images || ctx.client.task_key().is_some() {
        return false;
    }
    let mut preferences = client.get_all("prefer").iter();
    let prefers = preferences.any(|value| {
        let value = value.to_str().unwrap_or_default();
        let mut preferences = value.split(',').map(str::trim);
        preferences.any(|preference| preference.eq_ignore_ascii_case("respond-async"))
    });
    let request = ctx.route.request();
    prefers || request.is_some_and(|request| request.is_async)
}

impl Gateway {
    /// Creates a task of a request that could be forwarded as well, and says where its result will be.
    pub(in crate::proxy) async fn create_image_task(
        &self,
        session: &mut Session,
        ctx: &mut RequestContext,
    ) -> Result<()> {
        let task = match self.enqueue(session, ctx).await {
            Ok(task) => task,
            Err(api_error) => return Err(ctx.set_error(api_error)),
        };
        let mut fields = HeaderFields::default();
        fields.insert(LOCATION, format_args!("/v1/images/tasks/{}", task.id));
        fields.insert(PREFERENCE_APPLIED, "respond-async");
        ctx.route.clear_attempts();
        local::respond_json(session, ctx, 202, images::encode_accepted(&task), fields).await
    }

    async fn enqueue(
        &self,
        session: &Session,
        ctx: &mut RequestContext,
    ) -> Result<ImageTask, ApiError> {
        let (Some(request), Some(key)) = (ctx.route.request(), ctx.client.key().cloned()) else {
            return Err(ApiError::invalid("nothing is asked for"));
        };
        if request.stream {
            let message = "stream: an asynchronous image task cannot be streamed; remove `stream`";
            return Err(ApiError::invalid(message).at("stream"));
        }
        let header = session.req_header();
        let job = ImageJob {
            path: header.uri.path().to_owned(),
            key: key.hash(),
            origin: image_files::base_url(session, ctx),
            headers: routing_headers(ctx, &header.headers),
            body: request.body_without_async(&ctx.route.body),
        };
        let model = request.model.clone();
        // Whether the cap has room for it is known now; it is reserved again when the task runs.
        self.reserve(ctx).await?;
        ctx.billing.set_reservation(None);
        self.task_queue.submit(&key.id, &model, &job).await
    }

    /// Answers a request for the tasks of a key.
    pub(in crate::proxy) async fn image_tasks(
        &self,
        ctx: &mut RequestContext,
        action: &ImageTaskAction,
        query: Option<&str>,
    ) -> Result<(u16, Vec<u8>), ApiError> {
        let owner = ctx.client.owner();
        let task = match action {
            ImageTaskAction::List => {
                let tasks = self.task_queue.list(owner, limit(query)?).await?;
                return Ok((200, images::encode_task_list(&tasks)));
            }
            ImageTaskAction::Get(id) => self.task_queue.task(owner, id).await?,
            ImageTaskAction::Cancel(id) => self.task_queue.cancel(owner, id).await?,
        };
        let size = task.result.as_ref().map_or(0, Bytes::len);
        request_body::count_response(ctx, size)?;
        Ok(large_body::process(size, || images::encode_task(&task)))
    }

    /// Serves the request of a task, whose client is this process, by the hooks that pingora would call.
    async fn serve_task(
        &self,
        server: DuplexStream,
        task: &ImageTask,
        job: &ImageJob,
    ) -> Box<RequestContext> {
        let mut session = Session::new_h1(Box::new(server));
        let mut ctx = self.new_ctx();
        // The id is the same whenever the task is started: nothing of it is paid for twice.
        let request_id = format!("req_{}", task.id.trim_start_matches("task_"));
        let key = TaskKey::new(task, job);
        ctx.client.run_task(request_id, key, job.origin.clone());
        let outcome = match session.read_request().await {
            Ok(true) => self.request_filter(&mut session, &mut ctx).await,
            Ok(false) => Error::e_explain(ErrorType::ConnectionClosed, "nothing was asked")
                .map_err(|error: Box<Error>| error.into_down()),
            Err(error) => Err(error.into_down()),
        };
        let error = outcome.err();
        if let Some(error) = &error {
            self.fail_to_proxy(&mut session, error, &mut ctx).await;
        }
        self.logging(&mut session, error.as_deref(), &mut ctx).await;
        ctx
    }
}

#[async_trait]
impl ImageWorker for Gateway {
    async fn start(&self, task: &ImageTask, job: &ImageJob) -> Option<ConcurrencyPermit> {
        let snapshot = self.runtime.snapshot();
        let key = TaskKey::new(task, job);
        let caller = access::reauthenticate(&snapshot, self.keyring.as_deref(), &key);
        let key = match caller {
            Ok(caller) => self.look_up(&snapshot, caller).await,
            Err(api_error) => Err(api_error),
        };
        match key {
            Ok(key) => {
                let slot = access::acquire_slot(self.shared_limits.as_deref(), &key);
                slot.await.ok()
            }
            // The request of the task is refused with the same error.
            Err(_) => Some(ConcurrencyPermit::default()),
        }
    }

    async fn generate(&self, task: &ImageTask, job: ImageJob, stop: &Notify) -> Option<TaskResult> {
        let (client, server) = duplex(PIPE);
        let sending = async {
            // Without a client its request ends as any other does whose client has left.
            tokio::select! {
                response = send(client, &job) => response.ok(),
                () = stop.notified() => None,
            }
        };
        let (response, mut ctx) = tokio::join!(sending, self.serve_task(server, task, &job));
        let (status, body) = response?;
        let in_flight = ctx.take_in_flight();
        // A process that stops has not done the work: another will.
        let is_cut = status != 200 && self.is_stopping();
        (!is_cut).then_some(TaskResult {
            status,
            body,
            in_flight,
        })
    }
}

impl TaskKey {
    fn new(task: &ImageTask, job: &ImageJob) -> TaskKey {
        TaskKey {
            id: task.key.clone(),
            hash: job.key,
        }
    }
}

/// The headers that conditions of upstreams look at, as far as they mean nothing else to the request of a task.
fn routing_headers(ctx: &RequestContext, client: &HeaderMap) -> Vec<(String, String)> {
    let mut names: Vec<&HeaderName> = ctx.snapshot.condition_headers().collect();
    names.retain(|name| !TASK_HEADERS.contains(&name.as_str()));
    names.sort_unstable_by_key(|name| name.as_str());
    names.dedup();
    let values = names.iter().flat_map(|name| {
        let values = client.get_all(*name).iter();
        values.filter_map(|value| Some((name.to_string(), value.to_str().ok()?.to_owned())))
    });
    values.collect()
}

async fn send(client: DuplexStream, job: &ImageJob) -> Result<(u16, Bytes)> {
    let mut session = HttpSession::new(Box::new(client));
    let mut header = RequestHeader::build(Method::POST, job.path.as_bytes(), Some(4))?;
    let kind = Format::Images.codec().content_type(&job.body);
    for (name, value) in &job.headers {
        header.append_header(name.clone(), value)?;
    }
    header.insert_header(CONTENT_TYPE, &*kind)?;
    header.insert_header(CONTENT_LENGTH, job.body.len())?;
    let (_, host) = job.origin.split_once("://").unwrap_or_default();
    header.insert_header(HOST, host)?;
    session.write_request_header(Box::new(header)).await?;
    for chunk in job.body.chunks(PIPE) {
        session.write_body(chunk).await?;
    }
    session.finish_body().await?;
    session.read_response().await?;
    let status = session.get_status().map_or(0, |status| status.as_u16());
    let mut body = BytesMut::new();
    while let Some(chunk) = session.read_body_bytes().await? {
        body.extend_from_slice(&chunk);
    }
    Ok((status, body.freeze()))
}

fn limit(query: Option<&str>) -> Result<usize, ApiError> {
    let pairs = url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let Some((_, limit)) = pairs.into_iter().find(|(name, _)| name == "limit") else {
        return Ok(DEFAULT_LIMIT);
    };
    let limit = limit.parse().ok();
    let limit = limit.filter(|limit| (1..=MAX_LIMIT).contains(limit));
    let message = format!("limit: expected 1 to {MAX_LIMIT}");
    limit.ok_or_else(|| ApiError::invalid(message).at("limit"))
}
