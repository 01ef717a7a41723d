//! Reads a body once for all in it that decides access or money.

use std::mem;

use smallvec::SmallVec;

use super::known_fields::{ConversationRules, FieldIndex, Knowledge};
use super::object_findings::{
    FieldNumbers, MODELS_ONLY, ObjectFindings, SearchScope, ToolSigns, count_media,
};
use super::path::Path;
use super::reader::{DecodeResult, JsonReader};
use super::unique_fields::{UniqueField, refuse_other_case};
use crate::model::ApiError;

/// What a body has.
#[derive(Debug, Default)]
pub struct BodyScan<'a> {
    /// The path of the first field that is not known, that is not known at its place, or that its object has twice; an empty one
    /// where the text is no JSON.
    pub unknown_field: Option<String>,
    /// The path of the first field that names a model beside the one that the body is for. A field that is `null` is as
    /// good as none.
    pub other_model: Option<String>,
    /// The path of the first field by which a router chooses the host that serves the model.
    pub chosen_host: Option<String>,
    /// The body itself has a field that is not known, or has one twice. Those that only refer to input do not count.
    pub has_unknown_setting: bool,
    /// The conversation has a tool of the upstream's own, or what may be one: an item or a field that is not known.
    pub may_start_tools: bool,
    /// Has no fields but those of text.
    pub is_text: bool,
    /// It has a field for which an upstream adds to the prompt by itself, such as tools.
    pub has_prompting_field: bool,
    /// How many media of the input there are.
    pub media: u64,
    /// It has an item of the type that an upstream may keep, with an `id` and without its content.
    pub has_stored_item: bool,
    /// The wanted fields of the body itself, in the order of their names.
    pub wanted: SmallVec<[UniqueField<'a>; 10]>,
    /// The error for one of them that stands there twice, or in another case.
    pub refused: Option<ApiError>,
}

/// Reads a body by the fields that are known.
pub fn scan_body<'a>(text: &'a str, index: &FieldIndex) -> BodyScan<'a> {
    let wanted = index.known.wanted.iter();
    let mut scanner = BodyScanner {
        index,
        found: BodyScan {
            is_text: true,
            wanted: wanted.map(|names| UniqueField::absent(names[0])).collect(),
            ..BodyScan::default()
        },
        has_unknown_type: false,
        tools: ToolSigns::default(),
    };
    let mut reader = JsonReader::new(text);
    let read = scanner.read_body(&mut reader).and_then(|()| reader.end());
    if read.is_err() {
        scanner.found.has_unknown_setting = true;
        scanner.note_unknown(&Path::Root);
    }
    scanner.found
}

struct BodyScanner<'i, 'a> {
    index: &'i FieldIndex,
    found: BodyScan<'a>,
    /// An object of the item that is read has a type that is not known, or two.
    has_unknown_type: bool,
    /// In the object of the conversation that is read.
    tools: ToolSigns,
}

impl<'a> BodyScanner<'_, 'a> {
    fn read_body(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        let mut numbers = FieldNumbers::default();
        reader.object(|reader, key| {
            let path = Path::Key(&Path::Root, key);
            let entry = self.index.find(key);
            let known = entry.filter(|(_, entry)| entry.top != Knowledge::Unknown);
            let Some((name, entry)) = known else {
                let wanted = entry.and_then(|(name, entry)| Some((entry.wanted?, name)));
                if let Some((at, name)) = wanted {
                    self.keep_wanted(at, name, reader);
                } else if self.found.refused.is_none() {
                    let wanted = self.index.known.wanted;
                    refuse_other_case(key, None, wanted, &mut self.found.refused);
                }
                self.note_unknown(&path);
                let is_referring = self.index.known.referring.contains(&key);
                self.found.has_unknown_setting |= !is_referring && reader.peek() != Some(b'n');
                if self.found.chosen_host.is_none() {
                    let chosen_host = self.index.rules.chosen_host;
                    self.found.chosen_host = chosen_host(key, reader.clone());
                }
                return self.read_unknown(reader, key, &path, MODELS_ONLY);
            };
            self.found.is_text &= entry.top == Knowledge::Text;
            if !numbers.insert(entry.number) {
                self.found.has_unknown_setting = true;
                self.note_unknown(&path);
            }
            if let Some(at) = entry.wanted {
                self.keep_wanted(at, name, reader);
            }
            self.found.has_prompting_field |= self.index.known.prompting.contains(&name);
            let conversation = self.index.known.conversation;
            let search = SearchScope {
                unknown: true,
                models: self.index.known.turns != Some(name),
                tools: conversation.is_some_and(|rules| rules.fields.contains(&name)),
            };
            match entry.is_opaque {
                true if self.index.known.searched.contains(&name) => {
                    self.read(reader, &path, MODELS_ONLY)
                }
                true => reader.skip(),
                false if self.index.known.prompting.contains(&name) => {
                    self.read_items(reader, &path, search)
                }
                false => self.read(reader, &path, search),
            }
        })
    }

    /// Reads a list of such as tools, or one of them.
    fn read_items(
        &mut self,
        reader: &mut JsonReader<'a>,
        path: &Path<'_>,
        search: SearchScope,
    ) -> DecodeResult {
        if reader.peek() != Some(b'[') {
            return self.read_item(reader, path, search);
        }
        let mut count = 0;
        reader.array(|reader| {
            let item = Path::Index(path, count);
            count += 1;
            self.read_item(reader, &item, search)
        })
    }

    /// Reads one of them. Only those of known types have data of the client, such as a schema: in another one, a model is
    /// looked for everywhere. Its type may stand behind that, so that it is read again.
    fn read_item(
        &mut self,
        reader: &mut JsonReader<'a>,
        path: &Path<'_>,
        search: SearchScope,
    ) -> DecodeResult {
        let mut again = reader.clone();
        self.has_unknown_type = false;
        self.read(reader, path, search)?;
        match self.has_unknown_type && self.found.other_model.is_none() {
            true => self.read(&mut again, path, MODELS_ONLY),
            false => Ok(()),
        }
    }

    fn keep_wanted(&mut self, at: usize, name: &'static str, reader: &JsonReader<'a>) {
        if self.found.refused.is_none() {
            // Whether it can be read, the rest of the search finds out.
            let field = &mut self.found.wanted[at];
            let _ = field.take(name, &mut reader.clone(), &mut self.found.refused);
        }
    }

    fn read(
        &mut self,
        reader: &mut JsonReader<'a>,
        path: &Path<'_>,
        search: SearchScope,
    ) -> DecodeResult {
        match reader.peek() {
            Some(b'{') if search.unknown => self.read_known_object(reader, path, search),
            Some(b'{') if search.models || search.tools => reader.object(|reader, key| {
                let path = Path::Key(path, key);
                let search = self.search_tools(reader, &path, key, false, search);
                self.read_unknown(reader, key, &path, search)
            }),
            Some(b'[') => {
                let mut count = 0;
                reader.array(|reader| {
                    let item = Path::Index(path, count);
                    count += 1;
                    self.read(reader, &item, search)
                })
            }
            _ => reader.skip(),
        }
    }

    fn read_known_object(
        &mut self,
        reader: &mut JsonReader<'a>,
        path: &Path<'_>,
        search: SearchScope,
    ) -> DecodeResult {
        let mut object = ObjectFindings::default();
        let around = mem::take(&mut self.tools);
        reader.object(|reader, key| match key {
            "type" => self.read_type(reader, path, search, &mut object),
            _ => self.read_field(reader, key, path, search, &mut object),
        })?;
        self.judge(&object, path);
        self.tools = around;
        Ok(())
    }

    fn read_type(
        &mut self,
        reader: &mut JsonReader<'a>,
        object: &Path<'_>,
        search: SearchScope,
        found: &mut ObjectFindings<'a>,
    ) -> DecodeResult {
        // A value of another kind, or with half a character, is passed over.
        let mut ahead = reader.clone();
        let kind = ahead.text().ok();
        let known = kind.as_ref().map(|kind| self.index.find_type(kind));
        let known = known.unwrap_or(Knowledge::Unknown);
        if known == Knowledge::Unknown || found.kind.is_some() {
            self.note_unknown(&Path::Key(object, "type"));
            self.has_unknown_type = true;
            self.found.may_start_tools |=
                search.tools && (found.kind.is_some() || !self.is_past(kind.as_deref()));
        }
        self.found.is_text &= known == Knowledge::Text;
        if kind.is_none() {
            return reader.skip();
        }
        found.kind = kind;
        *reader = ahead;
        Ok(())
    }

    fn read_field(
        &mut self,
        reader: &mut JsonReader<'a>,
        key: &str,
        object: &Path<'_>,
        search: SearchScope,
        found: &mut ObjectFindings<'a>,
    ) -> DecodeResult {
        let path = Path::Key(object, key);
        let entry = self.index.find(key);
        let Some((name, entry)) = entry.filter(|(name, entry)| match entry.is_placed {
            true => self.index.is_in_place(name, object),
            false => entry.nested != Knowledge::Unknown,
        }) else {
            self.note_unknown(&path);
            self.has_unknown_type |= key.eq_ignore_ascii_case("type");
            let search = self.search_tools(reader, &path, key, false, search);
            return self.read_unknown(reader, key, &path, search);
        };
        self.found.has_prompting_field |=
            self.index.known.nested_prompting.contains(&name) && reader.peek() != Some(b'n');
        let search = self.search_tools(reader, &path, key, true, search);
        self.found.is_text &= entry.nested == Knowledge::Text;
        let is_first = found.numbers.insert(entry.number);
        if !is_first {
            self.note_unknown(&path);
        }
        if is_first && entry.is_placed && reader.peek() != Some(b'n') {
            found.placed.push(name);
        }
        if self.index.is_media(&entry, &path) {
            self.found.media += count_media(reader.clone());
        }
        if let Some((_, content)) = self.index.known.stored {
            found.has_id |= name == "id" && reader.peek() != Some(b'n');
            if name == content {
                let written = reader.raw()?;
                found.has_content = written.len() > 2 && written.starts_with('"');
                return Ok(());
            }
        }
        match entry.is_opaque {
            true => reader.skip(),
            false => self.read(reader, &path, search),
        }
    }

    /// Reads a field that is not known, in whose value an upstream may find a model. Whatever a name stands for elsewhere, nobody
    /// knows what it means there.
    fn read_unknown(
        &mut self,
        reader: &mut JsonReader<'a>,
        key: &str,
        path: &Path<'_>,
        search: SearchScope,
    ) -> DecodeResult {
        let is_top = matches!(path, Path::Key(Path::Root, _));
        if search.models && (self.index.rules.names_model)(key, is_top) {
            if reader.peek() != Some(b'n') && self.found.other_model.is_none() {
                self.found.other_model = Some(path.to_string());
            }
            return reader.skip();
        }
        let search = SearchScope {
            unknown: false,
            ..search
        };
        self.read(reader, path, search)
    }

    /// Notes whether a field of the conversation has tools, and returns what is looked for in its value.
    fn search_tools(
        &mut self,
        reader: &JsonReader<'a>,
        path: &Path<'_>,
        key: &str,
        is_known: bool,
        search: SearchScope,
    ) -> SearchScope {
        let rules = self.index.known.conversation;
        let mut value = reader.clone();
        let Some(rules) = rules.filter(|_| search.tools && value.peek() != Some(b'n')) else {
            return search;
        };
        let has_tools = rules.holds_tools(key);
        if has_tools {
            let tools = value.raw().unwrap_or_default();
            if (rules.has_hosted)(tools) {
                self.tools.is_hosted = true;
                self.search_hosted(&mut JsonReader::new(tools), path, rules);
            }
        } else if !is_known && !rules.past_fields.contains(&key) {
            let is_type = key != "type" && key.eq_ignore_ascii_case("type");
            self.tools.is_named |= is_type || (rules.may_name_tools)(key);
        }
        SearchScope {
            tools: !has_tools && !rules.past_fields.contains(&key),
            ..search
        }
    }

    /// Looks for a model in those of some tools that the upstream runs: others have data of the client, such as a schema.
    fn search_hosted(
        &mut self,
        reader: &mut JsonReader<'a>,
        path: &Path<'_>,
        rules: &ConversationRules,
    ) {
        let mut search = |tool: &mut JsonReader<'a>, path: &Path<'_>| {
            let earlier = self.found.other_model.take();
            let written = tool.raw()?;
            if (rules.has_hosted)(written) {
                self.read(&mut JsonReader::new(written), path, MODELS_ONLY)?;
            }
            let found = mem::replace(&mut self.found.other_model, earlier);
            self.tools.model = self.tools.model.take().or(found);
            Ok(())
        };
        // What is no JSON is found to be so in its turn.
        let _ = match reader.peek() {
            Some(b'[') => {
                let mut count = 0;
                reader.array(|reader| {
                    let item = Path::Index(path, count);
                    count += 1;
                    search(reader, &item)
                })
            }
            _ => search(reader, path),
        };
    }

    /// Tells whether an object of a type that is not known only tells what has been done.
    fn is_past(&self, kind: Option<&str>) -> bool {
        let rules = self.index.known.conversation;
        let is_past = |kind| rules.is_some_and(|rules| (rules.is_past)(kind));
        kind.is_some_and(is_past)
    }

    fn judge(&mut self, object: &ObjectFindings<'_>, path: &Path<'_>) {
        let model = self.tools.model.take();
        let kind = object.kind.as_deref();
        if let Some(name) = self.index.find_misplaced(&object.placed, kind, path) {
            self.note_unknown(&Path::Key(path, name));
        }
        let rules = self.index.known.conversation;
        let is_listing = kind.is_some_and(|kind| {
            let listings = rules.map(|rules| rules.listings);
            listings.is_some_and(|listings| listings.contains(&kind))
        });
        self.found.may_start_tools |= self.tools.is_hosted && !is_listing;
        if self.found.other_model.is_none() && !is_listing {
            self.found.other_model = model;
        }
        self.found.may_start_tools |= self.tools.is_named && !self.is_past(kind);
        if let Some((stored, _)) = self.index.known.stored {
            let is_stored = kind == Some(stored) && object.has_id && !object.has_content;
            self.found.has_stored_item |= is_stored;
        }
    }

    fn note_unknown(&mut self, path: &Path<'_>) {
        self.found.is_text = false;
        if self.found.unknown_field.is_none() {
            self.found.unknown_field = Some(path.to_string());
        }
    }
}

#[cfg(test)]
#[path = "tests/body_scan.rs"]
mod tests;
