//! Counts of tokens: thinking counts beside the answer here, not within it.

use serde::Serialize;

use crate::formats::told::Told;
use crate::json::from_json;
use crate::model::{Text, Usage};

from_json! {
    /// Zero and unknown are both left out, or null.
    pub(super) struct RawUsage<'a> {
        "promptTokenCount" => prompt_token_count: Option<Told>,
        "cachedContentTokenCount" => cached_content_token_count: Option<Told>,
        "candidatesTokenCount" => candidates_token_count: Option<Told>,
        "thoughtsTokenCount" => thoughts_token_count: Option<Told>,
        "toolUsePromptTokenCount" => tool_use_prompt_token_count: Option<Told>,
        "promptTokensDetails" => prompt_tokens_details: Option<Vec<RawShare<'a>>>,
        "candidatesTokensDetails" => candidates_tokens_details: Option<Vec<RawShare<'a>>>,
    }
}

from_json! {
    struct RawShare<'a> {
        "modality" => modality: Option<Text<'a>>,
        "tokenCount" => token_count: Option<Told>,
    }
}

const AUDIO: &str = "AUDIO";
const IMAGE: &str = "IMAGE";

fn share(modality: &str, shares: Option<&Vec<RawShare<'_>>>) -> u64 {
    let is_of = |share: &&RawShare<'_>| share.modality.as_deref() == Some(modality);
    let found = shares.into_iter().flatten().find(is_of);
    found
        .and_then(|share| share.token_count)
        .unwrap_or_default()
        .0
}

impl RawUsage<'_> {
    pub(super) fn read(&self) -> Usage {
        let sum = |first: Option<Told>, second: Option<Told>| {
            let (Told(first), Told(second)) =
                (first.unwrap_or_default(), second.unwrap_or_default());
            first.saturating_add(second)
        };
        Usage {
            input: sum(self.prompt_token_count, self.tool_use_prompt_token_count),
            cached: self.cached_content_token_count.unwrap_or_default().0,
            cache_written: 0,
            output: sum(self.candidates_token_count, self.thoughts_token_count),
            thinking: self.thoughts_token_count.unwrap_or_default().0,
            audio_input: share(AUDIO, self.prompt_tokens_details.as_ref()),
            audio_output: share(AUDIO, self.candidates_tokens_details.as_ref()),
            image_input: share(IMAGE, self.prompt_tokens_details.as_ref()),
            image_output: share(IMAGE, self.candidates_tokens_details.as_ref()),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    prompt_token_count: u64,
    candidates_token_count: u64,
    total_token_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_content_token_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thoughts_token_count: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prompt_tokens_details: Vec<Share>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates_tokens_details: Vec<Share>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Share {
    modality: &'static str,
    token_count: u64,
}

impl From<Usage> for UsageMetadata {
    fn from(usage: Usage) -> UsageMetadata {
        let counted = |count: u64| (count > 0).then_some(count);
        let shares = |sound: u64, pictures: u64| {
            let share = |(modality, token_count)| Share {
                modality,
                token_count,
            };
            let told = [(AUDIO, sound), (IMAGE, pictures)].into_iter();
            told.filter(|(_, count)| *count > 0).map(share).collect()
        };
        UsageMetadata {
            prompt_token_count: usage.input,
            candidates_token_count: usage.output.saturating_sub(usage.thinking),
            total_token_count: usage.input.saturating_add(usage.output),
            cached_content_token_count: counted(usage.cached),
            thoughts_token_count: counted(usage.thinking),
            prompt_tokens_details: shares(usage.audio_input, usage.image_input),
            candidates_tokens_details: shares(usage.audio_output, usage.image_output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::UsageMetadata;
    use crate::model::Usage;

    #[test]
    fn counts_at_the_end_of_their_range_have_a_total() {
        let usage = Usage {
            input: u64::MAX,
            output: 2,
            ..Usage::default()
        };
        assert_eq!(UsageMetadata::from(usage).total_token_count, u64::MAX);
    }
}
