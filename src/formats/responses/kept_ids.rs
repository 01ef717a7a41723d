//! Finds the ids of items, containers and approvals by which an upstream puts in what it keeps.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::response_builder::response_of_item;
use crate::formats::kept_ids::may_have_word;
use crate::formats::{ItemReference, KeptIds, KeptKind};
use crate::json::{DecodeResult, FromJson as _, JsonReader, RawJson};

const ITEM_REFERENCE: &str = "item_reference";

/// Finds the ids in a request. Names are compared as the most lenient parsers do, and a field that stands there twice counts
/// twice.
pub(super) fn find_kept_ids(body: &[u8]) -> KeptIds {
    let mut search = KeptSearch {
        body,
        has_reference: may_have_word(body, &[ITEM_REFERENCE]),
        found: KeptIds::default(),
    };
    let text = str::from_utf8(body).ok();
    if let Some(text) = text.filter(|_| may_have_word(body, &["id", "container"])) {
        let mut reader = JsonReader::new(text);
        // A body that is no JSON has been refused before.
        let _ = reader.object(|reader, key| match key {
            key if key.eq_ignore_ascii_case("input") => search.read_input(reader, 0),
            key if key.eq_ignore_ascii_case("tools") => search.read_tools(reader),
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
    result: FieldFinding,
    /// It has another field that is not `null`, beside its status and a summary.
    has_other: bool,
}

/// Whether a field is there. Of two of one name an upstream may take either, so that both must be.
#[derive(Clone, Copy, Default)]
struct FieldFinding {
    is_written: Option<bool>,
    has_text: Option<bool>,
}

impl FieldFinding {
    fn note(&mut self, reader: &mut JsonReader<'_>) {
        let is_written = reader.peek() != Some(b'n');
        self.is_written = Some(self.is_written.unwrap_or(true) && is_written);
        self.has_text = Some(self.has_text.unwrap_or(true) && has_text(reader));
    }

    fn is_written(self) -> bool {
        self.is_written == Some(true)
    }

    fn has_text(self) -> bool {
        self.has_text == Some(true)
    }
}

impl ItemFindings<'_> {
    fn is_named_reference(&self) -> bool {
        let mut kinds = self.kinds.iter();
        kinds.any(|kind| kind.eq_ignore_ascii_case(ITEM_REFERENCE))
    }

    /// An upstream takes an item that has an id, and neither a type nor a role, for a reference too.
    fn is_reference(&self) -> bool {
        let is_bare = self.kinds.is_empty() && !self.has_role && !self.ids.is_empty();
        self.is_named_reference() || is_bare
    }

    /// The item stands there by its id alone: the upstream puts in what it has stored.
    fn is_by_id(&self) -> bool {
        let are_whole = match self.kinds.as_slice() {
            [] => self.content.is_written(),
            kinds => kinds.iter().all(|kind| self.is_whole(kind)),
        };
        !self.ids.is_empty() && !are_whole
    }

    fn is_whole(&self, kind: &str) -> bool {
        match kind.to_ascii_lowercase().as_str() {
            "message" => self.content.is_written(),
            "reasoning" => {
                let is_here = self.encrypted_content.has_text() || self.content.has_text();
                is_here || (self.summary.has_text() && self.is_made_here())
            }
            "image_generation_call" => self.result.has_text(),
            "compaction" => self.encrypted_content.has_text(),
            _ => {
                let fields = [self.content, self.encrypted_content, self.result];
                self.has_other || fields.into_iter().any(FieldFinding::is_written)
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
        let is = |name: &str| key.eq_ignore_ascii_case(name);
        let (is_text, is_null) = (reader.peek() == Some(b'"'), reader.peek() == Some(b'n'));
        if is_text && is("type") {
            item.kinds.push(text(reader)?);
        } else if is_text && is("id") {
            item.ids.push(text(reader)?);
        } else if is_text && is("approval_request_id") {
            let id = text(reader)?.into_owned();
            self.found.mention(id, KeptKind::ApprovalRequest);
        } else if is("container_id") || is("environment") {
            self.read_container(reader)?;
        } else {
            match key {
                "role" => item.has_role |= !is_null,
                "content" => item.content.note(reader),
                "encrypted_content" => item.encrypted_content.note(reader),
                "result" => item.result.note(reader),
                "summary" => item.summary.note(reader),
                _ if is("type") || is("id") || is("status") => {}
                _ => item.has_other |= !is_null,
            }
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
                let is = |name: &str| key.eq_ignore_ascii_case(name);
                if is("container") || is("container_id") || is("environment") {
                    self.read_container(reader)
                } else if is("tools") {
                    self.read_tools(reader)
                } else {
                    self.read_other(reader)
                }
            }),
            _ => reader.skip(),
        }
    }

    /// Reads the id of a container, or an object that has one.
    fn read_container(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        match reader.peek() {
            Some(b'"') => {
                let id = text(reader)?.into_owned();
                self.found.mention(id, KeptKind::ToolContainer);
                Ok(())
            }
            Some(b'{') => reader.object(|reader, key| {
                let names = ["id", "container_id", "container"];
                match names.iter().any(|name| key.eq_ignore_ascii_case(name)) {
                    true => self.read_container(reader),
                    false => reader.skip(),
                }
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
                    Some(b'"') if key.eq_ignore_ascii_case("type") => {
                        item.kinds.push(text(reader)?);
                        Ok(())
                    }
                    Some(b'"') if key.eq_ignore_ascii_case("id") => {
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
