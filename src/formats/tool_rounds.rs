//! How often an upstream reads the prompt again for tools that it runs itself.

use crate::json::{RawJson, decode_json};

/// The rounds of tools that the request does not limit: vendors stop after about so many.
pub const DEFAULT_TOOL_ROUNDS: u64 = 10;

/// Adds up the rounds of tools, each with its own limit.
pub(super) fn sum_of_rounds(limits: impl Iterator<Item = Option<u64>>) -> u64 {
    let (mut limited, mut unlimited) = (0_u64, 0);
    for limit in limits {
        match limit {
            Some(limit) => limited = limited.saturating_add(limit),
            None => unlimited = DEFAULT_TOOL_ROUNDS,
        }
    }
    limited.saturating_add(unlimited)
}

/// Decodes a limit; one that cannot be read is none.
pub(super) fn decode_rounds(limit: Option<RawJson<'_>>) -> Option<u64> {
    limit.and_then(|limit| decode_json(limit.get()).ok())
}
