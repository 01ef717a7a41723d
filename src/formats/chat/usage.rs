//! Token counts: decoded in every dialect, encoded in that of the API reference.

use serde::Serialize;

use crate::formats::token_count::TokenCount;
use crate::json::from_json;
use crate::model::Usage;

from_json! {
    /// The `usage` of a response or a chunk.
    pub(in crate::formats) struct CompletionUsage {
        "prompt_tokens" => prompt_tokens: TokenCount,
        "completion_tokens" => completion_tokens: TokenCount,
        "total_tokens" => total_tokens: TokenCount,
        "prompt_tokens_details" => prompt_tokens_details: Option<CompletionPromptDetails>,
        "completion_tokens_details" => completion_tokens_details: Option<CompletionOutputDetails>,
        "prompt_cache_hit_tokens" => prompt_cache_hit_tokens: TokenCount,
        "cached_tokens" => cached_tokens: TokenCount,
        "num_cached_tokens" => num_cached_tokens: TokenCount,
        /// Of a search, and beside the total; the reasoning of one is, too.
        "citation_tokens" => citation_tokens: TokenCount,
        "reasoning_tokens" => reasoning_tokens: TokenCount,
    }
}

from_json! {
    struct CompletionPromptDetails {
        "cached_tokens" => cached_tokens: TokenCount,
        "cache_write_tokens" => cache_write_tokens: TokenCount,
        "audio_tokens" => audio_tokens: TokenCount,
        "image_tokens" => image_tokens: TokenCount,
    }
}

from_json! {
    struct CompletionOutputDetails {
        "reasoning_tokens" => reasoning_tokens: TokenCount,
        "audio_tokens" => audio_tokens: TokenCount,
        "image_tokens" => image_tokens: TokenCount,
    }
}

impl CompletionUsage {
    /// Converts the counts of any dialect.
    pub(in crate::formats) fn to_usage(&self) -> Usage {
        let prompt = self.prompt_tokens_details.as_ref();
        let completion = self.completion_tokens_details.as_ref();
        let cached = prompt
            .and_then(|details| details.cached_tokens.known())
            .or(self.prompt_cache_hit_tokens.known())
            .or(self.cached_tokens.known())
            .or(self.num_cached_tokens.known());
        let reasoning = completion.map_or(0, |details| details.reasoning_tokens.tokens());
        let uncounted_reasoning = self.uncounted_reasoning(reasoning);
        let citations = self.citation_tokens.tokens();
        let of_search = match citations {
            0 => 0,
            _ => self.reasoning_tokens.tokens(),
        };
        let beside = uncounted_reasoning.saturating_add(of_search);
        Usage {
            input: self.prompt_tokens.tokens().saturating_add(citations),
            cached: cached.unwrap_or_default(),
            cache_written: prompt.map_or(0, |details| details.cache_write_tokens.tokens()),
            output: self.completion_tokens.tokens().saturating_add(beside),
            thinking: reasoning.max(beside),
            audio_input: prompt.map_or(0, |details| details.audio_tokens.tokens()),
            audio_output: completion.map_or(0, |details| details.audio_tokens.tokens()),
            image_input: prompt.map_or(0, |details| details.image_tokens.tokens()),
            image_output: completion.map_or(0, |details| details.image_tokens.tokens()),
            ..Usage::default()
        }
    }

    /// Reasoning tokens that are not counted in `completion_tokens`: one backend reports them as such,
    /// another only adds them to the total.
    fn uncounted_reasoning(&self, reasoning: u64) -> u64 {
        let (prompt, completion) = (self.prompt_tokens, self.completion_tokens);
        let sum = prompt.tokens().saturating_add(completion.tokens());
        let rest = self.total_tokens.tokens().saturating_sub(sum);
        if reasoning == 0 || reasoning == rest {
            rest
        } else {
            0
        }
    }
}

/// The encoded `usage`.
#[derive(Serialize)]
pub(super) struct ChatUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: ChatPromptDetails,
    completion_tokens_details: ChatCompletionDetails,
}

#[derive(Serialize)]
struct ChatPromptDetails {
    cached_tokens: u64,
    cache_write_tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    audio_tokens: u64,
}

#[derive(Serialize)]
struct ChatCompletionDetails {
    reasoning_tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    audio_tokens: u64,
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl From<Usage> for ChatUsage {
    fn from(usage: Usage) -> ChatUsage {
        ChatUsage {
            prompt_tokens: usage.input,
            completion_tokens: usage.output,
            total_tokens: usage.input.saturating_add(usage.output),
            prompt_tokens_details: ChatPromptDetails {
                cached_tokens: usage.cached,
                cache_write_tokens: usage.cache_written,
                audio_tokens: usage.audio_input,
            },
            completion_tokens_details: ChatCompletionDetails {
                reasoning_tokens: usage.thinking,
                audio_tokens: usage.audio_output,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CompletionUsage;
    use crate::json::decode_json;

    #[test]
    fn reasoning_outside_of_the_completion_counts_as_output() {
        for (total, reasoning, output, thinking) in [
            // Counted in the completion; reported outside of it; only in the total.
            (120, 5, 20, 5),
            (150, 30, 50, 30),
            (150, 0, 50, 30),
            // A total that does not add up is ignored.
            (150, 7, 20, 7),
            (0, 0, 20, 0),
        ] {
            let raw = format!(
                r#"{{"prompt_tokens":100,"completion_tokens":20,"total_tokens":{total},
                    "completion_tokens_details":{{"reasoning_tokens":{reasoning}}}}}"#
            );
            let usage: CompletionUsage = decode_json(&raw).expect("counts");
            let usage = usage.to_usage();
            assert_eq!((usage.output, usage.thinking), (output, thinking), "{raw}");
        }
    }

    #[test]
    fn the_reasoning_and_the_citations_of_a_search_stand_beside_the_total() {
        for (more, expected) in [
            (
                r#","citation_tokens":20016,"reasoning_tokens":73997"#,
                (20049, 81160, 73997),
            ),
            // Elsewhere it is a part of the completion.
            (r#","reasoning_tokens":7000"#, (33, 7163, 0)),
        ] {
            let raw = format!(
                r#"{{"prompt_tokens":33,"completion_tokens":7163,"total_tokens":7196{more}}}"#
            );
            let usage: CompletionUsage = decode_json(&raw).expect("counts");
            let usage = usage.to_usage();
            assert_eq!(
                (usage.input, usage.output, usage.thinking),
                expected,
                "{raw}"
            );
        }
    }
}
