//! The fields that a response and every chunk of a stream repeat.

use crate::formats::ResponseOptions;
use crate::formats::ids::response_id;

/// The `id`, `created` and `model` of a response.
#[derive(Debug, Default)]
pub(super) struct ChatIdentity {
    pub(super) id: String,
    pub(super) created: i64,
    pub(super) model: String,
}

impl ChatIdentity {
    /// Uses what the upstream sent, and the request where it sent nothing; the model is the one that the
    /// client requested.
    pub(super) fn new(
        id: &str,
        created: i64,
        model: &str,
        options: &ResponseOptions,
    ) -> ChatIdentity {
        let id = if id.is_empty() {
            &options.request_id
        } else {
            id
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
        }
    }
}
