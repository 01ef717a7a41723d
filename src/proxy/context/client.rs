//! The client's part of a request: who asks, and in which format.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::access::{Admission, ConcurrencyPermit, TaskKey};
use crate::formats::Codec;
use crate::model::Format;
use crate::runtime::{Key, LeftPermit};

/// Who asks, and in which format.
pub(in crate::proxy) struct ClientState {
    request_id: String,
    started: Instant,
    /// The format of the path; errors are encoded in it.
    format: Format,
    /// Whether the path belongs to a format, unlike the public catalog and unknown paths.
    has_format: bool,
    endpoint_label: Option<&'static str>,
    /// The client speaks to AWS Bedrock: its errors and streams are those of AWS.
    is_bedrock: bool,
    key: Option<Arc<Key>>,
    /// What the request holds of its key's limits and the gateway's.
    admission: Option<Admission>,
    /// What an image request holds of its key's requests at once; others hold it with their admission.
    slot: Option<ConcurrencyPermit>,
    task: Option<TaskOrigin>,
    received: u64,
    left_at: Option<Instant>,
    /// Held while the request is finished without the client.
    left_permit: Option<LeftPermit>,
    /// It is not finished, because too many of its key's requests are.
    is_given_up: bool,
}

/// An image task that runs: its request was admitted when it was created.
struct TaskOrigin {
    key: TaskKey,
    /// Scheme and host that the task's client used for the gateway.
    base_url: String,
}

impl ClientState {
    pub(super) fn new(started: Instant) -> ClientState {
        ClientState {
            request_id: new_request_id(),
            started,
            format: Format::Chat,
            has_format: false,
            endpoint_label: None,
            is_bedrock: false,
            key: None,
            admission: None,
            slot: None,
            task: None,
            received: 0,
            left_at: None,
            left_permit: None,
            is_given_up: false,
        }
    }

    /// Makes this the request of an image task, under an id that is the same at every start.
    pub(in crate::proxy) fn run_task(
        &mut self,
        request_id: String,
        key: TaskKey,
        base_url: String,
    ) {
        self.request_id = request_id;
        self.task = Some(TaskOrigin { key, base_url });
    }

    /// Whether this is the request of an image task that runs.
    pub(in crate::proxy) const fn is_task(&self) -> bool {
        self.task.is_some()
    }

    pub(in crate::proxy) fn task_key(&self) -> Option<&TaskKey> {
        self.task.as_ref().map(|task| &task.key)
    }

    pub(in crate::proxy) fn task_base_url(&self) -> Option<&str> {
        self.task.as_ref().map(|task| &*task.base_url)
    }

    pub(in crate::proxy) fn request_id(&self) -> &str {
        &self.request_id
    }

    pub(in crate::proxy) const fn format(&self) -> Format {
        self.format
    }

    pub(in crate::proxy) fn codec(&self) -> &'static dyn Codec {
        self.format.codec()
    }

    pub(in crate::proxy) const fn set_format(&mut self, format: Format) {
        self.format = format;
    }

    pub(in crate::proxy) const fn is_bedrock(&self) -> bool {
        self.is_bedrock
    }

    pub(in crate::proxy) const fn set_bedrock(&mut self, is_bedrock: bool) {
        self.is_bedrock = is_bedrock;
    }

    /// The name of the format, or of an endpoint that is beside the formats of conversations.
    pub(in crate::proxy) fn label(&self) -> &'static str {
        self.endpoint_label.unwrap_or(self.format.name())
    }

    /// The same, if the path belongs to a format.
    pub(in crate::proxy) fn path_label(&self) -> Option<&'static str> {
        self.has_format.then(|| self.label())
    }

    /// The path belongs to a format, or to an endpoint with a name of its own.
    pub(in crate::proxy) const fn set_has_format(&mut self, endpoint: Option<&'static str>) {
        self.has_format = true;
        self.endpoint_label = endpoint;
    }

    pub(in crate::proxy) const fn key(&self) -> Option<&Arc<Key>> {
        self.key.as_ref()
    }

    pub(in crate::proxy) fn set_key(&mut self, key: Arc<Key>) {
        self.key = Some(key);
    }

    /// The id of the key: what it stored belongs to it.
    pub(in crate::proxy) fn owner(&self) -> &str {
        self.key.as_ref().map_or("", |key| &*key.id)
    }

    /// The name of the key, for people.
    pub(in crate::proxy) fn key_name(&self) -> &str {
        self.key.as_ref().map_or("", |key| &*key.name)
    }

    pub(in crate::proxy) const fn admission(&self) -> Option<&Admission> {
        self.admission.as_ref()
    }

    pub(in crate::proxy) fn set_admission(&mut self, admission: Option<Admission>) {
        self.admission = admission;
    }

    pub(in crate::proxy) fn set_slot(&mut self, slot: ConcurrencyPermit) {
        self.slot = Some(slot);
    }

    pub(in crate::proxy) const fn started(&self) -> Instant {
        self.started
    }

    pub(in crate::proxy) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(in crate::proxy) const fn received_bytes(&self) -> u64 {
        self.received
    }

    pub(in crate::proxy) const fn count_received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    pub(in crate::proxy) const fn has_left(&self) -> bool {
        self.left_at.is_some()
    }

    /// Tells whether the request may be finished without the client. What is given up costs what was reserved.
    pub(in crate::proxy) fn may_finish_without(&mut self) -> bool {
        if self.left_permit.is_some() {
            return true;
        }
        let share = self.key.as_ref().map(|key| &key.share);
        self.left_permit = share.and_then(|share| share.admit_left());
        self.is_given_up = self.left_permit.is_none();
        !self.is_given_up
    }

    pub(in crate::proxy) const fn is_given_up(&self) -> bool {
        self.is_given_up
    }

    /// When the client has left.
    pub(in crate::proxy) const fn left_at(&self) -> Option<Instant> {
        self.left_at
    }

    pub(in crate::proxy) fn set_left(&mut self) {
        self.left_at.get_or_insert_with(Instant::now);
    }
}

/// Request ids sort by time.
fn new_request_id() -> String {
    let mut letters = uuid::Uuid::encode_buffer();
    let id = uuid::Uuid::now_v7().simple().encode_lower(&mut letters);
    ["req_", id].concat()
}
