//! Stored responses: continuing from one by its id, and the bodies of `/v1/responses/{id}`.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use memchr::memmem;
use serde::Serialize;
use serde_json::{Value, json};

use super::input_items_query::InputItemsQuery;
use super::request::previous_response_not_found;
use super::response_builder;
use crate::formats::{
    ConversationCodec, ConversationItems, ItemReference, decode_event_data, decode_request_body,
    decode_response_body, ids,
};
use crate::json::{Edit, JsonReader, Present, RawJson, decode_json, from_json, replace};
use crate::model::{ApiError, FieldLocation, Text, truncated};

/// Continues conversations from stored responses.
pub(super) struct ResponsesConversation;

from_json! {
    struct ContinuedRequest<'a> {
        /// Not optional: the range of a `null` is needed too.
        "input" => input: RawJson<'a>,
        "previous_response_id" => previous_response_id: Option<RawJson<'a>>,
    }
}

from_json! {
    struct StoredOutput<'a> {
        "output" required => output: RawJson<'a>,
    }
}

from_json! {
    struct FinalEvent<'a> {
        "type" required => kind: Text<'a>,
        "response" => response: RawJson<'a>,
    }
}

from_json! {
    struct IdentifiedItem<'a> {
        "type" => kind: Option<Text<'a>>,
        "id" => id: Option<Text<'a>>,
    }
}

const ITEM_REFERENCE: &str = "item_reference";

/// A page of the list of input items.
#[derive(Serialize)]
struct InputItemsPage<'a> {
    object: &'static str,
    first_id: Option<&'a Value>,
    last_id: Option<&'a Value>,
    has_more: bool,
    data: &'a [Value],
}

impl ConversationCodec for ResponsesConversation {
    fn request_items(&self, added: &[u8]) -> Result<ConversationItems, ApiError> {
        let added = str::from_utf8(added).unwrap_or_default();
        match decode_json(added) {
            Ok(input) => decode_input(input),
            // The request has no `input`.
            Err(_) => Ok(ConversationItems::default()),
        }
    }

    fn resume(&self, body: &[u8], before: &[ConversationItems]) -> Result<Bytes, ApiError> {
        let request: ContinuedRequest<'_> = decode_request_body(body)?;
        let own = request.input.written().map(decode_input).transpose()?;
        let own = own.unwrap_or_default();
        let all = before.iter().chain([&own]);
        let texts: Vec<&[u8]> = all
            .map(|items| items.text.as_ref())
            .filter(|text| !text.is_empty())
            .collect();
        let list = [b"[", texts.join(&b","[..]).as_slice(), b"]"].concat();
        let mut edits = Vec::new();
        if let Some(previous) = request.previous_response_id {
            edits.push(Edit {
                range: previous.range_in(body),
                with: b"null".to_vec(),
            });
        }
        edits.push(match request.input.written() {
            Some(input) => Edit {
                range: input.range_in(body),
                with: list,
            },
            None => {
                let start = body.iter().position(|&byte| byte == b'{');
                let start = start.map_or(0, |brace| brace + 1);
                let is_alone = body[start..].trim_ascii_start().starts_with(b"}");
                let comma: &[u8] = if is_alone { b"" } else { b"," };
                Edit {
                    range: start..start,
                    with: [br#""input":"#, list.as_slice(), comma].concat(),
                }
            }
        });
        edits.sort_by_key(|edit| edit.range.start);
        Ok(replace(body, &edits))
    }

    fn response_id(&self, body: &[u8]) -> Option<String> {
        let (mut id, mut reader) = (None, JsonReader::new(str::from_utf8(body).ok()?));
        let _ = reader.object(|reader, key| {
            if key != "id" {
                return reader.skip();
            }
            id = Some(reader.text()?.into_owned());
            // The id stands near the beginning: the rest is not decoded.
            Err(reader.stop("no more"))
        });
        id
    }

    fn response_items(&self, body: &Bytes) -> Option<ConversationItems> {
        let response: StoredOutput<'_> = decode_response_body(body).ok()?;
        let range = response.output.range_in(body);
        let count = count(response.output)?;
        let text = body.slice(range.start + 1..range.end - 1);
        Some(ConversationItems { text, count })
    }

    fn item_references(&self, body: &[u8], added: Range<usize>) -> Vec<ItemReference> {
        // Every reference has an id, be it written with an escape.
        let is_possible = |json: &[u8]| {
            memmem::find(json, b"id\"").is_some() || memmem::find(json, b"\\u").is_some()
        };
        let added = body.get(added).filter(|added| is_possible(added));
        let added = added.and_then(|added| str::from_utf8(added).ok());
        let items: Vec<RawJson<'_>> = added
            .and_then(|added| decode_json(added).ok())
            .unwrap_or_default();
        let reference = |item: RawJson<'_>| {
            Some(ItemReference {
                item_id: decode_reference(item.get())?,
                range: item.range_in(body),
            })
        };
        let items = items.into_iter();
        let items = items.filter(|item| is_possible(item.get().as_bytes()));
        items.filter_map(reference).collect()
    }

    fn response_of_item(&self, item_id: &str) -> Option<String> {
        response_builder::response_of_item(item_id)
    }

    fn items_by_id(&self, body: &Bytes) -> Vec<(String, Bytes)> {
        let response = decode_response_body(body).ok();
        let output = response.map(|response: StoredOutput<'_>| response.output);
        let items: Option<Vec<RawJson<'_>>> =
            output.and_then(|output| decode_json(output.get()).ok());
        let identified = |item: RawJson<'_>| {
            let IdentifiedItem { id, .. } = decode_json(item.get()).ok()?;
            Some((id?.into_owned(), body.slice(item.range_in(body))))
        };
        let items = items.unwrap_or_default().into_iter();
        items.filter_map(identified).collect()
    }

    fn final_response(&self, data: &str) -> Option<Bytes> {
        let event: FinalEvent<'_> = decode_event_data(data).ok()?;
        let is_last = matches!(&*event.kind, "response.completed" | "response.incomplete");
        let response = event.response.written().filter(|_| is_last)?;
        Some(Bytes::copy_from_slice(response.get().as_bytes()))
    }

    fn missing_response(&self, id: &str) -> ApiError {
        previous_response_not_found(id)
    }

    fn missing_conversation(&self, id: &str) -> ApiError {
        let id = truncated(id);
        let message = format!(
            "conversation: this key was not given a conversation `{id}`; continue with `previous_response_id`, or send \
             the whole conversation in `input`"
        );
        ApiError::invalid(message).at("conversation")
    }

    fn missing_item(&self, id: &str) -> ApiError {
        let id = truncated(id);
        let message = format!(
            "input: no item `{id}` is kept for this key (any more); send the item itself instead of an item_reference"
        );
        ApiError::invalid(message).at("input")
    }

    fn client_location(&self, location: &FieldLocation, before: usize) -> Option<FieldLocation> {
        let shifted = |turn: u32| turn.checked_sub(u32::try_from(before).ok()?);
        Some(match location {
            FieldLocation::Turn { turn: Some(turn) } => FieldLocation::Turn {
                turn: Some(shifted(*turn)?),
            },
            FieldLocation::Part {
                turn: Some(turn),
                part,
            } => FieldLocation::Part {
                turn: Some(shifted(*turn)?),
                part: *part,
            },
            FieldLocation::Path(path) => match path.strip_prefix("input[").and_then(split_number) {
                Some((turn, rest)) => {
                    FieldLocation::Path(format!("input[{}{rest}", shifted(turn)?).into())
                }
                None => location.clone(),
            },
            _ => location.clone(),
        })
    }

    fn encode_items(
        &self,
        id: &str,
        items: &[ConversationItems],
        query: Option<&str>,
    ) -> Result<Vec<u8>, ApiError> {
        let lists = items
            .iter()
            .map(|list| [b"[", list.text.as_ref(), b"]"].concat());
        let lists: Vec<Vec<u8>> = lists.collect();
        let raw = lists.iter().flat_map(|list| {
            let list = str::from_utf8(list).unwrap_or_default();
            let items: Vec<RawJson<'_>> = decode_json(list).unwrap_or_default();
            items
        });
        let mut all: Vec<(usize, RawJson<'_>)> = raw.enumerate().collect();
        let query = InputItemsQuery::parse(query)?;
        if query.newest_first {
            all.reverse();
        }
        let mut rest = all.as_slice();
        if let Some(after) = &query.after {
            let is_after =
                |(number, item): &(usize, RawJson<'_>)| item_id(item.get(), id, *number) == **after;
            let at = rest.iter().position(is_after).ok_or_else(|| {
                let message = format!("after: there is no item {}", truncated(after));
                ApiError::invalid(message).at("after")
            })?;
            rest = &rest[at + 1..];
        }
        let has_more = rest.len() > query.limit;
        // No more than a page of items becomes values, which take several times the memory of their text.
        let page = rest.iter().take(query.limit);
        let all: Vec<Value> = page
            .map(|(number, item)| complete_item(item.get(), id, *number))
            .collect();
        let page = InputItemsPage {
            object: "list",
            first_id: all.first().map(|item| &item["id"]),
            last_id: all.last().map(|item| &item["id"]),
            has_more,
            data: &all,
        };
        Ok(serde_json::to_vec(&page).expect("JSON values always serialise"))
    }

    fn encode_deletion(&self, id: &str) -> Vec<u8> {
        let answer = json!({"id": id, "object": "response", "deleted": true});
        answer.to_string().into_bytes()
    }
}

/// Decodes the id of a reference; `None`: the item is something else. An upstream takes an item that has an id, and
/// neither a type nor a role, for a reference too; of two ids it may take either, so that none is known.
fn decode_reference(item: &str) -> Option<String> {
    let (mut ids, mut is_named, mut is_other) = (Vec::new(), false, false);
    let mut reader = JsonReader::new(item);
    let read = reader.object(|reader, key| {
        let key = key.to_ascii_lowercase();
        match (key.as_str(), reader.peek()) {
            ("type", Some(b'"')) => match &*reader.text()? {
                ITEM_REFERENCE => is_named = true,
                _ => is_other = true,
            },
            ("id", Some(b'"')) => ids.push(reader.text()?.into_owned()),
            ("role", Some(b'"')) => {
                is_other = true;
                reader.skip()?;
            }
            _ => reader.skip()?,
        }
        Ok(())
    });
    let is_reference = is_named || (!is_other && !ids.is_empty());
    (read.is_ok() && is_reference).then(|| ids.join(", "))
}

/// Counts the elements of a list; `None`: it is no list.
fn count(list: RawJson<'_>) -> Option<usize> {
    decode_json(list.get())
        .ok()
        .map(|list: Vec<Present>| list.len())
}

/// Decodes `input` into items; a string is a message of the user.
fn decode_input(input: RawJson<'_>) -> Result<ConversationItems, ApiError> {
    let text = input.get();
    if text.starts_with('"') {
        let text = format!(r#"{{"type":"message","role":"user","content":{text}}}"#);
        return Ok(ConversationItems {
            text: text.into(),
            count: 1,
        });
    }
    if text == "null" {
        return Ok(ConversationItems::default());
    }
    let Some(count) = count(input) else {
        return Err(ApiError::invalid("input: expected a string or an array").at("input"));
    };
    let inside = &text[1..text.len() - 1];
    Ok(ConversationItems {
        text: Bytes::copy_from_slice(inside.trim().as_bytes()),
        count,
    })
}

/// Splits an index off the path behind it.
fn split_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(']')?;
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The id of an item: its own, or one that is made of its type and its position.
fn item_id(item: &str, response_id: &str, number: usize) -> String {
    let item: IdentifiedItem<'_> = decode_json(item).unwrap_or_default();
    let prefix = match item.kind.as_deref() {
        None | Some("message") => "msg_",
        Some("reasoning") => "rs_",
        Some("function_call") => "fc_",
        Some("function_call_output") => "fco_",
        _ => "item_",
    };
    let made = || ids::response_id(prefix, &format!("{response_id}_{number}"));
    item.id.map_or_else(made, Cow::into_owned)
}

/// Adds the fields of an item that the SDKs' types require and clients may leave out.
fn complete_item(item: &str, response_id: &str, number: usize) -> Value {
    let id = item_id(item, response_id, number);
    let mut item = serde_json::from_str(item).unwrap_or_default();
    add_item_fields(&mut item, id);
    item
}

fn add_item_fields(item: &mut Value, id: String) {
    let Some(fields) = item.as_object_mut() else {
        return;
    };
    fields.entry("type").or_insert_with(|| "message".into());
    let own = fields.entry("id").or_insert(Value::Null);
    if !own.is_string() {
        *own = id.into();
    }
    let is_from_model = fields.get("role").is_some_and(|role| role == "assistant");
    if let Some(content) = fields.get_mut("content")
        && content.is_string()
    {
        let kind = if is_from_model {
            "output_text"
        } else {
            "input_text"
        };
        let mut part = json!({"type": kind, "text": content.take()});
        if is_from_model {
            part["annotations"] = json!([]);
        }
        *content = json!([part]);
    }
}

#[cfg(test)]
#[path = "tests/conversation.rs"]
mod tests;
