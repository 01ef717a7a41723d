//! The fields that a response and every chunk of a stream repeat.

use crate::formats::ResponseOptions;
use crate::formats::ids::response_id;
use crate::model::Text;

/// The `id`, `created` and `model` of a response.
pub(super) struct ChatIdentity<'a> {
    /// The upstream's id of the response, from which the ids of calls are made.
    pub(super) upstream_id: Text<'a>,
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) model: String,
}

impl<'a> ChatIdentity<'a> {
    /// Uses what the upstream sent, and the request where it sent nothing; the model is the one that the
    /// client requested.
    pub(super) fn new(
        upstream_id: Text<'a>,
        created: i64,
        model: &str,
        options: &ResponseOptions,
    ) -> ChatIdentity<'a> {
        let id = if upstream_id.is_empty() {
            &options.request_id
        } else {
            &*upstream_id
        };
        let named = [options.model.as_str(), model]
            .into_iter()
            .find(|name| !name.is_empty());
        ChatIdentity {
            id: response_id("chatcmpl-", id),
            created: if created == 0 {
                options.created_at
            } else {
                created
            },
            model: named.unwrap_or_default().to_owned(),
            upstream_id,
        }
    }
}
