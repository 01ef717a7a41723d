//! Responses of native upstreams, and what one says.

use serde_json::{Value, json};

use super::super::format::WireFormat;
use super::super::values::{elements, number, put, text};
use crate::score::facts::ResponseFacts;
use crate::score::said::SaidAnswer;

pub fn write(answer: &SaidAnswer, number: u64) -> Value {
    let mut parts = Vec::new();
    if let Some(thinking) = &answer.thinking {
        parts.push(json!({"text": thinking, "thought": true}));
    }
    let whole = answer.whole_text();
    parts.extend(
        whole
            .iter()
            .chain(&answer.refusal)
            .map(|text| json!({"text": text})),
    );
    for call in &answer.calls {
        parts.push(json!({"functionCall": {"name": call.name, "args": call.arguments}}));
    }
    if answer.signed {
        // The first call carries it, or the last part.
        let at = parts.len() - answer.calls.len().max(1);
        parts[at]["thoughtSignature"] = json!(WireFormat::Native.signature());
    }
    let finish = match answer.finish() {
        "length" => "MAX_TOKENS",
        "filtered" => "SAFETY",
        _ => "STOP",
    };
    let content = json!({"role": "model", "parts": parts});
    let mut candidate = json!({"content": content, "finishReason": finish, "index": 0});
    if let (Some(citation), Some(text)) = (&answer.citation, &whole) {
        let start = text.find(&citation.quote).unwrap_or_default();
        let segment = json!({"startIndex": start, "endIndex": start + citation.quote.len(), "text": citation.quote});
        candidate["groundingMetadata"] = json!({
            "webSearchQueries": ["score"],
            "groundingChunks": [{"web": {"uri": citation.url, "title": citation.title}}],
            "groundingSupports": [{"segment": segment, "groundingChunkIndices": [0]}]
        });
    }
    let usage = answer.tokens();
    let mut metadata = json!({
        "promptTokenCount": usage.input, "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": usage.input + usage.output
    });
    put(
        &mut metadata,
        "cachedContentTokenCount",
        (usage.cached > 0).then_some(usage.cached),
    );
    put(
        &mut metadata,
        "thoughtsTokenCount",
        (usage.reasoning > 0).then_some(usage.reasoning),
    );
    json!({
        "candidates": [candidate], "usageMetadata": metadata, "modelVersion": "score-native",
        "responseId": format!("score{number}")
    })
}

pub fn read(body: &Value) -> ResponseFacts {
    let mut facts = ResponseFacts::default();
    let candidate = &body["candidates"][0];
    let parts = elements(&candidate["content"]["parts"]);
    let mut said = String::new();
    for part in parts {
        let words = text(&part["text"]);
        match part["thought"] == true {
            true => facts.append("reasoning", words),
            false => said.push_str(words),
        }
        let call = &part["functionCall"];
        if call.is_object() {
            facts.call(call["id"].as_str(), text(&call["name"]), &call["args"]);
        }
    }
    facts.set("text", said.clone());
    let grounding = &candidate["groundingMetadata"];
    for support in elements(&grounding["groundingSupports"]) {
        let segment = &support["segment"];
        let range = number(&segment["startIndex"]) as usize..number(&segment["endIndex"]) as usize;
        let quote = said.get(range).unwrap_or("(no place in the text)");
        for index in elements(&support["groundingChunkIndices"]) {
            let chunk = &grounding["groundingChunks"][number(index) as usize];
            facts.citation(text(&chunk["web"]["uri"]), quote);
        }
    }
    let finish = match text(&candidate["finishReason"]) {
        "STOP" if facts.has_calls() => "tool calls",
        "STOP" => "end",
        "MAX_TOKENS" => "length",
        "SAFETY" | "PROHIBITED_CONTENT" | "BLOCKLIST" | "RECITATION" => "filtered",
        other => other,
    };
    facts.set("finish", finish);
    let usage = &body["usageMetadata"];
    let thoughts = number(&usage["thoughtsTokenCount"]);
    facts.tokens("input", number(&usage["promptTokenCount"]));
    facts.tokens("output", number(&usage["candidatesTokenCount"]) + thoughts);
    facts.tokens("cache reads", number(&usage["cachedContentTokenCount"]));
    facts.tokens("reasoning", thoughts);
    facts
}
