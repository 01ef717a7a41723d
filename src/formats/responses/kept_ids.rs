//! Finds the ids of items, containers and approvals by which an upstream puts in what it keeps.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::response_builder::response_of_item;
use crate::formats::kept_ids::may_have_word;
use crate::formats::{ItemReference, KeptIds, KeptKind};
use crate::json::{DecodeResult, FromJson as _, JsonReader, RawJson, is_same_but_for_case};

/// The types of calls of tools that the upstream runs.
pub(super) const HOSTED_CALLS: [&str; 4] = [
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "mcp_call",
];

const ITEM_REFERENCE: &str = "item_reference";

/// Finds the ids in a request. Names are compared as the most lenient parsers do, and a field that stands there twice counts
/// twice.
pub(super) fn find_kept_ids(body: &[u8]) -> KeptIds {
    let mut search = KeptSearch {
        body,
        has_reference: may_have_word(body, &[ITEM_REFERENCE]),
        found: KeptIds::default(),
    };
    if may_have_word(body, &["id", "container"])
        && let Ok(text) = str::from_utf8(body)
    {
        let mut reader = JsonReader::new(text);
        // A body that is no JSON has been refused before.
        let _ = reader.object(|reader, key| match key {
            key if is_same_but_for_case(key, "input") => search.read_input(reader, 0),
            key if is_same_but_for_case(key, "tools") => search.read_tools(reader),
            key if is_same_but_for_case(key, "tool_choice") => search.read_tools(reader),
            key if is_container(key) => search.read_container(reader, true),
            _ => search.read_other(reader),
        });
    }
    search.found
}

struct KeptSearch<'a> {
    body: &'a [u8],
    /// The body may have a reference, at any place.
    has_reference: bool,
    found: KeptIds,
}

/// What tells whether an item is all there.
#[derive(Default)]
struct ItemFindings<'a> {
    ids: SmallVec<[Cow<'a, str>; 1]>,
    kinds: SmallVec<[Cow<'a, str>; 1]>,
    has_role: bool,
    content: FieldFinding,
    encrypted_content: FieldFinding,
    summary: FieldFinding,
    /// The image of a call, or what a search has found.
    result: FieldFinding,
    results: FieldFinding,
    name: FieldFinding,
    output: FieldFinding,
    outputs: FieldFinding,
    error: FieldFinding,
    /// It has another field with a value, beside its status and the id of its call.
    has_other: bool,
}

/// Whether a field is there. Of two of one name an upstream may take either, so that both must be.
#[derive(Clone, Copy, Default)]
struct FieldFinding {
    is_written: Option<bool>,
    /// It has a value that is not empty, or a part with one.
    has_value: Option<bool>,
    has_text: Option<bool>,
}

impl FieldFinding {
    fn note(&mut self, reader: &mut JsonReader<'_>) {
        let note =
            |before: &mut Option<bool>, is: bool| *before = Some(before.unwrap_or(true) && is);
        note(&mut self.is_written, reader.peek() != Some(b'n'));
        note(&mut self.has_value, has_value(reader));
        note(&mut self.has_text, has_text(reader));
    }

    /// The same of a field that is nothing but a text.
    fn note_text(&mut self, reader: &mut JsonReader<'_>) {
        let is_text = reader.peek() == Some(b'"');
        self.note(reader);
        self.has_text = self.has_text.map(|has_text| has_text && is_text);
    }

    fn is_written(self) -> bool {
        self.is_written == Some(true)
    }

    fn has_value(self) -> bool {
        self.has_value == Some(true)
    }

    fn has_text(self) -> bool {
        self.has_text == Some(true)
    }
}

impl ItemFindings<'_> {
    fn is_named_reference(&self) -> bool {
        let mut kinds = self.kinds.iter();
        kinds.any(|kind| is_same_but_for_case(kind, ITEM_REFERENCE))
    }

    /// An upstream takes an item that has an id, and neither a type nor a role, for a reference too.
    fn is_reference(&self) -> bool {
        let is_bare = self.kinds.is_empty() && !self.has_role && !self.ids.is_empty();
        self.is_named_reference() || is_bare
    }

    /// The item stands there by its id alone: the upstream puts in what it has stored.
    fn is_by_id(&self) -> bool {
        let are_whole = match self.kinds.as_slice() {
            [] => self.content.has_value(),
            kinds => kinds.iter().all(|kind| self.is_whole(kind)),
        };
        !self.ids.is_empty() && !are_whole
    }

    /// Tells whether an item of a type has all that an upstream could put in. Of a tool that the upstream has run, that is what
    /// the tool has found: clients that leave it out rely on what is stored.
    fn is_whole(&self, kind: &str) -> bool {
        match kind.to_ascii_lowercase().as_str() {
            "message" => self.content.has_value(),
            "reasoning" => {
                let is_here = self.encrypted_content.has_text() || self.content.has_text();
                is_here || (self.summary.has_text() && self.is_made_here())
            }
            "image_generation_call" => self.result.has_text(),
            "compaction" => self.encrypted_content.has_text(),
            "web_search_call" | "file_search_call" => self.results.has_value(),
            "code_interpreter_call" => self.outputs.has_value(),
            "mcp_call" => self.output.is_written() || self.error.has_value(),
            "function_call" | "custom_tool_call" => self.name.has_text(),
            kind if kind.ends_with("_output") => self.output.is_written() || self.has_other,
            _ => {
                let fields = [self.content, self.encrypted_content, self.result, self.name];
                self.has_other || fields.into_iter().any(FieldFinding::has_value)
            }
        }
    }

    /// Its ids are such as the gateway makes, for reasoning of upstreams of other formats: all of that may be its summary.
    fn is_made_here(&self) -> bool {
        let mut ids = self.ids.iter();
        ids.all(|id| response_of_item(id).is_some())
    }

    /// Of two ids an upstream may take either, so that none is known.
    fn id(&self) -> String {
        self.ids.join(", ")
    }

    /// Notes what a search has found, if its action says that.
    fn note_sources(&mut self, mut action: JsonReader<'_>) {
        if action.peek() == Some(b'{') {
            // What cannot be read says nothing.
            let _ = action.object(|reader, key| {
                if key == "sources" {
                    self.results.note(reader);
                }
                reader.skip()
            });
        }
    }

    /// Notes a field beside the type and the id.
    fn note(&mut self, key: &str, reader: &mut JsonReader<'_>) {
        match key {
            "role" => self.has_role |= reader.peek() != Some(b'n'),
            "content" => self.content.note(reader),
            "encrypted_content" => self.encrypted_content.note(reader),
            "summary" => self.summary.note(reader),
            "result" => self.result.note_text(reader),
            "results" => self.results.note(reader),
            "name" => self.name.note(reader),
            "output" => self.output.note(reader),
            "outputs" => self.outputs.note(reader),
            "error" => self.error.note(reader),
            "action" => {
                self.has_other |= has_value(reader);
                self.note_sources(reader.clone());
            }
            _ => {
                let names = ["type", "id", "status", "call_id"];
                let is_bare = names.iter().any(|name| is_same_but_for_case(key, name));
                self.has_other |= !is_bare && has_value(reader);
            }
        }
    }
}

impl<'a> KeptSearch<'a> {
    /// Reads `input`. Only the elements of the list itself can be replaced.
    fn read_input(&mut self, reader: &mut JsonReader<'a>, depth: usize) -> DecodeResult {
        match reader.peek() {
            Some(b'[') => reader.array(|reader| self.read_input(reader, depth + 1)),
            Some(b'{') => self.read_item(reader, depth == 1),
            _ => reader.skip(),
        }
    }

    fn read_item(&mut self, reader: &mut JsonReader<'a>, is_element: bool) -> DecodeResult {
        let mut start = reader.clone();
        let mut item = ItemFindings::default();
        reader.object(|reader, key| self.read_item_field(reader, key, &mut item))?;
        if item.is_reference() && is_element {
            let mut whole = RawJson::default();
            whole.decode(&mut start)?;
            self.found.references.push(ItemReference {
                item_id: item.id(),
                range: whole.range_in(self.body),
            });
        } else if item.is_reference() || item.is_by_id() {
            self.found.mention(item.id(), KeptKind::Item);
        }
        Ok(())
    }

    fn read_item_field(
        &mut self,
        reader: &mut JsonReader<'a>,
        key: &str,
        item: &mut ItemFindings<'a>,
    ) -> DecodeResult {
        let is = |name: &str| is_same_but_for_case(key, name);
        let is_text = reader.peek() == Some(b'"');
        if is_text && is("type") {
            item.kinds.push(text(reader)?);
        } else if is_text && is("id") {
            item.ids.push(text(reader)?);
        } else if is_text && is("approval_request_id") {
            let id = text(reader)?.into_owned();
            self.found.mention(id, KeptKind::ApprovalRequest);
        } else if is_container(key) {
            self.read_container(reader, true)?;
        } else {
            item.note(key, reader);
            match is("tools") {
                true => self.read_tools(reader)?,
                false => self.read_other(reader)?,
            }
        }
        Ok(())
    }

    /// Reads a list of tools, or one of them.
    fn read_tools(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        match reader.peek() {
            Some(b'[') => reader.array(|reader| self.read_tools(reader)),
            Some(b'{') => reader.object(|reader, key| {
                if is_container(key) {
                    self.read_container(reader, true)
                } else if is_same_but_for_case(key, "tools") {
                    self.read_tools(reader)
                } else {
                    self.read_other(reader)
                }
            }),
            _ => reader.skip(),
        }
    }

    /// Reads the id of a container, or what has one anywhere: lenient upstreams may find it. `is_id`: a text is one.
    fn read_container(&mut self, reader: &mut JsonReader<'a>, is_id: bool) -> DecodeResult {
        match reader.peek() {
            Some(b'"') if is_id => {
                let id = text(reader)?.into_owned();
                self.found.mention(id, KeptKind::ToolContainer);
                Ok(())
            }
            Some(b'[') => reader.array(|reader| self.read_container(reader, is_id)),
            Some(b'{') => reader.object(|reader, key| {
                let names = ["id", "container_id", "container"];
                let is_id = names.iter().any(|name| is_same_but_for_case(key, name));
                self.read_container(reader, is_id)
            }),
            _ => reader.skip(),
        }
    }

    /// Reads a value in which no reference belongs.
    fn read_other(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        if !self.has_reference {
            return reader.skip();
        }
        match reader.peek() {
            Some(b'[') => reader.array(|reader| self.read_other(reader)),
            Some(b'{') => {
                let mut item = ItemFindings::default();
                reader.object(|reader, key| match reader.peek() {
                    Some(b'"') if is_same_but_for_case(key, "type") => {
                        item.kinds.push(text(reader)?);
                        Ok(())
                    }
                    Some(b'"') if is_same_but_for_case(key, "id") => {
                        item.ids.push(text(reader)?);
                        Ok(())
                    }
                    _ => self.read_other(reader),
                })?;
                if item.is_named_reference() {
                    self.found.mention(item.id(), KeptKind::Item);
                }
                Ok(())
            }
            _ => reader.skip(),
        }
    }
}

/// Reads a string. One with half a character is an id that nobody was given.
fn text<'a>(reader: &mut JsonReader<'a>) -> DecodeResult<Cow<'a, str>> {
    let mut ahead = reader.clone();
    match ahead.text() {
        Ok(text) => {
            *reader = ahead;
            Ok(text)
        }
        Err(_) => {
            reader.skip()?;
            Ok("\u{fffd}".into())
        }
    }
}

/// Tells whether a field names the container of a tool.
fn is_container(key: &str) -> bool {
    let names = ["container", "container_id", "environment"];
    names.iter().any(|name| is_same_but_for_case(key, name))
}

/// Tells whether a value says something by itself, or is an object that does, or a list with such.
fn has_value(reader: &JsonReader<'_>) -> bool {
    let (mut ahead, mut found) = (reader.clone(), false);
    // What cannot be read says nothing.
    let _ = match ahead.peek() {
        Some(b'[') => ahead.array(|reader| {
            found |= says_something(reader)?;
            Ok(())
        }),
        _ => says_something(&mut ahead).map(|says| found = says),
    };
    found
}

fn says_something(reader: &mut JsonReader<'_>) -> DecodeResult<bool> {
    if reader.peek() != Some(b'{') {
        return reader.raw().map(is_value);
    }
    let mut found = false;
    reader.object(|reader, key| {
        let is_said = !matches!(key, "type" | "id" | "status" | "annotations" | "logprobs");
        found |= is_value(reader.raw()?) && is_said;
        Ok(())
    })?;
    Ok(found)
}

fn is_value(written: &str) -> bool {
    match written.as_bytes() {
        [b'"', .., b'"'] => written.len() > 2,
        [b'[' | b'{', inner @ .., _] => !inner.trim_ascii().is_empty(),
        _ => !matches!(written, "null" | "false"),
    }
}

/// Tells whether a value is a text, or has a part with one.
fn has_text(reader: &JsonReader<'_>) -> bool {
    let (mut ahead, mut found) = (reader.clone(), false);
    let mut read_text = |reader: &mut JsonReader<'_>| {
        let is_text = reader.peek() == Some(b'"');
        found |= reader.raw()?.len() > 2 && is_text;
        Ok(())
    };
    // What cannot be read has none.
    let _ = match ahead.peek() {
        Some(b'[') => ahead.array(|reader| match reader.peek() {
            Some(b'{') => reader.object(|reader, key| match key {
                "text" => read_text(reader),
                _ => reader.skip(),
            }),
            _ => reader.skip(),
        }),
        _ => read_text(&mut ahead),
    };
    found
}

#[cfg(test)]
#[path = "tests/kept_ids.rs"]
mod tests;
