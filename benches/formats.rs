//! The four formats as a client uses them: a conversation as a request, and the end of its response.

use std::net::SocketAddr;

use memchr::memmem;
use serde_json::{Value, json};

pub const KEY: &str = "bench-key";

const MOST_TOKENS: u32 = 4096;

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

/// What is asked, in no format's words: nothing that any other format could not say.
pub struct Question<'a> {
    pub model: &'a str,
    pub stream: bool,
    /// Empty: none.
    pub system: &'a str,
    /// The user's and the assistant's in turn, the user's first and last.
    pub turns: &'a [&'a str],
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With the format's own mark of an end.
    Whole,
    /// With an error, as a status or inside the stream.
    Told,
    /// Neither: a client could not tell.
    Silent,
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

    /// What a base URL of the format ends in.
    pub fn base(self) -> &'static str {
        match self {
            Self::Chat | Self::Responses => "/v1",
            Self::Messages | Self::Native => "",
        }
    }

    /// A request for a stream as it goes over the wire; the prompt's words tell the mock what to do.
    pub fn request(self, address: SocketAddr, model: &str, prompt: &str) -> Vec<u8> {
        let question = Question {
            model,
            stream: true,
            system: "",
            turns: &[prompt],
        };
        self.wire(address, KEY, &question)
    }

    pub fn wire(self, address: SocketAddr, key: &str, question: &Question<'_>) -> Vec<u8> {
        let (path, mut body) = self.parts(question);
        if question.stream && self != Self::Native {
            body["stream"] = json!(true);
        }
        post(address, key, &path, &body)
    }

    fn parts(self, question: &Question<'_>) -> (String, Value) {
        let &Question { model, system, .. } = question;
        let turn = |(number, text): (usize, &&str)| {
            let is_user = number % 2 == 0;
            match self {
                Self::Native => {
                    json!({"role": if is_user { "user" } else { "model" }, "parts": [{"text": text}]})
                }
                _ => json!({"role": if is_user { "user" } else { "assistant" }, "content": text}),
            }
        };
        let mut turns: Vec<Value> = question.turns.iter().enumerate().map(turn).collect();
        let (path, mut body, system_field) = match self {
            Self::Chat => {
                if !system.is_empty() {
                    turns.insert(0, json!({"role": "system", "content": system}));
                }
                let body = json!({"model": model, "messages": turns, "max_tokens": MOST_TOKENS});
                return ("/v1/chat/completions".to_owned(), body);
            }
            Self::Messages => (
                "/v1/messages".to_owned(),
                json!({"model": model, "messages": turns, "max_tokens": MOST_TOKENS}),
                ("system", json!(system)),
            ),
            Self::Native => (
                format!("/v1beta/models/{model}:{}", native_call(question.stream)),
                json!({"contents": turns, "generationConfig": {"maxOutputTokens": MOST_TOKENS}}),
                ("systemInstruction", json!({"parts": [{"text": system}]})),
            ),
            Self::Responses => (
                "/v1/responses".to_owned(),
                json!({"model": model, "input": turns, "max_output_tokens": MOST_TOKENS}),
                ("instructions", json!(system)),
            ),
        };
        if !system.is_empty() {
            let (name, value) = system_field;
            body[name] = value;
        }
        (path, body)
    }

    /// Looks at the last event only: the load must not cost more than what it loads.
    pub fn ending(self, status: u16, body: &[u8]) -> Ending {
        if status != 200 {
            return Ending::Told;
        }
        let body = body.trim_ascii_end();
        let last = &body[memmem::rfind(body, b"\n\n").map_or(0, |end| end + 2)..];
        let holds = |mark: &str| memmem::find(last, mark.as_bytes()).is_some();
        let is_whole = match self {
            Self::Chat => last == b"data: [DONE]",
            Self::Messages => holds("message_stop"),
            Self::Native => holds("finishReason"),
            Self::Responses => holds("response.completed"),
        };
        let is_told = ["\"error\":{", "\"type\":\"error\"", "response.failed"]
            .into_iter()
            .any(holds);
        match (is_whole, is_told) {
            (true, false) => Ending::Whole,
            (false, true) => Ending::Told,
            _ => Ending::Silent,
        }
    }
}

/// A request as it goes over the wire.
pub fn post(address: SocketAddr, key: &str, path: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\naccept: */*\r\nuser-agent: omniglot-bench\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    [head, body].concat().into_bytes()
}

fn native_call(stream: bool) -> &'static str {
    if stream {
        "streamGenerateContent?alt=sse"
    } else {
        "generateContent"
    }
}
