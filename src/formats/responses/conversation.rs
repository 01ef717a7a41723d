//! Stored responses: continuing from one by its id, and the bodies of `/v1/responses/{id}`.

use bytes::Bytes;
use serde_json::json;

use super::input_items_page::{IdentifiedItem, encode_page, item_id};
use super::input_items_query::InputItemsQuery;
use super::request::previous_response_not_found;
use super::response_builder;
use crate::formats::{
    ConversationCodec, ConversationItems, decode_event_data, decode_request_body,
    decode_response_body,
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

impl ConversationCodec for ResponsesConversation {
    fn request_items(&self, added: &Bytes) -> Result<ConversationItems, ApiError> {
        let text = str::from_utf8(added).unwrap_or_default();
        match decode_json(text) {
            Ok(input) => decode_input(input, added),
            // The request has no `input`.
            Err(_) => Ok(ConversationItems::default()),
        }
    }

    fn resume(&self, body: &Bytes, before: &[ConversationItems]) -> Result<Bytes, ApiError> {
        let request: ContinuedRequest<'_> = decode_request_body(body)?;
        let own = request.input.written();
        let own = own.map(|input| decode_input(input, body)).transpose()?;
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
        let mut all: Vec<(usize, &str)> = Vec::new();
        for list in items {
            let mut reader = JsonReader::new(str::from_utf8(&list.text).unwrap_or_default());
            // What cannot be read has not been stored.
            let _ = reader.elements(|reader| {
                all.push((all.len(), reader.raw()?));
                Ok(())
            });
        }
        let query = InputItemsQuery::parse(query)?;
        if query.newest_first {
            all.reverse();
        }
        let mut rest = all.as_slice();
        if let Some(after) = &query.after {
            let is_after = |(number, item): &(usize, &str)| item_id(item, id, *number) == **after;
            let at = rest.iter().position(is_after).ok_or_else(|| {
                let message = format!("after: there is no item {}", truncated(after));
                ApiError::invalid(message).at("after")
            })?;
            rest = &rest[at + 1..];
        }
        let has_more = rest.len() > query.limit;
        Ok(encode_page(
            &rest[..rest.len().min(query.limit)],
            id,
            has_more,
        ))
    }

    fn encode_deletion(&self, id: &str) -> Vec<u8> {
        let answer = json!({"id": id, "object": "response", "deleted": true});
        answer.to_string().into_bytes()
    }
}

/// Counts the elements of a list; `None`: it is no list.
fn count(list: RawJson<'_>) -> Option<usize> {
    decode_json(list.get())
        .ok()
        .map(|list: Vec<Present>| list.len())
}

/// Decodes `input`, which stands in a body, into items; a string is a message of the user.
fn decode_input(input: RawJson<'_>, body: &Bytes) -> Result<ConversationItems, ApiError> {
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
    let inside = text[1..text.len() - 1].trim_ascii();
    Ok(ConversationItems {
        text: body.slice_ref(inside.as_bytes()),
        count,
    })
}

/// Splits an index off the path behind it.
fn split_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(']')?;
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
#[path = "tests/conversation.rs"]
mod tests;
