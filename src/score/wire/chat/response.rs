//! Responses of chat upstreams, and what one says.

use serde_json::{Value, json};

use super::super::values::{characters, elements, number, put, text};
use crate::score::facts::ResponseFacts;
use crate::score::said::SaidAnswer;

pub fn write(answer: &SaidAnswer, number: u64) -> Value {
    let calls = answer.calls.iter().map(|call| {
        let function = json!({"name": call.name, "arguments": call.arguments.to_string()});
        json!({"id": call.id, "type": "function", "function": function})
    });
    let calls: Vec<Value> = calls.collect();
    let has_calls = !calls.is_empty();
    let content = answer.whole_text();
    let mut message = json!({"role": "assistant", "content": content, "refusal": answer.refusal});
    put(&mut message, "tool_calls", has_calls.then_some(calls));
    put(&mut message, "reasoning_content", answer.thinking.clone());
    if let (Some(citation), Some(text)) = (&answer.citation, &content) {
        let at = text.find(&citation.quote).unwrap_or_default();
        let start = text[..at].chars().count();
        let end = start + citation.quote.chars().count();
        let cited = json!({"start_index": start, "end_index": end, "title": citation.title, "url": citation.url});
        message["annotations"] = json!([{"type": "url_citation", "url_citation": cited}]);
    }
    let finish = match answer.finish() {
        "length" => "length",
        "filtered" => "content_filter",
        _ if has_calls => "tool_calls",
        _ => "stop",
    };
    let usage = answer.tokens();
    json!({
        "id": format!("chatcmpl-score{number}"), "object": "chat.completion", "created": 1_700_000_000,
        "model": "score-chat",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": null}],
        "usage": {
            "prompt_tokens": usage.input, "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.written},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning}
        }
    })
}

pub fn read(body: &Value) -> ResponseFacts {
    let mut facts = ResponseFacts::default();
    let choice = &body["choices"][0];
    let message = &choice["message"];
    let content = match &message["content"] {
        Value::String(text) => text.clone(),
        parts => elements(parts)
            .iter()
            .map(|part| text(&part["text"]))
            .collect(),
    };
    facts.set("text", content.clone());
    facts.append("text", text(&message["refusal"]));
    let thinking = ["reasoning_content", "reasoning"].map(|field| text(&message[field]));
    facts.set(
        "reasoning",
        thinking
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default(),
    );
    for call in elements(&message["tool_calls"]) {
        let function = &call["function"];
        let id = Some(text(&call["id"]));
        facts.call(id, text(&function["name"]), &function["arguments"]);
    }
    for annotation in elements(&message["annotations"]) {
        let cited = &annotation["url_citation"];
        let quote = characters(
            &content,
            number(&cited["start_index"]),
            number(&cited["end_index"]),
        );
        facts.citation(text(&cited["url"]), &quote);
    }
    let finish = match text(&choice["finish_reason"]) {
        "length" => "length",
        "content_filter" => "filtered",
        "tool_calls" => "tool calls",
        "stop" if message["refusal"].is_string() => "refusal",
        "stop" => "end",
        other => other,
    };
    facts.set("finish", finish);
    let usage = &body["usage"];
    let prompt = &usage["prompt_tokens_details"];
    facts.tokens("input", number(&usage["prompt_tokens"]));
    facts.tokens("output", number(&usage["completion_tokens"]));
    facts.tokens("cache reads", number(&prompt["cached_tokens"]));
    // Some spell cache writes as their upstream does.
    let writes = [
        &prompt["cache_write_tokens"],
        &prompt["cache_creation_tokens"],
        &usage["cache_creation_input_tokens"],
    ];
    facts.tokens(
        "cache writes",
        writes.into_iter().map(number).max().unwrap_or_default(),
    );
    facts.tokens(
        "reasoning",
        number(&usage["completion_tokens_details"]["reasoning_tokens"]),
    );
    facts
}
