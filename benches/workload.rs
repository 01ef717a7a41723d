//! The workloads: the request that every variant sends, and the check that a response is complete.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::formats::{Conversation, Format, KEY, Outcome, encode_post};

const SYSTEM: &str = "You are the assistant of a small library. Answer in plain sentences, name the shelf when you know \
    it, and say so when you do not.";
const TURNS: [&str; 2] = [
    "Do you have anything on the tides of the North Sea?",
    "Two books, both on shelf 12: an atlas and a history of dikes.",
];
const LAST: &str =
    "Which of them would you give to a reader of fourteen who likes maps more than dates, and why?";

/// A kind of request and response; directives in the prompt determine what the mock sends.
#[derive(Clone, Debug)]
pub struct Workload {
    pub title: String,
    /// The number of content deltas in a stream; `None` if the response is JSON.
    pub events: Option<usize>,
    directives: String,
    /// Bytes of text that are added to the conversation of the request.
    filler: usize,
}

impl Workload {
    pub fn json() -> Self {
        Self {
            title: "JSON".to_owned(),
            events: None,
            directives: String::new(),
            filler: 0,
        }
    }

    /// A stream that the mock sends as fast as it can.
    pub fn stream(events: usize) -> Self {
        Self {
            title: format!("stream of {events} events at full speed"),
            events: Some(events),
            directives: format!("mock:events={events}"),
            filler: 0,
        }
    }

    /// A stream with a delta every 5 ms.
    pub fn paced(events: usize) -> Self {
        Self {
            title: format!("stream of {events} events, 5 ms apart"),
            events: Some(events),
            directives: format!("mock:events={events} mock:pace=5ms"),
            filler: 0,
        }
    }

    /// A request with `bytes` bytes of text, and a short response.
    pub fn long_request(bytes: usize) -> Self {
        Self {
            directives: "mock:text=Yes.".to_owned(),
            filler: bytes,
            ..Self::json()
        }
    }

    /// A response with about `bytes` bytes of text: a word of the mock and its space are five bytes on average.
    pub fn long_response(bytes: usize) -> Self {
        Self {
            directives: format!("mock:long={}", (bytes / 5).max(1)),
            ..Self::json()
        }
    }
}

/// An encoded request, which is built once and sent many times.
pub struct Request {
    pub client: Format,
    events: Option<usize>,
    bytes: Vec<u8>,
}

impl Request {
    pub fn new(
        workload: &Workload,
        client: Format,
        model: &str,
        key: &str,
        address: SocketAddr,
    ) -> Self {
        let last = format!("{LAST} {}", workload.directives);
        let line =
            "The tide comes in twice a day, and twice a day it goes out again; nobody asks why.\n";
        let filled = [TURNS[0], "\n", &line.repeat(workload.filler / line.len())].concat();
        let first = if workload.filler > 0 {
            &filled
        } else {
            TURNS[0]
        };
        let conversation = Conversation {
            model,
            stream: workload.events.is_some(),
            system: SYSTEM,
            turns: &[first, TURNS[1], &last],
        };
        Self {
            client,
            events: workload.events,
            bytes: client.encode_request(address, key, &conversation),
        }
    }

    /// Encodes a chat request with `count` tools, which take much CPU to translate for their size.
    pub fn with_tools(count: usize, model: &str, address: SocketAddr) -> Self {
        let tool = |number: usize| {
            let parameters = json!({
                "type": "object",
                "properties": {
                    "title": {"type": "string", "description": "The exact title"},
                    "limit": {"type": ["integer", "null"], "minimum": 1, "maximum": 50},
                    "shelf": {"$ref": "#/$defs/shelf"},
                    "others": {"type": "array", "items": {"$ref": "#/$defs/shelf"}},
                },
                "required": ["title"],
                "additionalProperties": false,
                "$defs": {"shelf": {
                    "type": "object",
                    "properties": {"room": {"const": "north"}, "row": {"type": "integer"}},
                }},
            });
            let name = format!("search_{number}");
            json!({"type": "function", "function": {"name": name, "parameters": parameters}})
        };
        let body = json!({
            "model": model,
            "messages": [{"role": "user", "content": LAST}],
            "tools": (0..count).map(tool).collect::<Vec<Value>>(),
        });
        Self {
            client: Format::Chat,
            events: None,
            bytes: encode_post(address, KEY, "/v1/chat/completions", &body),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn is_streamed(&self) -> bool {
        self.events.is_some()
    }

    /// Checks the end of a response: cheap, so that the load generator leaves the cores to the processes under test.
    pub fn check_end(&self, response: &[u8]) -> Result<()> {
        if self.is_streamed() {
            let outcome = self.client.classify_response(200, response);
            ensure!(
                outcome == Outcome::Complete,
                "a stream without its last event"
            );
        } else {
            let end = response.trim_ascii_end().last();
            ensure!(end == Some(&b'}'), "a JSON response without its end");
        }
        Ok(())
    }

    /// Checks the content of a response, as is done for the first one of every variant.
    pub fn check_content(&self, response: &[u8]) -> Result<()> {
        self.check_end(response)?;
        let Some(events) = self.events else {
            let response: Value = serde_json::from_slice(response)?;
            let text = response_text(self.client, &response).and_then(Value::as_str);
            ensure!(
                text.is_some_and(|text| !text.is_empty()),
                "no text in {response}"
            );
            return Ok(());
        };
        let mut deltas = 0;
        for line in str::from_utf8(response)?.lines() {
            let Some(data) = line.strip_prefix("data: ").filter(|data| *data != "[DONE]") else {
                continue;
            };
            let event: Value = serde_json::from_str(data).with_context(|| data.to_owned())?;
            let text = delta_text(self.client, &event).and_then(Value::as_str);
            deltas += usize::from(text.is_some_and(|text| !text.is_empty()));
        }
        ensure!(
            deltas == events,
            "{deltas} content deltas instead of {events}"
        );
        Ok(())
    }
}

fn response_text(client: Format, response: &Value) -> Option<&Value> {
    response.pointer(match client {
        Format::Chat => "/choices/0/message/content",
        Format::Messages => "/content/0/text",
        Format::Native => "/candidates/0/content/parts/0/text",
        Format::Responses => "/output/0/content/0/text",
    })
}

fn delta_text(client: Format, event: &Value) -> Option<&Value> {
    match client {
        Format::Chat => event.pointer("/choices/0/delta/content"),
        Format::Messages => event.pointer("/delta/text"),
        Format::Native => event.pointer("/candidates/0/content/parts/0/text"),
        Format::Responses => {
            let is_delta = event["type"] == "response.output_text.delta";
            event.get("delta").filter(|_| is_delta)
        }
    }
}
