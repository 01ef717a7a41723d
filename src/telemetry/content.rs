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
                json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments})
            }
            PartKind::Result(result) => {
                let texts = result.parts.iter().filter_map(|part| match &part.kind {
                    PartKind::Text(text) => Some(&**text),
                    _ => None,
                });
                let text = texts.collect::<Vec<_>>().join("\n");
                json!({"type": "tool_call_response", "id": result.id, "response": self.cut(&text)})
            }
            PartKind::Media(media) => self.media(media),
        }
    }

    /// Media without its bytes.
    fn media(&mut self, media: &Media<'_>) -> Value {
        let modality = media.mime.split('/').next().unwrap_or_default();
        match &media.source {
            Source::Url(url) => {
                // The query may hold a signature.
                let uri = self.cut(url.split('?').next().unwrap_or_default());
                json!({"type": "uri", "modality": modality, "uri": uri})
            }
            Source::File(id) => {
                json!({"type": "file", "modality": modality, "file_id": self.cut(id)})
            }
            _ => json!({"type": "blob", "modality": modality, "mime_type": media.mime}),
        }
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
