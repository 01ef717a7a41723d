//! Estimates the tokens of a request, for models whose upstream cannot count them.
//!
//! Every tokenizer splits text in its own way, so this is a rule of thumb: by the kind of each
//! character, with a fixed number for media and for the structure of a conversation.

use crate::model::{
    Arguments, Detail, Json, Media, OutputFormat, Part, PartKind, Request, Source, Tool, Turn,
};

/// Tokens of the conversation itself, and of each turn.
const CONVERSATION: u64 = 3;
const TURN: u64 = 4;
/// Tokens of a declared tool, of a call and of a result.
const TOOL: u64 = 8;
/// Tokens of an image of about a megapixel, and the least of other media.
const IMAGE: u64 = 765;
const LOW_DETAIL: u64 = 85;
/// Tokens of a page of a document, and its usual size.
const PAGE: u64 = 1000;
const BYTES_OF_PAGE: u64 = 64 << 10;
/// Bytes of audio or video per token.
const BYTES_OF_AUDIO: u64 = 1 << 10;

/// Estimates the tokens of a request.
pub(super) fn estimate_tokens(request: &Request<'_>) -> u64 {
    let turns: u64 = request.turns.iter().map(of_turn).sum();
    let tools: u64 = request.tools.iter().map(of_tool).sum();
    CONVERSATION + turns + tools + of_output_format(&request.output.format)
}

fn of_turn(turn: &Turn<'_>) -> u64 {
    TURN + turn.parts.iter().map(of_part).sum::<u64>()
}

fn of_part(part: &Part<'_>) -> u64 {
    match &part.kind {
        PartKind::Text(text) | PartKind::Refusal(text) => of_text(text),
        // Reasoning of earlier turns is not part of the prompt.
        PartKind::Reasoning { .. } => 0,
        PartKind::Media(media) => of_media(media),
        PartKind::Call(call) => {
            let arguments = match &call.arguments {
                Arguments::Text(text) => of_text(text),
                Arguments::Tree(tree) => of_json(tree),
            };
            TOOL + of_text(&call.name) + arguments
        }
        PartKind::Result(result) => TOOL + result.parts.iter().map(of_part).sum::<u64>(),
    }
}

fn of_tool(tool: &Tool<'_>) -> u64 {
    let description = tool.description.as_deref().map_or(0, of_text);
    let schema = tool.schema.as_ref().map_or(0, of_json);
    TOOL + of_text(&tool.name) + description + schema
}

fn of_output_format(shape: &OutputFormat<'_>) -> u64 {
    match shape {
        OutputFormat::Text | OutputFormat::Json => 0,
        OutputFormat::Schema { schema, .. } | OutputFormat::Enum(schema) => of_json(schema),
    }
}

fn of_json(value: &Json<'_>) -> u64 {
    of_text(&serde_json::to_string(value).expect("a JSON value always serialises"))
}

fn of_media(media: &Media<'_>) -> u64 {
    let bytes = match &media.source {
        Source::Plain(text) => return of_text(text),
        Source::Base64(data) => data.len() as u64 / 4 * 3,
        // The size is unknown until it is fetched.
        Source::Url(_) | Source::File(_) => 0,
    };
    match media.mime.split('/').next() {
        Some("text") => bytes.div_ceil(4),
        Some("audio" | "video") => bytes.div_ceil(BYTES_OF_AUDIO).max(LOW_DETAIL),
        Some("application") => bytes.div_ceil(BYTES_OF_PAGE).max(1) * PAGE,
        _ if media.detail == Some(Detail::Low) => LOW_DETAIL,
        _ => IMAGE,
    }
}

/// The numbers below are in fractions of a token, this many to a whole one.
const FRACTIONS: u64 = 12;

fn of_text(text: &str) -> u64 {
    text.chars().map(fractions).sum::<u64>().div_ceil(FRACTIONS)
}

/// Returns the fractions of a token that a character takes.
const fn fractions(letter: char) -> u64 {
    match (letter, letter.len_utf8()) {
        // Most words are one token, together with the space before them.
        ('a'..='z' | 'A'..='Z' | ' ', _) => 3,
        // Digits, punctuation and letters of other alphabets: one or two to a token.
        (_, 1 | 2) => 6,
        // Chinese, Japanese, Korean, the scripts of India, typographic signs.
        (_, 3) => 12,
        // Pictograms and rare scripts.
        _ => 24,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::RequestHead;
    use crate::model::{Format, Losses};
    use serde_json::{Value, json};

    fn of(body: &Value) -> u64 {
        let body = body.to_string();
        let codec = Format::Chat.codec();
        let decoded = codec.decode_request(
            &RequestHead::default(),
            body.as_bytes(),
            &mut Losses::default(),
        );
        estimate_tokens(&decoded.expect("a request"))
    }

    fn of_content(content: Value) -> u64 {
        of(&json!({"model": "m", "messages": [{"role": "user", "content": content}]}))
    }

    const EMPTY: u64 = CONVERSATION + TURN;

    #[test]
    fn text_is_estimated_by_its_characters() {
        for (text, tokens) in [
            ("", 0),
            ("a", 1),
            ("The quick brown fox jumps over the lazy dog.", 12),
            ("2026-01-01", 5),
            ("Съешь ещё", 5),
            ("今日は世界", 5),
            ("🦀🦀", 4),
        ] {
            assert_eq!(of_text(text), tokens, "{text}");
            assert_eq!(of_content(text.into()) - EMPTY, tokens, "{text}");
        }
    }

    #[test]
    fn media_have_their_own_estimates() {
        let image = |detail: &str| {
            let url = json!({"url": "data:image/png;base64,AAAA", "detail": detail});
            of_content(json!([{"type": "image_url", "image_url": url}])) - EMPTY
        };
        assert_eq!((image("auto"), image("low")), (IMAGE, LOW_DETAIL));
        let document = |size: u64| {
            let data = "A".repeat((size / 3 * 4) as usize);
            let url = format!("data:application/pdf;base64,{data}");
            let file = json!({"file_data": url, "filename": "a.pdf"});
            of_content(json!([{"type": "file", "file": file}])) - EMPTY
        };
        assert_eq!(
            (document(300), document(3 * BYTES_OF_PAGE)),
            (PAGE, 3 * PAGE)
        );
        let audio = json!({"data": "A".repeat(4096), "format": "wav"});
        let audio = of_content(json!([{"type": "input_audio", "input_audio": audio}]));
        assert_eq!(audio - EMPTY, LOW_DETAIL);
    }

    #[test]
    fn tools_calls_results_and_the_output_format_count() {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let of_schema = of_text(&schema.to_string());
        let mut body = json!({"model": "m", "messages": [
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "word"},
        ]});
        let calls = of(&body);
        assert_eq!(calls, CONVERSATION + 2 * TURN + 2 * TOOL + 1 + 1 + 1);
        body["tools"] = json!([{"type": "function", "function":
            {"name": "f", "description": "word", "parameters": schema}}]);
        let declared = of(&body);
        assert_eq!(declared - calls, TOOL + 1 + 1 + of_schema);
        body["response_format"] = json!({"type": "json_schema",
            "json_schema": {"name": "n", "schema": schema}});
        assert_eq!(of(&body) - declared, of_schema);
    }
}
