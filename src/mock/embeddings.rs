//! The embeddings endpoints. They do not use the codecs of the formats: the mock is there to test them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::body_hash::BodyHash;
use super::endpoint::MockEndpoint;
use super::plan::{DeliveryPlan, PlannedContent, ResponsePlan};
use super::request::MockRequest;
use super::response::{MockResponse, json_failure};
use crate::formats::{EmbedMethod, Operation};
use crate::model::{ApiError, Format};

const DEFAULT_DIMENSIONS: u64 = 16;
const MAX_DIMENSIONS: u64 = 4096;

const OPENAI_FIELDS: &[&str] = &["model", "input", "dimensions", "encoding_format", "user"];
const NATIVE_FIELDS: &[&str] = &[
    "model",
    "content",
    "taskType",
    "title",
    "outputDimensionality",
];

/// What is asked for.
struct MockEmbedRequest {
    model: String,
    inputs: Vec<MockEmbedInput>,
    base64: bool,
}

pub(super) struct MockEmbedInput {
    /// The text, or the tokens as text.
    pub text: String,
    pub tokens: u64,
    pub dimensions: u64,
}

/// Makes the response to a request for embeddings.
pub(super) fn embed(
    endpoint: &MockEndpoint,
    received: &MockRequest,
) -> (MockResponse, DeliveryPlan) {
    let id = BodyHash::of(&received.body).id(endpoint.format);
    let planned = decode(endpoint, &received.body).and_then(|request| {
        let texts = request.inputs.iter().map(|input| input.text.as_str());
        let texts: Vec<&str> = texts.collect();
        let plan = ResponsePlan::for_prompt(&texts.join(" "), &request.model)?;
        Ok((plan, request))
    });
    let (plan, request) = match planned {
        Ok(planned) => planned,
        Err(api_error) => {
            let response = MockResponse::api_error(endpoint.format, &api_error, &id);
            return (response, DeliveryPlan::default());
        }
    };
    let response = match &plan.failure {
        Some(failure) => json_failure(failure, endpoint.format, &id),
        None => {
            let mut body = match endpoint.format {
                Format::Native => encode_native(&request, &plan, endpoint.operation),
                _ => encode_openai(&request, &plan),
            };
            if plan.content == PlannedContent::Echo {
                body["mock_request"] = received.echo().into();
            }
            MockResponse::json(body.to_string())
        }
    };
    (response, plan.delivery)
}

fn decode(endpoint: &MockEndpoint, body: &[u8]) -> Result<MockEmbedRequest, ApiError> {
    let body: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| ApiError::invalid(format!("the body is not valid JSON: {error}")))?;
    match endpoint.format {
        Format::Native => decode_native(endpoint, &body),
        _ => decode_openai(&body),
    }
}

fn decode_openai(body: &Map<String, Value>) -> Result<MockEmbedRequest, ApiError> {
    refuse_unknown(body, OPENAI_FIELDS)?;
    let dimensions = dimensions(body.get("dimensions"))?;
    let text = |text: &str| MockEmbedInput {
        text: text.to_owned(),
        tokens: text.split_whitespace().count() as u64,
        dimensions,
    };
    let tokens = |tokens: &[Value]| MockEmbedInput {
        text: json!(tokens).to_string(),
        tokens: tokens.len() as u64,
        dimensions,
    };
    let inputs = match body.get("input") {
        Some(Value::String(only)) => vec![text(only)],
        Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
            items.iter().filter_map(Value::as_str).map(text).collect()
        }
        Some(Value::Array(items)) if items.iter().all(Value::is_u64) => vec![tokens(items)],
        Some(Value::Array(items)) if items.iter().all(Value::is_array) => {
            let lists = items.iter().filter_map(Value::as_array);
            lists.map(|list| tokens(list)).collect()
        }
        _ => return Err(ApiError::invalid("'input' is not of a known kind").at("input")),
    };
    let base64 = match body.get("encoding_format").and_then(Value::as_str) {
        None | Some("float") => false,
        Some("base64") => true,
        Some(_) => {
            return Err(
                ApiError::invalid("'encoding_format' is float or base64").at("encoding_format")
            );
        }
    };
    let model = body.get("model").and_then(Value::as_str);
    Ok(MockEmbedRequest {
        model: model.unwrap_or("mock").to_owned(),
        inputs,
        base64,
    })
}

fn decode_native(
    endpoint: &MockEndpoint,
    body: &Map<String, Value>,
) -> Result<MockEmbedRequest, ApiError> {
    let model = endpoint.path_model.clone().unwrap_or_default();
    let inputs = if endpoint.operation == Operation::Embed(EmbedMethod::Single) {
        vec![native_input(body)?]
    } else {
        refuse_unknown(body, &["requests"])?;
        let requests = body.get("requests").and_then(Value::as_array);
        let requests = requests.ok_or_else(|| ApiError::invalid("requests: at least one"))?;
        let input = |request: &Value| {
            let expected = format!("models/{model}");
            if request["model"] != *expected {
                let message = format!("model must be {expected}, got {}", request["model"]);
                return Err(ApiError::invalid(message).at("model"));
            }
            native_input(request.as_object().unwrap_or(&Map::new()))
        };
        requests.iter().map(input).collect::<Result<_, _>>()?
    };
    Ok(MockEmbedRequest {
        model,
        inputs,
        base64: false,
    })
}

fn native_input(request: &Map<String, Value>) -> Result<MockEmbedInput, ApiError> {
    refuse_unknown(request, NATIVE_FIELDS)?;
    let parts = request
        .get("content")
        .and_then(|content| content["parts"].as_array());
    let texts = parts.into_iter().flatten();
    let texts: Option<Vec<&str>> = texts.map(|part| part["text"].as_str()).collect();
    let texts = texts.filter(|texts| !texts.is_empty());
    let text = texts.ok_or_else(|| ApiError::invalid("content.parts: text only").at("content"))?;
    let text = text.concat();
    Ok(MockEmbedInput {
        tokens: text.split_whitespace().count() as u64,
        text,
        dimensions: dimensions(request.get("outputDimensionality"))?,
    })
}

pub(super) fn refuse_unknown(fields: &Map<String, Value>, known: &[&str]) -> Result<(), ApiError> {
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => Err(ApiError::invalid(format!("unknown field {name}")).at(name.as_str())),
    }
}

pub(super) fn dimensions(value: Option<&Value>) -> Result<u64, ApiError> {
    match value.map(Value::as_u64) {
        None => Ok(DEFAULT_DIMENSIONS),
        Some(Some(dimensions @ 1..=MAX_DIMENSIONS)) => Ok(dimensions),
        Some(_) => Err(ApiError::invalid(format!(
            "the dimensions are a number from 1 to {MAX_DIMENSIONS}"
        ))),
    }
}

/// Makes a vector of length one from the hash of a text.
pub(super) fn vector(input: &MockEmbedInput) -> Vec<f32> {
    let byte = |place: u64| {
        let block = Sha256::new_with_prefix(&input.text).chain_update((place / 32).to_le_bytes());
        block.finalize()[(place % 32) as usize]
    };
    let numbers = (0..input.dimensions).map(|place| f32::from(byte(place)) - 127.5);
    let numbers: Vec<f32> = numbers.collect();
    let length = numbers.iter().map(|number| number * number).sum::<f32>();
    numbers
        .iter()
        .map(|number| number / length.sqrt())
        .collect()
}

fn tokens(request: &MockEmbedRequest, plan: &ResponsePlan) -> u64 {
    let counted = request.inputs.iter().map(|input| input.tokens).sum();
    plan.usage.map_or(counted, |usage| usage.input)
}

fn encode_openai(request: &MockEmbedRequest, plan: &ResponsePlan) -> Value {
    let encode = |vector: Vec<f32>| match request.base64 {
        false => json!(vector),
        true => {
            let bytes: Vec<u8> = vector
                .iter()
                .flat_map(|float| float.to_le_bytes())
                .collect();
            STANDARD.encode(bytes).into()
        }
    };
    let data = request.inputs.iter().enumerate().map(|(index, input)| {
        json!({"object": "embedding", "index": index, "embedding": encode(vector(input))})
    });
    let tokens = tokens(request, plan);
    json!({
        "object": "list",
        "data": data.collect::<Vec<_>>(),
        "model": request.model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    })
}

/// Encodes a response, which has a usage only where a directive asks for it.
fn encode_native(request: &MockEmbedRequest, plan: &ResponsePlan, operation: Operation) -> Value {
    let values = |input: &MockEmbedInput| json!({"values": vector(input)});
    let mut body = match (operation, &request.inputs[..]) {
        (Operation::Embed(EmbedMethod::Single), [only]) => json!({"embedding": values(only)}),
        (_, inputs) => json!({"embeddings": inputs.iter().map(values).collect::<Vec<_>>()}),
    };
    if plan.usage.is_some() {
        body["usageMetadata"] = json!({"promptTokenCount": tokens(request, plan)});
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_depends_on_its_text_alone_and_has_the_length_one() {
        let input = |text: &str, dimensions| MockEmbedInput {
            text: text.to_owned(),
            tokens: 1,
            dimensions,
        };
        let long = vector(&input("cat", 100));
        assert_eq!(long.len(), 100);
        let length: f32 = long.iter().map(|number| number * number).sum();
        assert!((length - 1.0).abs() < 1e-4, "{length}");
        assert_eq!(long, vector(&input("cat", 100)));
        assert_ne!(long, vector(&input("dog", 100)));
    }
}
