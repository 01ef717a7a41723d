//! The four formats as a client uses them: a conversation as a request, and the end of its response.

use std::net::SocketAddr;

use memchr::memmem;
use serde_json::{Value, json};

pub const KEY: &str = "bench-key";

const MAX_TOKENS: u32 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    Chat,
    Messages,
    Native,
    Responses,
}

pub const FORMATS: [Format; 4] = [
    Format::Chat,
    Format::Messages,
    Format::Native,
    Format::Responses,
];

/// A request that every format can express.
pub struct Conversation<'a> {
    pub model: &'a str,
    pub stream: bool,
    /// The system prompt, if not empty.
    pub system: &'a str,
    /// Texts of the user and of the assistant in turn; the user's come first and last.
    pub turns: &'a [&'a str],
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ended with the last event of its format.
    Complete,
    /// It was an error, by its status or by an event of the stream.
    Failed,
    /// It ended with neither, so a client could not tell that something is missing.
    Truncated,
}

impl Format {
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Messages => "messages",
            Self::Native => "native",
            Self::Responses => "responses",
        }
    }

    /// The path of a base URL of the format.
    pub fn base_path(self) -> &'static str {
        match self {
            Self::Chat | Self::Responses => "/v1",
            Self::Messages | Self::Native => "",
        }
    }

    /// Encodes a request for a stream; its prompt may hold directives for the mock.
    pub fn encode_stream_request(self, address: SocketAddr, model: &str, prompt: &str) -> Vec<u8> {
        let conversation = Conversation {
            model,
            stream: true,
            system: "",
            turns: &[prompt],
        };
        self.encode_request(address, KEY, &conversation)
    }

    /// Encodes a request with its head, as it is sent.
    pub fn encode_request(
        self,
        address: SocketAddr,
        key: &str,
        conversation: &Conversation<'_>,
    ) -> Vec<u8> {
        let (path, mut body) = self.encode_body(conversation);
        if conversation.stream && self != Self::Native {
            body["stream"] = json!(true);
        }
        encode_post(address, key, &path, &body)
    }

    /// Returns the path and the body of a request, without `stream`.
    fn encode_body(self, conversation: &Conversation<'_>) -> (String, Value) {
        let &Conversation { model, system, .. } = conversation;
        let turn = |(number, text): (usize, &&str)| {
            let is_user = number % 2 == 0;
            match self {
                Self::Native => {
                    json!({"role": if is_user { "user" } else { "model" }, "parts": [{"text": text}]})
                }
                _ => json!({"role": if is_user { "user" } else { "assistant" }, "content": text}),
            }
        };
        let mut turns: Vec<Value> = conversation.turns.iter().enumerate().map(turn).collect();
        let (path, mut body, system_field) = match self {
            Self::Chat => {
                if !system.is_empty() {
                    turns.insert(0, json!({"role": "system", "content": system}));
                }
                let body = json!({"model": model, "messages": turns, "max_tokens": MAX_TOKENS});
                return ("/v1/chat/completions".to_owned(), body);
            }
            Self::Messages => (
                "/v1/messages".to_owned(),
                json!({"model": model, "messages": turns, "max_tokens": MAX_TOKENS}),
                ("system", json!(system)),
            ),
            Self::Native => (
                format!(
                    "/v1beta/models/{model}:{}",
                    native_method(conversation.stream)
                ),
                json!({"contents": turns, "generationConfig": {"maxOutputTokens": MAX_TOKENS}}),
                ("systemInstruction", json!({"parts": [{"text": system}]})),
            ),
            Self::Responses => (
                "/v1/responses".to_owned(),
                json!({"model": model, "input": turns, "max_output_tokens": MAX_TOKENS}),
                ("instructions", json!(system)),
            ),
        };
        if !system.is_empty() {
            let (name, value) = system_field;
            body[name] = value;
        }
        (path, body)
    }

    /// Classifies a response by its status and its last event alone, because the load generator must not need more CPU than the proxies.
    pub fn classify_response(self, status: u16, body: &[u8]) -> Outcome {
        if status != 200 {
            return Outcome::Failed;
        }
        let body = body.trim_ascii_end();
        let last = &body[memmem::rfind(body, b"\n\n").map_or(0, |end| end + 2)..];
        let contains = |text: &str| memmem::find(last, text.as_bytes()).is_some();
        let is_complete = match self {
            Self::Chat => last == b"data: [DONE]",
            Self::Messages => contains("message_stop"),
            Self::Native => contains("finishReason"),
            Self::Responses => contains("response.completed"),
        };
        let is_error = ["\"error\":{", "\"type\":\"error\"", "response.failed"]
            .into_iter()
            .any(contains);
        match (is_complete, is_error) {
            (true, false) => Outcome::Complete,
            (false, true) => Outcome::Failed,
            _ => Outcome::Truncated,
        }
    }
}

/// Encodes a POST request with its head.
pub fn encode_post(address: SocketAddr, key: &str, path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\naccept: */*\r\nuser-agent: omniglot-bench\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head, body].concat().into_bytes()
}

fn native_method(stream: bool) -> &'static str {
    if stream {
        "streamGenerateContent?alt=sse"
    } else {
        "generateContent"
    }
}
