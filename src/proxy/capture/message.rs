//! One side of an inspected request as its bytes come and go, and what is kept of it in the end.

use std::sync::Arc;
use std::time::Instant;

use super::redaction::{redact_fields, redact_text};
use crate::formats::Codec;
use crate::model::Event;
use crate::proxy::upstream::redact::CaptureSecrets;
use crate::runtime::{
    CaptureShare, CapturedMessage, EventKind, EventSide, PANE_LIMIT, TimelineEvent,
};
use crate::sse::SseFrames;

/// More is taken than is shown, so that a credential that begins in what is shown is whole and can be found.
const SLACK: usize = 16 << 10;

/// How many chunks of a body are told apart.
const MAX_CHUNKS: usize = 2000;

/// How long the names of events are.
const MAX_NAME: usize = 40;

/// The bytes of one side so far, with every credential in them: it never leaves the request.
pub(super) struct MessageDraft {
    pub(super) head: String,
    body: Vec<u8>,
    size: u64,
    /// The length of each chunk that is kept, and when it came.
    chunks: Vec<(usize, u64)>,
    share: CaptureShare,
    is_head_cut: bool,
    /// There was no memory for a part of the body: what comes behind it would hide the end of a half credential.
    is_full: bool,
}

impl MessageDraft {
    pub(super) fn new(mut head: String, mut share: CaptureShare) -> MessageDraft {
        let room = share.take(head.len());
        let is_head_cut = room < head.len();
        if is_head_cut {
            // A part of a line may end with the first half of a credential, which is not found.
            let end = head[..head.floor_char_boundary(room)].rfind('\n');
            head.truncate(end.unwrap_or_default());
        }
        MessageDraft {
            head,
            body: Vec::new(),
            size: 0,
            chunks: Vec::new(),
            share,
            is_head_cut,
            is_full: false,
        }
    }

    pub(super) fn push(&mut self, chunk: &[u8], microseconds: u64) {
        if chunk.is_empty() {
            return;
        }
        self.size += chunk.len() as u64;
        let room = match self.is_full {
            true => 0,
            false => (PANE_LIMIT + SLACK).saturating_sub(self.body.len()),
        };
        let wanted = chunk.len().min(room);
        let taken = self.share.take(wanted);
        self.is_full |= taken < wanted;
        self.body.extend_from_slice(&chunk[..taken]);
        let is_told_apart = self.chunks.len() < MAX_CHUNKS;
        match self.chunks.last_mut().filter(|_| !is_told_apart) {
            Some((length, _)) => *length += taken,
            None => self.chunks.push((taken, microseconds)),
        }
    }

    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Redacts all of it. `hides_address`: it may name the upstream's address, which is the operator's.
    pub(super) fn finish(
        mut self,
        secrets: &CaptureSecrets<'_>,
        hides_address: bool,
    ) -> Arc<CapturedMessage> {
        let mut is_cut = self.size > self.body.len() as u64;
        let redacted = match hides_address {
            true => secrets.redact_with_address(&self.body),
            false => secrets.redact(&self.body),
        };
        let mut body = redact_fields(redacted.unwrap_or(self.body));
        // What stands at the end of what was cut may be the first half of a credential.
        let shown = match is_cut {
            true => body.len().saturating_sub(SLACK).min(PANE_LIMIT),
            false => body.len().min(PANE_LIMIT),
        };
        is_cut |= shown < body.len();
        body.truncate(shown);
        // Bytes that are no text take more room as the sign for them.
        let mut body = String::from_utf8_lossy(&body).replace('\0', "\u{fffd}");
        let end = body.floor_char_boundary(PANE_LIMIT);
        is_cut |= end < body.len() || self.is_head_cut;
        body.truncate(end);
        self.share.shrink_to(self.head.len() + body.len());
        Arc::new(CapturedMessage {
            head: redact_text(secrets, self.head),
            body,
            size: self.size,
            is_cut,
            share: self.share,
        })
    }

    /// When which part of the body came: the events of a stream, or chunks.
    pub(super) fn events(
        &self,
        side: EventSide,
        codec: &dyn Codec,
        secrets: &CaptureSecrets<'_>,
    ) -> Vec<TimelineEvent> {
        let mut events = Vec::new();
        let is_stream = self.head.contains("text/event-stream");
        let (mut frames, mut decoder, mut at) = (SseFrames::default(), codec.stream_decoder(), 0);
        for (length, microseconds) in &self.chunks {
            let chunk = &self.body[at..at + length];
            at += length;
            if !is_stream {
                events.push(TimelineEvent {
                    microseconds: *microseconds,
                    side,
                    kind: EventKind::Chunk,
                    detail: String::new(),
                    bytes: *length as u64,
                });
                continue;
            }
            frames.push(chunk, |frame| {
                let mut words: Vec<&str> = Vec::new();
                let Some(data) = frame.data.as_deref() else {
                    return;
                };
                // What cannot be decoded is shown by its name, or by none.
                let _ = decoder.decode_event(data, &mut |event| words.push(event_word(&event)));
                words.dedup();
                let name = match (&*frame.name, data) {
                    ("", "[DONE]") => data.to_owned(),
                    ("", _) => words.join(" "),
                    (name, _) => {
                        let name = redact_text(secrets, name.to_owned());
                        name.chars().take(MAX_NAME).collect()
                    }
                };
                events.push(TimelineEvent {
                    microseconds: *microseconds,
                    side,
                    kind: EventKind::StreamEvent,
                    detail: name,
                    bytes: frame.raw.len() as u64,
                });
            });
        }
        events
    }
}

/// An event of a stream without names for its events.
const fn event_word(event: &Event<'_>) -> &'static str {
    match event {
        Event::Start { .. } => "start",
        Event::Open { .. } => "open",
        Event::Delta { .. } => "delta",
        Event::Close { .. } => "close",
        Event::Finish { .. } => "finish",
        Event::Usage(_) => "usage",
        Event::End => "end",
    }
}

/// Microseconds since a request has arrived.
pub(super) fn since(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Format;
    use crate::runtime::{Capture, InspectedKey, InspectionSwitch, Inspector};

    const SECRET: &str = "sk-0123456789-0123456789-0123456789-0123456789";

    fn capture() -> Arc<Capture> {
        let switch = Arc::<InspectionSwitch>::default();
        let key = InspectedKey {
            id: "one".to_owned(),
            name: "ada/one".to_owned(),
            account: "ada".to_owned(),
            by: "ada".to_owned(),
        };
        Inspector::default().start(key, switch.clone());
        switch.begin("req_1").expect("it is inspected")
    }

    fn secrets() -> CaptureSecrets<'static> {
        CaptureSecrets::new(None, &[SECRET.as_bytes().to_vec()])
    }

    /// Takes all memory but so many bytes.
    fn all_but(capture: &Capture, left: usize) -> CaptureShare {
        let mut share = capture.share();
        let all = share.take(usize::MAX);
        share.shrink_to(all - left);
        share
    }

    #[test]
    fn a_head_without_room_ends_with_a_whole_line() {
        let capture = capture();
        let first = "POST / HTTP/1.1\naccept: a";
        for (left, shown) in [(first.len() + 12, first), (20, "POST / HTTP/1.1"), (9, "")] {
            let taken = all_but(&capture, left);
            let head = format!("{first}\nx: {SECRET}");
            let message = MessageDraft::new(head, capture.share()).finish(&secrets(), false);
            assert_eq!((&*message.head, message.is_cut), (shown, true));
            drop(taken);
        }
        let head = format!("{first}\nx: {SECRET}");
        let message = MessageDraft::new(head, capture.share()).finish(&secrets(), false);
        assert_eq!(message.head, format!("{first}\nx: ***"));
        assert!(!message.is_cut);
    }

    #[test]
    fn nothing_follows_a_part_of_a_body_without_room() {
        let capture = capture();
        let mut draft = MessageDraft::new(String::new(), capture.share());
        let taken = all_but(&capture, 10);
        draft.push(SECRET.as_bytes(), 1);
        drop(taken);
        draft.push(&[b'y'; SLACK + 100], 2);
        assert_eq!(draft.body.len(), 10);
        let message = draft.finish(&secrets(), false);
        assert_eq!((&*message.body, message.is_cut), ("", true));
        assert_eq!(message.size, (SECRET.len() + SLACK + 100) as u64);
    }

    #[test]
    fn the_name_of_an_event_is_cut_behind_its_credentials() {
        let head = "200\ncontent-type: text/event-stream".to_owned();
        let mut draft = MessageDraft::new(head, capture().share());
        draft.push(format!("event: {SECRET}\ndata: {{}}\n\n").as_bytes(), 1);
        let codec = Format::Messages.codec();
        let events = draft.events(EventSide::Upstream, codec, &secrets());
        let details = events.iter().map(|event| &*event.detail);
        assert_eq!(details.collect::<Vec<_>>(), ["***"]);
    }
}
