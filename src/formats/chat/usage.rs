//! Counts of tokens, read in every dialect and written in one.

use serde::Serialize;

use crate::formats::told::Told;
use crate::json::from_json;
use crate::model::Usage;

from_json! {
    pub(super) struct RawUsage {
        "prompt_tokens" => prompt_tokens: Told,
        "completion_tokens" => completion_tokens: Told,
        "total_tokens" => total_tokens: Option<Told>,
        "prompt_tokens_details" => prompt_tokens_details: Option<PromptDetails>,
        "completion_tokens_details" => completion_tokens_details: Option<CompletionDetails>,
        "prompt_cache_hit_tokens" => prompt_cache_hit_tokens: Option<Told>,
        "cached_tokens" => cached_tokens: Option<Told>,
        "num_cached_tokens" => num_cached_tokens: Option<Told>,
    }
}

from_json! {
    struct PromptDetails {
        "cached_tokens" => cached_tokens: Option<Told>,
        "cache_write_tokens" => cache_write_tokens: Option<Told>,
        "audio_tokens" => audio_tokens: Option<Told>,
        "image_tokens" => image_tokens: Option<Told>,
    }
}

from_json! {
    struct CompletionDetails {
        "reasoning_tokens" => reasoning_tokens: Option<Told>,
        "audio_tokens" => audio_tokens: Option<Told>,
        "image_tokens" => image_tokens: Option<Told>,
    }
}

impl RawUsage {
    pub(super) fn read(&self) -> Usage {
        let prompt = self.prompt_tokens_details.as_ref();
        let completion = self.completion_tokens_details.as_ref();
        let cached = prompt
            .and_then(|details| details.cached_tokens)
            .or(self.prompt_cache_hit_tokens)
            .or(self.cached_tokens)
            .or(self.num_cached_tokens);
        let told = completion
            .and_then(|details| details.reasoning_tokens)
            .unwrap_or_default()
            .0;
        let beside = self.beside(told);
        Usage {
            input: self.prompt_tokens.0,
            cached: cached.unwrap_or_default().0,
            cache_written: prompt
                .and_then(|details| details.cache_write_tokens)
                .unwrap_or_default()
                .0,
            output: self.completion_tokens.0.saturating_add(beside),
            thinking: told.max(beside),
            audio_input: prompt
                .and_then(|details| details.audio_tokens)
                .unwrap_or_default()
                .0,
            audio_output: completion
                .and_then(|details| details.audio_tokens)
                .unwrap_or_default()
                .0,
            image_input: prompt
                .and_then(|details| details.image_tokens)
                .unwrap_or_default()
                .0,
            image_output: completion
                .and_then(|details| details.image_tokens)
                .unwrap_or_default()
                .0,
        }
    }

    /// Thinking that is counted beside the completion instead of inside it: one backend tells it
    /// so, another leaves it to the total alone.
    fn beside(&self, told: u64) -> u64 {
        let sum = self
            .prompt_tokens
            .0
            .saturating_add(self.completion_tokens.0);
        let rest = self.total_tokens.unwrap_or_default().0.saturating_sub(sum);
        if told == 0 || told == rest { rest } else { 0 }
    }
}

#[derive(Serialize)]
pub(super) struct Tokens {
    prompt_tokens: u64,
    completion_tokens: u64,
    total_tokens: u64,
    prompt_tokens_details: PromptTokens,
    completion_tokens_details: CompletionTokens,
}

#[derive(Serialize)]
struct PromptTokens {
    cached_tokens: u64,
    cache_write_tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    audio_tokens: u64,
}

#[derive(Serialize)]
struct CompletionTokens {
    reasoning_tokens: u64,
    #[serde(skip_serializing_if = "is_zero")]
    audio_tokens: u64,
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Tokens {
        Tokens {
            prompt_tokens: usage.input,
            completion_tokens: usage.output,
            total_tokens: usage.input.saturating_add(usage.output),
            prompt_tokens_details: PromptTokens {
                cached_tokens: usage.cached,
                cache_write_tokens: usage.cache_written,
                audio_tokens: usage.audio_input,
            },
            completion_tokens_details: CompletionTokens {
                reasoning_tokens: usage.thinking,
                audio_tokens: usage.audio_output,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RawUsage;
    use crate::json::decode_json;

    #[test]
    fn thinking_beside_the_completion_is_output_all_the_same() {
        for (total, told, output, thinking) in [
            // Inside, as it should be; beside and told; beside and only in the total.
            (120, 5, 20, 5),
            (150, 30, 50, 30),
            (150, 0, 50, 30),
            // A total that nothing explains changes nothing.
            (150, 7, 20, 7),
            (0, 0, 20, 0),
        ] {
            let raw = format!(
                r#"{{"prompt_tokens":100,"completion_tokens":20,"total_tokens":{total},
                    "completion_tokens_details":{{"reasoning_tokens":{told}}}}}"#
            );
            let usage: RawUsage = decode_json(&raw).expect("counts");
            let usage = usage.read();
            assert_eq!((usage.output, usage.thinking), (output, thinking), "{raw}");
        }
    }
}
