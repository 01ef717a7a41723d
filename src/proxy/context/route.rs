//! The route's part of a request: what is asked for, and the attempts that may answer it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use crate::formats::Operation;
use crate::model::{ApiErrorKind, EarlierAttempt, truncated};
use crate::proxy::conversation::ConversationContext;
use crate::runtime::{Attempt, BodyMemoryShare, Model};
use crate::translate::{ModelTraits, RequestSummary};

/// What is asked for, and the attempts that may answer it.
#[derive(Default)]
pub(in crate::proxy) struct RouteState {
    model: Option<Arc<Model>>,
    /// The name of a model that is unknown, or that the key may not use.
    refused_model: Option<String>,
    request: Option<RequestSummary>,
    /// The client's body, kept as long as another attempt may need it.
    pub(in crate::proxy) body: Bytes,
    pub(in crate::proxy) body_memory: BodyMemoryShare,
    pub(in crate::proxy) conversation: ConversationContext,
    attempts: Vec<Attempt>,
    /// How many attempts have started; the current one is the last of these.
    tried: usize,
    /// Those of them that failed, and that others followed.
    earlier: Vec<EarlierAttempt>,
    /// No attempt starts after this, nor is one waited for that has no content yet.
    retry_deadline: Option<Instant>,
}

impl RouteState {
    pub(super) const fn start_next(&mut self) {
        self.tried += 1;
    }

    /// Notes that the current attempt has failed, and that another follows.
    pub(super) fn note_failed(&mut self, error: Option<ApiErrorKind>, took: Duration) {
        // One that was noted before comes here again when the attempt after it is taken back.
        if self.earlier.len() < self.tried {
            self.earlier.push(EarlierAttempt {
                upstream: self.upstream_name().to_owned(),
                error: error.map_or("", ApiErrorKind::name).to_owned(),
                milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            });
        }
    }

    /// The attempts before the current one, as a JSON array; empty: none.
    pub(in crate::proxy) fn earlier_attempts(&self) -> String {
        match self.earlier.is_empty() {
            true => String::new(),
            false => serde_json::to_string(&self.earlier).unwrap_or_default(),
        }
    }

    pub(super) fn per_attempt_timeout(&self) -> Option<Duration> {
        let model = self.model.as_ref()?;
        model.settings.retries.per_attempt_timeout
    }

    pub(in crate::proxy) fn set_model(&mut self, model: Arc<Model>, attempts: Vec<Attempt>) {
        let limit = model.settings.retries.total_timeout;
        self.retry_deadline = limit.map(|limit| Instant::now() + limit);
        self.model = Some(model);
        self.attempts = attempts;
    }

    /// Keeps the name of a model that cannot be used, for the access log.
    pub(in crate::proxy) fn set_refused_model(&mut self, name: &str) {
        self.refused_model = Some(truncated(name).to_string());
    }

    /// The name of the model that the client asked for.
    pub(in crate::proxy) fn model_name(&self) -> Option<&str> {
        let model = self.model.as_ref().map(|model| &*model.label);
        let asked = self.request.as_ref().map(|request| &*request.model);
        asked.or(model).or(self.refused_model.as_deref())
    }

    pub(in crate::proxy) fn set_request(&mut self, request: RequestSummary) {
        self.request = Some(request);
    }

    pub(in crate::proxy) fn model(&self) -> Option<&Model> {
        self.model.as_deref()
    }

    pub(in crate::proxy) const fn request(&self) -> Option<&RequestSummary> {
        self.request.as_ref()
    }

    pub(in crate::proxy) fn is_stream(&self) -> bool {
        self.request.as_ref().is_some_and(|request| request.stream)
    }

    pub(in crate::proxy) fn is_token_count(&self) -> bool {
        let request = self.request.as_ref();
        request.is_some_and(|request| request.operation == Operation::CountTokens)
    }

    /// The attempt under way.
    pub(in crate::proxy) fn current(&self) -> Option<&Attempt> {
        self.attempts.get(self.tried.checked_sub(1)?)
    }

    /// The attempt after the current one.
    pub(in crate::proxy) fn next(&self) -> Option<&Attempt> {
        self.attempts.get(self.tried)
    }

    pub(in crate::proxy) fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }

    /// The attempts that have started.
    pub(in crate::proxy) fn started(&self) -> &[Attempt] {
        &self.attempts[..self.tried]
    }

    pub(in crate::proxy) const fn tried(&self) -> usize {
        self.tried
    }

    pub(in crate::proxy) const fn retry_deadline(&self) -> Option<Instant> {
        self.retry_deadline
    }

    /// The name of the upstream that answers, or that was tried last.
    pub(in crate::proxy) fn upstream_name(&self) -> &str {
        self.current().map_or("", |attempt| &attempt.upstream.name)
    }

    /// The gateway answers by itself: no upstream is part of the answer, not even one that was tried.
    pub(in crate::proxy) fn clear_attempts(&mut self) {
        self.attempts.clear();
    }

    /// Takes the current attempt back, which cannot be made at all: it does not count.
    pub(in crate::proxy) fn withdraw_attempt(&mut self) {
        if let Some(current) = self.tried.checked_sub(1) {
            let same = self.attempts.remove(current);
            self.attempts.retain(|attempt| !attempt.is_same_as(&same));
            self.tried = current;
        }
    }

    /// Removes all later attempts at the current upstream, which would answer the same again.
    pub(in crate::proxy) fn skip_upstream(&mut self) {
        let Some(upstream) = self.current().map(|attempt| attempt.upstream.clone()) else {
            return;
        };
        let later = self.attempts.split_off(self.tried).into_iter();
        let elsewhere = later.filter(|attempt| !Arc::ptr_eq(&attempt.upstream, &upstream));
        self.attempts.extend(elsewhere);
    }

    /// What the codec must know of the model that was asked for.
    pub(in crate::proxy) fn model_traits(&self) -> ModelTraits<'_> {
        let model = self.model.as_ref();
        ModelTraits {
            text_only: model.is_some_and(|model| !model.settings.has_image_output()),
            images_only: model.is_some_and(|model| model.settings.is_image_model()),
            sizes: model.map_or(&[], |model| &model.image_sizes),
        }
    }
}
