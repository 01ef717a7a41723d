//! Continuing from stored responses, and listing their items.

use serde_json::{Value, json};

use super::*;

fn items(text: &'static str, count: usize) -> ConversationItems {
    ConversationItems {
        text: text.into(),
        count,
    }
}

#[test]
fn stored_items_stand_before_the_new_input() {
    let before = [items(r#"{"a":1},{"b":2}"#, 2), items("", 0)];
    let resumed = |body: &str| {
        let resumed = ResponsesConversation
            .resume(&Bytes::copy_from_slice(body.as_bytes()), &before)
            .expect("a body");
        String::from_utf8(resumed.to_vec()).expect("text")
    };
    assert_eq!(
        resumed(r#"{"model":"m", "previous_response_id" : "resp_1","input":"Hi \"you\"" }"#),
        r#"{"model":"m", "previous_response_id" : null,"input":[{"a":1},{"b":2},{"type":"message","role":"user","content":"Hi \"you\""}] }"#
    );
    assert_eq!(
        resumed(r#"{"input":[ {"c":3} ],"previous_response_id":"resp_1"}"#),
        r#"{"input":[{"a":1},{"b":2},{"c":3}],"previous_response_id":null}"#
    );
    assert_eq!(
        resumed(r#" {"previous_response_id":"resp_1"}"#),
        r#" {"input":[{"a":1},{"b":2}],"previous_response_id":null}"#
    );
    assert_eq!(
        resumed(r#"{"input":null,"model":"m"}"#),
        r#"{"input":[{"a":1},{"b":2}],"model":"m"}"#
    );
    let refused = ResponsesConversation.resume(&Bytes::from_static(br#"{"input":7}"#), &before);
    assert_eq!(
        refused.expect_err("a refusal").param.as_deref(),
        Some("input")
    );
}

#[test]
fn a_response_is_found_in_a_body_and_in_the_final_event() {
    let response =
        Bytes::from_static(br#"{"id":"resp_1", "output":[{"x":[1]}, {}],"status":"completed"}"#);
    assert_eq!(
        ResponsesConversation.response_id(&response).as_deref(),
        Some("resp_1")
    );
    assert_eq!(
        ResponsesConversation.response_items(&response),
        Some(items(r#"{"x":[1]}, {}"#, 2))
    );
    let late = br#"{"object":{"id":"other"},"id":"resp_2","output":"#;
    assert_eq!(
        ResponsesConversation.response_id(late).as_deref(),
        Some("resp_2")
    );
    assert_eq!(
        ResponsesConversation.response_id(br#"{"object":"response"}"#),
        None
    );
    assert_eq!(ResponsesConversation.response_id(b"[]"), None);
    let event = |kind: &str| {
        let data =
            format!(r#"{{"type":"{kind}","sequence_number":3,"response":{{"id":"resp_1"}}}}"#);
        ResponsesConversation.final_response(&data)
    };
    let found = Some(Bytes::from_static(br#"{"id":"resp_1"}"#));
    assert_eq!(event("response.completed"), found);
    assert_eq!(event("response.incomplete"), found);
    assert_eq!(event("response.failed"), None);
    assert_eq!(event("response.created"), None);
}

#[test]
fn locations_are_counted_from_the_clients_own_input() {
    let own = |location: FieldLocation| ResponsesConversation.client_location(&location, 2);
    let part = |turn, part| FieldLocation::Part { turn, part };
    assert_eq!(own(part(Some(3), Some(1))), Some(part(Some(1), Some(1))));
    assert_eq!(own(part(Some(1), None)), None);
    assert_eq!(
        own(FieldLocation::Turn { turn: None }),
        Some(FieldLocation::Turn { turn: None })
    );
    let path = |path: &'static str| FieldLocation::Path(path.into());
    assert_eq!(
        own(path("input[2].content")),
        Some(path("input[0].content"))
    );
    assert_eq!(own(path("input[0]")), None);
    assert_eq!(own(path("truncation")), Some(path("truncation")));
}

#[test]
fn items_are_listed_in_pages_with_all_required_fields() {
    let first = items(
        r#"{"role":"user","content":"Hi"},{"id":"msg_1","type":"message","role":"assistant","content":[]}"#,
        2,
    );
    let second = items(
        r#"{"type":"function_call_output","call_id":"c","output":"7"}"#,
        1,
    );
    let page = |query: &str| -> Result<Value, ApiError> {
        let page = ResponsesConversation.encode_items(
            "resp_9",
            &[first.clone(), second.clone()],
            Some(query),
        )?;
        Ok(serde_json::from_slice(&page).expect("JSON"))
    };
    let all = page("order=asc").expect("a page");
    let ids = |page: &Value| -> Vec<String> {
        let data = page["data"].as_array().expect("a list");
        data.iter()
            .map(|item| item["id"].as_str().unwrap_or("").to_owned())
            .collect()
    };
    assert_eq!(ids(&all), ["msg_9_0", "msg_1", "fco_9_2"]);
    assert_eq!(
        all["data"][0]["content"],
        json!([{"type": "input_text", "text": "Hi"}])
    );
    assert_eq!(all["data"][0]["type"], "message");
    assert_eq!(
        (&all["first_id"], &all["has_more"]),
        (&json!("msg_9_0"), &json!(false))
    );
    let newest = page("limit=2").expect("a page");
    assert_eq!(ids(&newest), ["fco_9_2", "msg_1"]);
    assert_eq!(newest["has_more"], true);
    assert_eq!(ids(&page("after=msg_1").expect("a page")), ["msg_9_0"]);
    for wrong in ["limit=0", "limit=101", "order=up", "after=nobody"] {
        assert!(page(wrong).is_err(), "{wrong}");
    }
}
