//! The paths that clients of Azure OpenAI, Vertex AI and AWS Bedrock use: what the path names is the model.

use std::borrow::Cow;

/// Below this prefix of Azure the endpoints of the chat, responses and images formats and embeddings are found too.
const AZURE: &str = "/openai/";

/// The endpoints that Azure has below a deployment.
const BELOW_DEPLOYMENTS: [&str; 6] = [
    "chat/completions",
    "embeddings",
    "images/generations",
    "audio/speech",
    "audio/transcriptions",
    "audio/translations",
];

/// The API versions of Vertex AI.
const VERTEX: [&str; 2] = ["/v1/", "/v1beta1/"];

/// What Vertex AI names in place of a model to count tokens; the model stands in the body. Bedrock calls the operation so.
const COUNT_TOKENS: &str = "count-tokens";

/// Below this prefix of Bedrock a model is invoked.
const BEDROCK: &str = "/model/";

/// A path as the formats have it.
pub(in crate::proxy) struct PlainPath<'p> {
    pub path: Cow<'p, str>,
    /// The segment that names the model.
    pub model: Option<&'p str>,
    /// Whether the body may hold what other clients send in headers.
    pub has_headers_in_body: bool,
    /// Where a path of Bedrock says whether the response is a stream.
    pub bedrock_stream: Option<bool>,
}

impl<'p> PlainPath<'p> {
    fn new(path: impl Into<Cow<'p, str>>) -> PlainPath<'p> {
        PlainPath {
            path: path.into(),
            model: None,
            has_headers_in_body: false,
            bedrock_stream: None,
        }
    }
}

/// Takes a path of a cloud apart; every other path stays as it is.
pub(in crate::proxy) fn plain_path(path: &str) -> PlainPath<'_> {
    let plain = match path.strip_prefix(AZURE) {
        Some(rest) => azure_path(rest),
        None => vertex_path(path).or_else(|| bedrock_path(path)),
    };
    plain.unwrap_or_else(|| PlainPath::new(path))
}

fn azure_path(rest: &str) -> Option<PlainPath<'_>> {
    if let Some(below) = rest.strip_prefix("deployments/") {
        let (deployment, endpoint) = below.split_once('/')?;
        let plain = PlainPath {
            model: Some(deployment),
            ..PlainPath::new(format!("/v1/{endpoint}"))
        };
        return BELOW_DEPLOYMENTS.contains(&endpoint).then_some(plain);
    }
    let rest = rest.strip_prefix("v1/").unwrap_or(rest);
    let endpoints = [
        "chat/completions",
        "responses",
        "embeddings",
        "images/",
        "audio/",
        "models",
    ];
    let mut endpoints = endpoints.iter();
    let is_known = endpoints.any(|endpoint| rest.starts_with(endpoint));
    is_known.then(|| PlainPath::new(format!("/v1/{rest}")))
}

/// `model/{model}/invoke[-with-response-stream]` and `model/{model}/count-tokens`, where a `/` in the name of a model is
/// percent-encoded.
fn bedrock_path(path: &str) -> Option<PlainPath<'_>> {
    let (model, operation) = path.strip_prefix(BEDROCK)?.split_once('/')?;
    let (endpoint, bedrock_stream) = match operation {
        "invoke" => ("/v1/messages", Some(false)),
        "invoke-with-response-stream" => ("/v1/messages", Some(true)),
        COUNT_TOKENS => ("/v1/messages/count_tokens", None),
        _ => return None,
    };
    Some(PlainPath {
        model: Some(model),
        has_headers_in_body: true,
        bedrock_stream,
        ..PlainPath::new(endpoint)
    })
}

/// Tells whether a path is one of Bedrock, whose clients know no errors but those of AWS.
pub(in crate::proxy) fn is_bedrock(path: &str) -> bool {
    path.starts_with(BEDROCK)
}

/// `{version}/[projects/{project}/locations/{location}/]publishers/{publisher}/models/{model}:{operator}`
fn vertex_path(path: &str) -> Option<PlainPath<'_>> {
    let rest = VERTEX.iter().find_map(|prefix| path.strip_prefix(prefix))?;
    let publishers = match rest.strip_prefix("projects/") {
        Some(below) => {
            let (project, below) = below.split_once("/locations/")?;
            let (location, below) = below.split_once('/')?;
            let is_segment = |name: &str| !name.is_empty() && !name.contains('/');
            (is_segment(project) && is_segment(location)).then_some(below)?
        }
        None => rest,
    };
    let below = publishers.strip_prefix("publishers/")?;
    let (publisher, asked) = below.split_once("/models/")?;
    if publisher == "google" {
        return Some(PlainPath::new(format!("/v1beta/models/{asked}")));
    }
    let (model, operator) = asked.rsplit_once(':')?;
    let endpoint = match (publisher, operator) {
        ("anthropic", "rawPredict") if model == COUNT_TOKENS => "/v1/messages/count_tokens",
        ("anthropic", "rawPredict" | "streamRawPredict") => "/v1/messages",
        _ => return None,
    };
    Some(PlainPath {
        model: (model != COUNT_TOKENS).then_some(model),
        has_headers_in_body: true,
        ..PlainPath::new(endpoint)
    })
}

#[cfg(test)]
mod tests {
    use super::plain_path;

    #[test]
    fn paths_of_clouds_become_those_of_the_formats() {
        let project = "/v1/projects/p/locations/us-east5/publishers";
        for (path, plain, model) in [
            (
                "/openai/deployments/a/chat/completions".to_owned(),
                "/v1/chat/completions",
                Some("a"),
            ),
            ("/openai/v1/responses".to_owned(), "/v1/responses", None),
            (
                "/model/us.anthropic.claude-v1%3A0/invoke".to_owned(),
                "/v1/messages",
                Some("us.anthropic.claude-v1%3A0"),
            ),
            (
                "/model/m/invoke-with-response-stream".to_owned(),
                "/v1/messages",
                Some("m"),
            ),
            (
                "/model/m/count-tokens".to_owned(),
                "/v1/messages/count_tokens",
                Some("m"),
            ),
            (
                "/openai/deployments/a/audio/speech".to_owned(),
                "/v1/audio/speech",
                Some("a"),
            ),
            (
                format!("{project}/anthropic/models/claude@1:rawPredict"),
                "/v1/messages",
                Some("claude@1"),
            ),
            (
                format!("{project}/anthropic/models/claude:streamRawPredict"),
                "/v1/messages",
                Some("claude"),
            ),
            (
                format!("{project}/anthropic/models/count-tokens:rawPredict"),
                "/v1/messages/count_tokens",
                None,
            ),
            (
                "/v1beta1/projects/p/locations/global/publishers/google/models/g:countTokens"
                    .to_owned(),
                "/v1beta/models/g:countTokens",
                None,
            ),
            (
                "/v1beta1/publishers/google/models/g:generateContent".to_owned(),
                "/v1beta/models/g:generateContent",
                None,
            ),
        ] {
            let found = plain_path(&path);
            assert_eq!((&*found.path, found.model), (plain, model), "{path}");
        }
    }

    #[test]
    fn other_paths_stay_as_they_are() {
        for path in [
            "/v1/chat/completions",
            "/openai/deployments/a/audio/other",
            "/openai/deployments/a",
            "/model/m",
            "/model/m/converse",
            "/model/a/b/invoke",
            "/v1/projects/p/q/locations/l/publishers/google/models/g:generateContent",
            "/v1/projects/p/locations//publishers/google/models/g:generateContent",
            "/v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict",
            "/v1/projects/p/locations/l/publishers/anthropic/models/m:predict",
            "/v1/publishers/anthropic/models/m",
        ] {
            let found = plain_path(path);
            assert_eq!((&*found.path, found.model), (path, None));
        }
    }
}
