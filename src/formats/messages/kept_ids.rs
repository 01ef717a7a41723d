//! What an upstream keeps under an id: the container in which it runs code, and the conversation of a thread.

use super::error::THREAD;
use crate::formats::kept_ids::may_have_word;
use crate::formats::{KeptIds, KeptKind, ResponseObserver};
use crate::json::{DecodeResult, FromJson, JsonReader, RawJson, is_same_but_for_case};

/// The id of a container. What is no container has none: it is the client's to judge.
#[derive(Default)]
pub(super) struct PeekedContainer<'a> {
    id: Option<RawJson<'a>>,
}

impl<'a> FromJson<'a> for PeekedContainer<'a> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        if reader.peek() != Some(b'{') {
            return reader.skip();
        }
        reader.object(|reader, key| match key {
            "id" => self.id.decode(reader),
            _ => reader.skip(),
        })
    }
}

impl PeekedContainer<'_> {
    pub(super) fn note(&self, observer: &mut ResponseObserver) {
        if let Some(id) = self.id.and_then(RawJson::text) {
            observer.observe_resource(&id);
        }
    }
}

/// Finds the ids in a request: `container` is the id itself, or an object that may have one, and a thread goes on from the id of
/// a response.
pub(super) fn find_kept_ids(body: &[u8]) -> KeptIds {
    let mut found = KeptIds::default();
    if may_have_word(body, &["container", THREAD])
        && let Ok(text) = str::from_utf8(body)
    {
        let mut reader = JsonReader::new(text);
        // A body that is no JSON has been refused before.
        let _ = reader.object(|reader, key| {
            if is_same_but_for_case(key, "container") {
                read_container(reader, true, &mut found)
            } else if is_same_but_for_case(key, THREAD) {
                read_thread(reader, &mut found)
            } else {
                reader.skip()
            }
        });
    }
    found
}

/// Reads the id of a container, or what has one anywhere: lenient upstreams may find it. `is_id`: a text is one.
fn read_container(reader: &mut JsonReader<'_>, is_id: bool, found: &mut KeptIds) -> DecodeResult {
    match reader.peek() {
        Some(b'"') if is_id => mention(reader, KeptKind::Container, found),
        Some(b'[') => reader.array(|reader| read_container(reader, is_id, found)),
        Some(b'{') => reader.object(|reader, key| {
            let names = ["id", "container", "container_id"];
            let is_id = names.iter().any(|name| is_same_but_for_case(key, name));
            read_container(reader, is_id, found)
        }),
        _ => reader.skip(),
    }
}

/// Reads a thread: all texts in it may be the id of the response that it goes on from, but for its type.
fn read_thread(reader: &mut JsonReader<'_>, found: &mut KeptIds) -> DecodeResult {
    match reader.peek() {
        Some(b'"') => mention(reader, KeptKind::Thread, found),
        Some(b'[') => reader.array(|reader| read_thread(reader, found)),
        Some(b'{') => reader.object(|reader, key| match key {
            "type" => reader.skip(),
            _ => read_thread(reader, found),
        }),
        _ => reader.skip(),
    }
}

fn mention(reader: &mut JsonReader<'_>, kind: KeptKind, found: &mut KeptIds) -> DecodeResult {
    let mut id = RawJson::default();
    id.decode(reader)?;
    // Nobody was given an id that cannot be read.
    let id = id.text().unwrap_or_else(|| id.get().into());
    found.mention(id.into_owned(), kind);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_response_that_a_thread_goes_on_from_is_found() {
        for (body, ids) in [
            (r#"{"thread":{"type":"create"}}"#, 0),
            (
                r#"{"thread":{"type":"continue","previous_message_id":"a"}}"#,
                1,
            ),
            (r#"{"Thread":{"Previous_Message_ID":["a","b"]}}"#, 2),
            (r#"{"thr\u0065ad":"a"}"#, 1),
            (r#"{"thread":null,"messages":[{"thread":"a"}]}"#, 0),
        ] {
            let found = find_kept_ids(body.as_bytes());
            assert_eq!(found.mentions.len(), ids, "{body}");
            assert!(found.mentions.iter().all(|it| it.kind == KeptKind::Thread));
        }
    }

    #[test]
    fn the_container_of_a_request_is_found() {
        for (body, ids) in [
            (r#"{"container":"a"}"#, 1),
            (r#"{"Container":{"ID":"a","skills":[]}}"#, 1),
            (r#"{"cont\u0061iner":"a","container":"b"}"#, 2),
            (
                r#"{"container":{"skills":[{"type":"anthropic","skill_id":"pptx"}]}}"#,
                0,
            ),
            (r#"{"container":["a"]}"#, 1),
            (r#"{"container":{"skills":[],"container":{"id":"a"}}}"#, 1),
            (r#"{"container":null,"messages":[{"container":"a"}]}"#, 0),
        ] {
            let found = find_kept_ids(body.as_bytes());
            assert_eq!(found.mentions.len(), ids, "{body}");
        }
    }
}
