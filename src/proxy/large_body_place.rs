//! Little of the work on large bodies goes on at once, and of one key no more than half of that.

use super::context::RequestContext;
use super::gateway::Gateway;
use super::large_body::LARGE;
use crate::runtime::LargeBodyPlace;
use crate::translate::ResponseTranslator;

impl Gateway {
    /// Waits for a place to work on a body of this size; a small one needs none. Whoever has a place does not wait for
    /// anything else.
    pub(super) fn large_body_place(
        &self,
        ctx: &RequestContext,
        size: usize,
    ) -> impl Future<Output = Option<LargeBodyPlace>> + Send + use<> {
        let owner = ctx.client.key().map(|key| &key.share);
        let place = (size >= LARGE).then(|| self.runtime.state.large_body_place(owner));
        async {
            match place {
                Some(place) => place.await,
                None => None,
            }
        }
    }
}

/// The size of a document that is complete, and of which only the translation is missing.
pub(super) fn size_at_end(ctx: &RequestContext) -> usize {
    let translator = ctx.response.translator.as_ref();
    translator.map_or(0, ResponseTranslator::buffered)
}
