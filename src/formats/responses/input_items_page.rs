//! A page of the list of input items, written from the items as they were sent: values would take several times their memory.

use std::borrow::Cow;

use crate::formats::ids;
use crate::json::{Edit, RawJson, decode_json, from_json};
use crate::model::Text;

from_json! {
    pub(super) struct IdentifiedItem<'a> {
        "type" => pub(super) kind: Option<Text<'a>>,
        "id" => pub(super) id: Option<Text<'a>>,
    }
}

from_json! {
    /// The fields of an item that the SDKs' types require and clients may leave out. None is optional: the range of a `null` is
    /// needed too.
    struct ListedItem<'a> {
        "type" => kind: RawJson<'a>,
        "id" => id: RawJson<'a>,
        "role" => role: RawJson<'a>,
        "content" => content: RawJson<'a>,
    }
}

/// Encodes a page of items, each with its number, before and in the request of a response.
pub(super) fn encode_page(items: &[(usize, &str)], response_id: &str, has_more: bool) -> Vec<u8> {
    let id_of = |item: Option<&(usize, &str)>| match item {
        Some((number, item)) => json_text(&item_id(item, response_id, *number)),
        None => "null".to_owned(),
    };
    let (first, last) = (id_of(items.first()), id_of(items.last()));
    let head = format!(
        r#"{{"object":"list","first_id":{first},"last_id":{last},"has_more":{has_more},"data":["#
    );
    let length: usize = items.iter().map(|(_, item)| item.len() + ADDED).sum();
    let mut page = Vec::with_capacity(head.len() + length);
    page.extend_from_slice(head.as_bytes());
    for (at, (number, item)) in items.iter().enumerate() {
        if at > 0 {
            page.push(b',');
        }
        write_item(item, &item_id(item, response_id, *number), &mut page);
    }
    page.extend_from_slice(b"]}");
    page
}

/// Room for the fields that are added to an item.
const ADDED: usize = 160;

/// The id of an item: its own, or one that is made of its type and its position.
pub(super) fn item_id(item: &str, response_id: &str, number: usize) -> String {
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

/// A text as JSON.
fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes an item with all required fields. What is no object, or has one of these fields twice, is written as it is.
fn write_item(item: &str, id: &str, page: &mut Vec<u8>) {
    let edits = decode_json(item).map_or_else(|_| Vec::new(), |listed| edits_of(&listed, item, id));
    let mut from = 0;
    for edit in edits {
        page.extend_from_slice(&item.as_bytes()[from..edit.range.start]);
        page.extend_from_slice(&edit.with);
        from = edit.range.end;
    }
    page.extend_from_slice(&item.as_bytes()[from..]);
}

/// The edits that add the required fields, in order.
fn edits_of(listed: &ListedItem<'_>, item: &str, id: &str) -> Vec<Edit> {
    let (mut edits, mut added) = (Vec::new(), Vec::new());
    if listed.kind.written().is_none() {
        added.push(r#""type":"message""#.to_owned());
    }
    let id = json_text(id);
    match listed.id.written() {
        Some(own) if own.get().starts_with('"') => {}
        Some(own) => edits.push(Edit {
            range: own.range_in(item.as_bytes()),
            with: id.into_bytes(),
        }),
        None => added.push(format!(r#""id":{id}"#)),
    }
    if listed.content.get().starts_with('"') {
        edits.extend(wrap_content(listed, item));
    }
    if !added.is_empty() {
        let is_empty = item[1..].trim_ascii_start().starts_with('}');
        let comma = if is_empty { "" } else { "," };
        edits.push(Edit {
            range: 1..1,
            with: (added.join(",") + comma).into_bytes(),
        });
    }
    edits.sort_by_key(|edit| edit.range.start);
    edits
}

/// The edits that make a list of parts of a text.
fn wrap_content(listed: &ListedItem<'_>, item: &str) -> [Edit; 2] {
    let (before, after) = match listed.role.get() {
        "\"assistant\"" => (
            r#"[{"type":"output_text","text":"#,
            r#","annotations":[]}]"#,
        ),
        _ => (r#"[{"type":"input_text","text":"#, "}]"),
    };
    let range = listed.content.range_in(item.as_bytes());
    let insert = |at: usize, text: &str| Edit {
        range: at..at,
        with: text.as_bytes().to_vec(),
    };
    [insert(range.start, before), insert(range.end, after)]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::encode_page;

    #[test]
    fn items_get_the_fields_that_they_lack() {
        for (item, listed) in [
            ("{ }", json!({"type": "message", "id": "msg_1_7"})),
            (
                r#"{"content":"a\"b","role":"assistant","id":null}"#,
                json!({"type": "message", "id": "msg_1_7", "role": "assistant",
                    "content": [{"type": "output_text", "text": "a\"b", "annotations": []}]}),
            ),
            (
                r#"{"type":"function_call","id":"fc_1","arguments":"{}"}"#,
                json!({"type": "function_call", "id": "fc_1", "arguments": "{}"}),
            ),
            ("7", json!(7)),
        ] {
            let page = encode_page(&[(7, item)], "resp_1", true);
            let page: Value = serde_json::from_slice(&page).expect(item);
            assert_eq!(page["data"], json!([listed]), "{item}");
            assert_eq!(page["has_more"], true);
        }
        let empty = encode_page(&[], "resp_1", false);
        let empty: Value = serde_json::from_slice(&empty).expect("JSON");
        assert_eq!(empty["first_id"], Value::Null);
    }
}
