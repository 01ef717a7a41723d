//! The four formats as a client speaks them: a request for a stream, and how its answer may end.

use std::net::SocketAddr;

use clap::ValueEnum;
use serde_json::{Value, json};

pub const KEY: &str = "soak-key";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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

    /// A request as it goes over the wire; the prompt's words tell the mock what to do.
    pub fn request(self, address: SocketAddr, model: &str, prompt: &str) -> Vec<u8> {
        let (path, body) = self.parts(model, prompt);
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        [head, body].concat().into_bytes()
    }

    fn parts(self, model: &str, prompt: &str) -> (String, Value) {
        let turns = json!([{"role": "user", "content": prompt}]);
        match self {
            Self::Chat => (
                "/v1/chat/completions".to_owned(),
                json!({"model": model, "messages": turns, "stream": true}),
            ),
            Self::Messages => (
                "/v1/messages".to_owned(),
                json!({"model": model, "max_tokens": 4096, "messages": turns, "stream": true}),
            ),
            Self::Native => (
                format!("/v1beta/models/{model}:streamGenerateContent?alt=sse"),
                json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]}),
            ),
            Self::Responses => (
                "/v1/responses".to_owned(),
                json!({"model": model, "input": prompt, "stream": true}),
            ),
        }
    }

    pub fn ending(self, status: u16, body: &[u8]) -> Ending {
        if status != 200 {
            return Ending::Told;
        }
        let text = String::from_utf8_lossy(body);
        let last = text.trim_end().rsplit("\n\n").next().unwrap_or_default();
        let is_whole = match self {
            Self::Chat => last == "data: [DONE]",
            Self::Messages => last.contains("message_stop"),
            Self::Native => last.contains("finishReason"),
            Self::Responses => last.contains("response.completed"),
        };
        let is_told = ["\"error\":{", "\"type\":\"error\"", "response.failed"]
            .iter()
            .any(|mark| last.contains(mark));
        match (is_whole, is_told) {
            (true, false) => Ending::Whole,
            (false, true) => Ending::Told,
            _ => Ending::Silent,
        }
    }
}
