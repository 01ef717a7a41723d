//! Work on long conversations leaves the threads that serve all requests, however short the request is.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::*;
use crate::config::ConversationsConfig;

/// Tells whether work leaves the thread of its task to others: a runtime that has only one does not allow it.
fn leaves_its_thread(work: impl FnOnce()) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let run = AssertUnwindSafe(|| runtime.block_on(async { work() }));
    let Err(why) = catch_unwind(run) else {
        return false;
    };
    let why = why.downcast::<String>().expect("the words of a panic");
    assert!(why.contains("multi-threaded runtime"), "{why}");
    true
}

/// The conversations of a key that had one response to so many bytes.
fn conversations(length: usize) -> Conversations {
    let conversations = Conversations::new(Some(ConversationsConfig {
        size: 16 << 20,
        ttl: Duration::from_secs(60),
        max_bytes_per_key: 16 << 20,
    }));
    let added = format!("\"{}\"", "x".repeat(length));
    let response = r#"{"id":"resp_1","output":[{"type":"message","id":"msg_1","content":[]}]}"#;
    let turn = StoredConversationTurn::new(None, added.into(), response.into());
    conversations.insert("dev", "resp_1", &turn);
    conversations
}

const SCOPE: ConversationScope<'static> = ConversationScope {
    owner: "dev",
    format: Format::Responses,
    limit: 64 << 20,
    has_place: false,
};

#[test]
fn a_long_conversation_is_expanded_as_a_large_body() {
    let body = r#"{"model":"m","input":"Hi.","previous_response_id":"resp_1"}"#;
    for (length, is_large) in [(1 << 10, false), (1 << 20, true)] {
        let conversations = conversations(length);
        let mut counted = 0;
        let is_left = leaves_its_thread(|| {
            let fields = Format::Responses
                .codec()
                .decode_routing_fields(body.as_bytes());
            let state = fields.expect("a request").conversation;
            let mut grow = |bytes| {
                counted = bytes;
                Ok(())
            };
            let mut context = ConversationContext::default();
            let body = Bytes::from(body);
            let resumed = context.resume(&conversations, SCOPE, &body, state.clone(), &mut grow);
            assert_eq!(context.needs_place(), is_large);
            let mut resumed = resumed.expect("a body");
            if is_large {
                assert_eq!(resumed, None);
                let mut context = ConversationContext::in_place();
                let in_place = context.resume(&conversations, SCOPE, &body, state, &mut grow);
                assert!(!context.needs_place());
                resumed = in_place.expect("a body");
            }
            assert!(resumed.expect("a longer one").len() > length);
        });
        assert_eq!(is_left, is_large, "{length}");
        assert!(counted > length, "{counted} of {length}");
    }
}

#[test]
fn the_input_of_a_long_conversation_is_listed_as_a_large_body() {
    for (length, is_large) in [(1 << 10, false), (1 << 20, true)] {
        let conversations = conversations(length);
        let mut counted = 0;
        let is_left = leaves_its_thread(|| {
            let list = StoredResponseAction::ListInput;
            let mut grow = |bytes| {
                counted = bytes;
                Ok(())
            };
            let page = answer(&conversations, SCOPE, list, ("resp_1", None), &mut grow);
            assert!(page.expect("a page").len() > length);
        });
        assert_eq!(is_left, is_large, "{length}");
        // The text, the item that it becomes, and the page.
        assert!(counted > 3 * length, "{counted} of {length}");
    }
}
