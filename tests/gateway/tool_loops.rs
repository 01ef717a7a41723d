//! Long tool loops whose upstream has another format at every turn: each request is accepted, and every signature
//! returns to the upstream that issued it.

use omniglot_test_support::{
    FORMATS, Gateway, Mock, Response, echoed_request, every_format_config, post, sse_events,
};
use serde_json::{Value, json};

const TURNS: usize = 12;

/// A client's own view of a conversation, in the words of its format.
struct Conversation {
    format: &'static str,
    /// It sends back only what it knows: chat without the fields that are not the format's own,
    /// native without thoughts.
    forgets: bool,
    /// It asks to see the reasoning, where the format has a word for that.
    shown: bool,
    history: Vec<Value>,
}

impl Conversation {
    fn ask(&mut self, prompt: &str) {
        self.history.push(match self.format {
            "native" => json!({"role": "user", "parts": [{"text": prompt}]}),
            _ => json!({"role": "user", "content": prompt}),
        });
    }

    fn request(&self, model: &str, stream: bool) -> (String, Value) {
        let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let history = &self.history;
        match self.format {
            "chat" => (
                "/v1/chat/completions".to_owned(),
                json!({"model": model, "stream": stream, "messages": history, "tools": [
                    {"type": "function", "function": {"name": "look", "parameters": schema}}]}),
            ),
            "messages" => (
                "/v1/messages".to_owned(),
                json!({"model": model, "stream": stream, "max_tokens": 4096, "messages": history,
                    "thinking": {"type": "adaptive"},
                    "tools": [{"name": "look", "input_schema": schema}]}),
            ),
            "responses" => (
                "/v1/responses".to_owned(),
                json!({"model": model, "stream": stream, "store": false, "input": history,
                    "include": ["reasoning.encrypted_content"],
                    "tools": [{"type": "function", "name": "look", "parameters": schema}]}),
            ),
            _ => {
                let verb = match stream {
                    true => "streamGenerateContent?alt=sse",
                    false => "generateContent",
                };
                let tools =
                    json!([{"functionDeclarations": [{"name": "look", "parameters": schema}]}]);
                let thinking = json!({"includeThoughts": self.shown});
                let body = json!({"contents": history, "tools": tools,
                    "generationConfig": {"thinkingConfig": thinking}});
                (format!("/v1beta/models/{model}:{verb}"), body)
            }
        }
    }

    /// Takes a reply with one call into the history, and the result of that call.
    fn go_on(&mut self, response: Value) {
        let result = "sunny";
        match self.format {
            "chat" => {
                let mut message = response;
                if self.forgets {
                    let fields = message.as_object_mut().expect("a message");
                    fields.retain(|key, _| matches!(&**key, "role" | "content" | "tool_calls"));
                }
                let id = message["tool_calls"][0]["id"].clone();
                assert!(is_short(&id), "{id}");
                self.history.push(message);
                self.history
                    .push(json!({"role": "tool", "tool_call_id": id, "content": result}));
            }
            "messages" => {
                let blocks = response.as_array().expect("blocks");
                let call = blocks.iter().find(|block| block["type"] == "tool_use");
                let id = call.expect("a call")["id"].clone();
                assert!(is_short(&id), "{id}");
                self.history
                    .push(json!({"role": "assistant", "content": response}));
                let result = json!({"type": "tool_result", "tool_use_id": id, "content": result});
                self.history
                    .push(json!({"role": "user", "content": [result]}));
            }
            "responses" => {
                let items = response.as_array().expect("items");
                let call = items.iter().find(|item| item["type"] == "function_call");
                let id = call.expect("a call")["call_id"].clone();
                assert!(is_short(&id), "{id}");
                self.history.extend(items.iter().cloned());
                self.history
                    .push(json!({"type": "function_call_output", "call_id": id, "output": result}));
            }
            _ => {
                let mut parts = response;
                if self.forgets {
                    let list = parts.as_array_mut().expect("parts");
                    list.retain(|part| part["thought"] != true);
                }
                self.history.push(json!({"role": "model", "parts": parts}));
                let answer = json!({"name": "look", "response": {"result": result}});
                self.history
                    .push(json!({"role": "user", "parts": [{"functionResponse": answer}]}));
            }
        }
    }
}

fn is_short(id: &Value) -> bool {
    let id = id.as_str().unwrap_or("");
    let letters = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    (1..=40).contains(&id.len()) && id.chars().all(letters)
}

/// What the model said, as its client would send it back.
fn reply_of(format: &str, answer: &Response, stream: bool) -> Value {
    if !stream {
        let response = answer.json();
        return match format {
            "chat" => response["choices"][0]["message"].clone(),
            "messages" => response["content"].clone(),
            "responses" => response["output"].clone(),
            _ => response["candidates"][0]["content"]["parts"].clone(),
        };
    }
    let events = sse_events(answer.text());
    let events = events.iter().map(|(_, data)| data.as_str());
    let events = events.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    match format {
        "chat" => events.fold(json!({"role": "assistant"}), |mut message, event| {
            merge(&mut message, &event["choices"][0]["delta"]);
            message
        }),
        "messages" => blocks(events),
        "responses" => {
            let mut events = events.filter(|event| event["type"] == "response.completed");
            events.next().expect("an end")["response"]["output"].clone()
        }
        _ => {
            let parts = events.flat_map(|event| {
                let parts = &event["candidates"][0]["content"]["parts"];
                parts.as_array().cloned().unwrap_or_default()
            });
            Value::Array(parts.collect())
        }
    }
}

/// Texts grow; lists whose entries have an index grow there; other lists get longer.
fn merge(whole: &mut Value, piece: &Value) {
    match (whole, piece) {
        (Value::Object(whole), Value::Object(piece)) => {
            for (key, value) in piece.iter().filter(|(key, _)| *key != "index") {
                match key.as_str() {
                    "id" | "type" | "role" => {
                        whole.insert(key.clone(), value.clone());
                    }
                    _ => merge(whole.entry(key).or_insert(Value::Null), value),
                }
            }
        }
        (whole @ Value::Null, Value::Array(_)) => {
            *whole = json!([]);
            merge(whole, piece);
        }
        (Value::Array(whole), Value::Array(pieces)) => {
            for piece in pieces {
                let at = piece["index"].as_u64().map(|at| at as usize);
                let at = at.unwrap_or(whole.len());
                while whole.len() <= at {
                    whole.push(json!({}));
                }
                merge(&mut whole[at], piece);
            }
        }
        (Value::String(whole), Value::String(piece)) => whole.push_str(piece),
        (whole @ Value::Null, piece) => *whole = piece.clone(),
        _ => {}
    }
}

fn blocks(events: impl Iterator<Item = Value>) -> Value {
    let mut blocks: Vec<Value> = Vec::new();
    let mut arguments = String::new();
    for event in events {
        let delta = &event["delta"];
        match event["type"].as_str() {
            Some("content_block_start") => blocks.push(event["content_block"].clone()),
            Some("content_block_delta") => {
                let block = blocks.last_mut().expect("an open block");
                for key in ["text", "thinking", "signature"] {
                    merge(&mut block[key], &delta[key]);
                }
                arguments += delta["partial_json"].as_str().unwrap_or("");
                let fields = block.as_object_mut().expect("a block");
                fields.retain(|_, value| !value.is_null());
            }
            Some("content_block_stop") if !arguments.is_empty() => {
                let block = blocks.last_mut().expect("an open block");
                block["input"] = serde_json::from_str(&arguments).expect("JSON");
                arguments.clear();
            }
            _ => {}
        }
    }
    Value::Array(blocks)
}

async fn runs(gateway: &Gateway, format: &'static str, forgets: bool, shown: bool, stream: bool) {
    let mut conversation = Conversation {
        format,
        forgets,
        shown,
        history: Vec::new(),
    };
    for turn in 0..TURNS {
        let upstream = FORMATS[turn % FORMATS.len()].0;
        conversation.ask(&format!("Turn {turn} mock:tool mock:thinking mock:proofs"));
        let (path, body) = conversation.request(&format!("same-{upstream}"), stream);
        let answer = post(gateway.url(&path), body.to_string()).await;
        let case = format!(
            "{format} forgets={forgets} shown={shown} stream={stream} turn {turn} at {upstream}"
        );
        assert_eq!(answer.status, 200, "{case}: {}", answer.text());
        // Its own format's signatures of all earlier turns, and the mock has checked each.
        let expected = match upstream {
            "chat" => 0,
            _ => turn / FORMATS.len(),
        };
        let response = reply_of(format, &answer, stream);
        let message = format!("proofs={expected}.");
        assert!(
            response.to_string().contains(&message),
            "{case}: not {message} in {response}"
        );
        // Reasoning passes through as it came.
        if format == "native" && upstream != "native" {
            let is_shown = response.to_string().contains(r#""thought":true"#);
            assert_eq!(is_shown, shown, "{case}: {response}");
        }
        conversation.go_on(response);
    }
}

#[tokio::test]
async fn every_signature_returns_to_its_issuer_in_every_client_format() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for (format, _) in FORMATS {
        for stream in [false, true] {
            runs(&gateway, format, false, true, stream).await;
        }
    }
}

#[tokio::test]
async fn a_client_that_omits_reasoning_loses_no_signature() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for stream in [false, true] {
        runs(&gateway, "chat", true, true, stream).await;
        runs(&gateway, "native", true, true, stream).await;
    }
}

#[tokio::test]
async fn a_native_client_that_does_not_ask_for_reasoning_gets_its_signatures_alone() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    for stream in [false, true] {
        runs(&gateway, "native", false, false, stream).await;
    }
}

/// What an upstream of another format has signed is carried in the client's own fields, and upstreams of that
/// format would refuse it there.
#[tokio::test]
async fn signatures_of_another_upstream_are_not_forwarded() {
    let mock = Mock::start();
    let gateway = Gateway::start(&every_format_config(mock.address));
    // `omniglot/1 n`, a line feed and `signature`; for native the same of messages.
    let sealed = "b21uaWdsb3QvMSBuCnNpZ25hdHVyZQ==";
    for (format, _) in FORMATS {
        let text = match format {
            "chat" => vec![
                json!({"role": "assistant", "content": "Words.", "reasoning_details": [
                {"type": "reasoning.text", "text": "Hm.", "signature": sealed, "format": "omniglot-v1", "index": 0}]}),
            ],
            "messages" => vec![json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": sealed},
                {"type": "redacted_thinking", "data": sealed},
                {"type": "text", "text": "Words.", "cache_control": {"type": "ephemeral"}}]})],
            "responses" => vec![
                json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": sealed}),
                json!({"role": "assistant", "content": "Words."}),
            ],
            _ => vec![json!({"role": "model", "parts": [
                {"text": "Hm.", "thought": true, "thoughtSignature": "b21uaWdsb3QvMSBtCnNpZ25hdHVyZQ=="},
                {"text": "Words.", "thoughtSignature": "b21uaWdsb3QvMSBtCnNpZ25hdHVyZQ=="},
                {"text": "", "thoughtSignature": "b21uaWdsb3QvMSBtCnNpZ25hdHVyZQ=="}]})],
        };
        let mut conversation = Conversation {
            format,
            forgets: false,
            shown: false,
            history: Vec::new(),
        };
        conversation.ask("Hello.");
        conversation.history.extend(text);
        conversation.ask("mock:echo");
        let (path, body) = conversation.request(&format!("same-{format}"), false);
        let response = post(gateway.url(&path), body.to_string()).await;
        let sent = echoed_request(format, &response)["body"].to_string();
        assert!(sent.contains("Words.") && sent.contains("Hello."), "{sent}");
        assert!(!sent.contains("b21uaWdsb3Qv"), "{format}: {sent}");
        // All else is as the client wrote it.
        assert_eq!(
            sent.contains("cache_control"),
            format == "messages",
            "{sent}"
        );
        let dropped = match format {
            "messages" => "messages[1].content[0], messages[1].content[1]",
            "native" => "contents[1].parts[0], contents[1].parts[1], contents[1].parts[2]",
            "responses" => "input[1]",
            _ => "messages[1]",
        };
        assert_eq!(response.header("x-omniglot-dropped"), dropped, "{format}");
    }
}
