//! What other upstreams have sealed, in the history of a messages client.

use super::turns_out::CONTINUED;
use crate::formats::sealed::{is_wrapped, thinned};
use crate::json::{Edit, RawJson, decode_json, from_json};
use crate::model::{FieldLocation, Losses, Setting, Text};

from_json! {
    struct Conversation<'a> {
        "messages" => messages: Vec<RawJson<'a>>,
        "thinking" => thinking: Option<RawJson<'a>>,
    }
}

from_json! {
    struct Message<'a> {
        "content" => content: Option<RawJson<'a>>,
    }
}

from_json! {
    struct Block<'a> {
        "type" => kind: Option<Text<'a>>,
        "signature" => signature: Option<Text<'a>>,
        "data" => data: Option<Text<'a>>,
    }
}

fn is_sealed(block: &str) -> bool {
    decode_json::<Block<'_>>(block)
        .is_ok_and(|block| is_wrapped(block.signature.as_ref()) || is_wrapped(block.data.as_ref()))
}

fn is(kind: &str, block: RawJson<'_>) -> bool {
    let block: Block<'_> = decode_json(block.get()).unwrap_or_default();
    block.kind.as_deref() == Some(kind)
}

fn content_of(message: RawJson<'_>) -> Option<RawJson<'_>> {
    let message: Message<'_> = decode_json(message.get()).unwrap_or_default();
    message.content
}

pub(super) fn take_out(body: &str, losses: &mut Losses) -> Vec<Edit> {
    let conversation: Conversation<'_> = decode_json(body).unwrap_or_default();
    let mut edits = Vec::new();
    let mut last = 0;
    for (turn, message) in (0..).zip(&conversation.messages) {
        let content = content_of(*message);
        let gone = |part| {
            losses.dropped(FieldLocation::Part {
                turn: Some(turn),
                part: Some(part),
            });
        };
        let edit = content.and_then(|blocks| thinned(blocks, body.as_bytes(), is_sealed, gone));
        edits.extend(edit.map(|mut edit| {
            last = turn + 1;
            if edit.with == b"[]" {
                edit.with = format!(r#"[{{"type":"text","text":"{CONTINUED}"}}]"#).into_bytes();
            }
            edit
        }));
    }
    let answered = conversation.messages.last();
    let answered = answered.and_then(|message| content_of(*message));
    let blocks: Vec<RawJson<'_>> = answered
        .and_then(|blocks| decode_json(blocks.get()).ok())
        .unwrap_or_default();
    // A loop of tools that goes on begins with a thought where a budget is given to thoughts.
    let goes_on = blocks.iter().any(|block| is("tool_result", *block));
    let is_bare = goes_on && last as usize + 1 == conversation.messages.len();
    let budget = conversation
        .thinking
        .filter(|thinking| is_bare && is("enabled", *thinking));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::replace;

    fn taken_out(body: &str) -> (String, usize) {
        let mut losses = Losses::default();
        let edits = take_out(body, &mut losses);
        let left = replace(body.as_bytes(), &edits);
        let left = String::from_utf8(left.to_vec()).expect("text");
        (left, losses.0.len())
    }

    const SEALED: &str = r#"{"type":"thinking","thinking":"","signature":"b21uaWdsb3QvMSBuCng="}"#;
    const CALL: &str = r#"{"type":"tool_use","id":"1","name":"f","input":{}}"#;
    const RESULT: &str = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}"#;

    fn conversation(thinking: &str, model: &str, user: &str) -> String {
        let thinking = format!(r#""thinking":{{"type":"{thinking}"}}"#);
        format!(
            r#"{{"messages":[ {{"role":"assistant","content":[{model}]}}, {user}],{thinking},"a":1}}"#
        )
    }

    #[test]
    fn a_loop_that_lost_its_thought_goes_on_without_thinking() {
        let both = format!("{SEALED}, {CALL}");
        for (thinking, then) in [("enabled", "disabled"), ("adaptive", "adaptive")] {
            let (left, lost) = taken_out(&conversation(thinking, &both, RESULT));
            assert_eq!(left, conversation(then, CALL, RESULT));
            assert_eq!(lost, 1 + usize::from(thinking != then));
        }
        let user = r#"{"role":"user","content":"Go on."}"#;
        let (left, _) = taken_out(&conversation("enabled", &both, user));
        assert_eq!(left, conversation("enabled", CALL, user));
    }

    #[test]
    fn a_turn_of_nothing_else_says_something() {
        let user = r#"{"role":"user","content":"Go on."}"#;
        let (left, lost) = taken_out(&conversation("adaptive", SEALED, user));
        let text = r#"{"type":"text","text":"(continued)"}"#;
        assert_eq!((left, lost), (conversation("adaptive", text, user), 1));
    }

    #[test]
    fn what_only_speaks_of_seals_stays() {
        let text = r#"{"type":"text","text":"b21uaWdsb3QvMSBuCng="}"#;
        let body = conversation("adaptive", text, RESULT);
        assert_eq!(taken_out(&body), (body, 0));
        assert_eq!(taken_out("[]"), ("[]".to_owned(), 0));
    }
}
