//! The event at which the reader of a stream stops.

/// The words of the last event. Native clients read on until there is no more.
pub fn last_event(format: &str) -> Option<&'static [u8]> {
    match format {
        "chat" => Some(b"data: [DONE]\n\n"),
        "messages" => Some(b"\"type\":\"message_stop\""),
        "responses" => Some(b"\"type\":\"response.completed\""),
        _ => None,
    }
}

pub fn contains(body: &[u8], words: &[u8]) -> bool {
    body.windows(words.len()).any(|window| window == words)
}
