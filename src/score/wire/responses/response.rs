//! Responses of responses upstreams, and what one says.

use serde_json::{Value, json};

use super::super::format::WireFormat;
use super::super::values::{characters, elements, number, text};
use crate::score::facts::ResponseFacts;
use crate::score::said::SaidAnswer;

pub fn write(answer: &SaidAnswer, number: u64) -> Value {
    let mut output = Vec::new();
    if let Some(thinking) = &answer.thinking {
        let encrypted = answer.signed.then(|| WireFormat::Responses.signature());
        output.push(json!({
            "type": "reasoning", "id": format!("rs_score{number}"),
            "summary": [{"type": "summary_text", "text": thinking}], "encrypted_content": encrypted
        }));
    }
    let mut parts = Vec::new();
    if let Some(text) = answer.whole_text() {
        let annotations = answer.citation.iter().map(|citation| {
            let at = text.find(&citation.quote).unwrap_or_default();
            let start = text[..at].chars().count();
            let end = start + citation.quote.chars().count();
            json!({
                "type": "url_citation", "start_index": start, "end_index": end, "title": citation.title,
                "url": citation.url
            })
        });
        let annotations: Vec<Value> = annotations.collect();
        parts.push(json!({"type": "output_text", "text": text, "annotations": annotations}));
    }
    parts.extend(
        answer
            .refusal
            .iter()
            .map(|words| json!({"type": "refusal", "refusal": words})),
    );
    if !parts.is_empty() {
        output.push(json!({
            "type": "message", "id": format!("msg_score{number}"), "role": "assistant", "status": "completed",
            "content": parts
        }));
    }
    for call in &answer.calls {
        output.push(json!({
            "type": "function_call", "id": format!("fc_score{number}_{}", output.len()), "call_id": call.id,
            "name": call.name, "arguments": call.arguments.to_string(), "status": "completed"
        }));
    }
    let reason = match answer.finish() {
        "length" => Some("max_output_tokens"),
        "filtered" => Some("content_filter"),
        _ => None,
    };
    let status = match reason {
        Some(_) => "incomplete",
        None => "completed",
    };
    let usage = answer.tokens();
    json!({
        "id": format!("resp_score{number}"), "object": "response", "created_at": 1_700_000_000,
        "model": "score-responses", "status": status, "error": null,
        "incomplete_details": reason.map(|reason| json!({"reason": reason})), "output": output,
        "parallel_tool_calls": true, "tool_choice": "auto", "tools": [],
        "usage": {
            "input_tokens": usage.input, "output_tokens": usage.output, "total_tokens": usage.input + usage.output,
            "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
            "output_tokens_details": {"reasoning_tokens": usage.reasoning}
        }
    })
}

pub fn read(body: &Value) -> ResponseFacts {
    let mut facts = ResponseFacts::default();
    let mut is_refused = false;
    for item in elements(&body["output"]) {
        match text(&item["type"]) {
            "reasoning" => {
                let shown = match elements(&item["summary"]) {
                    [] => elements(&item["content"]),
                    summary => summary,
                };
                for part in shown {
                    facts.append("reasoning", text(&part["text"]));
                }
            }
            "message" => {
                for part in elements(&item["content"]) {
                    let said = text(&part["text"]);
                    facts.append("text", said);
                    facts.append("text", text(&part["refusal"]));
                    is_refused |= part["type"] == "refusal";
                    for annotation in elements(&part["annotations"]) {
                        let place = (
                            number(&annotation["start_index"]),
                            number(&annotation["end_index"]),
                        );
                        let quote = characters(said, place.0, place.1);
                        facts.citation(text(&annotation["url"]), &quote);
                    }
                }
            }
            "function_call" => {
                facts.call(
                    Some(text(&item["call_id"])),
                    text(&item["name"]),
                    &item["arguments"],
                );
            }
            _ => {}
        }
    }
    let reason = text(&body["incomplete_details"]["reason"]);
    let finish = match (text(&body["status"]), reason) {
        ("completed", _) if facts.has_calls() => "tool calls",
        ("completed", _) if is_refused => "refusal",
        ("completed", _) => "end",
        ("incomplete", "max_output_tokens") => "length",
        ("incomplete", "content_filter") => "filtered",
        (status, _) => status,
    };
    facts.set("finish", finish);
    let usage = &body["usage"];
    facts.tokens("input", number(&usage["input_tokens"]));
    facts.tokens("output", number(&usage["output_tokens"]));
    facts.tokens(
        "cache reads",
        number(&usage["input_tokens_details"]["cached_tokens"]),
    );
    facts.tokens(
        "cache writes",
        number(&usage["input_tokens_details"]["cache_write_tokens"]),
    );
    facts.tokens(
        "reasoning",
        number(&usage["output_tokens_details"]["reasoning_tokens"]),
    );
    facts
}
