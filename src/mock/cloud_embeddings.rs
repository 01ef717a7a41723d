//! Embeddings as clouds have them: `:predict` of Vertex AI, and Titan and Cohere on AWS Bedrock.

use serde_json::{Map, Value, json};

use super::body_hash::BodyHash;
use super::embeddings::{MockEmbedInput, dimensions, refuse_unknown, vector};
use super::plan::{DeliveryPlan, ResponsePlan};
use super::request::MockRequest;
use super::response::{MockResponse, json_failure};
use crate::model::{ApiError, Format};

/// Tells whether a model on Bedrock makes embeddings.
pub(super) fn is_embedding_model(model: &str) -> bool {
    model.contains("titan-embed") || model.contains("cohere.embed")
}

/// Makes the response of a model on Bedrock.
pub(super) fn invoke(model: &str, received: &MockRequest) -> (MockResponse, DeliveryPlan) {
    let is_titan = model.contains("titan-embed");
    let decode = |body: &Map<String, Value>| match is_titan {
        true => {
            refuse_unknown(body, &["inputText", "dimensions", "normalize"])?;
            let text = body.get("inputText").and_then(Value::as_str);
            let text = text.ok_or_else(|| ApiError::invalid("inputText: Field required"))?;
            Ok(vec![input(text, dimensions(body.get("dimensions"))?)])
        }
        false => {
            refuse_unknown(body, &["texts", "input_type", "output_dimension"])?;
            if body.get("input_type").is_none() {
                return Err(ApiError::invalid("input_type: Field required"));
            }
            let length = dimensions(body.get("output_dimension"))?;
            texts(body.get("texts"), length)
        }
    };
    respond(
        Format::Messages,
        model,
        received,
        decode,
        |inputs, tokens| match is_titan {
            true => json!({"embedding": vector(&inputs[0]), "inputTextTokenCount": tokens}),
            false => {
                let vectors: Vec<_> = inputs.iter().map(vector).collect();
                json!({"id": "mock", "embeddings": vectors, "response_type": "embeddings_floats"})
            }
        },
    )
}

/// Makes the response of a model on Vertex AI.
pub(super) fn predict(model: &str, received: &MockRequest) -> (MockResponse, DeliveryPlan) {
    let decode = |body: &Map<String, Value>| {
        refuse_unknown(body, &["instances", "parameters"])?;
        let parameters = body.get("parameters");
        let length = parameters.and_then(|it| it.get("outputDimensionality"));
        let length = dimensions(length)?;
        let instances = body.get("instances").and_then(Value::as_array);
        let instances = instances.into_iter().flatten();
        let contents: Vec<Value> = instances
            .map(|instance| instance["content"].clone())
            .collect();
        texts(Some(&contents.into()), length)
    };
    respond(Format::Native, model, received, decode, |inputs, _| {
        let predictions = inputs.iter().map(|input| {
            json!({"embeddings": {"values": vector(input), "statistics": {"token_count": input.tokens, "truncated": false}}})
        });
        json!({"predictions": predictions.collect::<Vec<_>>()})
    })
}

fn respond(
    format: Format,
    model: &str,
    received: &MockRequest,
    decode: impl Fn(&Map<String, Value>) -> Result<Vec<MockEmbedInput>, ApiError>,
    encode: impl Fn(&[MockEmbedInput], u64) -> Value,
) -> (MockResponse, DeliveryPlan) {
    let id = BodyHash::of(&received.body).id(format);
    let body = serde_json::from_slice(&received.body)
        .map_err(|error| ApiError::invalid(format!("the body is not valid JSON: {error}")));
    let planned = body.and_then(|body| decode(&body)).and_then(|inputs| {
        let texts: Vec<&str> = inputs.iter().map(|input| input.text.as_str()).collect();
        let plan = ResponsePlan::for_prompt(&texts.join(" "), model)?;
        Ok((plan, inputs))
    });
    match planned {
        Ok((plan, inputs)) => {
            let tokens = inputs.iter().map(|input| input.tokens).sum();
            let tokens = plan.usage.map_or(tokens, |usage| usage.input);
            let response = match &plan.failure {
                Some(failure) => json_failure(failure, format, &id),
                None => MockResponse::json(encode(&inputs, tokens).to_string()),
            };
            (response, plan.delivery)
        }
        Err(api_error) => {
            let response = MockResponse::api_error(format, &api_error, &id);
            (response, DeliveryPlan::default())
        }
    }
}

fn input(text: &str, dimensions: u64) -> MockEmbedInput {
    MockEmbedInput {
        text: text.to_owned(),
        tokens: text.split_whitespace().count() as u64,
        dimensions,
    }
}

fn texts(list: Option<&Value>, dimensions: u64) -> Result<Vec<MockEmbedInput>, ApiError> {
    let items = list
        .and_then(Value::as_array)
        .filter(|items| !items.is_empty());
    let items = items.ok_or_else(|| ApiError::invalid("at least one text is required"))?;
    let read = |item: &Value| {
        let text = item
            .as_str()
            .ok_or_else(|| ApiError::invalid("a text is no text"))?;
        Ok(input(text, dimensions))
    };
    items.iter().map(read).collect()
}
