//! What a client makes of a response: a whole response, an error it can read, or something broken.

use serde_json::Value;

use super::http_client::ClientReply;
use super::wire::{Gathered, SseEvents, WireFormat};

/// What a client sees.
#[derive(Debug)]
pub enum ClientView {
    Whole(Value),
    /// An error that has words.
    Error {
        status: u16,
        message: String,
        /// What is not as the client's format has it.
        flaw: Option<String>,
    },
    /// The connection ended in the middle of the body.
    Cut,
    /// Not of the client's format.
    Broken(String),
    /// No response, or no end of it.
    Nothing(String),
}

/// Reads a response as a client of the format would.
pub fn view(
    client: WireFormat,
    is_stream: bool,
    reply: &Result<ClientReply, String>,
) -> ClientView {
    let reply = match reply {
        Ok(reply) => reply,
        Err(reason) => return ClientView::Nothing(reason.clone()),
    };
    let status = reply.status;
    let text = String::from_utf8_lossy(&reply.body);
    if status >= 400 || !is_stream {
        return json_view(client, status, &text, reply.is_cut);
    }
    let kind = reply
        .headers
        .get("content-type")
        .and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return ClientView::Broken(format!("a stream of the type {kind:?}"));
    }
    match client.gather(&SseEvents::read(&text, reply.is_cut)) {
        Gathered::Whole(body) => ClientView::Whole(body),
        Gathered::Error(error) => ClientView::Error {
            status,
            message: error.message,
            flaw: error.flaw,
        },
        Gathered::Cut => ClientView::Cut,
        Gathered::Broken(reason) => ClientView::Broken(reason),
    }
}

fn json_view(client: WireFormat, status: u16, text: &str, is_cut: bool) -> ClientView {
    if is_cut {
        return ClientView::Cut;
    }
    let Ok(body) = serde_json::from_str::<Value>(text) else {
        let start: String = text.chars().take(80).collect();
        return ClientView::Broken(format!("status {status}, no JSON: {start}"));
    };
    if status >= 400 {
        return match client.read_error(&body) {
            Ok(error) => ClientView::Error {
                status,
                message: error.message,
                flaw: error.flaw,
            },
            Err(reason) => ClientView::Broken(format!("status {status}: {reason}")),
        };
    }
    match body["error"].is_null() && has_answer(client, &body) {
        true => ClientView::Whole(body),
        false => ClientView::Broken(format!("status {status}, and no response in it")),
    }
}

fn has_answer(client: WireFormat, body: &Value) -> bool {
    match client {
        WireFormat::Chat => body["choices"][0]["message"].is_object(),
        WireFormat::Messages => body["content"].is_array() && body["type"] == "message",
        WireFormat::Native => body["candidates"][0].is_object(),
        WireFormat::Responses => body["output"].is_array() && body["object"] == "response",
    }
}

impl ClientView {
    /// What the client saw, in one line.
    pub fn in_words(&self) -> String {
        match self {
            ClientView::Whole(_) => "a whole response".to_owned(),
            ClientView::Error {
                status, message, ..
            } => format!("an error, {status}: {message}"),
            ClientView::Cut => "a response that was cut".to_owned(),
            ClientView::Broken(reason) | ClientView::Nothing(reason) => reason.clone(),
        }
    }
}
