//! About how many tokens a request has, for models whose upstream cannot be asked.
//!
//! Every vocabulary cuts text in its own way, so this is a rule of thumb: by the kind of each
//! character, with a fixed price for what is no text and for the frame around it.

use crate::model::{
    Arguments, Detail, Json, Media, OutputFormat, Part, PartKind, Request, Source, Tool, Turn,
};

/// Around the whole conversation, and around each turn of it.
const CONVERSATION: u64 = 3;
const TURN: u64 = 4;
/// Around a tool's declaration, a call of it and its result.
const TOOL: u64 = 8;
/// An image of about a megapixel; the least of what is no text.
const PICTURE: u64 = 765;
const GLANCE: u64 = 85;
/// A page of a document, and how many bytes one commonly takes.
const PAGE: u64 = 1000;
const BYTES_OF_PAGE: u64 = 64 << 10;
/// Sound and film: how many bytes last as long as a token.
const BYTES_OF_SOUND: u64 = 1 << 10;

pub(super) fn tokens(request: &Request<'_>) -> u64 {
    let turns: u64 = request.turns.iter().map(of_turn).sum();
    let tools: u64 = request.tools.iter().map(of_tool).sum();
    CONVERSATION + turns + tools + of_shape(&request.output.format)
}

fn of_turn(turn: &Turn<'_>) -> u64 {
    TURN + turn.parts.iter().map(of_part).sum::<u64>()
}

fn of_part(part: &Part<'_>) -> u64 {
    match &part.kind {
        PartKind::Text(text) | PartKind::Refusal(text) => of_text(text),
        // Models do not read again what they thought before.
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

fn of_shape(shape: &OutputFormat<'_>) -> u64 {
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
        // Only whoever fetches it knows how long it is.
        Source::Url(_) | Source::File(_) => 0,
    };
    match media.mime.split('/').next() {
        Some("text") => bytes.div_ceil(4),
        Some("audio" | "video") => bytes.div_ceil(BYTES_OF_SOUND).max(GLANCE),
        Some("application") => bytes.div_ceil(BYTES_OF_PAGE).max(1) * PAGE,
        _ if media.detail == Some(Detail::Low) => GLANCE,
        _ => PICTURE,
    }
}

/// The prices below are in parts of a token, so many to a whole one.
const PARTS: u64 = 12;

fn of_text(text: &str) -> u64 {
    text.chars().map(price).sum::<u64>().div_ceil(PARTS)
}

const fn price(letter: char) -> u64 {
    match (letter, letter.len_utf8()) {
        // Most words are one token, together with the space before them.
        ('a'..='z' | 'A'..='Z' | ' ', _) => 3,
        // Digits and punctuation stand alone or in twos, as do letters of other alphabets.
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
        tokens(&decoded.expect("a request"))
    }

    fn saying(content: Value) -> u64 {
        of(&json!({"model": "m", "messages": [{"role": "user", "content": content}]}))
    }

    const FRAME: u64 = CONVERSATION + TURN;

    #[test]
    fn text_is_priced_by_its_letters() {
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
            assert_eq!(saying(text.into()) - FRAME, tokens, "{text}");
        }
    }

    #[test]
    fn what_is_no_text_has_a_price_of_its_own() {
        let picture = |detail: &str| {
            let url = json!({"url": "data:image/png;base64,AAAA", "detail": detail});
            saying(json!([{"type": "image_url", "image_url": url}])) - FRAME
        };
        assert_eq!((picture("auto"), picture("low")), (PICTURE, GLANCE));
        let paper = |size: u64| {
            let data = "A".repeat((size / 3 * 4) as usize);
            let url = format!("data:application/pdf;base64,{data}");
            let file = json!({"file_data": url, "filename": "a.pdf"});
            saying(json!([{"type": "file", "file": file}])) - FRAME
        };
        assert_eq!((paper(300), paper(3 * BYTES_OF_PAGE)), (PAGE, 3 * PAGE));
        let sound = json!({"data": "A".repeat(4096), "format": "wav"});
        let sound = saying(json!([{"type": "input_audio", "input_audio": sound}]));
        assert_eq!(sound - FRAME, GLANCE);
    }

    #[test]
    fn tools_their_calls_and_results_and_the_shape_of_the_answer_count() {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let of_schema = of_text(&schema.to_string());
        let mut body = json!({"model": "m", "messages": [
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "word"},
        ]});
        let spoken = of(&body);
        assert_eq!(spoken, CONVERSATION + 2 * TURN + 2 * TOOL + 1 + 1 + 1);
        body["tools"] = json!([{"type": "function", "function":
            {"name": "f", "description": "word", "parameters": schema}}]);
        let declared = of(&body);
        assert_eq!(declared - spoken, TOOL + 1 + 1 + of_schema);
        body["response_format"] = json!({"type": "json_schema",
            "json_schema": {"name": "n", "schema": schema}});
        assert_eq!(of(&body) - declared, of_schema);
    }
}
