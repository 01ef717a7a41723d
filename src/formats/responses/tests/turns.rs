//! Items of every kind, gathered into turns, dropped or refused.

use super::*;
use crate::model::{Arguments, Issuer, Source};

fn decode_all<'a>(input: &'a str, losses: &mut Losses) -> Result<Vec<Turn<'a>>, ApiError> {
    let mut turns = Vec::new();
    let value = serde_json::from_str(input).expect("valid JSON");
    let path = Path::Key(&Path::Root, "input");
    decode(Node { value, path }, &mut turns, losses)?;
    Ok(turns)
}

fn turns(input: &str) -> Vec<Turn<'_>> {
    let mut losses = Losses::default();
    let turns = decode_all(input, &mut losses).expect("valid items");
    assert_eq!(losses, Losses::default());
    turns
}

fn dropped(input: &str) -> (Vec<Turn<'_>>, Vec<String>) {
    let mut losses = Losses::default();
    let turns = decode_all(input, &mut losses).expect("valid items");
    let paths = losses.0.into_iter().map(|loss| match loss.location {
        FieldLocation::Path(path) => path.into_owned(),
        other => panic!("{other:?}"),
    });
    (turns, paths.collect())
}

fn refused(input: &str) -> String {
    let api_error = decode_all(input, &mut Losses::default()).expect_err("a bad item");
    assert_eq!(api_error.status, 400);
    api_error.param.clone().unwrap_or_default()
}

/// The role, the index and an outline of each part.
fn outline(turns: &[Turn<'_>]) -> Vec<(Role, Option<u32>, String)> {
    let part_outline = |part: &Part<'_>| match &part.kind {
        PartKind::Text(text) => text.to_string(),
        PartKind::Refusal(text) => format!("refusal {text}"),
        PartKind::Reasoning { text, .. } => format!("reasoning {text}"),
        PartKind::Call(call) => format!("call {}", call.name),
        PartKind::Result(result) => format!("result {:?}", result.id),
        PartKind::Media(media) => format!("media {}", media.mime),
    };
    turns
        .iter()
        .map(|turn| {
            let parts: Vec<String> = turn.parts.iter().map(part_outline).collect();
            (turn.role, turn.at, parts.join(" | "))
        })
        .collect()
}

#[test]
fn messages_keep_role_order_and_index() {
    let turns = turns(
        r#"[{"role":"developer","id":"m1","content":"d"},{"role":"system","content":"s"},
            {"type":"message","role":"user","content":[{"type":"input_text","text":"a"},
            {"type":"input_text","text":"b"}]},{"role":"user","content":"c"}]"#,
    );
    assert_eq!(
        outline(&turns),
        [
            (Role::Developer, Some(0), "d".to_owned()),
            (Role::System, Some(1), "s".to_owned()),
            (Role::User, Some(2), "a | b".to_owned()),
            (Role::User, Some(3), "c".to_owned()),
        ]
    );
    assert_eq!(turns[0].parts[0].at, None);
    assert_eq!(turns[2].parts[1].at, Some(1));
}

#[test]
fn the_items_of_one_step_are_one_turn() {
    let turns = turns(
        r#"[{"role":"user","content":"Paris and Rome?"},
            {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"two"}]},
            {"type":"message","id":"m","status":"completed","role":"assistant",
             "content":[{"type":"output_text","text":"Checking.","annotations":[]}]},
            {"type":"function_call","id":"fc","call_id":"c1","name":"w","arguments":"{}"},
            {"type":"custom_tool_call","call_id":"c2","name":"sql","input":"SELECT"},
            {"type":"function_call_output","call_id":"c1","output":"18"},
            {"type":"custom_tool_call_output","call_id":"c2","output":"none"},
            {"role":"assistant","content":"One."},
            {"role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]"#,
    );
    assert_eq!(
        outline(&turns),
        [
            (Role::User, Some(0), "Paris and Rome?".to_owned()),
            (
                Role::Model,
                Some(1),
                "reasoning two | Checking. | call w | call sql".to_owned()
            ),
            (Role::User, Some(5), "result Some(\"c1\")".to_owned()),
            (Role::User, Some(6), "result Some(\"c2\")".to_owned()),
            (Role::Model, Some(7), "One.".to_owned()),
            (Role::Model, Some(8), "refusal No.".to_owned()),
        ]
    );
    let PartKind::Call(sql) = &turns[1].parts[3].kind else {
        panic!("no call");
    };
    assert_eq!(sql.kind, ToolKind::Custom);
    assert_eq!(sql.arguments, Arguments::Text("SELECT".into()));
    assert_eq!(sql.id.as_deref(), Some("c2"));
}

#[test]
fn a_message_continues_reasoning_or_a_call_but_not_a_message() {
    let turns = turns(
        r#"[{"role":"assistant","content":"a"},
            {"type":"reasoning","summary":[],"encrypted_content":"x"},
            {"role":"assistant","content":"b"},{"role":"assistant","content":"c"}]"#,
    );
    let outlines: Vec<_> = outline(&turns).into_iter().map(|turn| turn.2).collect();
    assert_eq!(outlines, ["a | reasoning  | b", "c"]);
}

#[test]
fn wrapped_signatures_are_unwrapped_and_others_are_of_the_format() {
    let signature_of = |encrypted: &str| {
        let input = format!(
            r#"[{{"type":"reasoning","id":"rs_x","summary":[],"encrypted_content":"{encrypted}"}}]"#
        );
        match &turns(&input)[0].parts[0].kind {
            PartKind::Reasoning { text, signature } if text.is_empty() => {
                let signature = signature.as_ref().expect("a signature");
                (signature.issuer, signature.data.to_string())
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        signature_of("b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ=="),
        (Issuer::Native, "Q2lRQmU5L2U=".to_owned())
    );
    assert_eq!(
        signature_of("gAAAAABraw"),
        (Issuer::Responses, "rs_x\ngAAAAABraw".to_owned())
    );
}

#[test]
fn reasoning_is_its_summary_or_else_its_content() {
    let both = r#"[{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"a"},
        {"type":"summary_text","text":"b"}],"content":[{"type":"reasoning_text","text":"c"}]}]"#;
    assert_eq!(outline(&turns(both))[0].2, "reasoning a\n\nb");
    let content = r#"[{"type":"reasoning","id":"r","summary":[],"encrypted_content":null,
        "content":[{"type":"reasoning_text","text":"c"}]}]"#;
    assert_eq!(outline(&turns(content))[0].2, "reasoning c");
}

#[test]
fn outputs_hold_text_and_images() {
    let turns = turns(
        r#"[{"type":"function_call_output","call_id":"c1","status":"completed","output":[
            {"type":"input_text","text":"Chart:"},
            {"type":"input_image","image_url":"data:image/png;base64,AAAA","detail":"auto"}]}]"#,
    );
    let PartKind::Result(result) = &turns[0].parts[0].kind else {
        panic!("no result");
    };
    assert_eq!(result.parts.len(), 2);
    assert_eq!(result.parts[1].at, Some(1));
    assert!(!result.failed);
}

#[test]
fn a_namespace_is_part_of_the_name() {
    let turns = turns(
        r#"[{"type":"function_call","call_id":"c","namespace":"agents","name":"spawn","arguments":""}]"#,
    );
    assert_eq!(outline(&turns)[0].2, "call agents__spawn");
}

#[test]
fn a_generated_image_is_decoded_as_media() {
    let turns = turns(
        r#"[{"type":"image_generation_call","id":"ig","status":"completed","result":"AAAA"}]"#,
    );
    assert_eq!(turns[0].role, Role::Model);
    let PartKind::Media(media) = &turns[0].parts[0].kind else {
        panic!("no image");
    };
    assert_eq!(media.mime, "image/png");
    assert_eq!(media.source, Source::Base64("AAAA".into()));
}

#[test]
fn items_without_meaning_elsewhere_are_dropped_with_their_path() {
    let (turns, paths) = dropped(
        r#"[{"type":"web_search_call","id":"ws","status":"completed","action":{"type":"search"}},
            {"type":"reasoning","id":"rs_stored","summary":[]},
            {"type":"image_generation_call","id":"ig","status":"failed","result":null},
            {"role":"assistant","content":"x","phase":"commentary"}]"#,
    );
    assert_eq!(outline(&turns), [(Role::Model, Some(3), "x".to_owned())]);
    assert_eq!(
        paths,
        ["input[0]", "input[1]", "input[2]", "input[3].phase"]
    );
}

#[test]
fn invalid_items_are_refused_with_their_path() {
    for (item, param) in [
        (r#"{"type":"item_reference","id":"msg_1"}"#, "input[0]"),
        (
            r#"{"type":"compaction","encrypted_content":"x"}"#,
            "input[0]",
        ),
        (r#"{"type":"computer_call","call_id":"c"}"#, "input[0]"),
        (r#"{"type":"something_new"}"#, "input[0]"),
        (r#"{"role":"tool","content":"x"}"#, "input[0].role"),
        (r#"{"content":"x"}"#, "input[0].role"),
        (r#"{"role":"user"}"#, "input[0].content"),
        (r#"{"role":"user","content":5}"#, "input[0].content"),
        (
            r#"{"type":"function_call","name":"f","arguments":"{}"}"#,
            "input[0].call_id",
        ),
        (
            r#"{"type":"function_call","call_id":"c","name":"f","arguments":{}}"#,
            "input[0].arguments",
        ),
        (
            r#"{"type":"function_call_output","call_id":"c"}"#,
            "input[0].output",
        ),
        (
            r#"{"type":"reasoning","summary":[{"type":"other","text":"x"}]}"#,
            "input[0].summary[0].type",
        ),
        ("7", "input[0]"),
    ] {
        assert_eq!(refused(&format!("[{item}]")), param, "{item}");
    }
}
