//! Rankings that an upstream bills as several searches: how many these are and may be.

use crate::formats::{Operation, PassthroughEndpoint};
use crate::proxy::context::RequestContext;

/// The documents of one search, and the least bytes of one after which the next part counts as another: vendors take 500 tokens
/// with the query, a token has a byte at least, and no query has more than half of them.
const DOCUMENTS_PER_SEARCH: u64 = 100;
const BYTES_PER_DOCUMENT: u64 = 250;

/// How many searches more than one the upstream bills the ranking as.
pub(super) fn further_searches(ctx: &RequestContext) -> u64 {
    let translator = ctx.response.translator.as_ref();
    let searches = translator.map_or(0, |translator| translator.observer().searches);
    searches.saturating_sub(1)
}

/// The most searches beside the first that a request may be billed as, with so many inputs and tokens in the body.
pub(super) fn max_further_searches(operation: Operation, inputs: u64, tokens: u64) -> u64 {
    if operation != Operation::Passthrough(PassthroughEndpoint::Rerank) {
        return 0;
    }
    // Each of them has a first part.
    let parts = tokens.saturating_sub(inputs) / BYTES_PER_DOCUMENT;
    let documents = inputs.saturating_add(parts);
    documents.div_ceil(DOCUMENTS_PER_SEARCH).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_rankings_may_be_several_searches() {
        let rerank = Operation::Passthrough(PassthroughEndpoint::Rerank);
        for (inputs, tokens, further) in [
            (1, 100, 0),
            (100, 349, 0),
            (100, 350, 1),
            (101, 300, 1),
            (1000, 1, 9),
            (100, 25_000, 1),
        ] {
            let found = max_further_searches(rerank, inputs, tokens);
            assert_eq!(found, further, "{inputs} inputs, {tokens} tokens");
        }
        let other = Operation::Passthrough(PassthroughEndpoint::Moderations);
        assert_eq!(max_further_searches(other, 1000, 1), 0);
    }
}
