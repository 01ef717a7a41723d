//! The content of requests and responses as spans show it, cut to a length. Only `telemetry.content` has it made.

use serde_json::{Value, json};

use crate::model::{Media, Part, PartKind, Request, Response, Role, Source, Turn};

/// How many bytes of text one attribute holds, about.
const MAX_TEXT: usize = 16 << 10;
/// How many messages and parts it has at most.
const MAX_PARTS: usize = 256;

/// The text of `gen_ai.input.messages`: as many of the last messages as fit.
pub fn input_messages(request: &Request<'_>) -> Option<String> {
    let mut budget = Budget::default();
    let turns = request.turns.iter().rev();
    let turns = turns.filter(|turn| !is_system(turn));
    let mut messages: Vec<Value> = Vec::new();
    for turn in turns {
        if budget.is_empty() {
            break;
        }
        let is_result = |part: &Part<'_>| matches!(part.kind, PartKind::Result(_));
        let role = match turn.role {
            Role::Model => "assistant",
            _ if turn.parts.iter().any(is_result) => "tool",
            _ => "user",
        };
        messages.push(json!({"role": role, "parts": budget.parts(&turn.parts)}));
    }
    messages.reverse();
    to_text(messages)
}

/// The text of `gen_ai.system_instructions`.
pub fn system_instructions(request: &Request<'_>) -> Option<String> {
    let mut budget = Budget::default();
    let turns = request.turns.iter().filter(|turn| is_system(turn));
    let parts = turns.flat_map(|turn| budget.parts(&turn.parts)).collect();
    to_text(parts)
}

/// The text of `gen_ai.output.messages`: one for each choice.
pub fn output_messages(response: &Response<'_>) -> Option<String> {
    let mut budget = Budget::default();
    let choices = response.choices.iter().map(|choice| {
        let parts = budget.parts(&choice.parts);
        json!({"role": "assistant", "parts": parts, "finish_reason": choice.finish.name()})
    });
    to_text(choices.collect())
}

const fn is_system(turn: &Turn<'_>) -> bool {
    matches!(turn.role, Role::System | Role::Developer)
}

fn to_text(values: Vec<Value>) -> Option<String> {
    (!values.is_empty()).then(|| Value::Array(values).to_string())
}

/// What may still be written.
struct Budget {
    text: usize,
    parts: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget {
            text: MAX_TEXT,
            parts: MAX_PARTS,
        }
    }
}

impl Budget {
    const fn is_empty(&self) -> bool {
        self.text == 0 || self.parts == 0
    }

    fn parts(&mut self, parts: &[Part<'_>]) -> Vec<Value> {
        let mut written = Vec::new();
        for part in parts {
            if self.is_empty() {
                break;
            }
            self.parts -= 1;
            written.push(self.part(&part.kind));
        }
        written
    }

    fn part(&mut self, part: &PartKind<'_>) -> Value {
        match part {
            PartKind::Text(text) | PartKind::Refusal(text) => {
                json!({"type": "text", "content": self.cut(text)})
            }
            PartKind::Reasoning { text, .. } => {
                json!({"type": "reasoning", "content": self.cut(text)})
            }
            PartKind::Call(call) => {
                let arguments = self.cut(&call.arguments.to_text());
                // Arguments that were cut, and those of custom tools, are no JSON.
                let arguments =
                    serde_json::from_str(&arguments).unwrap_or(Value::String(arguments));
                let (id, name) = (self.cut_known(call.id.as_deref()), self.cut(&call.name));
                json!({"type": "tool_call", "id": id, "name": name, "arguments": arguments})
            }
            PartKind::Result(result) => {
                let id = self.cut_known(result.id.as_deref());
                json!({"type": "tool_call_response", "id": id, "response": self.cut_result(&result.parts)})
            }
            PartKind::Media(media) => self.media(media),
        }
    }

    /// Media without its bytes.
    fn media(&mut self, media: &Media<'_>) -> Value {
        let mime = self.cut(&media.mime);
        let modality = mime.split('/').next().unwrap_or_default();
        match &media.source {
            Source::Url(url) => {
                // The query may hold a signature.
                let uri = self.cut(url.split('?').next().unwrap_or_default());
                json!({"type": "uri", "modality": modality, "uri": uri})
            }
            Source::File(id) => {
                json!({"type": "file", "modality": modality, "file_id": self.cut(id)})
            }
            _ => json!({"type": "blob", "modality": modality, "mime_type": mime}),
        }
    }

    fn cut_known(&mut self, text: Option<&str>) -> Option<String> {
        text.map(|text| self.cut(text))
    }

    /// As much of the texts of a result as fits, each in lines of its own.
    fn cut_result(&mut self, parts: &[Part<'_>]) -> String {
        let texts = parts.iter().filter_map(|part| match &part.kind {
            PartKind::Text(text) => Some(&**text),
            _ => None,
        });
        let mut written = String::new();
        for (number, text) in texts.enumerate() {
            if number > 0 {
                written.push('\n');
            }
            written += &self.cut(text);
            if self.text == 0 {
                break;
            }
        }
        written
    }

    /// As much of a text as fits.
    fn cut(&mut self, text: &str) -> String {
        if text.len() <= self.text {
            self.text -= text.len();
            return text.to_owned();
        }
        let end = text.floor_char_boundary(self.text);
        self.text = 0;
        format!("{}…", &text[..end])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::RequestHead;
    use crate::model::{Format, Losses};

    #[test]
    fn names_ids_and_media_types_are_cut_like_text() {
        let long = "x".repeat(1 << 20);
        let bodies = [
            json!({"model": "m", "messages": [{"role": "assistant", "tool_calls": [
                {"id": long, "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": long, "content": long}]}),
            json!({"model": "m", "messages": [{"role": "assistant", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": long, "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": long}, {"type": "text", "text": long}]}]}),
            json!({"model": "m", "messages": [{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": format!("data:image/{long};base64,aGk=")}}]}]}),
        ];
        for body in bodies {
            let body = body.to_string();
            let codec = Format::Chat.codec();
            let head = RequestHead::default();
            let request = codec.decode_request(&head, body.as_bytes(), &mut Losses::default());
            let request = request.expect("a request");
            let messages = input_messages(&request).expect("messages");
            assert!(messages.len() < 2 * MAX_TEXT, "{}", messages.len());
        }
    }
}
