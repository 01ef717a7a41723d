//! The endpoints that only pass through: completions, moderations and rankings. They use no codec: the mock is there
//! to test them.

use bytes::Bytes;
use serde_json::{Value, json};

use super::audio;
use super::body_hash::{BodyHash, CREATED};
use super::plan::{DeliveryPlan, PlannedContent, ResponsePlan};
use super::request::MockRequest;
use super::response::{EVENTS, MockBody, MockResponse, json_failure};
use crate::formats::PassthroughEndpoint;
use crate::model::{ApiError, Format};
use http::StatusCode;

/// Makes the response of an endpoint.
pub(super) fn respond(
    endpoint: PassthroughEndpoint,
    received: &MockRequest,
) -> (MockResponse, DeliveryPlan) {
    match endpoint {
        PassthroughEndpoint::Speech => return audio::speak(received),
        PassthroughEndpoint::Transcriptions | PassthroughEndpoint::Translations => {
            return audio::transcribe(received);
        }
        _ => {}
    }
    let id = BodyHash::of(&received.body).id(Format::Chat);
    let planned = serde_json::from_slice::<Value>(&received.body)
        .map_err(|error| ApiError::invalid(format!("the body is not valid JSON: {error}")))
        .and_then(|body| {
            let model = body["model"].as_str().unwrap_or("mock").to_owned();
            let plan = ResponsePlan::for_prompt(&texts_of(&body).join(" "), &model)?;
            Ok((plan, body))
        });
    let (plan, body) = match planned {
        Ok(planned) => planned,
        Err(api_error) => {
            let response = MockResponse::api_error(Format::Chat, &api_error, &id);
            return (response, DeliveryPlan::default());
        }
    };
    let response = match &plan.failure {
        Some(failure) => json_failure(failure, Format::Chat, &id),
        None => match endpoint {
            PassthroughEndpoint::Completions => complete(&body, &plan, received, &id),
            PassthroughEndpoint::Moderations => MockResponse::json(moderate(&body, &id)),
            _ => MockResponse::json(rank(&body, &plan, &id)),
        },
    };
    (response, plan.delivery)
}

/// The texts of a request, wherever they stand.
fn texts_of(body: &Value) -> Vec<&str> {
    let fields = ["prompt", "input", "query", "documents"].map(|name| &body[name]);
    let items = fields.into_iter().flat_map(|field| match field {
        Value::Array(items) => items.iter().collect(),
        other => vec![other],
    });
    items.filter_map(Value::as_str).collect()
}

fn words(texts: &[&str]) -> u64 {
    texts
        .iter()
        .map(|text| text.split_whitespace().count() as u64)
        .sum()
}

fn complete(body: &Value, plan: &ResponsePlan, received: &MockRequest, id: &str) -> MockResponse {
    let text = match &plan.content {
        PlannedContent::Echo => received.echo(),
        PlannedContent::Text(text) => text.clone(),
        _ => "mock".to_owned(),
    };
    let (input, output) = match plan.usage {
        Some(usage) => (usage.input, usage.output),
        None => (words(&texts_of(body)), words(&[&text])),
    };
    let usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
    let chunk = |choices: Value| json!({"id": id, "object": "text_completion", "created": CREATED, "model": body["model"], "choices": choices});
    let choice = |text: &str, finish: Value| json!([{"index": 0, "text": text, "logprobs": null, "finish_reason": finish}]);
    if body["stream"] != true {
        let mut whole = chunk(choice(&text, "stop".into()));
        whole["usage"] = usage;
        return MockResponse::json(whole.to_string());
    }
    let event = |data: &str| Bytes::from(format!("data: {data}\n\n"));
    let pieces = text.split_inclusive(' ');
    let mut events: Vec<Bytes> = pieces
        .map(|piece| event(&chunk(choice(piece, Value::Null)).to_string()))
        .collect();
    if !plan.no_end {
        events.push(event(&chunk(choice("", "stop".into())).to_string()));
        if body["stream_options"]["include_usage"] == true {
            let mut last = chunk(json!([]));
            last["usage"] = usage;
            events.push(event(&last.to_string()));
        }
        events.push(event("[DONE]"));
    }
    MockResponse {
        status: StatusCode::OK,
        content_type: EVENTS,
        header: None,
        body: MockBody::Chunks(events),
    }
}

/// Flags what says so.
fn moderate(body: &Value, id: &str) -> String {
    let result = |text: &&str| {
        let flagged = text.contains("violence");
        json!({"flagged": flagged, "categories": {"violence": flagged}, "category_scores": {"violence": f32::from(flagged)}})
    };
    let results: Vec<Value> = texts_of(body).iter().map(result).collect();
    json!({"id": id, "model": body["model"], "results": results}).to_string()
}

/// Ranks documents by how many words they share with the query.
fn rank(body: &Value, plan: &ResponsePlan, id: &str) -> String {
    let query = body["query"].as_str().unwrap_or_default();
    let documents = body["documents"].as_array().cloned().unwrap_or_default();
    let score = |document: &Value| {
        let text = document.as_str().unwrap_or_default();
        let shared = query
            .split_whitespace()
            .filter(|word| text.contains(word))
            .count();
        shared as f64 / query.split_whitespace().count().max(1) as f64
    };
    let mut ranked: Vec<(usize, f64)> = documents.iter().map(score).enumerate().collect();
    ranked.sort_by(|one, other| other.1.total_cmp(&one.1));
    let most = body["top_n"].as_u64().unwrap_or(u64::MAX) as usize;
    let results = ranked.iter().take(most);
    let results: Vec<Value> = results
        .map(|(index, score)| json!({"index": index, "relevance_score": score}))
        .collect();
    let mut ranking = json!({"id": id, "model": body["model"], "results": results});
    if let Some(usage) = plan.usage {
        ranking["usage"] = json!({"total_tokens": usage.input});
    }
    ranking.to_string()
}
