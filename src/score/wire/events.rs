//! Server-sent events: those that the upstream sends, and what a client reads of them.

use serde_json::Value;

use super::errors::SeenError;

/// A stream of an upstream, event by event.
#[derive(Debug, Clone, Default)]
pub struct StreamScript {
    /// Each with its blank line.
    pub frames: Vec<String>,
    /// The frame that says how the response ends; a stream that is cut before it is a failure.
    pub finish: usize,
}

impl StreamScript {
    /// Adds an event without a name.
    pub fn data(&mut self, data: &Value) {
        self.frames.push(format!("data: {data}\n\n"));
    }

    /// Adds an event that is named like its type.
    pub fn event(&mut self, data: &Value) {
        let name = data["type"].as_str().unwrap_or_default();
        self.frames.push(format!("event: {name}\ndata: {data}\n\n"));
    }

    /// The event that is added next says how the response ends.
    pub fn finish_follows(&mut self) {
        self.finish = self.frames.len();
    }
}

/// An event as a client reads it.
#[derive(Debug, Clone)]
pub struct SseEvent {
    pub name: Option<String>,
    pub data: String,
}

/// What a client read of a stream.
#[derive(Debug, Clone, Default)]
pub struct SseEvents {
    pub events: Vec<SseEvent>,
    /// Lines that are neither data nor names: comments, or no events at all.
    pub other_lines: Vec<String>,
    /// The connection ended in the middle of the body.
    pub is_cut: bool,
}

impl SseEvents {
    /// Reads a body. An event counts when its blank line has come.
    pub fn read(body: &str, is_cut: bool) -> SseEvents {
        let mut read = SseEvents {
            is_cut,
            ..SseEvents::default()
        };
        let (mut name, mut data) = (None, Vec::new());
        for line in body.split('\n') {
            let line = line.strip_suffix('\r').unwrap_or(line);
            if line.is_empty() {
                if !data.is_empty() {
                    let event = SseEvent {
                        name: name.take(),
                        data: data.join("\n"),
                    };
                    read.events.push(event);
                    data.clear();
                }
                name = None;
            } else if let Some(rest) = line.strip_prefix("data:") {
                data.push(rest.strip_prefix(' ').unwrap_or(rest));
            } else if let Some(rest) = line.strip_prefix("event:") {
                name = Some(rest.trim().to_owned());
            } else {
                read.other_lines.push(line.to_owned());
            }
        }
        read
    }

    /// What a stream is that ended without its end.
    pub fn unfinished(&self) -> Gathered {
        match self.is_cut {
            true => Gathered::Cut,
            false => Gathered::Broken("the stream ends cleanly, without its last event".to_owned()),
        }
    }
}

impl SseEvent {
    pub fn json(&self) -> Result<Value, Gathered> {
        serde_json::from_str(&self.data).map_err(|_| {
            let start: String = self.data.chars().take(80).collect();
            Gathered::Broken(format!("an event is no JSON: {start}"))
        })
    }
}

/// What a stream became.
#[derive(Debug)]
pub enum Gathered {
    /// A whole response, as its JSON form would be.
    Whole(Value),
    /// An error event of the format ended it.
    Error(SeenError),
    /// The connection ended in the middle: a client knows that something is missing.
    Cut,
    /// It broke the rules of the format; a client may take it for whole.
    Broken(String),
}
