//! The ids in the output of a response: of its items, and of the containers that these name.

use std::borrow::Cow;
use std::collections::HashSet;

use smallvec::SmallVec;

use super::kept_ids::HOSTED_CALLS;
use crate::formats::ResponseObserver;
use crate::json::{DecodeResult, FromJson, JsonReader, RawJson};

/// The ids of the items of a response, and of the containers that these name. What is no list of items has none.
#[derive(Default)]
pub(super) struct OutputIds<'a> {
    items: SmallVec<[Cow<'a, str>; 4]>,
    containers: SmallVec<[Cow<'a, str>; 1]>,
    /// Clients send such an item back without what the tool has found.
    has_hosted_call: bool,
}

impl<'a> FromJson<'a> for OutputIds<'a> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        match reader.peek() {
            Some(b'[') => reader.array(|reader| self.decode_item(reader)),
            _ => reader.skip(),
        }
    }
}

impl<'a> OutputIds<'a> {
    fn decode_item(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        if reader.peek() != Some(b'{') {
            return reader.skip();
        }
        reader.object(|reader, key| match (key, reader.peek()) {
            ("id", Some(b'"')) => {
                self.items.push(reader.text()?);
                Ok(())
            }
            ("container_id", Some(b'"')) => {
                self.containers.push(reader.text()?);
                Ok(())
            }
            ("content", Some(b'[')) => {
                let content = reader.raw()?;
                match content.contains("container_id") {
                    true => self.decode_containers(&mut JsonReader::new(content)),
                    false => Ok(()),
                }
            }
            ("type", Some(b'"')) => {
                let kind = reader.text()?;
                self.has_hosted_call |= HOSTED_CALLS.contains(&&*kind);
                Ok(())
            }
            _ => reader.skip(),
        })
    }

    /// Decodes the containers of files that the parts of a message cite.
    fn decode_containers(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        match reader.peek() {
            Some(b'[') => reader.array(|reader| self.decode_containers(reader)),
            Some(b'{') => reader.object(|reader, key| match (key, reader.peek()) {
                ("container_id", Some(b'"')) => {
                    let id = reader.text()?;
                    // Each citation of a file has it.
                    if self.containers.last() != Some(&id) {
                        self.containers.push(id);
                    }
                    Ok(())
                }
                ("annotations", Some(b'[')) => self.decode_containers(reader),
                _ => reader.skip(),
            }),
            _ => reader.skip(),
        }
    }

    pub(super) fn note(&self, observer: &mut ResponseObserver) {
        if self.has_hosted_call {
            observer.observe_hosted_call();
        }
        for id in &self.items {
            observer.observe_item(id);
        }
        for id in &self.containers {
            observer.observe_resource(id);
        }
    }

    /// Notes the ids that have not come before, at the end of a stream: some upstreams do not announce their items.
    pub(super) fn note_missing(mut self, observer: &mut ResponseObserver) {
        if self.containers.is_empty() && self.items.iter().eq(observer.item_ids()) {
            return;
        }
        let noted: HashSet<&str> = observer.item_ids().collect();
        self.items.retain(|id| !noted.contains(&**id));
        self.containers.retain(|id| !noted.contains(&**id));
        self.note(observer);
    }
}

/// Decodes the ids of one item.
pub(super) fn decode_item(item: Option<RawJson<'_>>) -> OutputIds<'_> {
    let mut ids = OutputIds::default();
    if let Some(item) = item {
        // What cannot be read has none.
        let _ = ids.decode_item(&mut JsonReader::new(item.get()));
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::decode_json;

    #[test]
    fn containers_are_those_of_calls_and_of_cited_files() {
        let output = r#"[
            {"type":"code_interpreter_call","id":"ci_1","container_id":"a"},
            {"type":"message","id":"msg_1","content":[
                {"type":"output_text","text":"container_id","annotations":[
                    {"type":"container_file_citation","container_id":"b"},
                    {"type":"container_file_citation","container_id":"b"},
                    {"type":"url_citation"}]},
                {"type":"output_text","text":"x","annotations":null},
                "x"]},
            {"type":"message","id":"msg_2","content":"container_id"}
        ]"#;
        let ids: OutputIds<'_> = decode_json(output).expect("a list");
        assert_eq!(ids.items.as_slice(), ["ci_1", "msg_1", "msg_2"]);
        assert_eq!(ids.containers.as_slice(), ["a", "b"]);
        let mut observer = ResponseObserver::default();
        ids.note(&mut observer);
        assert!(observer.item_ids().any(|id| id == "b"));
    }

    #[test]
    fn containers_are_noted_at_the_end_where_all_items_were_announced() {
        let output = r#"[{"type":"code_interpreter_call","id":"ci_1","container_id":"a"}]"#;
        let ids: OutputIds<'_> = decode_json(output).expect("a list");
        let mut observer = ResponseObserver::default();
        observer.observe_item("ci_1");
        ids.note_missing(&mut observer);
        assert!(observer.item_ids().eq(["ci_1", "a"]));
        assert!(observer.has_resources());
    }
}
