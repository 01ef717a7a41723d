//! Tests of the responses format that are no translations: laws, and what only its own codec can show.

mod corners;
mod stream_grammar;
mod stream_laws;

use crate::formats::{Framing, ResponseOptions};
use crate::model::TranslationState;

fn options(model: &str) -> ResponseOptions {
    ResponseOptions {
        model: model.to_owned(),
        stream: false,
        framing: Framing::Sse,
        include_usage: false,
        request_id: "req-1".to_owned(),
        created_at: 1_760_000_009,
        translation_state: TranslationState::default(),
    }
}
