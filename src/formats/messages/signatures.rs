//! Strips the signatures of other formats from a request that goes to an upstream of this one.

use super::Messages;
use super::turns::CONTINUED;
use crate::formats::SignatureCodec;
use crate::formats::signatures::{is_wrapped_signature, remove_elements};
use crate::json::{Edit, RawJson, decode_json, from_json};
use crate::model::{FieldLocation, Losses, Setting, Text};

from_json! {
    struct MessagesHistory<'a> {
        "messages" => messages: Vec<RawJson<'a>>,
        "thinking" => thinking: Option<RawJson<'a>>,
    }
}

from_json! {
    struct HistoryMessage<'a> {
        "content" => content: Option<RawJson<'a>>,
    }
}

from_json! {
    struct HistoryBlock<'a> {
        "type" => kind: Option<Text<'a>>,
        "signature" => signature: Option<Text<'a>>,
        "data" => data: Option<Text<'a>>,
    }
}

fn has_foreign_signature(block: &str) -> bool {
    decode_json::<HistoryBlock<'_>>(block).is_ok_and(|block| {
        is_wrapped_signature(block.signature.as_ref()) || is_wrapped_signature(block.data.as_ref())
    })
}

fn has_type(kind: &str, block: RawJson<'_>) -> bool {
    let block: HistoryBlock<'_> = decode_json(block.get()).unwrap_or_default();
    block.kind.as_deref() == Some(kind)
}

fn content_of(message: RawJson<'_>) -> Option<RawJson<'_>> {
    let message: HistoryMessage<'_> = decode_json(message.get()).unwrap_or_default();
    message.content
}

impl SignatureCodec for Messages {
    fn strip_foreign_signatures(&self, body: &str, losses: &mut Losses) -> Vec<Edit> {
        let history: MessagesHistory<'_> = decode_json(body).unwrap_or_default();
        let mut edits = Vec::new();
        let mut last_edited = 0;
        for (turn, message) in (0..).zip(&history.messages) {
            let content = content_of(*message);
            let report = |part| {
                losses.dropped(FieldLocation::Part {
                    turn: Some(turn),
                    part: Some(part),
                });
            };
            let edit = content.and_then(|blocks| {
                remove_elements(blocks, body.as_bytes(), has_foreign_signature, report)
            });
            edits.extend(edit.map(|mut edit| {
                last_edited = turn + 1;
                if edit.with == b"[]" {
                    edit.with = format!(r#"[{{"type":"text","text":"{CONTINUED}"}}]"#).into_bytes();
                }
                edit
            }));
        }
        let last = history.messages.last();
        let content = last.and_then(|message| content_of(*message));
        let blocks: Vec<RawJson<'_>> = content
            .and_then(|blocks| decode_json(blocks.get()).ok())
            .unwrap_or_default();
        // With a thinking budget, upstreams require the turn of the calls to start with signed reasoning.
        // If that has been stripped, thinking is disabled.
        let has_results = blocks.iter().any(|block| has_type("tool_result", *block));
        let is_unsigned = has_results && last_edited as usize + 1 == history.messages.len();
        let budget = history
            .thinking
            .filter(|thinking| is_unsigned && has_type("enabled", *thinking));
        edits.extend(budget.map(|thinking| {
            losses.approximated(FieldLocation::Setting(Setting::Thinking));
            Edit {
                range: thinking.range_in(body.as_bytes()),
                with: br#"{"type":"disabled"}"#.to_vec(),
            }
        }));
        edits.sort_by_key(|edit| edit.range.start);
        edits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::replace;

    fn stripped(body: &str) -> (String, usize) {
        let mut losses = Losses::default();
        let edits = Messages.strip_foreign_signatures(body, &mut losses);
        let body = replace(body.as_bytes(), &edits);
        let body = String::from_utf8(body.to_vec()).expect("text");
        (body, losses.0.len())
    }

    const FOREIGN: &str = r#"{"type":"thinking","thinking":"","signature":"b21uaWdsb3QvMSBuCng="}"#;
    const CALL: &str = r#"{"type":"tool_use","id":"1","name":"f","input":{}}"#;
    const RESULT: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}"#;

    fn conversation(thinking: &str, model: &str, user: &str) -> String {
        let thinking = format!(r#""thinking":{{"type":"{thinking}"}}"#);
        format!(
            r#"{{"messages":[ {{"role":"assistant","content":[{model}]}}, {user}],{thinking},"a":1}}"#
        )
    }

    #[test]
    fn a_tool_loop_without_signed_reasoning_disables_thinking() {
        let both = format!("{FOREIGN}, {CALL}");
        for (thinking, then) in [("enabled", "disabled"), ("adaptive", "adaptive")] {
            let (body, losses) = stripped(&conversation(thinking, &both, RESULT));
            assert_eq!(body, conversation(then, CALL, RESULT));
            assert_eq!(losses, 1 + usize::from(thinking != then));
        }
        let user = r#"{"role":"user","content":"Go on."}"#;
        let (body, _) = stripped(&conversation("enabled", &both, user));
        assert_eq!(body, conversation("enabled", CALL, user));
    }

    #[test]
    fn a_turn_of_foreign_signatures_only_becomes_a_text() {
        let user = r#"{"role":"user","content":"Go on."}"#;
        let (body, losses) = stripped(&conversation("adaptive", FOREIGN, user));
        let text = r#"{"type":"text","text":"(continued)"}"#;
        assert_eq!((body, losses), (conversation("adaptive", text, user), 1));
    }

    #[test]
    fn a_text_that_looks_like_a_signature_stays() {
        let text = r#"{"type":"text","text":"b21uaWdsb3QvMSBuCng="}"#;
        let body = conversation("adaptive", text, RESULT);
        assert_eq!(stripped(&body), (body, 0));
        assert_eq!(stripped("[]"), ("[]".to_owned(), 0));
    }
}
