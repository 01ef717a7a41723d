//! The options of every response that the benches translate.

use omniglot::formats::{Framing, ResponseOptions};
use omniglot::model::TranslationState;

use crate::settings::MODEL;

/// Returns the options of a response to a client that asked for usage.
pub fn response_options(stream: bool) -> ResponseOptions {
    ResponseOptions {
        model: MODEL.to_owned(),
        stream,
        framing: Framing::Sse,
        include_usage: true,
        request_id: "req_0123456789abcdef".to_owned(),
        created_at: 1_760_000_000,
        translation_state: TranslationState::default(),
    }
}
