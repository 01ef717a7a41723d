//! Embeddings by clouds whose bodies are those of no format: Vertex AI, and Titan and Cohere on AWS Bedrock.

use serde::Serialize;

use super::UpstreamTarget;
use super::decode_response_body;
use super::embedding_vector::{broken, check_lengths, decode_vector};
use super::json_bytes::to_json_bytes;
use super::token_count::TokenCount;
use crate::json::{RawJson, decode_json, from_json};
use crate::model::{ApiError, EmbeddingRequest, Embeddings, InputHints, Losses, Text, truncated};

/// How an upstream takes requests for embeddings, where it is not as its format says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloudEmbeddings {
    /// The method `:predict` of Vertex AI.
    Vertex,
    /// `InvokeModel` of AWS Bedrock, whose bodies depend on the model.
    Bedrock,
}

/// The most texts of a request to Cohere.
const MAX_COHERE_TEXTS: usize = 96;

/// What vectors are for, in the words of Gemini and in those of Cohere.
const COHERE_INPUT_TYPES: [(&str, &str); 4] = [
    ("RETRIEVAL_DOCUMENT", "search_document"),
    ("RETRIEVAL_QUERY", "search_query"),
    ("CLASSIFICATION", "classification"),
    ("CLUSTERING", "clustering"),
];

impl CloudEmbeddings {
    /// Encodes a request. `Err`: the model cannot be asked for all of it at once.
    pub fn encode_request(
        self,
        request: &EmbeddingRequest<'_>,
        target: &UpstreamTarget<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<u8>, ApiError> {
        let size = request.inputs.iter().map(|text| text.len() + 32).sum();
        match self {
            CloudEmbeddings::Vertex => Ok(to_json_bytes(&VertexRequest::new(request)?, size)),
            CloudEmbeddings::Bedrock if target.model.contains("titan-embed") => {
                let [text] = &request.inputs[..] else {
                    return Err(too_many(request.inputs.len(), 1));
                };
                for hints in &request.hints {
                    hints.report_dropped(losses);
                }
                let body = TitanRequest {
                    input_text: text,
                    dimensions: request.dimensions,
                };
                Ok(to_json_bytes(&body, size))
            }
            CloudEmbeddings::Bedrock if target.model.contains("cohere.embed") => {
                if request.inputs.len() > MAX_COHERE_TEXTS {
                    return Err(too_many(request.inputs.len(), MAX_COHERE_TEXTS));
                }
                let body = CohereRequest {
                    texts: &request.inputs,
                    input_type: cohere_input_type(request, target, losses)?,
                    output_dimension: request.dimensions,
                };
                Ok(to_json_bytes(&body, size))
            }
            CloudEmbeddings::Bedrock => {
                let model = truncated(target.model);
                let message = format!(
                    "the upstream's name of this model is `{model}`: on Bedrock, only embeddings of Titan (`titan-embed`) and Cohere \
                     (`cohere.embed`) are known"
                );
                Err(ApiError::invalid(message).at("model"))
            }
        }
    }

    /// Decodes a response. `Err`: it is not complete.
    pub fn decode_response(self, body: &[u8]) -> Result<Embeddings, ApiError> {
        let (vectors, input_tokens) = match self {
            CloudEmbeddings::Vertex => vertex_vectors(body)?,
            CloudEmbeddings::Bedrock => bedrock_vectors(body)?,
        };
        let vectors: Vec<Vec<f32>> = vectors
            .into_iter()
            .map(decode_vector)
            .collect::<Result<_, _>>()?;
        check_lengths(vectors.iter().map(Vec::len))?;
        Ok(Embeddings {
            vectors,
            input_tokens: input_tokens.filter(|tokens| *tokens > 0),
        })
    }

    /// Returns the tokens that a response counts, also where nothing else of it can be used.
    pub fn reported_tokens(self, body: &[u8]) -> Option<u64> {
        let tokens = match self {
            CloudEmbeddings::Vertex => vertex_vectors(body).ok()?.1,
            CloudEmbeddings::Bedrock => {
                let response: BedrockVectors<'_> = decode_response_body(body).ok()?;
                response.input_tokens.known()
            }
        };
        tokens.filter(|tokens| *tokens > 0)
    }
}

/// What the vectors are for, which Cohere wants to know: what the client says, else what the model is set to.
fn cohere_input_type(
    request: &EmbeddingRequest<'_>,
    target: &UpstreamTarget<'_>,
    losses: &mut Losses,
) -> Result<&'static str, ApiError> {
    let asked = |hints: &InputHints<'_>| {
        let word = hints.task_type.as_ref().map(|hint| &*hint.value);
        let mut known = COHERE_INPUT_TYPES.into_iter();
        known.find(|(theirs, _)| word.is_some_and(|word| word.eq_ignore_ascii_case(theirs)))
    };
    let mut types = request.hints.iter().map(asked);
    let first = types.next().flatten();
    if types.any(|other| other != first) {
        return Err(different("taskType"));
    }
    for hints in &request.hints {
        let mut lost = hints.clone();
        if first.is_some() {
            lost.task_type = None;
        }
        lost.report_dropped(losses);
    }
    let usual = target.capabilities.embedding_input_type;
    Ok(first.map_or(usual, |(_, ours)| ours))
}

fn different(field: &'static str) -> ApiError {
    let message = format!(
        "`{field}` must be the same in all requests of a batch: the upstream of this model has one for all"
    );
    ApiError::invalid(message).at(field)
}

fn too_many(inputs: usize, most: usize) -> ApiError {
    let message = format!(
        "the request has {inputs} inputs, and the upstream of this model takes at most {most} at once: send several requests"
    );
    ApiError::invalid(message).at("input")
}

#[derive(Serialize)]
struct VertexRequest<'a> {
    instances: Vec<VertexInstance<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<VertexParameters>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
struct VertexInstance<'a> {
    content: &'a str,
    task_type: Option<&'a str>,
    title: Option<&'a str>,
}

#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VertexParameters {
    output_dimensionality: Option<u64>,
    auto_truncate: Option<bool>,
}

impl<'a> VertexRequest<'a> {
    fn new(request: &'a EmbeddingRequest<'_>) -> Result<VertexRequest<'a>, ApiError> {
        let truncated =
            |hints: &InputHints<'_>| hints.auto_truncate.as_ref().map(|hint| hint.value);
        let mut all = request.hints.iter().map(truncated);
        let auto_truncate = all.next().flatten();
        if all.any(|other| other != auto_truncate) {
            return Err(different("autoTruncate"));
        }
        let instances = request.inputs.iter().enumerate().map(|(place, content)| {
            let hints = request.hints.get(place);
            let task_type = hints.and_then(|hints| hints.task_type.as_ref());
            let title = hints.and_then(|hints| hints.title.as_ref());
            VertexInstance {
                content,
                task_type: task_type.map(|hint| &*hint.value),
                title: title.map(|hint| &*hint.value),
            }
        });
        let has_parameters = request.dimensions.is_some() || auto_truncate.is_some();
        Ok(VertexRequest {
            instances: instances.collect(),
            parameters: has_parameters.then_some(VertexParameters {
                output_dimensionality: request.dimensions,
                auto_truncate,
            }),
        })
    }
}

from_json! {
    struct VertexResponse<'a> {
        "predictions" required => predictions: Vec<VertexPrediction<'a>>,
    }
}

from_json! {
    struct VertexPrediction<'a> {
        "embeddings" required => embeddings: VertexVector<'a>,
    }
}

from_json! {
    struct VertexVector<'a> {
        "values" required => values: RawJson<'a>,
        "statistics" => statistics: Option<VertexStatistics>,
    }
}

from_json! {
    struct VertexStatistics {
        "token_count" => token_count: TokenCount,
    }
}

type RawVectors<'a> = (Vec<RawJson<'a>>, Option<u64>);

fn vertex_vectors(body: &[u8]) -> Result<RawVectors<'_>, ApiError> {
    let response: VertexResponse<'_> = decode_response_body(body)?;
    let vectors = response.predictions.iter().map(|found| &found.embeddings);
    let tokens = vectors.clone().map(|vector| {
        let statistics = vector.statistics.as_ref()?;
        statistics.token_count.known()
    });
    let tokens = tokens.sum::<Option<u64>>();
    Ok((vectors.map(|vector| vector.values).collect(), tokens))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TitanRequest<'a> {
    input_text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<u64>,
}

#[derive(Serialize)]
struct CohereRequest<'a> {
    texts: &'a [Text<'a>],
    input_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_dimension: Option<u64>,
}

from_json! {
    struct BedrockVectors<'a> {
        /// Of Titan.
        "embedding" => embedding: Option<RawJson<'a>>,
        "inputTextTokenCount" => input_tokens: TokenCount,
        /// Of Cohere: vectors, or vectors by their type.
        "embeddings" => embeddings: Option<RawJson<'a>>,
    }
}

from_json! {
    struct CohereVectors<'a> {
        "float" required => float: Vec<RawJson<'a>>,
    }
}

fn bedrock_vectors(body: &[u8]) -> Result<RawVectors<'_>, ApiError> {
    let response: BedrockVectors<'_> = decode_response_body(body)?;
    if let Some(vector) = response.embedding {
        let tokens = response.input_tokens.known();
        return Ok((vec![vector], tokens));
    }
    let text = response.embeddings.map(RawJson::get);
    let text = text.ok_or_else(|| broken("no vectors"))?;
    let vectors = match text.starts_with('[') {
        true => decode_json::<Vec<RawJson<'_>>>(text).ok(),
        false => decode_json::<CohereVectors<'_>>(text)
            .ok()
            .map(|vectors| vectors.float),
    };
    let vectors = vectors.ok_or_else(|| broken("vectors of an unknown kind"))?;
    Ok((vectors, None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Capabilities;
    use crate::model::InputHint;

    fn encode(
        shape: CloudEmbeddings,
        model: &str,
        texts: &[&'static str],
    ) -> Result<String, ApiError> {
        encode_with(shape, model, texts, Vec::new()).map(|(body, _)| body)
    }

    fn encode_with(
        shape: CloudEmbeddings,
        model: &str,
        texts: &[&'static str],
        hints: Vec<InputHints<'static>>,
    ) -> Result<(String, Losses), ApiError> {
        let capabilities = Capabilities::default();
        let target = UpstreamTarget {
            model,
            stream: false,
            max_output_tokens: None,
            capabilities: &capabilities,
            brand: "",
            images_only: false,
        };
        let request = EmbeddingRequest {
            inputs: texts.iter().map(|text| (*text).into()).collect(),
            dimensions: Some(256),
            hints,
        };
        let mut losses = Losses::default();
        let body = shape.encode_request(&request, &target, &mut losses)?;
        Ok((String::from_utf8(body).expect("text"), losses))
    }

    fn hints(task_type: &'static str) -> InputHints<'static> {
        let hint = |value: &'static str, path: &str| InputHint {
            value: value.into(),
            path: path.to_owned(),
        };
        InputHints {
            task_type: Some(hint(task_type, "taskType")),
            title: Some(hint("t", "title")),
            auto_truncate: Some(InputHint {
                value: false,
                path: "autoTruncate".to_owned(),
            }),
        }
    }

    #[test]
    fn what_vectors_are_for_is_told_where_it_can_be() {
        let query = || hints("RETRIEVAL_QUERY");
        let (body, losses) = encode_with(
            CloudEmbeddings::Vertex,
            "text-embedding-005",
            &["a"],
            vec![query()],
        )
        .expect("a body");
        let expected = r#"{"instances":[{"content":"a","task_type":"RETRIEVAL_QUERY","title":"t"}],"parameters":{"outputDimensionality":256,"autoTruncate":false}}"#;
        assert_eq!((&*body, losses), (expected, Losses::default()));
        let bedrock = CloudEmbeddings::Bedrock;
        let cohere = "cohere.embed-english-v3";
        let encode = |hints| encode_with(bedrock, cohere, &["a", "b"], hints);
        let (body, losses) = encode(vec![query(), query()]).expect("a body");
        assert!(body.contains(r#""input_type":"search_query""#), "{body}");
        assert_eq!(losses.0.len(), 2, "titles, and how long texts are cut");
        let (body, losses) = encode(vec![hints("FACT_VERIFICATION"); 2]).expect("a body");
        assert!(body.contains(r#""input_type":"search_document""#), "{body}");
        assert_eq!(losses.0.len(), 3);
        assert!(encode(vec![query(), hints("CLUSTERING")]).is_err());
        let titan = encode_with(
            bedrock,
            "amazon.titan-embed-text-v2:0",
            &["a"],
            vec![query()],
        );
        assert_eq!(titan.expect("a body").1.0.len(), 3);
    }

    #[test]
    fn requests_are_those_of_the_model() {
        let vertex = encode(CloudEmbeddings::Vertex, "text-embedding-005", &["a", "b"]);
        let expected = r#"{"instances":[{"content":"a"},{"content":"b"}],"parameters":{"outputDimensionality":256}}"#;
        assert_eq!(vertex.expect("a body"), expected);
        let bedrock = CloudEmbeddings::Bedrock;
        let titan = "amazon.titan-embed-text-v2:0";
        let expected = r#"{"inputText":"a","dimensions":256}"#;
        assert_eq!(encode(bedrock, titan, &["a"]).expect("a body"), expected);
        assert!(encode(bedrock, titan, &["a", "b"]).is_err());
        let cohere = encode(bedrock, "us.cohere.embed-v4:0", &["a", "b"]);
        let expected =
            r#"{"texts":["a","b"],"input_type":"search_document","output_dimension":256}"#;
        assert_eq!(cohere.expect("a body"), expected);
        assert!(encode(bedrock, "cohere.embed-english-v3", &["a"; 97]).is_err());
        assert!(encode(bedrock, "amazon.nova-pro-v1:0", &["a"]).is_err());
    }

    #[test]
    fn responses_are_read_whole_or_refused() {
        let vertex = r#"{"predictions":[{"embeddings":{"values":[1,2],"statistics":{"token_count":3,"truncated":false}}},{"embeddings":{"values":[3,4],"statistics":{"token_count":4}}}]}"#;
        let found = CloudEmbeddings::Vertex
            .decode_response(vertex.as_bytes())
            .expect("vectors");
        assert_eq!(
            (found.vectors, found.input_tokens),
            (vec![vec![1.0, 2.0], vec![3.0, 4.0]], Some(7))
        );
        let bedrock = CloudEmbeddings::Bedrock;
        for (body, vectors, tokens) in [
            (
                r#"{"embedding":[1,2],"inputTextTokenCount":5}"#,
                vec![vec![1.0, 2.0]],
                Some(5),
            ),
            (
                r#"{"embeddings":[[1],[2]],"response_type":"embeddings_floats"}"#,
                vec![vec![1.0], vec![2.0]],
                None,
            ),
            (r#"{"embeddings":{"float":[[1]]}}"#, vec![vec![1.0]], None),
        ] {
            let found = bedrock.decode_response(body.as_bytes()).expect(body);
            assert_eq!(
                (found.vectors, found.input_tokens),
                (vectors, tokens),
                "{body}"
            );
        }
        for wrong in [
            "{}",
            r#"{"embeddings":{"int8":[[1]]}}"#,
            r#"{"embeddings":[[1],[1,2]]}"#,
            r#"{"embedding":[]}"#,
            r#"{"predictions":[{"embeddings":{}}]}"#,
            "[]",
        ] {
            for shape in [bedrock, CloudEmbeddings::Vertex] {
                assert!(shape.decode_response(wrong.as_bytes()).is_err(), "{wrong}");
            }
        }
    }
}
