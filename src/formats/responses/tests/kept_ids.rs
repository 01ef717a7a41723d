//! Ids of what an upstream keeps.

use super::*;

/// The ids in a body: first those of references that items can replace.
fn ids(body: &str) -> (Vec<String>, Vec<String>) {
    let found = find_kept_ids(body.as_bytes());
    for reference in &found.references {
        let item = &body[reference.range.clone()];
        assert!(item.starts_with('{') && item.ends_with('}'), "{item}");
    }
    let references = found.references.into_iter();
    let mentions = found.mentions.into_iter();
    (
        references.map(|reference| reference.item_id).collect(),
        mentions.map(|mention| mention.id).collect(),
    )
}

#[test]
fn references_are_found_as_lenient_upstreams_read_them() {
    for item in [
        r#"{"type":"item_reference","id":"x"}"#,
        r#"{"id":"x"}"#,
        r#"{"type":null,"id":"x"}"#,
        r#"{"type":"Item_Reference","id":"x"}"#,
        r#"{"type":"item_reference","ID":"x"}"#,
        r#"{"type":"item\u005freference","\u0069d":"x"}"#,
    ] {
        let body = format!(r#"{{"model":"m","input":[{{"role":"user","content":"Hi"}},{item}]}}"#);
        assert_eq!(ids(&body), (vec!["x".to_owned()], vec![]), "{item}");
        for elsewhere in [
            format!(r#"{{"input":[[{item}]]}}"#),
            format!(r#"{{"input":{item}}}"#),
        ] {
            assert_eq!(
                ids(&elsewhere),
                (vec![], vec!["x".to_owned()]),
                "{elsewhere}"
            );
        }
    }
    let named = r#"{"type":"item_reference","id":"x"}"#;
    for nested in [
        format!(
            r#"{{"input":[{{"type":"function_call_output","call_id":"c","output":[{named}]}}]}}"#
        ),
        format!(r#"{{"input":"Hi","prompt":{{"id":"p","variables":{{"a":{named}}}}}}}"#),
    ] {
        assert_eq!(ids(&nested), (vec![], vec!["x".to_owned()]), "{nested}");
    }
}

#[test]
fn an_item_by_its_id_alone_is_found_and_a_whole_one_is_not() {
    for item in [
        r#"{"type":"reasoning","id":"x","summary":[]}"#,
        r#"{"type":"reasoning","id":"x","summary":[{"type":"summary_text","text":"a"}],"encrypted_content":null}"#,
        r#"{"type":"reasoning","id":"x","summary":[],"content":[],"encrypted_content":"","result":"a"}"#,
        r#"{"type":"reasoning","id":"x","encrypted_content":"a","encrypted_content":null}"#,
        r#"{"type":"Reasoning","id":"x","summary":[]}"#,
        r#"{"type":"reasoning","id":"x","summary":[{"type":"summary_text","text":"a"}],"summary":[]}"#,
        r#"{"type":"reasoning","id":"x","content":[{"type":"reasoning_text","text":""}]}"#,
        r#"{"type":"image_generation_call","id":"x","status":"completed"}"#,
        r#"{"type":"image_generation_call","id":"x","result":null}"#,
        r#"{"type":"message","id":"x"}"#,
        r#"{"type":"message","id":"x","role":"assistant","content":null}"#,
        r#"{"role":"assistant","id":"x"}"#,
        r#"{"type":"compaction","id":"x"}"#,
        r#"{"type":"web_search_call","id":"x","status":"completed"}"#,
        r#"{"type":"of_tomorrow","id":"x"}"#,
        r#"{"type":"of_tomorrow","id":"x","parts":[ ],"name":"","more":false,"call_id":"c"}"#,
        r#"{"type":"message","id":"x","role":"assistant","content":[]}"#,
        r#"{"type":"message","id":"x","role":"assistant","content":[{"type":"output_text","text":"","annotations":[1]}]}"#,
        r#"{"role":"user","id":"x","content":""}"#,
        r#"{"type":"message","id":"x","content":false}"#,
        r#"{"type":"image_generation_call","id":"x","result":[{"text":"a"}]}"#,
        r#"{"type":"web_search_call","id":"x","action":{"type":"search","query":"a","sources":[]}}"#,
        r#"{"type":"file_search_call","id":"x","queries":["a"],"results":null}"#,
        r#"{"type":"code_interpreter_call","id":"x","code":"a","outputs":[]}"#,
        r#"{"type":"mcp_call","id":"x","server_label":"s","name":"f","arguments":"{}"}"#,
        r#"{"type":"function_call","id":"x","call_id":"c","arguments":"{}"}"#,
        r#"{"type":"message","type":"reasoning","id":"x","content":""}"#,
        r#"{"type":"code_interpreter_call","id":"y","code":"a","outputs":[{"logs":"a"}],"container_id":"x"}"#,
        r#"{"type":"shell_call","id":"y","action":{"commands":["a"]},"environment":{"container_id":"x"}}"#,
        r#"{"type":"shell_call","id":"y","action":{"commands":["a"]},"environment":[{"container_id":"x"}]}"#,
        r#"{"type":"mcp_approval_response","approval_request_id":"x","approve":true}"#,
    ] {
        // What cannot be read does not end the search.
        let body = format!(r#"{{"input":[{{"type":"\ud800","text":"a"}},{item}]}}"#);
        assert_eq!(ids(&body), (vec![], vec!["x".to_owned()]), "{item}");
    }
    for item in [
        r#"{"type":"reasoning","summary":[]}"#,
        r#"{"type":"reasoning","id":"x","summary":[],"encrypted_content":"a"}"#,
        r#"{"type":"reasoning","id":"x","summary":[],"content":[{"type":"reasoning_text","text":"a"}],"encrypted_content":null}"#,
        r#"{"type":"reasoning","id":"rs_chat-1_0","summary":[{"type":"summary_text","text":"a"}]}"#,
        r#"{"type":"image_generation_call","id":"x","result":"aGk="}"#,
        r#"{"type":"message","id":"x","role":"assistant","content":[{"type":"refusal","refusal":"a"}]}"#,
        r#"{"role":"user","id":"x","content":"a"}"#,
        r#"{"type":"mcp_call","id":"x","server_label":"s","name":"f","arguments":"{}","output":""}"#,
        r#"{"type":"code_interpreter_call","id":"x","code":"a","outputs":[{"type":"logs","logs":"a"}]}"#,
        r#"{"type":"function_call","id":"x","call_id":"c","name":"f","arguments":""}"#,
        r#"{"type":"function_call_output","id":"x","call_id":"c","output":""}"#,
        r#"{"type":"web_search_call","id":"x","action":{"type":"search","sources":[{"url":"u"}]}}"#,
        r#"{"type":"message","id":"x","role":"assistant","content":[{"type":"output_text","text":"a","annotations":[{"container_id":"y"}]}]}"#,
        r#"{"type":"compaction","id":"x","encrypted_content":"a"}"#,
    ] {
        let body = format!(r#"{{"input":[{item}]}}"#);
        assert_eq!(ids(&body), (vec![], vec![]), "{item}");
    }
}

#[test]
fn containers_of_tools_are_found() {
    for tool in [
        r#"{"type":"code_interpreter","container":"x"}"#,
        r#"{"type":"code_interpreter","Container":"x"}"#,
        r#"{"type":"code_interpreter","container":{"id":"x"}}"#,
        r#"{"type":"code_interpreter","container":["x"]}"#,
        r#"{"type":"code_interpreter","container":{"type":"a","ref":{"id":"x"}}}"#,
        r#"{"type":"shell","environment":{"type":"container_reference","container_id":"x"}}"#,
        r#"{"type":"namespace","tools":[{"type":"code_interpreter","container":"x"}]}"#,
    ] {
        let body = format!(r#"{{"input":"Hi","tools":[{tool}]}}"#);
        assert_eq!(ids(&body), (vec![], vec!["x".to_owned()]), "{tool}");
    }
    for field in ["tool_choice", "Container"] {
        let body = format!(r#"{{"input":"Hi","{field}":{{"container":"x"}}}}"#);
        assert_eq!(ids(&body), (vec![], vec!["x".to_owned()]), "{field}");
    }
    for tool in [
        r#"{"type":"code_interpreter","container":{"type":"auto","file_ids":["f"]}}"#,
        r#"{"type":"function","name":"f","parameters":{"properties":{"container":{"type":"string"},"id":{}}}}"#,
    ] {
        let body = format!(r#"{{"input":"Hi","tools":[{tool}]}}"#);
        assert_eq!(ids(&body), (vec![], vec![]), "{tool}");
    }
}
