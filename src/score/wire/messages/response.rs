//! Responses of messages upstreams, and what one says.

use serde_json::{Value, json};

use super::super::format::WireFormat;
use super::super::values::{elements, number, text};
use crate::score::facts::ResponseFacts;
use crate::score::said::SaidAnswer;

pub fn write(answer: &SaidAnswer, number: u64) -> Value {
    let mut content = Vec::new();
    if let Some(thinking) = &answer.thinking {
        let signature = match answer.signed {
            true => WireFormat::Messages.signature(),
            false => "",
        };
        content.push(json!({"type": "thinking", "thinking": thinking, "signature": signature}));
    }
    content.extend(text_blocks(answer));
    content.extend(
        answer
            .refusal
            .iter()
            .map(|words| json!({"type": "text", "text": words})),
    );
    let calls = answer.calls.iter().map(
        |call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}),
    );
    content.extend(calls);
    let stop = match answer.finish() {
        "length" => "max_tokens",
        "filtered" => "refusal",
        "stop_sequence" => "stop_sequence",
        _ if answer.refusal.is_some() => "refusal",
        _ if !answer.calls.is_empty() => "tool_use",
        _ => "end_turn",
    };
    let usage = answer.tokens();
    let sequence = (stop == "stop_sequence").then_some("END");
    json!({
        "id": format!("msg_score{number}"), "type": "message", "role": "assistant", "model": "score-messages",
        "content": content, "stop_reason": stop, "stop_sequence": sequence,
        "usage": {
            "input_tokens": usage.input - usage.cached - usage.written,
            "cache_read_input_tokens": usage.cached, "cache_creation_input_tokens": usage.written,
            "output_tokens": usage.output, "output_tokens_details": {"thinking_tokens": usage.reasoning}
        }
    })
}

/// The text; what a source is named for is a block of its own.
fn text_blocks(answer: &SaidAnswer) -> Vec<Value> {
    let Some(whole) = answer.whole_text() else {
        return Vec::new();
    };
    let block = |text: &str| json!({"type": "text", "text": text});
    let Some((citation, (before, after))) = answer
        .citation
        .as_ref()
        .and_then(|citation| Some((citation, whole.split_once(&citation.quote)?)))
    else {
        return vec![block(&whole)];
    };
    let mut cited = block(&citation.quote);
    cited["citations"] = json!([{
        "type": "web_search_result_location", "url": citation.url, "title": citation.title,
        "cited_text": citation.quote, "encrypted_index": "c2NvcmU="
    }]);
    let blocks = [block(before), cited, block(after)];
    blocks
        .into_iter()
        .filter(|block| block["text"] != "")
        .collect()
}

pub fn read(body: &Value) -> ResponseFacts {
    let mut facts = ResponseFacts::default();
    for block in elements(&body["content"]) {
        match text(&block["type"]) {
            "text" => {
                facts.append("text", text(&block["text"]));
                for citation in elements(&block["citations"]) {
                    facts.citation(text(&citation["url"]), text(&block["text"]));
                }
            }
            "thinking" => facts.append("reasoning", text(&block["thinking"])),
            "tool_use" => facts.call(
                Some(text(&block["id"])),
                text(&block["name"]),
                &block["input"],
            ),
            _ => {}
        }
    }
    let finish = match text(&body["stop_reason"]) {
        "end_turn" => "end",
        "max_tokens" => "length",
        "tool_use" => "tool calls",
        "refusal" => "filtered",
        "stop_sequence" => "stop sequence",
        other => other,
    };
    facts.set("finish", finish);
    let usage = &body["usage"];
    let (read, written) = (
        number(&usage["cache_read_input_tokens"]),
        number(&usage["cache_creation_input_tokens"]),
    );
    facts.tokens("input", number(&usage["input_tokens"]) + read + written);
    facts.tokens("output", number(&usage["output_tokens"]));
    facts.tokens("cache reads", read);
    facts.tokens("cache writes", written);
    facts.tokens(
        "reasoning",
        number(&usage["output_tokens_details"]["thinking_tokens"]),
    );
    facts
}
