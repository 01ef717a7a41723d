//! The kinds of work: the request for every leg, and the check of a complete response.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::formats::{Ending, Format, KEY, Question, post};

const SYSTEM: &str = "You are the assistant of a small library. Answer in plain sentences, name the shelf when you know \
    it, and say so when you do not.";
const TURNS: [&str; 2] = [
    "Do you have anything on the tides of the North Sea?",
    "Two books, both on shelf 12: an atlas and a history of dikes.",
];
const LAST: &str =
    "Which of them would you give to a reader of fourteen who likes maps more than dates, and why?";

/// One kind of work; the words of the prompt by which the mock knows what to answer.
#[derive(Clone, Debug)]
pub struct Work {
    pub title: String,
    /// Pieces of content in a stream; none: the answer is JSON.
    pub events: Option<usize>,
    wish: String,
    /// Bytes of text that the request holds beside the conversation.
    filler: usize,
}

impl Work {
    pub fn json() -> Self {
        Self {
            title: "JSON".to_owned(),
            events: None,
            wish: String::new(),
            filler: 0,
        }
    }

    /// As fast as it can be sent.
    pub fn stream(events: usize) -> Self {
        Self {
            title: format!("stream of {events} events at full speed"),
            events: Some(events),
            wish: format!("mock:events={events}"),
            filler: 0,
        }
    }

    pub fn paced(events: usize) -> Self {
        Self {
            title: format!("stream of {events} events, 5 ms apart"),
            events: Some(events),
            wish: format!("mock:events={events} mock:pace=5ms"),
            filler: 0,
        }
    }

    /// A short answer to a request with so much text in it.
    pub fn long_request(bytes: usize) -> Self {
        Self {
            wish: "mock:text=Yes.".to_owned(),
            filler: bytes,
            ..Self::json()
        }
    }

    /// An answer with about so much text in it: a word of the mock and its space are five bytes on average.
    pub fn long_reply(bytes: usize) -> Self {
        Self {
            wish: format!("mock:long={}", (bytes / 5).max(1)),
            ..Self::json()
        }
    }
}

/// A request as it goes over the wire, built once and sent many times.
pub struct Request {
    pub client: Format,
    events: Option<usize>,
    bytes: Vec<u8>,
}

impl Request {
    pub fn new(work: &Work, client: Format, model: &str, key: &str, address: SocketAddr) -> Self {
        let last = format!("{LAST} {}", work.wish);
        let line =
            "The tide comes in twice a day, and twice a day it goes out again; nobody asks why.\n";
        let filled = [TURNS[0], "\n", &line.repeat(work.filler / line.len())].concat();
        let first = if work.filler > 0 { &filled } else { TURNS[0] };
        let question = Question {
            model,
            stream: work.events.is_some(),
            system: SYSTEM,
            turns: &[first, TURNS[1], &last],
        };
        Self {
            client,
            events: work.events,
            bytes: client.wire(address, key, &question),
        }
    }

    /// A chat request with so many tools: little to carry for what there is to translate.
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
            bytes: post(address, KEY, "/v1/chat/completions", &body),
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn is_streamed(&self) -> bool {
        self.events.is_some()
    }

    /// The check of every answer: cheap, so that the load leaves the cores to the processes under test.
    pub fn check_end(&self, answer: &[u8]) -> Result<()> {
        if self.is_streamed() {
            let ending = self.client.ending(200, answer);
            ensure!(ending == Ending::Whole, "a stream without its last event");
        } else {
            let end = answer.trim_ascii_end().last();
            ensure!(end == Some(&b'}'), "a JSON answer without its end");
        }
        Ok(())
    }

    /// The check of the first answer of a leg: that it is what was asked for.
    pub fn check_whole(&self, answer: &[u8]) -> Result<()> {
        self.check_end(answer)?;
        let Some(events) = self.events else {
            let answer: Value = serde_json::from_slice(answer)?;
            let text = reply_text(self.client, &answer).and_then(Value::as_str);
            ensure!(
                text.is_some_and(|text| !text.is_empty()),
                "no text in {answer}"
            );
            return Ok(());
        };
        let mut deltas = 0;
        for line in str::from_utf8(answer)?.lines() {
            let Some(data) = line.strip_prefix("data: ").filter(|data| *data != "[DONE]") else {
                continue;
            };
            let event: Value = serde_json::from_str(data).with_context(|| data.to_owned())?;
            let text = delta_text(self.client, &event).and_then(Value::as_str);
            deltas += usize::from(text.is_some_and(|text| !text.is_empty()));
        }
        ensure!(
            deltas == events,
            "{deltas} pieces of content instead of {events}"
        );
        Ok(())
    }
}

fn reply_text(client: Format, reply: &Value) -> Option<&Value> {
    reply.pointer(match client {
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
