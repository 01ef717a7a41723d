//! Audio of earlier responses, which an upstream keeps under its id: in responses, and where a request sends the id back.

use crate::formats::kept_ids::may_have_word;
use crate::formats::{KeptIds, KeptKind};
use crate::json::{DecodeResult, FromJson, JsonReader, RawJson, is_same_but_for_case};

/// The id of the audio of a message. What is no message has none: it is the client's to judge.
#[derive(Default)]
pub(super) struct PeekedMessage<'a> {
    pub(super) audio_id: Option<RawJson<'a>>,
}

impl<'a> FromJson<'a> for PeekedMessage<'a> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        if reader.peek() != Some(b'{') {
            return reader.skip();
        }
        reader.object(|reader, key| match (key, reader.peek()) {
            ("audio", Some(b'{')) => reader.object(|reader, key| match key {
                "id" => self.audio_id.decode(reader),
                _ => reader.skip(),
            }),
            _ => reader.skip(),
        })
    }
}

/// Finds the ids of audio in the messages of a request.
pub(super) fn find_kept_audio(body: &[u8]) -> KeptIds {
    let mut found = KeptIds::default();
    if may_have_word(body, &["audio"])
        && let Ok(text) = str::from_utf8(body)
    {
        let mut reader = JsonReader::new(text);
        // A body that is no JSON has been refused before.
        let _ = reader.object(|reader, key| match is_same_but_for_case(key, "messages") {
            true => read_messages(reader, &mut found),
            false => reader.skip(),
        });
    }
    found
}

/// Reads messages, or the parts of one, in lists of any depth: lenient upstreams may find audio there.
fn read_messages(reader: &mut JsonReader<'_>, found: &mut KeptIds) -> DecodeResult {
    match reader.peek() {
        Some(b'[') => reader.array(|reader| read_messages(reader, found)),
        Some(b'{') => reader.object(|reader, key| {
            if is_same_but_for_case(key, "audio") {
                read_audio(reader, found)
            } else if is_same_but_for_case(key, "content") {
                read_messages(reader, found)
            } else {
                reader.skip()
            }
        }),
        _ => reader.skip(),
    }
}

/// Reads the audio of a message, or a list of such.
fn read_audio(reader: &mut JsonReader<'_>, found: &mut KeptIds) -> DecodeResult {
    if reader.peek() == Some(b'[') {
        return reader.array(|reader| read_audio(reader, found));
    }
    read_object(reader, "id", |reader| {
        let mut id = RawJson::default();
        id.decode(reader)?;
        if id.get().starts_with('"') {
            // Nobody was given an id that cannot be read.
            let id = id.text().unwrap_or_else(|| id.get().into());
            found.mention(id.into_owned(), KeptKind::Audio);
        }
        Ok(())
    })
}

/// Reads one field of an object, in any case, and nothing of another value.
fn read_object<'a>(
    reader: &mut JsonReader<'a>,
    name: &str,
    mut read: impl FnMut(&mut JsonReader<'a>) -> DecodeResult,
) -> DecodeResult {
    match reader.peek() {
        Some(b'{') => reader.object(|reader, key| match is_same_but_for_case(key, name) {
            true => read(reader),
            false => reader.skip(),
        }),
        _ => reader.skip(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audio_is_found_in_messages_only() {
        for (body, ids) in [
            (
                r#"{"messages":[{"role":"assistant","audio":{"id":"a"}},{"Audio":{"ID":"b"}}]}"#,
                2,
            ),
            (
                r#"{"messages":[{"audio":{"id":null}},{"audio":null},"audio",7]}"#,
                0,
            ),
            (
                r#"{"audio":{"id":"a"},"messages":[{"content":[{"type":"input_audio"}]}]}"#,
                0,
            ),
            (
                r#"{"messages":[{"audio":[{"id":"a"}]},[{"audio":{"id":"b"}}]]}"#,
                2,
            ),
            (
                r#"{"messages":[{"content":[{"type":"audio","audio":{"id":"a"}}]}]}"#,
                1,
            ),
            (r#"{"messages":[{"audio":{"id":"\ud800"}}]}"#, 1),
            (r#"{"messages":[{"\u0061udio":{"\u0069d":"a"}}]}"#, 1),
        ] {
            let found = find_kept_audio(body.as_bytes());
            assert_eq!(found.mentions.len(), ids, "{body}");
        }
    }
}
