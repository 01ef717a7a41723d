//! What every request and reply of the benches has in common.

use omniglot::formats::{Framing, ResponseOptions};
use omniglot::model::TranslationState;

pub const MODEL: &str = "bench-model";

pub fn asked(stream: bool) -> ResponseOptions {
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
