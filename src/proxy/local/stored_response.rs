//! Requests for a stored response, its input, or its end.

use bytes::Bytes;

use crate::model::ApiError;
use crate::proxy::context::RequestContext;
use crate::proxy::conversation;
use crate::proxy::endpoint::StoredResponseAction;
use crate::proxy::gateway::Gateway;
use crate::proxy::request::request_body;

impl Gateway {
    /// Answers such a request; what it takes counts among the memory of all bodies.
    pub(in crate::proxy) async fn stored_response(
        &self,
        ctx: &mut RequestContext,
        action: StoredResponseAction,
        id: &str,
        query: Option<&str>,
    ) -> Result<Bytes, ApiError> {
        let mut memory = std::mem::take(&mut ctx.route.body_memory);
        let limit = ctx.snapshot.server.body_memory;
        let mut grow = |bytes: usize| request_body::count_response_in(&mut memory, bytes, limit);
        let (conversations, scope) = (&self.runtime.conversations, ctx.conversation_scope());
        let store = self.conversation_store.as_deref();
        if let Some(store) = store {
            store.restore(conversations, scope, id).await;
        }
        // How long the conversation is that its input is listed with is not known before.
        let work = match action {
            StoredResponseAction::ListInput => usize::MAX,
            StoredResponseAction::Get | StoredResponseAction::Delete => 0,
        };
        let place = self.large_body_place(ctx, work).await;
        let answer = conversation::answer(conversations, scope, action, (id, query), &mut grow)?;
        drop(place);
        if let (Some(store), StoredResponseAction::Delete) = (store, action) {
            store.delete(scope.owner, id).await?;
        }
        ctx.route.body_memory = memory;
        Ok(answer)
    }
}
