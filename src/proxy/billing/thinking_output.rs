//! Thinking, summaries and rejected predictions, which are beside the limit of the output and paid for as output.

use crate::formats::ExtraThinking;
use crate::model::{ApiError, Format};
use crate::runtime::Attempt;
use crate::translate::max_tokens_of_text;

/// The thinking, or the summary, of models that do not say how long their output may be, where the request does not either.
const DEFAULT_THINKING_TOKENS: u64 = 1 << 16;

/// The most tokens of thinking that an attempt may be billed for beside the limit of its output. An upstream of another
/// format is not asked for any.
pub(in crate::proxy) fn max_thinking(
    thinking: Option<ExtraThinking>,
    attempt: &Attempt,
    client: Format,
) -> u64 {
    let thinking = thinking.filter(|_| attempt.upstream.format == client);
    thinking.map_or(0, |thinking| {
        let usual = attempt.settings.settings.max_output_tokens;
        let usual = usual.unwrap_or(DEFAULT_THINKING_TOKENS);
        thinking.budget.unwrap_or(usual).max(thinking.named)
    })
}

/// The most tokens of the summary that an attempt may be billed for beside the limit of its output; `None`: it does not compact
/// the conversation. An upstream of another format is not asked to.
pub(in crate::proxy) fn max_compaction(
    may_compact: bool,
    attempt: &Attempt,
    client: Format,
) -> Option<u64> {
    let usual = attempt.settings.settings.max_output_tokens;
    let is_asked = may_compact && attempt.upstream.format == client;
    is_asked.then(|| usual.unwrap_or(DEFAULT_THINKING_TOKENS))
}

/// The most tokens of a predicted output that an attempt may be billed for beside the limit of its own. An upstream of another
/// format is not sent it.
pub(in crate::proxy) fn max_predicted(bytes: u64, attempt: &Attempt, client: Format) -> u64 {
    match attempt.upstream.format == client {
        true => max_tokens_of_text(bytes),
        false => 0,
    }
}

/// Says in the error of a cap that so much was to be reserved for thinking, too.
pub(in crate::proxy) fn explain_thinking(
    mut api_error: ApiError,
    field: &str,
    tokens: u64,
) -> ApiError {
    let why = format!(
        " (`{field}` asks for thinking, of which an upstream may bill {tokens} tokens beside the limit of the output: turn it \
         off, limit it, or set max_output_tokens of the model)"
    );
    api_error.message.push_str(&why);
    api_error
}
