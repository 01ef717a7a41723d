//! `usageMetadata`: the counts of tokens. The tokens of thoughts are not part of the output count here.

use serde::Serialize;

use crate::formats::reported_usage::{CountedOutput, ReportedUsage};
use crate::formats::token_count::TokenCount;
use crate::json::from_json;
use crate::model::{Text, Usage};

from_json! {
    /// The counts of an upstream, which leaves zero and unknown out or sends null.
    pub(super) struct UpstreamUsage<'a> {
        "promptTokenCount" => prompt_token_count: TokenCount,
        "cachedContentTokenCount" => cached_content_token_count: TokenCount,
        "candidatesTokenCount" => candidates_token_count: TokenCount,
        "thoughtsTokenCount" => thoughts_token_count: TokenCount,
        "toolUsePromptTokenCount" => tool_use_prompt_token_count: TokenCount,
        "totalTokenCount" => total_token_count: TokenCount,
        "promptTokensDetails" => prompt_tokens_details: Option<Vec<UpstreamModalityCount<'a>>>,
        "candidatesTokensDetails" => candidates_tokens_details: Option<Vec<UpstreamModalityCount<'a>>>,
    }
}

from_json! {
    struct UpstreamModalityCount<'a> {
        "modality" => modality: Option<Text<'a>>,
        "tokenCount" => token_count: TokenCount,
    }
}

const AUDIO: &str = "AUDIO";
const IMAGE: &str = "IMAGE";

/// The tokens of one modality.
fn tokens_of(modality: &str, details: Option<&Vec<UpstreamModalityCount<'_>>>) -> u64 {
    let is_modality =
        |count: &&UpstreamModalityCount<'_>| count.modality.as_deref() == Some(modality);
    let found = details.into_iter().flatten().find(is_modality);
    found.map_or(0, |count| count.token_count.tokens())
}

/// The report with these counts, in which the thoughts are counted apart from the rest of the output.
pub(super) const fn whole_report(usage: Usage) -> ReportedUsage {
    let counted = if usage.output > usage.thinking {
        CountedOutput::Everything
    } else if usage.thinking > 0 {
        CountedOutput::Reasoning
    } else {
        CountedOutput::Nothing
    };
    ReportedUsage { usage, counted }
}

impl UpstreamUsage<'_> {
    /// What of the output is counted here: some upstreams count it in the last chunk only.
    pub(super) fn counted_output(&self) -> CountedOutput {
        whole_report(self.decode()).counted
    }

    /// Decodes the counts of a chunk; if it counts thoughts alone, the rest of the output is as in the chunk before, unless its total
    /// says that there is no rest.
    pub(super) fn report(&self, previous: Option<Usage>) -> ReportedUsage {
        let ReportedUsage { usage, counted } = whole_report(self.decode());
        let previous = previous.unwrap_or_default();
        let answer = previous.output.saturating_sub(previous.thinking);
        let is_all = self.total_token_count.known() == usage.input.checked_add(usage.output);
        let usage = match counted {
            CountedOutput::Reasoning if !is_all => Usage {
                output: answer.saturating_add(usage.thinking),
                audio_output: previous.audio_output,
                image_output: previous.image_output,
                ..usage
            },
            _ => usage,
        };
        ReportedUsage { usage, counted }
    }

    pub(super) fn decode(&self) -> Usage {
        let sum =
            |first: TokenCount, second: TokenCount| first.tokens().saturating_add(second.tokens());
        Usage {
            input: sum(self.prompt_token_count, self.tool_use_prompt_token_count),
            cached: self.cached_content_token_count.tokens(),
            cache_written: 0,
            output: sum(self.candidates_token_count, self.thoughts_token_count),
            thinking: self.thoughts_token_count.tokens(),
            audio_input: tokens_of(AUDIO, self.prompt_tokens_details.as_ref()),
            audio_output: tokens_of(AUDIO, self.candidates_tokens_details.as_ref()),
            image_input: tokens_of(IMAGE, self.prompt_tokens_details.as_ref()),
            image_output: tokens_of(IMAGE, self.candidates_tokens_details.as_ref()),
            ..Usage::default()
        }
    }
}

/// The counts of a response to a client.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UsageMetadata {
    prompt_token_count: u64,
    candidates_token_count: u64,
    total_token_count: u64,
    cached_content_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prompt_tokens_details: Vec<ModalityTokenCount>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates_tokens_details: Vec<ModalityTokenCount>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModalityTokenCount {
    modality: &'static str,
    token_count: u64,
}

impl From<Usage> for UsageMetadata {
    fn from(usage: Usage) -> UsageMetadata {
        let non_zero = |count: u64| (count > 0).then_some(count);
        let details = |audio: u64, images: u64| {
            let detail = |(modality, token_count)| ModalityTokenCount {
                modality,
                token_count,
            };
            let counts = [(AUDIO, audio), (IMAGE, images)].into_iter();
            counts.filter(|(_, count)| *count > 0).map(detail).collect()
        };
        UsageMetadata {
            prompt_token_count: usage.input,
            candidates_token_count: usage.output.saturating_sub(usage.thinking),
            total_token_count: usage.input.saturating_add(usage.output),
            cached_content_token_count: non_zero(usage.cached),
            thoughts_token_count: non_zero(usage.thinking),
            prompt_tokens_details: details(usage.audio_input, usage.image_input),
            candidates_tokens_details: details(usage.audio_output, usage.image_output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{UpstreamUsage, UsageMetadata};
    use crate::json::decode_json;
    use crate::model::Usage;

    #[test]
    fn counts_that_a_chunk_leaves_out_are_those_of_the_chunk_before() {
        let mut usage = None;
        for (chunk, counts) in [
            (r#"{"promptTokenCount":5}"#, (5, 0, 0)),
            (
                r#"{"promptTokenCount":5,"thoughtsTokenCount":3}"#,
                (5, 3, 3),
            ),
            (
                r#"{"promptTokenCount":5,"thoughtsTokenCount":4,"candidatesTokenCount":2}"#,
                (5, 6, 4),
            ),
            (r#"{"promptTokenCount":5}"#, (5, 6, 4)),
            (
                r#"{"promptTokenCount":5,"candidatesTokenCount":0,"thoughtsTokenCount":-1}"#,
                (5, 6, 4),
            ),
            (
                r#"{"promptTokenCount":5,"thoughtsTokenCount":5}"#,
                (5, 7, 5),
            ),
            (
                r#"{"promptTokenCount":5,"thoughtsTokenCount":5,"totalTokenCount":10}"#,
                (5, 5, 5),
            ),
            (
                r#"{"promptTokenCount":5,"candidatesTokenCount":7}"#,
                (5, 7, 0),
            ),
        ] {
            let decoded: UpstreamUsage<'_> = decode_json(chunk).expect(chunk);
            let next = decoded.report(usage).after(usage);
            assert_eq!((next.input, next.output, next.thinking), counts, "{chunk}");
            usage = Some(next);
        }
    }

    #[test]
    fn the_total_of_very_large_counts_saturates() {
        let usage = Usage {
            input: u64::MAX,
            output: 2,
            ..Usage::default()
        };
        assert_eq!(UsageMetadata::from(usage).total_token_count, u64::MAX);
    }
}
