//! Replies that are kept: going on from one by its id, and what `/v1/responses/{id}` answers.

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::request::unknown_previous;
use crate::formats::{ConversationCodec, Items, identity, read_event, read_reply, read_request};
use crate::json::{Edit, JsonReader, Present, RawJson, decode_json, from_json, replace};
use crate::model::{ApiError, FieldLocation, Text, truncated};

pub(super) struct Kept;

from_json! {
    struct Request<'a> {
        /// `null` too stands somewhere.
        "input" => input: RawJson<'a>,
        "previous_response_id" => previous_response_id: Option<RawJson<'a>>,
    }
}

from_json! {
    struct Reply<'a> {
        "output" required => output: RawJson<'a>,
    }
}

from_json! {
    struct Event<'a> {
        "type" required => kind: Text<'a>,
        "response" => response: RawJson<'a>,
    }
}

#[derive(Serialize)]
struct Page<'a> {
    object: &'static str,
    first_id: Option<&'a Value>,
    last_id: Option<&'a Value>,
    has_more: bool,
    data: &'a [Value],
}

impl ConversationCodec for Kept {
    fn input(&self, added: &[u8]) -> Result<Items, ApiError> {
        let added = str::from_utf8(added).unwrap_or_default();
        match decode_json(added) {
            Ok(input) => own_items(input),
            // Nothing is written there.
            Err(_) => Ok(Items::default()),
        }
    }

    fn resume(&self, body: &[u8], before: &[Items]) -> Result<Bytes, ApiError> {
        let request: Request<'_> = read_request(body)?;
        let own = request.input.written().map(own_items).transpose()?;
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

    fn id(&self, reply: &[u8]) -> Option<String> {
        let (mut id, mut reader) = (None, JsonReader::new(str::from_utf8(reply).ok()?));
        let _ = reader.object(|reader, key| {
            if key != "id" {
                return reader.skip();
            }
            id = Some(reader.text()?.into_owned());
            // It stands near the beginning, and the rest need not be read.
            Err(reader.stop("no more"))
        });
        id
    }

    fn output(&self, reply: &Bytes) -> Option<Items> {
        let whole: Reply<'_> = read_reply(reply).ok()?;
        let range = whole.output.range_in(reply);
        let count = count(whole.output)?;
        let text = reply.slice(range.start + 1..range.end - 1);
        Some(Items { text, count })
    }

    fn last_reply(&self, data: &str) -> Option<Bytes> {
        let event: Event<'_> = read_event(data).ok()?;
        let is_last = matches!(&*event.kind, "response.completed" | "response.incomplete");
        let reply = event.response.written().filter(|_| is_last)?;
        Some(Bytes::copy_from_slice(reply.get().as_bytes()))
    }

    fn broken(&self, id: &str) -> ApiError {
        unknown_previous(id)
    }

    fn own_place(&self, place: &FieldLocation, before: usize) -> Option<FieldLocation> {
        let shifted = |turn: u32| turn.checked_sub(u32::try_from(before).ok()?);
        Some(match place {
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
                None => place.clone(),
            },
            _ => place.clone(),
        })
    }

    fn page(&self, id: &str, items: &[Items], query: Option<&str>) -> Result<Vec<u8>, ApiError> {
        let mut all = Vec::new();
        for stretch in items {
            let list = [b"[", stretch.text.as_ref(), b"]"].concat();
            let values: Vec<Value> = serde_json::from_slice(&list).unwrap_or_default();
            all.extend(values);
        }
        for (number, item) in all.iter_mut().enumerate() {
            complete(item, id, number);
        }
        let wanted = Wanted::read(query)?;
        if wanted.newest_first {
            all.reverse();
        }
        if let Some(after) = &wanted.after {
            let is_it = |item: &Value| item["id"] == **after;
            let at = all.iter().position(is_it).ok_or_else(|| {
                let message = format!("after: there is no item {}", truncated(after));
                ApiError::invalid(message).at("after")
            })?;
            all.drain(..=at);
        }
        let has_more = all.len() > wanted.limit;
        all.truncate(wanted.limit);
        let page = Page {
            object: "list",
            first_id: all.first().map(|item| &item["id"]),
            last_id: all.last().map(|item| &item["id"]),
            has_more,
            data: &all,
        };
        Ok(serde_json::to_vec(&page).expect("JSON values always serialise"))
    }

    fn deleted(&self, id: &str) -> Vec<u8> {
        let answer = json!({"id": id, "object": "response", "deleted": true});
        answer.to_string().into_bytes()
    }
}

fn count(list: RawJson<'_>) -> Option<usize> {
    decode_json(list.get())
        .ok()
        .map(|list: Vec<Present>| list.len())
}

/// A bare text is what the user says.
fn own_items(input: RawJson<'_>) -> Result<Items, ApiError> {
    let text = input.get();
    if text.starts_with('"') {
        let text = format!(r#"{{"type":"message","role":"user","content":{text}}}"#);
        return Ok(Items {
            text: text.into(),
            count: 1,
        });
    }
    if text == "null" {
        return Ok(Items::default());
    }
    let Some(count) = count(input) else {
        return Err(ApiError::invalid("input: expected a string or an array").at("input"));
    };
    let inside = &text[1..text.len() - 1];
    Ok(Items {
        text: Bytes::copy_from_slice(inside.trim().as_bytes()),
        count,
    })
}

fn split_number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(']')?;
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Clients may leave out what the format's own types insist on.
fn complete(item: &mut Value, reply_id: &str, number: usize) {
    let Some(fields) = item.as_object_mut() else {
        return;
    };
    let kind = fields.entry("type").or_insert_with(|| "message".into());
    let prefix = match kind.as_str() {
        Some("message") => "msg_",
        Some("reasoning") => "rs_",
        Some("function_call") => "fc_",
        Some("function_call_output") => "fco_",
        _ => "item_",
    };
    let id = fields.entry("id").or_insert(Value::Null);
    if !id.is_string() {
        *id = identity::reply_id(prefix, &format!("{reply_id}_{number}")).into();
    }
    let said_by_model = fields.get("role").is_some_and(|role| role == "assistant");
    if let Some(content) = fields.get_mut("content")
        && content.is_string()
    {
        let kind = if said_by_model {
            "output_text"
        } else {
            "input_text"
        };
        let mut part = json!({"type": kind, "text": content.take()});
        if said_by_model {
            part["annotations"] = json!([]);
        }
        *content = json!([part]);
    }
}

struct Wanted {
    limit: usize,
    newest_first: bool,
    after: Option<String>,
}

const MOST: usize = 100;

impl Wanted {
    fn read(query: Option<&str>) -> Result<Wanted, ApiError> {
        let mut wanted = Wanted {
            limit: 20,
            newest_first: true,
            after: None,
        };
        for (name, value) in form_urlencoded::parse(query.unwrap_or("").as_bytes()) {
            match &*name {
                "limit" => {
                    let limit = value.parse().ok();
                    let limit = limit.filter(|limit| (1..=MOST).contains(limit));
                    wanted.limit = limit.ok_or_else(|| {
                        let message = format!("limit: expected a number from 1 to {MOST}");
                        ApiError::invalid(message).at("limit")
                    })?;
                }
                "order" => {
                    wanted.newest_first = match &*value {
                        "desc" => true,
                        "asc" => false,
                        _ => return Err(ApiError::invalid("order: use asc or desc").at("order")),
                    }
                }
                "after" => wanted.after = Some(value.into_owned()),
                _ => {}
            }
        }
        Ok(wanted)
    }
}

#[cfg(test)]
#[path = "tests/kept.rs"]
mod tests;
