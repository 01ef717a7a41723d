//! The content of an item that is done, of which a stream that passes through is billed by its length where it breaks off.

use smallvec::SmallVec;

use crate::formats::ContentTokens;
use crate::json::{RawJson, decode_json, from_json};

from_json! {
    struct DoneItem<'a> {
        "content" => content: Option<RawJson<'a>>,
        "summary" => summary: Option<RawJson<'a>>,
        "encrypted_content" => encrypted_content: Option<RawJson<'a>>,
        "arguments" => arguments: Option<RawJson<'a>>,
        "input" => input: Option<RawJson<'a>>,
        "code" => code: Option<RawJson<'a>>,
        "action" => action: Option<RawJson<'a>>,
        "operation" => operation: Option<RawJson<'a>>,
        /// Of an image in base64.
        "result" => result: Option<RawJson<'a>>,
    }
}

from_json! {
    struct DonePart<'a> {
        "type" => kind: Option<RawJson<'a>>,
        "text" => text: Option<RawJson<'a>>,
        "refusal" => refusal: Option<RawJson<'a>>,
    }
}

/// Adds what an item holds beyond the deltas that have come of it; `before`: what had come before the item.
pub(super) fn add_item(item: &str, before: ContentTokens, content: &mut ContentTokens) {
    // What cannot be decoded passes through uncounted.
    let Ok(item) = decode_json::<DoneItem<'_>>(item) else {
        return;
    };
    let mut whole = ContentTokens::default();
    for part in parts(item.content) {
        match part.kind.map(RawJson::get) {
            Some("\"reasoning_text\"") => whole.add_reasoning(part.text),
            _ => whole.add_text(part.text.or(part.refusal)),
        }
    }
    for part in parts(item.summary) {
        whole.add_reasoning(part.text);
    }
    for value in [
        item.arguments,
        item.input,
        item.code,
        item.action,
        item.operation,
    ] {
        whole.add_value(value);
    }
    if item.result.is_some() {
        whole.add_image();
    }
    content.add_rest(whole, before);
    content.add_signature(item.encrypted_content);
}

fn parts(list: Option<RawJson<'_>>) -> SmallVec<[DonePart<'_>; 1]> {
    let parts = list.and_then(|list| decode_json(list.get()).ok());
    parts.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_adds_what_its_deltas_have_not_brought() {
        let mut before = ContentTokens::default();
        before.add_plain_text(&"word".repeat(25));
        let message = r#"{"type":"message","id":"m","content":[{"type":"output_text","text":"four","annotations":[]},
            {"type":"refusal","refusal":"four"}]}"#;
        for (deltas, tokens) in [("", 2), ("four", 2), ("fourfour", 2), ("twelve words", 3)] {
            let mut content = before;
            content.add_plain_text(deltas);
            add_item(message, before, &mut content);
            assert_eq!(content.text_tokens(), 25 + tokens, "{deltas}");
        }
        for (item, text, reasoning, images) in [
            (
                r#"{"type":"function_call","name":"f","arguments":"{}"}"#,
                1,
                0,
                0,
            ),
            (r#"{"type":"custom_tool_call","input":"fourfour"}"#, 2, 0, 0),
            (r#"{"type":"code_interpreter_call","code":"four"}"#, 1, 0, 0),
            (
                r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"fourfour"}]}"#,
                0,
                2,
                0,
            ),
            (
                r#"{"type":"reasoning","content":[{"type":"reasoning_text","text":"four"}],"encrypted_content":"12345"}"#,
                0,
                2,
                0,
            ),
            (
                r#"{"type":"image_generation_call","result":"AAAA"}"#,
                0,
                0,
                765,
            ),
            ("[]", 0, 0, 0),
        ] {
            let mut content = ContentTokens::default();
            add_item(item, ContentTokens::default(), &mut content);
            assert_eq!(
                (
                    content.text_tokens(),
                    content.reasoning_tokens(),
                    content.image_tokens()
                ),
                (text, reasoning, images),
                "{item}"
            );
        }
    }
}
