//! The semantic conventions of OpenTelemetry for generative AI: names of attributes, operations and providers.
//!
//! They stand here alone, because they are not stable yet. These are the names of `gen-ai-spans.md` beside version 1.41 of
//! the general conventions.

use super::attributes::Attributes;
use crate::formats::{Operation, PassthroughEndpoint};
use crate::model::{Format, Usage};

pub const OPERATION_NAME: &str = "gen_ai.operation.name";
pub const PROVIDER_NAME: &str = "gen_ai.provider.name";
pub const REQUEST_MODEL: &str = "gen_ai.request.model";
pub const REQUEST_STREAM: &str = "gen_ai.request.stream";
pub const RESPONSE_ID: &str = "gen_ai.response.id";
pub const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
/// In seconds.
pub const TIME_TO_FIRST_CHUNK: &str = "gen_ai.response.time_to_first_chunk";
/// Content, only where it is switched on.
pub const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
const CACHE_READ_INPUT_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
const CACHE_CREATION_INPUT_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
const REASONING_OUTPUT_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";

// Conventions that are older than those for generative AI.
pub const ERROR_TYPE: &str = "error.type";
pub const SERVER_ADDRESS: &str = "server.address";
pub const SERVER_PORT: &str = "server.port";
pub const CLIENT_ADDRESS: &str = "client.address";
pub const HTTP_REQUEST_METHOD: &str = "http.request.method";
pub const HTTP_RESPONSE_STATUS_CODE: &str = "http.response.status_code";
pub const URL_PATH: &str = "url.path";

// What only this gateway has.
pub const REQUEST_ID: &str = "omniglot.request_id";
pub const KEY: &str = "omniglot.key";
pub const FORMAT: &str = "omniglot.format";
pub const UPSTREAM: &str = "omniglot.upstream";
pub const COST: &str = "omniglot.cost";
pub const ESTIMATED: &str = "omniglot.usage.estimated";

/// Adds the usage. As in the conventions, input includes what came from the cache, and output includes reasoning.
pub fn add_usage(attributes: &mut Attributes, usage: &Usage) {
    attributes.integer(INPUT_TOKENS, usage.input);
    attributes.positive(CACHE_READ_INPUT_TOKENS, usage.cached);
    attributes.positive(CACHE_CREATION_INPUT_TOKENS, usage.cache_written);
    attributes.integer(OUTPUT_TOKENS, usage.output);
    attributes.positive(REASONING_OUTPUT_TOKENS, usage.thinking);
}

/// The name of an operation that is asked for in a format. The conventions have no word for some of them.
pub const fn operation_name(operation: Operation, format: Format) -> &'static str {
    match operation {
        Operation::Generate | Operation::Stream(_) | Operation::Edit => match format {
            Format::Native | Format::Images => "generate_content",
            _ => "chat",
        },
        Operation::CountTokens => "count_tokens",
        Operation::Embed(_) => "embeddings",
        Operation::Passthrough(PassthroughEndpoint::Completions) => "text_completion",
        Operation::Passthrough(endpoint) => endpoint.label(),
    }
}

/// Providers by the ends of their hosts.
const PROVIDERS: [(&str, &str); 14] = [
    ("api.openai.com", "openai"),
    ("openai.azure.com", "azure.ai.openai"),
    ("services.ai.azure.com", "azure.ai.inference"),
    ("api.anthropic.com", "anthropic"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("amazonaws.com", "aws.bedrock"),
    ("api.cohere.com", "cohere"),
    ("api.deepseek.com", "deepseek"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.x.ai", "x_ai"),
    ("ml.cloud.ibm.com", "ibm.watsonx.ai"),
];

/// The provider behind a host. Where the host is none of a provider, it is the one whose format it speaks: so the
/// conventions have it for servers that are compatible with another.
pub fn provider_name(host: &str, format: Format) -> &'static str {
    let is_below = |domain: &str| {
        let rest = host.strip_suffix(domain);
        // Hosts of regions are such as `europe-west4-aiplatform.googleapis.com`.
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(['.', '-']))
    };
    let known = PROVIDERS.iter().find(|(domain, _)| is_below(domain));
    known.map_or_else(
        || match format {
            Format::Messages => "anthropic",
            Format::Native => "gcp.gemini",
            _ => "openai",
        },
        |(_, name)| name,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_known_by_their_hosts_or_else_by_their_format() {
        for (host, format, want) in [
            ("api.openai.com", Format::Chat, "openai"),
            ("eu.api.openai.com", Format::Messages, "openai"),
            ("me.openai.azure.com", Format::Chat, "azure.ai.openai"),
            (
                "europe-west4-aiplatform.googleapis.com",
                Format::Messages,
                "gcp.vertex_ai",
            ),
            (
                "bedrock-runtime.eu-central-1.amazonaws.com",
                Format::Messages,
                "aws.bedrock",
            ),
            ("notapi.groq.com", Format::Chat, "openai"),
            ("127.0.0.1", Format::Messages, "anthropic"),
            ("llm.internal", Format::Native, "gcp.gemini"),
        ] {
            assert_eq!(provider_name(host, format), want, "{host}");
        }
    }
}
